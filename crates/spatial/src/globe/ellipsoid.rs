//! The WGS-84 ellipsoid, and its mapping to the unit sphere.

use std::cell::OnceCell;

use geographiclib_rs::{Geodesic, InverseGeodesic};

use super::{GeoPoint, Vector};

pub const EQUATOR_METRES: f64 = 6_378_137.0;
pub const FLATTENING: f64 = 1.0 / 298.257_223_563;
/// From the centre to a pole.
pub const POLE_METRES: f64 = EQUATOR_METRES * (1.0 - FLATTENING);

/// The latitude on the sphere, in radians, of a latitude on the ellipsoid, in degrees.
pub fn to_sphere(latitude: f64) -> f64 {
    ((1.0 - FLATTENING) * latitude.to_radians().tan()).atan()
}

/// The latitude on the ellipsoid, in degrees, of a point on the sphere.
pub fn from_sphere(at: Vector) -> f64 {
    at.z.atan2((1.0 - FLATTENING) * at.x.hypot(at.y)).to_degrees()
}

/// Geodesic metres.
pub fn distance(a: GeoPoint, b: GeoPoint) -> f64 {
    thread_local! { static WGS84: OnceCell<Geodesic> = const { OnceCell::new() } }
    let solve = |earth: &Geodesic| earth.inverse(a.latitude, a.longitude, b.latitude, b.longitude);
    WGS84.with(|earth| solve(earth.get_or_init(Geodesic::wgs84)))
}

/// A lower bound of the distance on the ellipsoid of two points whose chord on the sphere has this square.
pub fn distance_min(chord_square: f64) -> f64 {
    POLE_METRES * angle(chord_square)
}

pub fn angle(chord_square: f64) -> f64 {
    2.0 * (chord_square.max(0.0).sqrt() / 2.0).min(1.0).asin()
}
