//! Figures: points, lines and polygons, generic over the surface they lie on.
//!
//! Invariant: neighboring points of a chain are different, every ring is closed, and a polygon is the set of points to
//! the left of all its rings: the outer ring runs counter-clockwise, holes run clockwise. On the globe the outer ring
//! is taken as written: if it runs clockwise, the polygon is the outside.
//!
//! ```text
//!   ┌──────◄──────┐
//!   │   ┌──►──┐   │      left of the outer ring
//!   ▼   ▲ hole▼   ▲      and left of the inner one
//!   │   └──◄──┘   │
//!   └──────►──────┘
//! ```

mod edge_group; // edges with a bounding ball, compared or skipped as a group

pub(crate) use edge_group::EdgeGroup;

/// A point on a surface, and that surface's meaning of straight, left and distance.
pub(crate) trait SurfacePoint: Copy {
    /// From the first two numbers of a GeoJSON position, or why they are no point.
    fn new(x: f64, y: f64) -> Result<Self, &'static str>;

    /// Equal within numeric precision.
    fn same(self, other: Self) -> bool;

    /// Whether exactly one shortest edge connects the two points.
    fn has_unique_edge_to(self, other: Self) -> bool;

    /// The middle of the edge between the two points.
    fn midpoint(self, other: Self) -> Self;

    /// Whether the point is on the segment, its ends included.
    fn is_on(self, segment: Segment<Self>) -> bool;

    /// The point where two segments cross, neither of them at an end.
    fn crossing(one: Segment<Self>, other: Segment<Self>) -> Option<Self>;

    /// A number that increases along the segment, for points on it.
    fn progress(self, segment: Segment<Self>) -> f64;

    /// Whether the point is left of the ring. For a point on the ring either answer is fine.
    fn left_of(self, ring: &[Self]) -> bool;

    /// A lower bound of the distance to the segment. Cheap.
    fn distance_lower_bound(self, segment: Segment<Self>) -> f64;

    /// The distance to the segment; if that is not below `best`, any number that is not below `best`.
    fn distance_to(self, segment: Segment<Self>, best: f64) -> f64;

    /// The area to the left of the ring.
    fn area(ring: &[Self]) -> f64;

    /// The point in a space in which straight-line distances are never longer than those on the surface.
    fn to_space(self) -> [f64; 3];

    /// Distance on the surface per unit of distance in that space, at least.
    fn metric_scale() -> f64;

    /// The boundary of a polygon whose outer ring is written like this.
    fn orient_outer(ring: Vec<Self>) -> Vec<Self>;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<P> {
    pub from: P,
    pub to: P,
}

#[derive(Clone, Debug)]
pub(crate) struct Figure<P> {
    pub points: Vec<P>,
    pub lines: Vec<Vec<P>>,
    pub polygons: Vec<Polygon<P>>,
    edge_groups: Vec<EdgeGroup<P>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Polygon<P> {
    outer: Vec<P>,
    holes: Vec<Vec<P>>,
}

impl<P: SurfacePoint> Polygon<P> {
    /// Rings as in GeoJSON: the first is the boundary, the others are holes, in either orientation.
    pub fn new(outer: Vec<P>, holes: Vec<Vec<P>>) -> Self {
        let outer = P::orient_outer(outer);
        let holes = holes.into_iter().filter_map(|hole| orient_hole(hole, &outer)).collect();
        Polygon { outer, holes }
    }

    pub fn outer(&self) -> &[P] {
        &self.outer
    }

    pub fn rings(&self) -> impl Iterator<Item = &[P]> {
        std::iter::once(&self.outer).chain(&self.holes).map(Vec::as_slice)
    }

    /// The boundary is part of a polygon.
    pub fn covers(&self, point: P) -> bool {
        self.on_border(point) || self.left_of_all_rings(point)
    }

    /// Strictly inside.
    pub fn encloses(&self, point: P) -> bool {
        !self.on_border(point) && self.left_of_all_rings(point)
    }

    fn on_border(&self, point: P) -> bool {
        self.rings().flat_map(segments).any(|segment| point.is_on(segment))
    }

    fn left_of_all_rings(&self, point: P) -> bool {
        self.rings().all(|ring| point.left_of(ring))
    }

    fn area(&self) -> f64 {
        let holes = self.holes.iter().map(|hole| P::area(&reversed(hole.clone())));
        (P::area(&self.outer) - holes.sum::<f64>()).max(0.0)
    }
}

impl<P: SurfacePoint> Figure<P> {
    pub fn new(points: Vec<P>, lines: Vec<Vec<P>>, polygons: Vec<Polygon<P>>) -> Self {
        let mut figure = Figure { points, lines, polygons, edge_groups: Vec::new() };
        figure.edge_groups = edge_group::group_edges(figure.chains());
        figure
    }

    pub fn area(&self) -> f64 {
        self.polygons.iter().map(Polygon::area).sum()
    }

    /// The point of a figure that is a single point.
    pub fn only_point(&self) -> Option<P> {
        match self.points.as_slice() {
            [point] if self.lines.is_empty() && self.polygons.is_empty() => Some(*point),
            _ => None,
        }
    }

    /// Points, lines and rings, each as the sequence of its points.
    pub fn chains(&self) -> impl Iterator<Item = &[P]> {
        let lines = self.lines.iter().map(Vec::as_slice);
        self.points.chunks(1).chain(lines).chain(self.polygons.iter().flat_map(Polygon::rings))
    }

    /// All edges, in groups of neighbors.
    pub fn edge_groups(&self) -> &[EdgeGroup<P>] {
        &self.edge_groups
    }

    pub fn edge_count(&self) -> usize {
        self.edge_groups.iter().map(|group| group.edges.len()).sum()
    }

    pub fn covers(&self, point: P) -> bool {
        let at_point = self.points.iter().any(|&own| own.same(point));
        at_point
            || self.lines.iter().flat_map(|line| segments(line)).any(|segment| point.is_on(segment))
            || self.polygons.iter().any(|polygon| polygon.covers(point))
    }
}

/// The edges of a chain.
pub(crate) fn segments<P: SurfacePoint>(chain: &[P]) -> impl Iterator<Item = Segment<P>> {
    chain.iter().zip(chain.iter().skip(1)).map(|(&from, &to)| Segment { from, to })
}

pub(crate) fn reversed<P>(mut ring: Vec<P>) -> Vec<P> {
    ring.reverse();
    ring
}

/// The hole, oriented so that the polygon's boundary lies to its left. `None` for a hole without an interior.
fn orient_hole<P: SurfacePoint>(hole: Vec<P>, outer: &[P]) -> Option<Vec<P>> {
    let off_the_ring = |point: &&P| !segments(&hole).any(|segment| point.is_on(segment));
    let point = *outer.iter().find(off_the_ring)?;
    if point.left_of(&hole) {
        return Some(hole);
    }
    let reversed_hole = reversed(hole);
    point.left_of(&reversed_hole).then_some(reversed_hole)
}
