//! Area of the part of the globe that is left of a ring.
//!
//! Guarantees: the area between great ellipses on the ellipsoid, to about thirteen digits for rings of any size.
//!
//! With s the height of a point over the equatorial plane (on the unit sphere), the ellipsoid has A(s) = ∫ ab √(1 + ε
//! s²) ds per radian of longitude between the equator and s. It is split into A(s) = A(1) s + D(s). The first term is
//! that of a sphere, whose triangles have a closed form. The second is small and zero at the poles, so it is easy to
//! integrate along an edge, also across a pole:
//!
//! ```text
//!   dλ = n dt / (1 − s²)      n: height of the edge's normal, t: angle along the edge
//!   D(s) = − ab (1 − s²) s Σ c ε^k (1 + s² + … + s^(2k−2))
//! ```

use super::{GeoPoint, Vector, ellipsoid, plane};
use crate::figure::segments;

/// (a² − b²) / b²
const EPSILON: f64 = 1.0 / ((1.0 - ellipsoid::FLATTENING) * (1.0 - ellipsoid::FLATTENING)) - 1.0;

/// ∫ √(1 + ε s²) ds = s + Σ c[k] ε^k s^(2k+1)
const SERIES: [f64; 6] = [1.0 / 6.0, -1.0 / 40.0, 1.0 / 112.0, -5.0 / 1152.0, 7.0 / 2816.0, -21.0 / 13312.0];

/// Gauss-Legendre quadrature with five nodes: position between −1 and 1, and weight.
const NODES: [(f64, f64); 5] = [
    (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
    (-0.538_469_310_105_683, 0.478_628_670_499_366_5),
    (0.0, 0.568_888_888_888_888_9),
    (0.538_469_310_105_683, 0.478_628_670_499_366_5),
    (0.906_179_845_938_664, 0.236_926_885_056_189_1),
];

const PIECE_RADIANS_MAX: f64 = 0.25;

/// In square metres.
pub fn left_of(ring: &[GeoPoint]) -> f64 {
    let scale = ellipsoid::EQUATOR_METRES * ellipsoid::POLE_METRES;
    let sphere = 1.0 + terms().map(|(c, _)| c).sum::<f64>(); // A(1) / ab
    let correction: f64 =
        segments(ring).map(|edge| ellipsoid_correction(edge.from.vector, edge.to.vector, plane(edge))).sum();
    scale * (sphere * solid_angle(ring) + correction)
}

fn terms() -> impl Iterator<Item = (f64, i32)> {
    SERIES.into_iter().zip(1..).map(|(c, k)| (c * EPSILON.powi(k), k))
}

/// The area on the unit sphere left of the ring: the sum of triangles that share its first corner.
fn solid_angle(ring: &[GeoPoint]) -> f64 {
    let Some(first) = ring.first().map(|point| point.vector) else { return 0.0 };
    let sum: f64 = segments(ring).map(|edge| triangle(first, edge.from.vector, edge.to.vector)).sum();
    let wide = ring.iter().map(|point| point.vector.minus(first).length()).fold(0.0, f64::max);
    let whole = 4.0 * std::f64::consts::PI;
    // A ring that only runs back and forth has nothing on its left, whatever the rounding error.
    if sum.abs() < 1e-15 * wide { 0.0 } else { sum.rem_euclid(whole) }
}

/// Positive when a, b, c turn left.
fn triangle(a: Vector, b: Vector, c: Vector) -> f64 {
    let volume = a.dot(b.minus(a).cross(c.minus(a)));
    2.0 * volume.atan2(1.0 + a.dot(b) + b.dot(c) + c.dot(a))
}

/// −∫ D dλ / ab along an edge.
fn ellipsoid_correction(from: Vector, to: Vector, normal: Vector) -> f64 {
    let Some(normal) = normal.unit() else { return 0.0 };
    let ahead = normal.cross(from);
    let chord = to.minus(from);
    let angle = ellipsoid::angle(chord.dot(chord));
    let pieces = (angle / PIECE_RADIANS_MAX).ceil().max(1.0);
    let half = angle / pieces / 2.0;
    let height = |t: f64| from.z * t.cos() + ahead.z * t.sin();
    let piece = |i: usize| {
        NODES.map(|(node, weight)| weight * correction_density(height(half * (2.0 * i as f64 + 1.0 + node))))
    };
    let sum: f64 = (0..pieces as usize).flat_map(piece).sum();
    normal.z * half * sum
}

/// −D(s) / ab (1 − s²)
fn correction_density(s: f64) -> f64 {
    let powers = |k: i32| (0..k).map(|i| s.powi(2 * i)).sum::<f64>();
    s * terms().map(|(c, k)| c * powers(k)).sum::<f64>()
}
