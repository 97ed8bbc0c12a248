//! Bounding boxes of a figure in longitude and latitude.
//!
//! Invariant: no point of the figure is outside its boxes, not even by a rounding error, and everything within the
//! given distance in metres is inside the widened boxes. Latitudes are those *on the sphere*, not geographic ones:
//! only boxes of this module are compared with each other.
//!
//! ```text
//!   west 170, east 190     a box across the antimeridian: east continues beyond 180, up to west + 360
//!   north 90               a box that contains a pole has all longitudes
//! ```

use super::{GeoPoint, Vector, edge_distance, ellipsoid, plane};
use crate::figure::{Figure, Polygon, Segment, segments};

/// Much more than a rounding error, much less than a cell (0.1 millimetres).
const MARGIN: f64 = 1e-9;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LonLatBox {
    pub west: f64,
    pub east: f64,
    pub south: f64,
    pub north: f64,
}

/// One box for each point, line and polygon, each widened by a distance in metres.
pub(crate) fn bounding_boxes(figure: &Figure<GeoPoint>, reach_metres: f64) -> Vec<LonLatBox> {
    let points = figure.points.iter().map(|&point| LonLatBox::of_chain(&[point]));
    let lines = figure.lines.iter().map(|line| LonLatBox::of_chain(line));
    let polygons = figure.polygons.iter().map(LonLatBox::of_polygon);
    points.chain(lines).chain(polygons).map(|bounds| bounds.widened(reach_metres)).collect()
}

impl LonLatBox {
    fn of_polygon(polygon: &Polygon<GeoPoint>) -> LonLatBox {
        let mut bounds = LonLatBox::of_chain(polygon.outer());
        // An interior without a pole lies in the boundary's box; one with a pole has all longitudes.
        if polygon.covers(GeoPoint::NORTH_POLE) {
            bounds = LonLatBox { north: 90.0, ..bounds.with_all_longitudes() };
        }
        if polygon.covers(GeoPoint::SOUTH_POLE) {
            bounds = LonLatBox { south: -90.0, ..bounds.with_all_longitudes() };
        }
        bounds
    }

    fn of_chain(chain: &[GeoPoint]) -> LonLatBox {
        let (mut bounds, mut longitude) = match chain.first() {
            Some(first) => (LonLatBox::of_point(*first), first.longitude),
            None => return LonLatBox::WORLD,
        };
        for edge in segments(chain) {
            let delta = longitude_delta(edge.from.longitude, edge.to.longitude);
            longitude += delta;
            bounds.west = bounds.west.min(longitude);
            bounds.east = bounds.east.max(longitude);
            bounds.include_latitudes(edge);
            if delta.abs() > 180.0 - 1e-6 {
                bounds = bounds.with_all_longitudes(); // across a pole, where all longitudes meet
            }
        }
        bounds
    }

    const WORLD: LonLatBox = LonLatBox { west: -180.0, east: 180.0, south: -90.0, north: 90.0 };

    fn of_point(point: GeoPoint) -> LonLatBox {
        let latitude = latitude(point.vector);
        LonLatBox { west: point.longitude, east: point.longitude, south: latitude, north: latitude }
    }

    fn with_all_longitudes(self) -> LonLatBox {
        LonLatBox { west: -180.0, east: 180.0, ..self }
    }

    /// An edge may extend further north or south than its ends.
    fn include_latitudes(&mut self, edge: Segment<GeoPoint>) {
        let mut include = |at: Vector| {
            self.south = self.south.min(latitude(at));
            self.north = self.north.max(latitude(at));
        };
        include(edge.to.vector);
        for top in extreme_points(edge).into_iter().flatten() {
            if edge_distance::projects_onto(top, edge.from.vector, edge.to.vector) {
                include(top);
            }
        }
    }

    fn widened(self, reach_metres: f64) -> LonLatBox {
        let angle = (reach_metres / ellipsoid::POLE_METRES).to_degrees() * (1.0 + 1e-9) + MARGIN;
        let (south, north) = (self.south - angle, self.north + angle);
        let high = self.south.abs().max(self.north.abs());
        let sideways = (angle.to_radians().sin() / high.to_radians().cos()).asin().to_degrees() + MARGIN;
        let (west, east) = (self.west - sideways, self.east + sideways);
        // Negated comparisons, so that a NaN distance or sine makes the box large.
        let bounded = angle < 90.0 && north < 90.0 && south > -90.0 && east - west < 360.0;
        let bounds = LonLatBox { west, east, south: south.max(-90.0), north: north.min(90.0) };
        match bounded {
            true => bounds,
            false if angle < 90.0 => bounds.with_all_longitudes(),
            false => LonLatBox::WORLD,
        }
    }
}

/// The northernmost and southernmost points of an edge's great circle.
fn extreme_points(edge: Segment<GeoPoint>) -> [Option<Vector>; 2] {
    let top = plane(edge).unit().and_then(|normal| Vector::NORTH.minus(normal.times(normal.z)).unit());
    [top, top.map(|top| top.times(-1.0))]
}

fn latitude(at: Vector) -> f64 {
    at.z.atan2(at.x.hypot(at.y)).to_degrees()
}

/// How far an edge goes east (negative: west), by the shorter direction.
fn longitude_delta(from: f64, to: f64) -> f64 {
    (to - from + 540.0).rem_euclid(360.0) - 180.0
}
