//! An index search misses no shape; the bytes of cells.

use pleiad_model::{Object, Value};
use proptest::prelude::*;

use super::*;

type Points = Vec<(f64, f64)>;

const PLANE: Space = Space::Plane { x: (-10.0, 10.0), y: (-20.0, 20.0) };

#[test]
fn bytes_of_a_cell() {
    let cell = Cell { digits: vec![0x13, 0x1e] };
    assert_eq!(cell.to_bytes(), [0x13, 0x1e, 0x00]);
    assert_eq!(cell.subtree_range(), CellRange { from: vec![0x13, 0x1e], to: vec![0x13, 0x1f] });
    assert_eq!(cell.exact_range(), CellRange { from: vec![0x13, 0x1e, 0x00], to: vec![0x13, 0x1e, 0x01] });
    assert_eq!(Cell::outside().to_bytes(), [0x20, 0x00]);
    assert_eq!(Cell { digits: vec![] }.subtree_range(), CellRange { from: vec![0x00], to: vec![0x20] });
}

#[test]
fn a_point_in_the_plane_has_its_column_and_row() {
    // x 6 of −10…10 is column 3 of 4, y −12 of −20…20 row 0; in it column 0 of 4, row 3 of 4.
    let cells = cover(&shape(&[(6.0, -12.0)], Geospatial::Geometry).unwrap(), &PLANE);
    assert_eq!(cells.len(), 1);
    assert_eq!(cells[0].digits[..2], [0x13, 0x1c]);
    assert_eq!(cells[0].digits.len(), LEVELS);
}

#[test]
fn shapes_that_leave_the_box_get_the_outside_cell() {
    for points in [&[(11.0, 0.0)][..], &[(0.0, 0.0), (0.0, 30.0)]] {
        let cells = cover(&shape(points, Geospatial::Geometry).unwrap(), &PLANE);
        assert_eq!(cells, [Cell::outside()]);
    }
    let everything = Space::new(Geospatial::Geometry, None);
    assert_eq!(cover(&shape(&[(1.0, 2.0)], Geospatial::Geometry).unwrap(), &everything), [Cell::outside()]);
}

#[test]
fn malformed_bytes_are_no_cell() {
    for bytes in [&[][..], &[0x10], &[0x0f, 0x00], &[0x20, 0x10, 0x00], &[0x00, 0x00], &[0x10; 14]] {
        assert_eq!(Cell::from_bytes(bytes), None);
    }
}

#[test]
fn a_small_search_reads_few_ranges() {
    let zurich = shape(&[(8.54, 47.37)], Geospatial::Geography).unwrap();
    let ranges = search_ranges(&zurich, 1000.0, &Space::Globe);
    assert!(ranges.len() < 80);
    let hit = |x: f64, y: f64| {
        let cells = cover(&shape(&[(x, y)], Geospatial::Geography).unwrap(), &Space::Globe);
        cells.iter().any(|cell| ranges.iter().any(|range| range.contains(cell)))
    };
    assert!(hit(8.545, 47.375));
    assert!(!hit(8.7, 47.37) && !hit(8.54, 47.5) && !hit(-8.54, -47.37));
}

/// One coordinate pair makes a point, more make a line, a closed sequence a polygon.
fn shape(points: &[(f64, f64)], geospatial: Geospatial) -> Option<Geometry> {
    let position = |(x, y): (f64, f64)| Value::from(vec![Value::from(x), Value::from(y)]);
    let all = points.iter().copied().map(position).collect::<Vec<_>>();
    let closed = points.len() > 3 && points.first() == points.last();
    let (kind, coordinates) = match all.as_slice() {
        [only] => ("Point", only.clone()),
        _ if closed => ("Polygon", Value::from(vec![Value::from(all)])),
        _ => ("LineString", Value::from(all)),
    };
    Geometry::parse(&Object::new().with("type", kind).with("coordinates", coordinates).into(), geospatial).ok()
}

/// Wraps and reflects coordinates into the range of longitudes and latitudes.
fn on_globe((x, y): (f64, f64)) -> (f64, f64) {
    let x = if x.abs() > 180.0 { (x + 180.0).rem_euclid(360.0) - 180.0 } else { x };
    (x, if y.abs() > 90.0 { y.signum() * 180.0 - y } else { y })
}

/// Sizes from centimetres to continents, around random and critical points (poles, antimeridian).
fn random_shape() -> impl Strategy<Value = Points> {
    let center = (
        prop_oneof![-180.0..180.0f64, prop::sample::select(vec![-180.0, 180.0, 179.99, 0.0, 90.0, -90.0])],
        prop_oneof![-90.0..90.0f64, prop::sample::select(vec![-90.0, 90.0, 89.9, 0.0, -89.999])],
    );
    let size = (-7.0..1.9f64).prop_map(|exponent| 10f64.powf(exponent));
    let spokes = prop::collection::vec(0.1..1.0f64, 1..8);
    (center, size, spokes, any::<bool>(), any::<bool>()).prop_map(|((x, y), size, spokes, closed, clockwise)| {
        let count = spokes.len() as f64;
        let spoke = |(i, r): (usize, f64)| {
            let (sin, cos) = (i as f64 / count * std::f64::consts::TAU).sin_cos();
            (x + cos * r * size, y + sin * r * size)
        };
        let mut points = spokes.into_iter().enumerate().map(spoke).collect::<Vec<_>>();
        if closed && points.len() > 2 {
            points.push(points[0]);
        }
        if clockwise {
            points.reverse();
        }
        points
    })
}

