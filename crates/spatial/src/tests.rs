//! The public interface: examples from the Cosmos documentation, both surfaces, and arbitrary JSON.

use pleiad_model::json;
use proptest::prelude::*;

use super::*;

fn value(text: &str) -> Value {
    json::parse(text.replace('\'', "\"").as_bytes()).unwrap()
}

fn on(text: &str, geospatial: Geospatial) -> Geometry {
    Geometry::parse(&value(text), geospatial).unwrap()
}

fn geography(text: &str) -> Geometry {
    on(text, Geospatial::Geography)
}

fn geometry(text: &str) -> Geometry {
    on(text, Geospatial::Geometry)
}

fn point(x: f64, y: f64) -> String {
    format!("{{'type':'Point','coordinates':[{x},{y}]}}")
}

/// Rings as `x y, x y, …`; they are closed here.
fn polygon(rings: &[&str]) -> String {
    format!("{{'type':'Polygon','coordinates':[{}]}}", rings.iter().map(|r| ring(r)).collect::<Vec<_>>().join(","))
}

fn ring(text: &str) -> String {
    let mut closed = positions(text);
    closed.push(closed[0].clone());
    format!("[{}]", closed.join(","))
}

fn line(text: &str) -> String {
    format!("{{'type':'LineString','coordinates':[{}]}}", positions(text).join(","))
}

fn positions(text: &str) -> Vec<String> {
    text.split(',').map(|pair| format!("[{}]", pair.trim().replace(' ', ","))).collect()
}

#[track_caller]
fn check_close(found: f64, want: f64, tolerance: f64) {
    assert!((found - want).abs() <= tolerance, "found {found}, want {want}");
}

#[track_caller]
fn check_reason(text: &str, geospatial: Geospatial, part: &str) {
    let reason = Geometry::parse(&value(text), geospatial).unwrap_err().reason;
    assert!(reason.contains(part), "{reason}");
}

const SAMPLE: &str = "31.8 -5, 32 -5, 32 -4.7, 31.8 -4.7";
const EARTH: f64 = 510_065_621_724_088.4;

#[test]
fn area_of_the_documented_sample() {
    check_close(geography(&polygon(&[SAMPLE])).area(), 735_970_283.052_261_4, 0.1);
}

#[test]
fn a_clockwise_ring_means_its_outside() {
    let outside = geography(&polygon(&["31.8 -5, 31.8 -4.7, 32 -4.7, 32 -5"]));
    check_close(outside.area(), EARTH - 735_970_283.1, 10.0);
    assert!(geography(&point(0.0, 0.0)).within(&outside));
    assert!(geography(&point(-148.1, 5.0)).within(&outside), "the antipode");
    assert!(!geography(&point(31.9, -4.9)).within(&outside));
    assert!(geography(&point(31.9, -4.9)).distance(&outside) > 1000.0);
}

#[test]
fn an_octant_is_an_eighth_of_the_earth() {
    let octant = geography(&polygon(&["0 0, 90 0, 0 90"]));
    check_close(octant.area(), EARTH / 8.0, 1.0);
    let north = geography(&polygon(&["0 0, 90 0, 180 0, -90 0"]));
    check_close(north.area(), EARTH / 2.0, 1.0);
    assert!(geography(&point(12.0, 3.0)).within(&north));
    assert!(!geography(&point(12.0, -3.0)).within(&north));
}

#[test]
fn holes_may_have_either_orientation() {
    for hole in ["31.85 -4.9, 31.95 -4.9, 31.95 -4.8, 31.85 -4.8", "31.85 -4.9, 31.85 -4.8, 31.95 -4.8, 31.95 -4.9"] {
        for geospatial in [Geospatial::Geography, Geospatial::Geometry] {
            let with_hole = on(&polygon(&[SAMPLE, hole]), geospatial);
            let whole = on(&polygon(&[SAMPLE]), geospatial);
            assert!(with_hole.area() < 0.9 * whole.area());
            assert!(!on(&point(31.9, -4.85), geospatial).within(&with_hole));
            assert!(on(&point(31.82, -4.85), geospatial).within(&with_hole));
            assert!(with_hole.within(&whole) && !whole.within(&with_hole));
            assert!(on(&point(31.9, -4.85), geospatial).distance(&with_hole) > 0.0);
        }
    }
}

#[test]
fn distances_between_points_are_geodesic() {
    // Meridian arc and equator, whose lengths are closed forms of WGS-84.
    check_close(geography(&point(0.0, 0.0)).distance(&geography(&point(0.0, 90.0))), 10_001_965.729_3, 1e-3);
    check_close(geography(&point(-179.5, 0.0)).distance(&geography(&point(179.5, 0.0))), 111_319.490_8, 1e-3);
    assert_eq!(geography(&point(180.0, 10.0)).distance(&geography(&point(-180.0, 10.0))), 0.0);
}

