//! spatial: parsing, measuring and relating GeoJSON shapes, and covering cells for the spatial index.
//!
//! Guarantees: no JSON makes this crate panic; a `Geometry` is always valid; a search over `cells` finds every shape
//! that is within the distance according to `relate`. Other crates decide which items are indexed and how a query uses
//! the index.
//!
//! Read in this order.
//!
//! ```text
//! {"type":"Point","coordinates":[8.5,47.4]}
//!    geojson   Value → Geometry, or the reason why it is invalid
//!    figure    points, lines and polygons, on either surface
//!    globe     points on the ellipsoid; edges are great ellipses        ┐ the two surfaces
//!    plane     points in a plane; edges are straight                    ┘
//!    relate    intersects, within, distance: the same code for both
//!    cells     a few squares that contain a shape: what a spatial index stores
//! ```

mod figure; // points, lines, polygons
mod geojson; // Value to Geometry
mod globe; // Geography
mod plane; // Geometry

mod relate; // intersects, within, distance

pub mod cells; // covering cells for a spatial index

use std::convert::Infallible;

use pleiad_model::Value;
use pleiad_model::policy::{Geospatial, SpatialType};

use figure::Figure;
use globe::GeoPoint;
use plane::PlanePoint;

/// A valid shape.
#[derive(Clone, Debug)]
pub struct Geometry {
    kind: SpatialType,
    surface: Surface,
}

#[derive(Clone, Debug)]
enum Surface {
    Globe(Figure<GeoPoint>),
    Plane(Figure<PlanePoint>),
}

/// Why a value is not a valid shape, in the words that `ST_ISVALIDDETAILED` returns to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidGeometry {
    pub reason: String,
}

impl Geometry {
    pub fn parse(value: &Value, geospatial: Geospatial) -> Result<Geometry, InvalidGeometry> {
        let (kind, surface) = match geospatial {
            Geospatial::Geography => geojson::figure(value).map(|(kind, figure)| (kind, Surface::Globe(figure))),
            Geospatial::Geometry => geojson::figure(value).map(|(kind, figure)| (kind, Surface::Plane(figure))),
        }?;
        Ok(Geometry { kind, surface })
    }

    pub fn is_valid(value: &Value, geospatial: Geospatial) -> bool {
        Geometry::parse(value, geospatial).is_ok()
    }

    pub fn kind(&self) -> SpatialType {
        self.kind
    }

    /// Square metres on the globe, square units in the plane; 0 for points and lines.
    pub fn area(&self) -> f64 {
        match &self.surface {
            Surface::Globe(figure) => figure.area(),
            Surface::Plane(figure) => figure.area(),
        }
    }

    /// The shortest distance between the two, in metres or units; 0 if they intersect.
    pub fn distance(&self, other: &Geometry) -> f64 {
        let Ok(distance) = self.try_distance(other, &never_cancelled);
        distance
    }

    /// Whether they have a point in common. Touching is enough.
    pub fn intersects(&self, other: &Geometry) -> bool {
        let Ok(intersects) = self.try_intersects(other, &never_cancelled);
        intersects
    }

    /// Whether every point of this shape is in the other one. The other's boundary belongs to it.
    pub fn within(&self, other: &Geometry) -> bool {
        let Ok(within) = self.try_within(other, &never_cancelled);
        within
    }

    /// Like `distance`. Shapes of n and m points may take n × m steps: `check_cancelled` is called before each
    /// portion of them, and can end the computation with an error.
    pub fn try_distance<E>(&self, other: &Geometry, check_cancelled: CheckCancelled<'_, E>) -> Result<f64, E> {
        match (&self.surface, &other.surface) {
            (Surface::Globe(a), Surface::Globe(b)) => relate::distance(a, b, check_cancelled),
            (Surface::Plane(a), Surface::Plane(b)) => relate::distance(a, b, check_cancelled),
            _ => Ok(f64::NAN), // no distance between shapes on different surfaces
        }
    }

    /// Like `intersects`.
    pub fn try_intersects<E>(&self, other: &Geometry, check_cancelled: CheckCancelled<'_, E>) -> Result<bool, E> {
        match (&self.surface, &other.surface) {
            (Surface::Globe(a), Surface::Globe(b)) => relate::intersects(a, b, check_cancelled),
            (Surface::Plane(a), Surface::Plane(b)) => relate::intersects(a, b, check_cancelled),
            _ => Ok(false),
        }
    }

    /// Like `within`.
    pub fn try_within<E>(&self, other: &Geometry, check_cancelled: CheckCancelled<'_, E>) -> Result<bool, E> {
        match (&self.surface, &other.surface) {
            (Surface::Globe(a), Surface::Globe(b)) => relate::within(a, b, check_cancelled),
            (Surface::Plane(a), Surface::Plane(b)) => relate::within(a, b, check_cancelled),
            _ => Ok(false),
        }
    }
}

/// Called with the number of steps to come; an error ends the computation.
pub type CheckCancelled<'p, E> = &'p dyn Fn(usize) -> Result<(), E>;

fn never_cancelled(_: usize) -> Result<(), Infallible> {
    Ok(())
}

#[cfg(test)]
mod tests;
