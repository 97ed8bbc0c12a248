use super::super::testing::{check_rejected, check_returned, create};

const PLAIN: &str =
    r#""indexingPolicy":{"spatialIndexes":[{"path":"/l/*","types":["Point","Polygon"]},{"path":"/m/?"}]}"#;
const BOXED: &str = r#""indexingPolicy":{"spatialIndexes":[{"path":"/l/*","types":["Point"],"boundingBox":{"xmin":-10,"ymin":-20.5,"xmax":10,"ymax":20}}]}"#;
const GEOMETRY: &str = r#""geospatialConfig":{"type":"Geometry"}"#;

#[test]
fn geography_is_the_default() {
    check_returned("", "geospatialConfig", r#"{"type":"Geography"}"#);
    check_returned(GEOMETRY, "geospatialConfig", r#"{"type":"Geometry"}"#);
    check_rejected(r#""geospatialConfig":{"type":"Flatland"}"#, "One of the specified inputs is invalid");
}

#[test]
fn missing_types_mean_all_types() {
    let indexes = create(PLAIN).indexing.spatial;
    let types: Vec<_> = indexes.iter().map(|index| index.types().len()).collect();
    assert_eq!(types, [2, 4]);
}

#[test]
fn bounding_boxes_need_geometry() {
    create(PLAIN);
    create(&format!("{BOXED},{GEOMETRY}"));
    check_rejected(BOXED, "cannot have a boundingBox");
    check_rejected(&format!("{PLAIN},{GEOMETRY}"), "needs a boundingBox");
    let empty = BOXED.replace("\"xmax\":10", "\"xmax\":-10");
    check_rejected(&format!("{empty},{GEOMETRY}"), "xmin below xmax");
}

#[test]
fn indexes_are_returned_as_sent() {
    for (members, name) in [(PLAIN.to_owned(), PLAIN), (format!("{BOXED},{GEOMETRY}"), BOXED)] {
        let rendered = crate::json::to_string(&create(&members).indexing.to_value());
        let sent = name.trim_start_matches("\"indexingPolicy\":{").trim_end_matches('}');
        assert!(rendered.contains(sent), "{rendered}");
    }
}
