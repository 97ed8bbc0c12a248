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
pub(crate) use bounds::{LonLatBox, spans};
use vector::Vector;

/// Points this near (0.06 micrometres) are the same, or on an edge: coordinates are not more precise than that.
const SLACK: f64 = 1e-14;

#[derive(Clone, Copy, Debug)]
pub(crate) struct GeoPoint {
    /// Degrees, as written or computed.
    longitude: f64,
    latitude: f64,
    /// The point on the unit sphere.
    at: Vector,
}

impl GeoPoint {
    const NORTH_POLE: GeoPoint = GeoPoint { longitude: 0.0, latitude: 90.0, at: Vector::NORTH };
    const SOUTH_POLE: GeoPoint = GeoPoint { longitude: 0.0, latitude: -90.0, at: Vector { x: 0.0, y: 0.0, z: -1.0 } };

    fn on_globe(longitude: f64, latitude: f64) -> GeoPoint {
        let (around, up) = (longitude.to_radians(), ellipsoid::to_sphere(latitude));
        let (sin, cos) = if latitude.abs() == 90.0 { (latitude.signum(), 0.0) } else { up.sin_cos() };
        GeoPoint { longitude, latitude, at: Vector { x: cos * around.cos(), y: cos * around.sin(), z: sin } }
    }

    fn above(at: Vector) -> GeoPoint {
        let longitude = at.y.atan2(at.x).to_degrees();
        GeoPoint { longitude, latitude: ellipsoid::from_sphere(at), at }
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
        Ok(GeoPoint::on_globe(longitude, latitude))
    }

    fn same(self, other: Self) -> bool {
        self.at.minus(other.at).length() <= SLACK
    }

    fn sees(self, other: Self) -> bool {
        self.at.plus(other.at).length() > 1e-9
    }

    fn middle(self, other: Self) -> Self {
        self.at.plus(other.at).unit().map_or(self, GeoPoint::above)
    }

    fn on(self, segment: Segment<Self>) -> bool {
        edge_distance::chord_square(self.at, segment.from.at, segment.to.at) <= SLACK * SLACK
    }

    fn crossing(one: Segment<Self>, other: Segment<Self>) -> Option<Self> {
        let (normal, other_normal) = (plane(one), plane(other));
        let (from, to) = (other.from.at.dot(normal), other.to.at.dot(normal));
        if from * to >= 0.0 || !arcs_cross(one.from.at, one.to.at, other_normal, to > 0.0) {
            return None;
        }
        // The line that both planes share intersects the sphere twice; the crossing is on the segments' side.
        let line = normal.cross(other_normal).unit()?;
        let ahead = line.dot(one.from.at.plus(one.to.at)) > 0.0;
        Some(GeoPoint::above(if ahead { line } else { line.times(-1.0) }))
    }

    fn progress(self, segment: Segment<Self>) -> f64 {
        self.at.dot(segment.to.at.minus(segment.from.at))
    }

    /// Follows a path from the point to the middle of the first edge and counts the other edges that it crosses. The
    /// side from which the path reaches the first edge is known, so no reference point outside is needed: on a globe
    /// there is none.
    fn left_of(self, ring: &[Self]) -> bool {
        let Some(first) = segments(ring).next() else { return false };
        let Some(pole) = plane(first).unit() else { return false };
        let goal = first.from.middle(first.to).at;
        let crossed = |from, to, skip| segments(ring).skip(skip).filter(|edge| walk_crosses(from, to, *edge)).count();
        let height = self.at.dot(pole);
        // A path that would arrive along the edge makes a detour over the pole of the edge's great circle.
        let (steps, left) = match height.abs() > 0.1 {
            true => (crossed(self.at, goal, 1), height > 0.0),
            false => (crossed(self.at, pole, 0) + crossed(pole, goal, 1), true),
        };
        left == steps.is_multiple_of(2)
    }

    fn gap_min(self, segment: Segment<Self>) -> f64 {
        ellipsoid::distance_min(edge_distance::chord_square(self.at, segment.from.at, segment.to.at))
    }

    fn gap(self, segment: Segment<Self>, best: f64) -> f64 {
        edge_distance::distance(self, segment, best)
    }

    fn area(ring: &[Self]) -> f64 {
        area::left_of(ring)
    }

    fn in_space(self) -> [f64; 3] {
        [self.at.x, self.at.y, self.at.z]
    }

    fn unit() -> f64 {
        ellipsoid::POLE_METRES
    }

    /// As written: a clockwise boundary means the outside.
    fn outer(ring: Vec<Self>) -> Vec<Self> {
        ring
    }
}

/// The normal of an edge's plane; points with a positive dot product lie left.
fn plane(edge: Segment<GeoPoint>) -> Vector {
    edge.from.at.normal(edge.to.at)
}

/// Whether the ends are on different sides of the other arc's plane, in the order in which the arcs cross and not
/// their continuations on the far side of the globe. `to_left`: whether the other arc's end is left of this arc.
fn arcs_cross(from: Vector, to: Vector, other_normal: Vector, to_left: bool) -> bool {
    let (from_side, to_side) = (from.dot(other_normal), to.dot(other_normal));
    from_side * to_side < 0.0 && (from_side > 0.0) == to_left
}

/// Like a crossing, but a corner on the path counts as left of it, so that it is counted once if the ring crosses the
/// path, and twice or not at all if the ring only touches it.
fn walk_crosses(from: Vector, to: Vector, edge: Segment<GeoPoint>) -> bool {
    let normal = from.cross(to);
    let (from_left, to_left) = (edge.from.at.dot(normal) >= 0.0, edge.to.at.dot(normal) >= 0.0);
    from_left != to_left && arcs_cross(from, to, plane(edge), to_left)
}

#[cfg(test)]
mod tests;
