//! Areas and distances compared with slower computations.

use geographiclib_rs::{Geodesic, PolygonArea, Winding};
use proptest::prelude::*;

use super::*;
use crate::figure::reversed;

const EARTH: f64 = 510_065_621_724_088.4;

fn spot(longitude: f64, latitude: f64) -> GeoPoint {
    GeoPoint::new(longitude, latitude).unwrap()
}

fn closed(mut ring: Vec<GeoPoint>) -> Vec<GeoPoint> {
    ring.push(ring[0]);
    ring
}

fn halved(edge: Segment<GeoPoint>, parts: u32) -> Vec<GeoPoint> {
    let middle = edge.from.middle(edge.to);
    match parts {
        0 => vec![edge.from],
        _ => [Segment { from: edge.from, to: middle }, Segment { from: middle, to: edge.to }]
            .into_iter()
            .flat_map(|half| halved(half, parts - 1))
            .collect(),
    }
}

/// Splits the great ellipses into short geodesic edges.
fn area_slowly(ring: &[GeoPoint]) -> f64 {
    let earth = Geodesic::wgs84();
    let mut polygon = PolygonArea::new(&earth, Winding::CounterClockwise);
    for spot in segments(ring).flat_map(|edge| halved(edge, 8)) {
        polygon.add_point(spot.latitude, spot.longitude);
    }
    polygon.compute(true).1
}

/// A ring of four corners around a point, counter-clockwise.
fn quad() -> impl Strategy<Value = Vec<GeoPoint>> {
    let spokes = [0.1..1.0f64, 0.1..1.0, 0.1..1.0, 0.1..1.0];
    (-150.0..150.0f64, -60.0..60.0f64, 0.01..25.0f64, spokes).prop_map(|(x, y, size, [e, n, w, s])| {
        closed(vec![spot(x + e * size, y), spot(x, y + n * size), spot(x - w * size, y), spot(x, y - s * size)])
    })
}

#[test]
fn there_and_back_between_ellipsoid_and_sphere() {
    for latitude in [-90.0, -45.0, 0.0, 1e-9, 33.3, 89.999, 90.0] {
        let back = GeoPoint::above(spot(12.5, latitude).at);
        assert!((back.latitude - latitude).abs() < 1e-12, "{back:?}");
    }
}

#[test]
fn a_ring_without_an_inside_has_no_area() {
    let there_and_back = closed(vec![spot(0.0, 0.0), spot(10.0, 0.0), spot(20.0, 0.0), spot(10.0, 0.0)]);
    assert_eq!(GeoPoint::area(&there_and_back), 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn areas_agree(ring in quad()) {
        let (area, slowly) = (GeoPoint::area(&ring), area_slowly(&ring));
        prop_assert!((area - slowly).abs() < 1e-6 * slowly + 1.0, "{} {}", area, slowly);
        let outside = GeoPoint::area(&reversed(ring));
        prop_assert!((area + outside - EARTH).abs() < 10.0);
    }

    #[test]
    fn a_place_is_left_of_a_ring_or_of_its_reverse(ring in quad(), x in -180.0..180.0f64, y in -90.0..90.0f64) {
        let place = spot(x, y);
        prop_assert_ne!(place.left_of(&ring), place.left_of(&reversed(ring)));
    }

    #[test]
    fn no_place_of_an_edge_is_nearer(
        (x, y) in (-180.0..180.0f64, -90.0..90.0f64),
        from in (-180.0..180.0f64, -90.0..90.0f64),
        way in (-40.0..40.0f64, -40.0..40.0f64),
    ) {
        let to = ((from.0 + way.0).clamp(-180.0, 180.0), (from.1 + way.1).clamp(-90.0, 90.0));
        let edge = Segment { from: spot(from.0, from.1), to: spot(to.0, to.1) };
        let place = spot(x, y);
        let nearest = place.gap(edge, f64::INFINITY);
        let sampled = halved(edge, 8).into_iter().map(|s| ellipsoid::distance(place, s)).fold(f64::INFINITY, f64::min);
        prop_assert!(nearest <= sampled + 1e-6, "{} {}", nearest, sampled);
        prop_assert!(place.gap_min(edge) <= nearest + 1e-6);
        prop_assert!(sampled - nearest < 50_000.0);
    }

    #[test]
    fn near_edges_are_measured_as_if_searched_along(
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
        let edge = Segment { from: spot(x, y), to: spot(to.0, to.1) };
        let place = spot(aside.0, aside.1);
        let (found, searched) = (place.gap(edge, f64::INFINITY), edge_distance::search(place, edge));
        prop_assert!((found - searched).abs() <= 1e-6 + 1e-9 * searched, "{} {}", found, searched);
    }
}
