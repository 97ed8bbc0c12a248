//! GeoJSON is a shape or an error; a search around a shape reads a cell of every near shape.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_model::json;
use pleiad_model::policy::Geospatial;
use pleiad_spatial::Geometry;
use pleiad_sql::testing::{Choices, exam};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(value) = json::parse(bytes) {
        let _ = Geometry::parse(&value, Geospatial::Geography).map(|shape| shape.area());
        let _ = Geometry::parse(&value, Geospatial::Geometry).map(|shape| shape.area());
    }
    exam::spatial_search_finds_near_shapes(&mut Choices::of_bytes(bytes));
});
