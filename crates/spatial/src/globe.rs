//! Geometry on the globe, for containers of type Geography.
//!
//! The earth is the WGS-84 ellipsoid, an edge is the shorter part of the ellipse in which a plane through both ends
//! and the centre cuts it (a great ellipse), and distances are geodesic. This model gives the same areas as Cosmos.
//! The antimeridian and the poles are no special cases.
//!
//! The ellipsoid is the unit sphere, scaled by a along x and y and by b along z. Scaling preserves planes, so tests
//! for sides and crossings work on the sphere; it makes a path at most a and at least b times as long, so the angle
//! on the sphere bounds the distance from both sides.
//!
//! ```text
//!        latitude φ on the ellipsoid            tan β = (1 − f) tan φ on the sphere
//!   z │  ·                                  z │  ·  ·
//!   b ┤     ·   P ─ normal meets the        1 ┤       ·  P
//!     │        ·    equator's plane at φ      │        ·    the radius rises at β
//!     └──────────┴─ a                         └─────────┴─ 1
//! ```

mod area; // area left of a ring
mod ellipsoid; // WGS-84
mod edge_distance; // distance from a point to an edge
mod bounds; // bounding boxes of a figure
mod vector;

use crate::figure::{Segment, SurfacePoint, segments};
pub(crate) use bounds::{LonLatBox, bounding_boxes};
use vector::Vector;

/// Points this near (0.06 micrometres) are the same, or on an edge: coordinates are not more precise than that.
const SLACK: f64 = 1e-14;

#[derive(Clone, Copy, Debug)]
pub(crate) struct GeoPoint {
    /// Degrees, as written or computed.
    longitude: f64,
    latitude: f64,
    /// The point on the unit sphere.
    vector: Vector,
}

impl GeoPoint {
    const NORTH_POLE: GeoPoint = GeoPoint { longitude: 0.0, latitude: 90.0, vector: Vector::NORTH };
    const SOUTH_POLE: GeoPoint =
        GeoPoint { longitude: 0.0, latitude: -90.0, vector: Vector { x: 0.0, y: 0.0, z: -1.0 } };

    fn from_degrees(longitude: f64, latitude: f64) -> GeoPoint {
        let (around, up) = (longitude.to_radians(), ellipsoid::to_sphere(latitude));
        let (sin, cos) = if latitude.abs() == 90.0 { (latitude.signum(), 0.0) } else { up.sin_cos() };
        GeoPoint { longitude, latitude, vector: Vector { x: cos * around.cos(), y: cos * around.sin(), z: sin } }
    }

    fn from_vector(vector: Vector) -> GeoPoint {
        let longitude = vector.y.atan2(vector.x).to_degrees();
        GeoPoint { longitude, latitude: ellipsoid::from_sphere(vector), vector }
    }
}

impl SurfacePoint for GeoPoint {
    fn new(longitude: f64, latitude: f64) -> Result<Self, &'static str> {
        if !(-90.0..=90.0).contains(&latitude) {
            return Err("Latitude values must be between -90 and 90 degrees.");
        }
        if !(-180.0..=180.0).contains(&longitude) {
            return Err("Longitude values must be between -180 and 180 degrees.");
        }
        Ok(GeoPoint::from_degrees(longitude, latitude))
    }

    fn same(self, other: Self) -> bool {
        self.vector.minus(other.vector).length() <= SLACK
    }

    fn has_unique_edge_to(self, other: Self) -> bool {
        self.vector.plus(other.vector).length() > 1e-9
    }

    fn midpoint(self, other: Self) -> Self {
        self.vector.plus(other.vector).unit().map_or(self, GeoPoint::from_vector)
    }

    fn is_on(self, segment: Segment<Self>) -> bool {
        edge_distance::chord_square(self.vector, segment.from.vector, segment.to.vector) <= SLACK * SLACK
    }

    fn crossing(one: Segment<Self>, other: Segment<Self>) -> Option<Self> {
        let (normal, other_normal) = (plane(one), plane(other));
        let (from, to) = (other.from.vector.dot(normal), other.to.vector.dot(normal));
        if from * to >= 0.0 || !arcs_cross(one.from.vector, one.to.vector, other_normal, to > 0.0) {
            return None;
        }
        // The line that both planes share intersects the sphere twice; the crossing is on the segments' side.
        let line = normal.cross(other_normal).unit()?;
        let ahead = line.dot(one.from.vector.plus(one.to.vector)) > 0.0;
        Some(GeoPoint::from_vector(if ahead { line } else { line.times(-1.0) }))
    }

    fn progress(self, segment: Segment<Self>) -> f64 {
        self.vector.dot(segment.to.vector.minus(segment.from.vector))
    }

    /// Follows a path from the point to the middle of the first edge and counts the other edges that it crosses. The
    /// side from which the path reaches the first edge is known, so no reference point outside is needed: on a globe
    /// there is none.
    fn left_of(self, ring: &[Self]) -> bool {
        let Some(first) = segments(ring).next() else { return false };
        let Some(pole) = plane(first).unit() else { return false };
        let goal = first.from.midpoint(first.to).vector;
        let crossed = |from, to, skip| segments(ring).skip(skip).filter(|edge| path_crosses(from, to, *edge)).count();
        let height = self.vector.dot(pole);
        // A path that would arrive along the edge makes a detour over the pole of the edge's great circle.
        let (crossings, left) = match height.abs() > 0.1 {
            true => (crossed(self.vector, goal, 1), height > 0.0),
            false => (crossed(self.vector, pole, 0) + crossed(pole, goal, 1), true),
        };
        left == crossings.is_multiple_of(2)
    }

    fn distance_lower_bound(self, segment: Segment<Self>) -> f64 {
        ellipsoid::distance_min(edge_distance::chord_square(self.vector, segment.from.vector, segment.to.vector))
    }

    fn distance_to(self, segment: Segment<Self>, best: f64) -> f64 {
        edge_distance::distance(self, segment, best)
    }

    fn area(ring: &[Self]) -> f64 {
        area::left_of(ring)
    }

    fn to_space(self) -> [f64; 3] {
        [self.vector.x, self.vector.y, self.vector.z]
    }

    fn metric_scale() -> f64 {
        ellipsoid::POLE_METRES
    }

    /// As written: a clockwise boundary means the outside.
    fn orient_outer(ring: Vec<Self>) -> Vec<Self> {
        ring
    }
}

/// The normal of an edge's plane; points with a positive dot product lie left.
fn plane(edge: Segment<GeoPoint>) -> Vector {
    edge.from.vector.normal(edge.to.vector)
}

/// Whether the ends are on different sides of the other arc's plane, in the order in which the arcs cross and not
/// their continuations on the far side of the globe. `to_left`: whether the other arc's end is left of this arc.
fn arcs_cross(from: Vector, to: Vector, other_normal: Vector, to_left: bool) -> bool {
    let (from_side, to_side) = (from.dot(other_normal), to.dot(other_normal));
    from_side * to_side < 0.0 && (from_side > 0.0) == to_left
}

/// Like a crossing, but a corner on the path counts as left of it, so that it is counted once if the ring crosses the
/// path, and twice or not at all if the ring only touches it.
fn path_crosses(from: Vector, to: Vector, edge: Segment<GeoPoint>) -> bool {
    let normal = from.cross(to);
    let (from_left, to_left) = (edge.from.vector.dot(normal) >= 0.0, edge.to.vector.dot(normal) >= 0.0);
    from_left != to_left && arcs_cross(from, to, plane(edge), to_left)
}

#[cfg(test)]
mod tests;
