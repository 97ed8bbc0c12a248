//! spatial: GeoJSON shapes, what they measure, how they lie to each other, and where an index keeps them.
//!
//! Promise: no JSON makes this crate panic; a shape that exists is valid; what `relate` calls near, the
//! cells of an index find. Which items are indexed, and how a query asks, is decided elsewhere.
//!
//! Read in this order.
//!
//! ```text
//! {"type":"Point","coordinates":[8.5,47.4]}
//!    geojson   Value → Geometry, or the reason why not
//!    figure    points, lines and polygons, on whatever surface
//!    globe     places on the ellipsoid; edges are great ellipses        ┐ the two surfaces
//!    plane     places in a plane; edges are straight                    ┘
//!    relate    intersects, within, distance: the same words for both
//!    cells     a few squares that contain a shape: what a spatial index stores
//! ```

mod geojson; // Value to Geometry

mod figure; // points, lines, polygons
mod globe; // Geography
mod plane; // Geometry

mod relate; // intersects, within, distance

pub mod cells; // where an index keeps a shape

use std::convert::Infallible;

use pleiad_model::Value;
use pleiad_model::policy::{Geospatial, SpatialType};

use figure::Figure;
use globe::GeoPoint;
use plane::PlanePoint;

/// A valid shape, ready to be measured.
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

/// Why a value is not a shape, in the words that `ST_ISVALIDDETAILED` gives a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    pub reason: String,
}

impl Geometry {
    pub fn parse(value: &Value, geospatial: Geospatial) -> Result<Geometry, Invalid> {
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

    /// Square metres on the globe, square units in the plane; nothing for points and lines.
    pub fn area(&self) -> f64 {
        match &self.surface {
            Surface::Globe(figure) => figure.area(),
            Surface::Plane(figure) => figure.area(),
        }
    }

    /// The shortest way between the two, in metres or units; 0 when they share a place.
    pub fn distance(&self, other: &Geometry) -> f64 {
        let Ok(distance) = self.try_distance(other, &at_leisure);
        distance
    }

    /// Do they share a place? Touching is enough.
    pub fn intersects(&self, other: &Geometry) -> bool {
        let Ok(intersects) = self.try_intersects(other, &at_leisure);
        intersects
    }

    /// Is every place of this one in the other? The other's border belongs to it.
    pub fn within(&self, other: &Geometry) -> bool {
        let Ok(within) = self.try_within(other, &at_leisure);
        within
    }

    /// As `distance`. Shapes of n and m points may take n × m steps: `pulse` is told of some before they are made, and can end it.
    pub fn try_distance<E>(&self, other: &Geometry, pulse: CheckCancelled<'_, E>) -> Result<f64, E> {
        match (&self.surface, &other.surface) {
            (Surface::Globe(a), Surface::Globe(b)) => relate::distance(a, b, pulse),
            (Surface::Plane(a), Surface::Plane(b)) => relate::distance(a, b, pulse),
            _ => Ok(f64::NAN), // nothing on the globe is near to or far from anything in a plane
        }
    }

    /// As `intersects`.
    pub fn try_intersects<E>(&self, other: &Geometry, pulse: CheckCancelled<'_, E>) -> Result<bool, E> {
        match (&self.surface, &other.surface) {
            (Surface::Globe(a), Surface::Globe(b)) => relate::intersects(a, b, pulse),
            (Surface::Plane(a), Surface::Plane(b)) => relate::intersects(a, b, pulse),
            _ => Ok(false),
        }
    }

    /// As `within`.
    pub fn try_within<E>(&self, other: &Geometry, pulse: CheckCancelled<'_, E>) -> Result<bool, E> {
        match (&self.surface, &other.surface) {
            (Surface::Globe(a), Surface::Globe(b)) => relate::within(a, b, pulse),
            (Surface::Plane(a), Surface::Plane(b)) => relate::within(a, b, pulse),
            _ => Ok(false),
        }
    }
}

/// Hears of so many steps to come; an error ends the work.
pub type CheckCancelled<'p, E> = &'p dyn Fn(usize) -> Result<(), E>;

fn at_leisure(_: usize) -> Result<(), Infallible> {
    Ok(())
}

#[cfg(test)]
mod tests;
