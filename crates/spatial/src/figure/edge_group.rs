//! Edge groups: neighboring edges with a bounding ball, which are compared or skipped together.
//!
//! Invariant: no point of a group's edges is outside its ball, so whatever is far from the ball is far from all of
//! them. This is why two boundaries of thousands of points are compared in milliseconds and not in seconds.

use super::{Segment, SurfacePoint, segments};

const EDGES_MAX: usize = 32;

#[derive(Clone, Debug)]
pub(crate) struct EdgeGroup<P> {
    pub edges: Vec<Segment<P>>,
    ball: Ball,
}

#[derive(Clone, Copy, Debug)]
struct Ball {
    center: [f64; 3],
    radius: f64,
}

/// A point becomes an edge of length zero.
pub(super) fn group_edges<'p, P: SurfacePoint + 'p>(chains: impl Iterator<Item = &'p [P]>) -> Vec<EdgeGroup<P>> {
    let edges = |chain: &'p [P]| match chain {
        [only] => vec![Segment { from: *only, to: *only }],
        _ => segments(chain).collect(),
    };
    chains.flat_map(|chain| edges(chain).chunks(EDGES_MAX).map(EdgeGroup::new).collect::<Vec<_>>()).collect()
}

impl<P: SurfacePoint> EdgeGroup<P> {
    pub fn new(edges: &[Segment<P>]) -> Self {
        EdgeGroup { edges: edges.to_vec(), ball: Ball::around(edges) }
    }

    /// A lower bound of the distance between points of the two groups.
    pub fn distance_lower_bound(&self, other: &EdgeGroup<P>) -> f64 {
        self.ball.distance_lower_bound(&other.ball) * P::metric_scale()
    }

    /// Whether an edge of this group may intersect an edge of the other one.
    pub fn may_intersect(&self, other: &EdgeGroup<P>) -> bool {
        self.ball.distance_lower_bound(&other.ball) <= 0.0
    }
}

impl Ball {
    fn around<P: SurfacePoint>(edges: &[Segment<P>]) -> Ball {
        let (from, to) = (edges.first().map(|edge| edge.from), edges.last().map(|edge| edge.to));
        let center = match (from, to) {
            (Some(from), Some(to)) => midpoint(from.to_space(), to.to_space()),
            _ => [0.0; 3],
        };
        // A curved edge deviates from the straight line between its ends by less than its length.
        let far = |edge: &Segment<P>| {
            let (from, to) = (edge.from.to_space(), edge.to.to_space());
            distance(center, from).max(distance(center, to)) + distance(from, to)
        };
        let radius = edges.iter().map(far).fold(0.0, f64::max);
        Ball { center, radius: radius * (1.0 + 1e-9) }
    }

    /// Allows for rounding, and for points that count as equal although they differ.
    fn distance_lower_bound(&self, other: &Ball) -> f64 {
        let large = self.center.iter().chain(&other.center).fold(0.0, |large: f64, c| large.max(c.abs()));
        let slack = 1e-12 * (large + self.radius + other.radius);
        distance(self.center, other.center) - self.radius - other.radius - slack
    }
}

fn midpoint(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|i| (a[i] + b[i]) / 2.0)
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1]).hypot(a[2] - b[2])
}