#[test]
fn distance_to_an_edge_is_to_its_nearest_point() {
    let equator = geography(&line("-10 0, 20 0"));
    check_close(geography(&point(5.0, 1.0)).distance(&equator), 110_574.388_6, 1e-3);
    let meridian = geography(&line("3 -40, 3 60"));
    let nearest = geography(&point(4.0, 0.0)).distance(&meridian);
    check_close(nearest, 111_319.490_8, 1e-3);
    assert!(geography(&point(4.0, 45.0)).distance(&meridian) < nearest);
}

#[test]
fn polygons_across_the_antimeridian() {
    let fiji = geography(&polygon(&["177 -20, -178 -20, -178 -15, 177 -15"]));
    assert!(geography(&point(180.0, -17.0)).within(&fiji));
    assert!(geography(&point(-180.0, -17.0)).within(&fiji));
    assert!(!geography(&point(0.0, -17.0)).within(&fiji));
    assert!(geography(&line("179 -17, -179 -17")).within(&fiji));
    check_close(fiji.area(), geography(&polygon(&["7 -20, 12 -20, 12 -15, 7 -15"])).area(), 1.0);
}

#[test]
fn a_ring_around_the_pole_has_it_inside() {
    let cap = geography(&polygon(&["-180 80, -90 80, 0 80, 90 80"]));
    assert!(geography(&point(17.0, 90.0)).within(&cap));
    assert!(!geography(&point(0.0, 70.0)).intersects(&cap));
    assert!(geography(&line("0 70, 180 70")).intersects(&cap));
}

#[test]
fn relations_in_the_plane() {
    let square = geometry(&polygon(&["0 0, 10 0, 10 10, 0 10"]));
    assert_eq!(square.area(), 100.0);
    assert_eq!(
        geometry(&polygon(&["0 0, 0 10, 10 10, 10 0"])).area(),
        100.0,
        "in a plane the orientation does not matter"
    );
    assert_eq!(geometry(&point(13.0, 14.0)).distance(&square), 5.0);
    assert_eq!(geometry(&point(5.0, 5.0)).distance(&square), 0.0);
    assert!(geometry(&point(10.0, 5.0)).within(&square), "the boundary belongs to the polygon");
    assert!(geometry(&line("1 1, 9 9")).within(&square));
    assert!(!geometry(&line("1 1, 19 9")).within(&square));
    assert!(geometry(&line("-5 5, 15 5")).intersects(&square));
    assert!(square.within(&square));
    assert!(geometry(&polygon(&["2 2, 4 2, 4 4, 2 4"])).within(&square));
    assert!(geometry(&line("2 2, 3 3")).within(&geometry(&line("0 0, 1 1, 5 5"))));
    assert!(!square.within(&geometry(&line("0 0, 10 10"))));
}

#[test]
fn a_line_across_a_notch_is_not_within() {
    let notched = "0 0, 10 0, 10 10, 6 10, 5 2, 4 10, 0 10";
    for geospatial in [Geospatial::Geography, Geospatial::Geometry] {
        assert!(!on(&line("2 8, 8 8"), geospatial).within(&on(&polygon(&[notched]), geospatial)));
        assert!(on(&line("2 1, 8 1"), geospatial).within(&on(&polygon(&[notched]), geospatial)));
    }
}

#[test]
fn multi_polygons_are_the_sum_of_their_parts() {
    let both = format!(
        "{{'type':'MultiPolygon','coordinates':[[{}],[{}]]}}",
        ring("0 0, 1 0, 1 1, 0 1"),
        ring("5 0, 6 0, 6 1, 5 1")
    );
    assert_eq!(geometry(&both).area(), 2.0);
    assert!(geometry(&point(5.5, 0.5)).within(&geometry(&both)));
    assert_eq!(geometry(&point(3.0, 0.5)).distance(&geometry(&both)), 2.0);
}