/// Rings that cross themselves, run back over their own edges, or enclose nothing.
fn degenerate_ring() -> impl Strategy<Value = Points> {
    let coordinate = || prop_oneof![-90.0..90.0f64, (-4..5i32).prop_map(|n| f64::from(n) * 22.5)];
    prop::collection::vec((coordinate().prop_map(|x| x * 2.0), coordinate()), 3..8).prop_map(|mut points| {
        points.push(points[0]);
        points
    })
}

/// Mostly near each other: shapes that are far apart are not found anyway and test nothing.
fn two_shapes() -> impl Strategy<Value = (Points, Points)> {
    let near = (random_shape(), random_shape(), -3.0..3.0f64, -3.0..3.0f64, -6.0..0.5f64).prop_map(
        |(a, b, dx, dy, exponent)| {
            let scale = 10f64.powf(exponent);
            let (from, to) = (b[0], (a[0].0 + dx * scale, a[0].1 + dy * scale));
            let b = b.into_iter().map(|(x, y)| (x - from.0 + to.0, y - from.1 + to.1)).collect();
            (a, b)
        },
    );
    prop_oneof![3 => near, 1 => (random_shape(), random_shape())]
}

fn found(a: &Geometry, b: &Geometry, reach: f64, space: &Space) -> bool {
    let ranges = search_ranges(b, reach, space);
    cover(a, space).iter().any(|cell| ranges.iter().any(|range| range.contains(cell)))
}

fn check_found(a: &Geometry, b: &Geometry, slack: f64, space: &Space) -> std::result::Result<(), TestCaseError> {
    let cells = cover(a, space);
    prop_assert!(!cells.is_empty() && cells.len() <= COVER_CELLS_MAX);
    let distance = a.distance(b);
    prop_assert!(found(a, b, distance, space), "at exactly its distance {}", distance);
    prop_assert!(found(a, b, distance * (1.0 + slack), space));
    prop_assert!(!a.intersects(b) || found(a, b, 0.0, space));
    prop_assert!(!(a.within(b) || b.within(a)) || found(a, b, 0.0, space));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn an_index_of_the_globe_never_misses((a, b) in two_shapes(), slack in 0.0..2.0f64) {
        let globe = |points: Vec<(f64, f64)>| {
            let points = points.into_iter().map(on_globe).collect::<Vec<_>>();
            shape(&points, Geospatial::Geography)
        };
        if let (Some(a), Some(b)) = (globe(a), globe(b)) {
            check_found(&a, &b, slack, &Space::Globe)?;
        }
    }

    #[test]
    fn an_index_of_the_plane_never_misses((a, b) in two_shapes(), slack in 0.0..2.0f64, far in any::<bool>()) {
        let space = if far { Space::Plane { x: (-1e3, 1e3), y: (-1e3, 1e3) } } else { PLANE };
        if let (Some(a), Some(b)) = (shape(&a, Geospatial::Geometry), shape(&b, Geospatial::Geometry)) {
            check_found(&a, &b, slack, &space)?;
        }
    }

    #[test]
    fn degenerate_rings_are_found_too(a in degenerate_ring(), b in prop_oneof![degenerate_ring(), random_shape()], swapped in any::<bool>()) {
        let b = b.into_iter().map(on_globe).collect::<Vec<_>>();
        let (a, b) = if swapped { (b, a) } else { (a, b) };
        for (geospatial, space) in [(Geospatial::Geography, Space::Globe), (Geospatial::Geometry, PLANE)] {
            if let (Some(a), Some(b)) = (shape(&a, geospatial), shape(&b, geospatial)) {
                check_found(&a, &b, 0.1, &space)?;
            }
        }
    }

    #[test]
    fn cell_bytes_round_trip_and_keep_their_order(a in prop::collection::vec(0x10u8..0x20, 0..=LEVELS), b in prop::collection::vec(0x10u8..0x20, 0..=LEVELS)) {
        let (a, b) = (Cell { digits: a }, Cell { digits: b });
        prop_assert_eq!(Cell::from_bytes(&a.to_bytes()), Some(a.clone()));
        prop_assert_eq!(a.cmp(&b), a.to_bytes().cmp(&b.to_bytes()));
        prop_assert_eq!(a.subtree_range().contains(&b), b.digits.starts_with(&a.digits));
        prop_assert_eq!(a.exact_range().contains(&b), a == b);
    }

    #[test]
    fn ranges_are_sorted_and_disjoint((a, _) in two_shapes(), reach in 0.0..1e7f64) {
        let points = a.into_iter().map(on_globe).collect::<Vec<_>>();
        if let Some(shape) = shape(&points, Geospatial::Geography) {
            let ranges = search_ranges(&shape, reach, &Space::Globe);
            prop_assert!(ranges.iter().all(|range| range.from < range.to));
            prop_assert!(ranges.windows(2).all(|pair| pair[0].to < pair[1].from));
        }
    }
}
