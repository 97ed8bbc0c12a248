//! Areas and distances compared with slower computations.

use geographiclib_rs::{Geodesic, PolygonArea, Winding};
use proptest::prelude::*;

use super::*;
use crate::figure::reversed;

const EARTH: f64 = 510_065_621_724_088.4;

fn point(longitude: f64, latitude: f64) -> GeoPoint {
    GeoPoint::new(longitude, latitude).unwrap()
}

fn closed(mut ring: Vec<GeoPoint>) -> Vec<GeoPoint> {
    ring.push(ring[0]);
    ring
}

fn halved(edge: Segment<GeoPoint>, parts: u32) -> Vec<GeoPoint> {
    let middle = edge.from.midpoint(edge.to);
    match parts {
        0 => vec![edge.from],
        _ => [Segment { from: edge.from, to: middle }, Segment { from: middle, to: edge.to }]
            .into_iter()
            .flat_map(|half| halved(half, parts - 1))
            .collect(),
    }
}

/// Splits the great ellipses into short geodesic edges.
fn area_by_subdivision(ring: &[GeoPoint]) -> f64 {
    let earth = Geodesic::wgs84();
    let mut polygon = PolygonArea::new(&earth, Winding::CounterClockwise);
    for point in segments(ring).flat_map(|edge| halved(edge, 8)) {
        polygon.add_point(point.latitude, point.longitude);
    }
    polygon.compute(true).1
}

/// A ring of four corners around a point, counter-clockwise.
fn quad() -> impl Strategy<Value = Vec<GeoPoint>> {
    let spokes = [0.1..1.0f64, 0.1..1.0, 0.1..1.0, 0.1..1.0];
    (-150.0..150.0f64, -60.0..60.0f64, 0.01..25.0f64, spokes).prop_map(|(x, y, size, [e, n, w, s])| {
        closed(vec![point(x + e * size, y), point(x, y + n * size), point(x - w * size, y), point(x, y - s * size)])
    })
}

#[test]
fn ellipsoid_and_sphere_conversions_round_trip() {
    for latitude in [-90.0, -45.0, 0.0, 1e-9, 33.3, 89.999, 90.0] {
        let back = GeoPoint::from_vector(point(12.5, latitude).vector);
        assert!((back.latitude - latitude).abs() < 1e-12, "{back:?}");
    }
}

#[test]
fn a_ring_without_an_inside_has_no_area() {
    let there_and_back = closed(vec![point(0.0, 0.0), point(10.0, 0.0), point(20.0, 0.0), point(10.0, 0.0)]);
    assert_eq!(GeoPoint::area(&there_and_back), 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn areas_match_geographiclib(ring in quad()) {
        let (area, slowly) = (GeoPoint::area(&ring), area_by_subdivision(&ring));
        prop_assert!((area - slowly).abs() < 1e-6 * slowly + 1.0, "{} {}", area, slowly);
        let outside = GeoPoint::area(&reversed(ring));
        prop_assert!((area + outside - EARTH).abs() < 10.0);
    }

    #[test]
    fn a_point_is_left_of_a_ring_or_of_its_reverse(ring in quad(), x in -180.0..180.0f64, y in -90.0..90.0f64) {
        let query_point = point(x, y);
        prop_assert_ne!(query_point.left_of(&ring), query_point.left_of(&reversed(ring)));
    }

    #[test]
    fn no_sampled_point_of_an_edge_is_nearer(
        (x, y) in (-180.0..180.0f64, -90.0..90.0f64),
        from in (-180.0..180.0f64, -90.0..90.0f64),
        delta in (-40.0..40.0f64, -40.0..40.0f64),
    ) {
        let to = ((from.0 + delta.0).clamp(-180.0, 180.0), (from.1 + delta.1).clamp(-90.0, 90.0));
        let edge = Segment { from: point(from.0, from.1), to: point(to.0, to.1) };
        let query_point = point(x, y);
        let nearest = query_point.distance_to(edge, f64::INFINITY);
        let sampled = halved(edge, 8).into_iter().map(|s| ellipsoid::distance(query_point, s)).fold(f64::INFINITY, f64::min);
        prop_assert!(nearest <= sampled + 1e-6, "{} {}", nearest, sampled);
        prop_assert!(query_point.distance_lower_bound(edge) <= nearest + 1e-6);
        prop_assert!(sampled - nearest < 50_000.0);
    }

    #[test]
    fn near_edges_are_measured_as_the_search_does(
        (x, y) in (-179.0..179.0f64, -89.0..89.0f64),
        scales in (-6.0..0.9f64, -6.0..0.9f64),
        turns in (0.0..6.3f64, 0.0..6.3f64),
    ) {
        let from = |(x, y): (f64, f64), scale: f64, turn: f64| {
            let (dx, dy) = (turn.cos() * 10f64.powf(scale), turn.sin() * 10f64.powf(scale));
            ((x + dx).clamp(-180.0, 180.0), (y + dy).clamp(-90.0, 90.0))
        };
        let to = from((x, y), scales.0, turns.0);
        let aside = from(((x + to.0) / 2.0, (y + to.1) / 2.0), scales.1, turns.1);
        let edge = Segment { from: point(x, y), to: point(to.0, to.1) };
        let query_point = point(aside.0, aside.1);
        let (found, searched) = (query_point.distance_to(edge, f64::INFINITY), edge_distance::search(query_point, edge));
        prop_assert!((found - searched).abs() <= 1e-6 + 1e-9 * searched, "{} {}", found, searched);
    }
}