#[test]
fn reasons_why_a_shape_is_invalid() {
    let globe = Geospatial::Geography;
    check_reason(&point(31.9, -132.8), globe, "Latitude values must be between -90 and 90 degrees.");
    check_reason(&point(-180.5, 0.0), globe, "Longitude values must be between -180 and 180 degrees.");
    let open = "{'type':'Polygon','coordinates':[[[31.8,-5],[31.8,-4.7],[32,-4.7],[32,-5]]]}";
    check_reason(open, globe, "the start and end points of the ring number 1 are not the same. Each ring of a polygon");
    check_reason("{'type':'Polygon','coordinates':[[[0,0],[1,1],[0,0]]]}", globe, "ring number 1 does not have enough");
    check_reason(&polygon(&[SAMPLE, "1 1, 1 1, 1 1"]), globe, "ring number 2 does not have enough");
    check_reason(&line("1 1, 1 1"), globe, "two distinct points");
    check_reason(&line("0 0, 180 0"), globe, "opposite ends");
    check_reason("{'type':'Circle','coordinates':[0,0]}", globe, "Point, LineString, Polygon or MultiPolygon");
    check_reason("{'type':'Point','coordinates':['a',0]}", globe, "two numbers");
    check_reason("{'type':'Point'}", globe, "coordinates");
    check_reason("[1,2]", globe, "GeoJSON object");
    check_reason(&point(1e200, 0.0), Geospatial::Geometry, "1e100");
    assert!(Geometry::is_valid(&value("{'type':'Point','coordinates':[1,2,300]}"), globe), "altitudes are ignored");
}

#[test]
fn a_polygon_has_at_most_4096_points() {
    let circle = |count: usize| {
        let at = |i: usize| (i as f64 / count as f64 * std::f64::consts::TAU).sin_cos();
        (0..count).map(|i| format!("{} {}", at(i).1, at(i).0)).collect::<Vec<_>>().join(",")
    };
    let full = geography(&polygon(&[&circle(4095)]));
    assert!(geography(&point(0.1, 0.1)).within(&full));
    check_reason(&polygon(&[&circle(4096)]), Geospatial::Geography, "at most 4096");
}

/// JSON that is almost GeoJSON.
fn almost_geojson() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<f64>(),
        -200.0..200.0f64,
        prop::sample::select(vec![0.0, -0.0, 90.0, -90.0, 180.0, -180.0, f64::NAN, f64::INFINITY, 1e308, 5e-324]),
    ];
    let leaf = prop_oneof![8 => number.prop_map(Value::from), 1 => Just(Value::Null), 1 => Just(Value::from("x"))];
    let nested = leaf.prop_recursive(5, 64, 6, |inner| {
        let repeated = prop::collection::vec(inner.clone(), 0..5).prop_map(|mut items| {
            items.extend(items.first().cloned());
            Value::from(items)
        });
        prop_oneof![prop::collection::vec(inner, 0..6).prop_map(Value::from), repeated]
    });
    let kind = prop::sample::select(vec!["Point", "LineString", "Polygon", "MultiPolygon", "Other"]);
    (kind, nested).prop_map(|(kind, coordinates)| {
        pleiad_model::Object::new().with("type", kind).with("coordinates", coordinates).into()
    })
}

/// Polygons from few coordinates, so that points repeat, rings cross themselves and edges overlap.
fn degenerate_polygon() -> impl Strategy<Value = Value> {
    let coordinate =
        || prop::sample::select(vec![-180.0, -90.0, -45.0, 0.0, 1e-300, 1.0, 45.0, 89.999_999, 90.0, 180.0]);
    let position = (coordinate(), coordinate()).prop_map(|(x, y)| Value::from(vec![Value::from(x), Value::from(y)]));
    prop::collection::vec(prop::collection::vec(position, 1..7), 1..3).prop_map(|mut rings| {
        for ring in &mut rings {
            ring.extend(ring.first().cloned());
        }
        let rings = rings.into_iter().map(Value::from).collect::<Vec<_>>();
        pleiad_model::Object::new().with("type", "Polygon").with("coordinates", rings).into()
    })
}

fn exercise(a: &Value, b: &Value) {
    for geospatial in [Geospatial::Geography, Geospatial::Geometry] {
        let (Ok(a), Ok(b)) = (Geometry::parse(a, geospatial), Geometry::parse(b, geospatial)) else { continue };
        assert!(a.area() >= 0.0 && a.distance(&b) >= 0.0);
        assert_eq!(a.distance(&b) == 0.0, a.intersects(&b));
        assert!(!a.within(&b) || a.intersects(&b));
        assert!(a.intersects(&a) && a.intersects(&b) == b.intersects(&a));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_json_makes_it_panic(a in almost_geojson(), b in almost_geojson()) {
        exercise(&a, &b);
    }

    #[test]
    fn degenerate_shapes_give_consistent_results(a in degenerate_polygon(), b in degenerate_polygon()) {
        exercise(&a, &b);
    }

    #[test]
    fn distance_is_symmetric(x in -180.0..180.0f64, y in -85.0..85.0f64, dx in -20.0..20.0f64, dy in -4.0..4.0f64) {
        let here = geography(&point(x, y));
        let line = geography(&line(&format!("{} {}, {} {}", (x + dx).clamp(-180.0, 180.0), y + dy, x / 2.0, y / 2.0)));
        let (there, back) = (here.distance(&line), line.distance(&here));
        prop_assert!((there - back).abs() <= 1e-6 + 1e-9 * there);
    }
}
