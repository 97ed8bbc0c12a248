//! Geometry in a plane, for containers of type Geometry.
//!
//! Invariant: edges are straight, a ring encloses the same points in either orientation, and no coordinate is so
//! large that a product of two overflows.

use crate::figure::{Figure, Polygon, Segment, SurfacePoint, reversed, segments};

/// Products and sums of a few coordinates stay finite.
const COORDINATE_MAX: f64 = 1e100;

/// Points are equal, or on a line, if they differ by less than this fraction of their coordinates.
const SLACK: f64 = 1e-14;

#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanePoint {
    pub x: f64,
    pub y: f64,
}

impl PlanePoint {
    fn minus(self, other: PlanePoint) -> PlanePoint {
        PlanePoint { x: self.x - other.x, y: self.y - other.y }
    }

    fn dot(self, other: PlanePoint) -> f64 {
        self.x * other.x + self.y * other.y
    }

    fn cross(self, other: PlanePoint) -> f64 {
        self.x * other.y - self.y * other.x
    }

    fn length(self) -> f64 {
        self.x.hypot(self.y)
    }

    fn slack(self) -> f64 {
        SLACK * self.x.abs().max(self.y.abs())
    }

    fn offset(self, along: PlanePoint, fraction: f64) -> PlanePoint {
        PlanePoint { x: self.x + along.x * fraction, y: self.y + along.y * fraction }
    }

    /// Positive if this point is left of the line from → to.
    fn side(self, line: Segment<PlanePoint>) -> f64 {
        line.to.minus(line.from).cross(self.minus(line.from))
    }
}

impl SurfacePoint for PlanePoint {
    fn new(x: f64, y: f64) -> Result<Self, &'static str> {
        let fits = |c: f64| c.abs() <= COORDINATE_MAX; // false for NaN
        if fits(x) && fits(y) { Ok(PlanePoint { x, y }) } else { Err("Coordinates must be between -1e100 and 1e100.") }
    }

    fn same(self, other: Self) -> bool {
        self.minus(other).length() <= self.slack().max(other.slack())
    }

    fn has_unique_edge_to(self, _other: Self) -> bool {
        true
    }

    fn midpoint(self, other: Self) -> Self {
        PlanePoint { x: (self.x + other.x) / 2.0, y: (self.y + other.y) / 2.0 }
    }

    fn is_on(self, segment: Segment<Self>) -> bool {
        let slack = self.slack().max(segment.from.slack()).max(segment.to.slack());
        self.distance_lower_bound(segment) <= slack
    }

    fn crossing(one: Segment<Self>, other: Segment<Self>) -> Option<Self> {
        let (from, to) = (one.from.side(other), one.to.side(other));
        let on_opposite_sides = |a: f64, b: f64| a > 0.0 && b < 0.0 || a < 0.0 && b > 0.0;
        let crosses = on_opposite_sides(from, to) && on_opposite_sides(other.from.side(one), other.to.side(one));
        crosses.then(|| one.from.offset(one.to.minus(one.from), from / (from - to)))
    }

    fn progress(self, segment: Segment<Self>) -> f64 {
        self.minus(segment.from).dot(segment.to.minus(segment.from))
    }

    /// Rings are normalized: left of an outer ring is its inside, left of a hole is its outside.
    fn left_of(self, ring: &[Self]) -> bool {
        let encircled = segments(ring).filter(|&edge| passes_right_of(edge, self)).count() % 2 == 1;
        encircled == (doubled_area(ring) >= 0.0)
    }

    fn distance_lower_bound(self, segment: Segment<Self>) -> f64 {
        let direction = segment.to.minus(segment.from);
        let length = direction.length();
        if length == 0.0 {
            return self.minus(segment.from).length();
        }
        // Normalized first: the square of a very short or long vector underflows or overflows.
        let unit = PlanePoint { x: direction.x / length, y: direction.y / length };
        let along = self.minus(segment.from).dot(unit);
        if along <= 0.0 {
            self.minus(segment.from).length()
        } else if along >= length {
            self.minus(segment.to).length()
        } else {
            self.minus(segment.from).cross(unit).abs()
        }
    }

    fn distance_to(self, segment: Segment<Self>, _best: f64) -> f64 {
        self.distance_lower_bound(segment)
    }

    fn area(ring: &[Self]) -> f64 {
        doubled_area(ring) / 2.0
    }

    fn to_space(self) -> [f64; 3] {
        [self.x, self.y, 0.0]
    }

    fn metric_scale() -> f64 {
        1.0
    }

    fn orient_outer(ring: Vec<Self>) -> Vec<Self> {
        if doubled_area(&ring) < 0.0 { reversed(ring) } else { ring }
    }
}

/// Whether a ray from the point to the right crosses the edge. Only the lower end belongs to an edge, so that a ray
/// through a corner is counted once.
fn passes_right_of(edge: Segment<PlanePoint>, point: PlanePoint) -> bool {
    let up = edge.to.y > edge.from.y;
    let spans = (edge.from.y > point.y) != (edge.to.y > point.y);
    spans && (point.side(edge) > 0.0) == up
}

/// Positive if the ring runs counter-clockwise. Computed relative to its first point, which keeps small rings far
/// from the origin exact.
fn doubled_area(ring: &[PlanePoint]) -> f64 {
    let Some(&origin) = ring.first() else { return 0.0 };
    segments(ring).map(|edge| edge.from.minus(origin).cross(edge.to.minus(origin))).sum()
}

/// The bounding box of a part of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub x: (f64, f64),
    pub y: (f64, f64),
}

/// One for each point, line and polygon.
pub(crate) fn extents(figure: &Figure<PlanePoint>) -> Vec<Extent> {
    let lines = figure.lines.iter().map(Vec::as_slice);
    let polygons = figure.polygons.iter().map(Polygon::outer);
    figure.points.chunks(1).chain(lines).chain(polygons).map(Extent::of).collect()
}

impl Extent {
    fn of(chain: &[PlanePoint]) -> Extent {
        let side = |coordinate: fn(&PlanePoint) -> f64| {
            let low = chain.iter().map(coordinate).fold(f64::INFINITY, f64::min);
            (low, chain.iter().map(coordinate).fold(low, f64::max))
        };
        Extent { x: side(|point| point.x), y: side(|point| point.y) }
    }

    /// Widened by a distance, plus more than the rounding error.
    pub fn widened(self, reach: f64) -> Extent {
        let largest = [self.x.0, self.x.1, self.y.0, self.y.1].map(f64::abs).into_iter().fold(0.0, f64::max);
        let margin = reach * (1.0 + 1e-12) + 100.0 * SLACK * largest;
        let side = |(low, high): (f64, f64)| (low - margin, high + margin);
        Extent { x: side(self.x), y: side(self.y) }
    }
}
