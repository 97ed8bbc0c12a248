//! Distance from a point to an edge.
//!
//! Guarantees: exact and cheap on the sphere; on the ellipsoid the nearest point of the edge is searched for, and the
//! distance is correct to a micrometre or a billionth of itself.

use super::{GeoPoint, Vector, ellipsoid, plane};
use crate::figure::Segment;

/// In radians: shorter edges and nearer points are measured without a search.
const NEAR_RADIANS: f64 = 0.5;

/// The number of sections in which the search begins: none of them has two nearest points.
const STEPS: usize = 8;
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The square of the chord from a point to the nearest point of an arc, on the unit sphere.
pub fn chord_square(point: Vector, from: Vector, to: Vector) -> f64 {
    if projects_onto(point, from, to)
        && let Some(normal) = from.normal(to).unit()
    {
        let height = point.minus(from).dot(normal);
        let square = height * height;
        return 2.0 * square / (1.0 + (1.0 - square).max(0.0).sqrt());
    }
    let square = |end: Vector| point.minus(end).dot(point.minus(end));
    square(from).min(square(to))
}

/// Whether the perpendicular from the point meets the great circle between the ends.
pub fn projects_onto(point: Vector, from: Vector, to: Vector) -> bool {
    let (middle, direction) = (from.plus(to), to.minus(from));
    point.dot(middle) > 0.0
        && point.dot(direction).abs() * middle.dot(middle) <= direction.dot(direction) * point.dot(middle)
}

/// In metres; if the distance is not below `best`, any number that is not below `best`.
pub fn distance(point: GeoPoint, edge: Segment<GeoPoint>, best: f64) -> f64 {
    let from = ellipsoid::distance(point, edge.from);
    if edge.from.vector == edge.to.vector {
        return from;
    }
    let to = ellipsoid::distance(point, edge.to);
    let nearer = from.min(to);
    // By the triangle inequality, no point of the edge is nearer than (from + to − length) / 2.
    if (from + to - angle(edge) * ellipsoid::EQUATOR_METRES) / 2.0 >= nearer.min(best) {
        return nearer;
    }
    let near = angle(edge) < NEAR_RADIANS && nearer < NEAR_RADIANS * ellipsoid::POLE_METRES;
    nearer.min(if near { refine(point, edge) } else { search(point, edge) })
}

fn angle(edge: Segment<GeoPoint>) -> f64 {
    let chord = edge.to.vector.minus(edge.from.vector);
    ellipsoid::angle(chord.dot(chord))
}

/// One step from the nearest point on the sphere to the nearest point on the ellipsoid.
fn refine(point: GeoPoint, edge: Segment<GeoPoint>) -> f64 {
    let along = |part: f64| ellipsoid::distance(point, point_at(edge, part));
    let away = ellipsoid::distance_min(chord_square(point.vector, edge.from.vector, edge.to.vector));
    let step = (0.01 * away + 1e-3) / (angle(edge) * ellipsoid::EQUATOR_METRES);
    let start = (projection_angle(point.vector, edge) / angle(edge)).clamp(0.0, 1.0);
    along(parabola_minimum(start, step, along).clamp(0.0, 1.0))
}

/// For edges on which the sphere is a bad approximation: samples the edge, then refines around the best sample.
pub fn search(point: GeoPoint, edge: Segment<GeoPoint>) -> f64 {
    let along = |part: f64| ellipsoid::distance(point, point_at(edge, part));
    let step = 1.0 / STEPS as f64;
    let samples = (0..=STEPS).map(|i| i as f64 * step).map(|part| (part, along(part)));
    let (best, least) = samples.fold((0.0, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a });
    let length = angle(edge) * ellipsoid::EQUATOR_METRES;
    least.min(golden_section_min((best - step).max(0.0), (best + step).min(1.0), length, along))
}

/// The angle along the edge, on the sphere, at which the perpendicular from the point meets it.
fn projection_angle(point: Vector, edge: Segment<GeoPoint>) -> f64 {
    let from = edge.from.vector;
    let ahead = plane(edge).unit().map_or(from, |normal| normal.cross(from));
    point.dot(ahead).atan2(point.dot(from))
}

/// The minimum of the parabola through three values. On the ellipsoid the nearest point is within a hundredth of the
/// distance from where it is on the sphere, and there the distance behaves like a parabola.
fn parabola_minimum(start: f64, step: f64, value: impl Fn(f64) -> f64) -> f64 {
    let (before, here, after) = (value(start - step), value(start), value(start + step));
    let bend = before - 2.0 * here + after;
    if bend > 0.0 { start + step * ((before - after) / (2.0 * bend)).clamp(-2.0, 2.0) } else { start }
}

/// The point at this fraction of the edge.
fn point_at(edge: Segment<GeoPoint>, part: f64) -> GeoPoint {
    let angle = angle(edge);
    let weights = (((1.0 - part) * angle).sin(), (part * angle).sin());
    let sum = edge.from.vector.times(weights.0).plus(edge.to.vector.times(weights.1));
    sum.unit().map_or(edge.from, GeoPoint::from_vector)
}

/// The minimum between `low` and `high`, by golden-section search. Near its minimum a distance grows with the square
/// of the step, so a larger distance needs a coarser search only.
fn golden_section_min(mut low: f64, mut high: f64, length: f64, value: impl Fn(f64) -> f64) -> f64 {
    let inner = |low: f64, high: f64| (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut a, mut b) = inner(low, high);
    let (mut at_a, mut at_b) = (value(a), value(b));
    let tolerance = |best: f64| 1e-7_f64.max((1e-10 * best).sqrt());
    while (high - low) * length > tolerance(at_a.min(at_b)) && low < a && b < high {
        if at_a < at_b {
            (high, b, at_b) = (b, a, at_a);
            a = inner(low, high).0;
            at_a = value(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = inner(low, high).1;
            at_b = value(b);
        }
    }
    at_a.min(at_b)
}
