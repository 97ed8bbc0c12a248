//! From a place to an edge.
//!
//! Promise: on the sphere exact and cheap; on the ellipsoid the nearest place of the edge is searched for, and
//! the distance found is right to a micrometre or a billionth of itself.

use super::{GeoPoint, Vector, ellipsoid, plane};
use crate::figure::Segment;

/// Radians: edges this short, and places this near, are measured without a search.
const NEAR: f64 = 0.5;

/// Where the search begins: no stretch of an edge this part of its length has two nearest places.
const STEPS: usize = 8;
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The square of the chord from a place to the nearest one of an arc, on the unit sphere.
pub fn chord_square(place: Vector, from: Vector, to: Vector) -> f64 {
    if beside(place, from, to)
        && let Some(normal) = from.normal(to).unit()
    {
        let height = place.minus(from).dot(normal);
        let square = height * height;
        return 2.0 * square / (1.0 + (1.0 - square).max(0.0).sqrt());
    }
    let square = |end: Vector| place.minus(end).dot(place.minus(end));
    square(from).min(square(to))
}

/// Does the perpendicular from the place meet the great circle between the ends?
pub fn beside(place: Vector, from: Vector, to: Vector) -> bool {
    let (middle, way) = (from.plus(to), to.minus(from));
    place.dot(middle) > 0.0 && place.dot(way).abs() * middle.dot(middle) <= way.dot(way) * place.dot(middle)
}

/// Metres; once it is clear that they are not below `best`, any number that is not below it either.
pub fn distance(place: GeoPoint, edge: Segment<GeoPoint>, best: f64) -> f64 {
    let from = ellipsoid::distance(place, edge.from);
    if edge.from.at == edge.to.at {
        return from;
    }
    let to = ellipsoid::distance(place, edge.to);
    let nearer = from.min(to);
    // A way from one end over the nearest place and back to the other end: both ends are at most that far.
    if (from + to - angle(edge) * ellipsoid::EQUATOR_METRES) / 2.0 >= nearer.min(best) {
        return nearer;
    }
    let near = angle(edge) < NEAR && nearer < NEAR * ellipsoid::POLE_METRES;
    nearer.min(if near { measure(place, edge) } else { search(place, edge) })
}

fn angle(edge: Segment<GeoPoint>) -> f64 {
    let chord = edge.to.at.minus(edge.from.at);
    ellipsoid::angle(chord.dot(chord))
}

/// From where the nearest place is on the sphere to where it is on the ellipsoid, in one step.
fn measure(place: GeoPoint, edge: Segment<GeoPoint>) -> f64 {
    let along = |part: f64| ellipsoid::distance(place, at(edge, part));
    let away = ellipsoid::distance_min(chord_square(place.at, edge.from.at, edge.to.at));
    let step = (0.01 * away + 1e-3) / (angle(edge) * ellipsoid::EQUATOR_METRES);
    let start = (foot(place.at, edge) / angle(edge)).clamp(0.0, 1.0);
    along(valley(start, step, along).clamp(0.0, 1.0))
}

/// For edges on which the sphere is a bad guide: from the best of some places to the best of all.
pub fn search(place: GeoPoint, edge: Segment<GeoPoint>) -> f64 {
    let along = |part: f64| ellipsoid::distance(place, at(edge, part));
    let step = 1.0 / STEPS as f64;
    let samples = (0..=STEPS).map(|i| i as f64 * step).map(|part| (part, along(part)));
    let (best, least) = samples.fold((0.0, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a });
    let length = angle(edge) * ellipsoid::EQUATOR_METRES;
    least.min(narrow((best - step).max(0.0), (best + step).min(1.0), length, along))
}

/// How far along the edge, as an angle on the sphere, the perpendicular from the place meets it.
fn foot(place: Vector, edge: Segment<GeoPoint>) -> f64 {
    let from = edge.from.at;
    let ahead = plane(edge).unit().map_or(from, |normal| normal.cross(from));
    place.dot(ahead).atan2(place.dot(from))
}

/// The lowest place of the parabola through three values. On the ellipsoid the nearest place is within a
/// hundredth of the distance from where it is on the sphere, and there a distance grows like a parabola.
fn valley(start: f64, step: f64, value: impl Fn(f64) -> f64) -> f64 {
    let (before, here, after) = (value(start - step), value(start), value(start + step));
    let bend = before - 2.0 * here + after;
    if bend > 0.0 { start + step * ((before - after) / (2.0 * bend)).clamp(-2.0, 2.0) } else { start }
}

/// The place that is this part of the edge from its beginning.
fn at(edge: Segment<GeoPoint>, part: f64) -> GeoPoint {
    let angle = angle(edge);
    let weights = (((1.0 - part) * angle).sin(), (part * angle).sin());
    let sum = edge.from.at.times(weights.0).plus(edge.to.at.times(weights.1));
    sum.unit().map_or(edge.from, GeoPoint::above)
}

/// The least value between `low` and `high`, by golden sections. Near its least a distance grows with the square
/// of the step, so far things need not be searched finely.
fn narrow(mut low: f64, mut high: f64, length: f64, value: impl Fn(f64) -> f64) -> f64 {
    let inner = |low: f64, high: f64| (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut a, mut b) = inner(low, high);
    let (mut at_a, mut at_b) = (value(a), value(b));
    let fine = |best: f64| 1e-7_f64.max((1e-10 * best).sqrt());
    while (high - low) * length > fine(at_a.min(at_b)) && low < a && b < high {
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
