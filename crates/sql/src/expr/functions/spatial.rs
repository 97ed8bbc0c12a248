//! Spatial functions on GeoJSON geometries.
//!
//! An invalid geometry has no distance, area or relation: the result is undefined. Only `ST_ISVALID` and
//! `ST_ISVALIDDETAILED` report on it. `pleiad_spatial` implements the geometry. In the worst case a relation takes n ×
//! m steps for geometries with n and m points.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use std::thread::LocalKey;

use pleiad_model::policy::{Geospatial, SpatialType};
use pleiad_model::{Object, Result, Value};
use pleiad_spatial::Geometry;

use super::Function;
use super::arguments::{at, boolean_value, float_value};
use crate::expr::context::memory_bytes;
use crate::expr::{Context, Datum};

pub const FUNCTIONS: &[Function] = &[
    Function::exactly("ST_AREA", 1, area),
    Function::exactly("ST_DISTANCE", 2, distance),
    Function::exactly("ST_INTERSECTS", 2, intersects),
    Function::exactly("ST_ISVALID", 1, is_valid),
    Function::exactly("ST_ISVALIDDETAILED", 1, is_valid_detailed),
    Function::exactly("ST_WITHIN", 2, within),
    // Names in queries that client libraries generate.
    Function::exactly("_ST_DISTANCE", 2, distance),
    Function::exactly("_ST_INTERSECTS", 2, intersects),
    Function::exactly("_ST_WITHIN", 2, within),
];

fn area<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    float_value(shape(args, 0, cx).map(|shape| shape.area()))
}

fn distance<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let pair = both(args, cx);
    float_value(pair.map(|(from, to)| from.try_distance(&to, &|steps| cx.count_steps(steps))).transpose()?)
}

fn intersects<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let pair = both(args, cx);
    boolean_value(pair.map(|(one, other)| one.try_intersects(&other, &|steps| cx.count_steps(steps))).transpose()?)
}

fn within<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let pair = both(args, cx);
    boolean_value(pair.map(|(inner, outer)| inner.try_within(&outer, &|steps| cx.count_steps(steps))).transpose()?)
}

fn is_valid<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    boolean_value(at(args, 0).as_deref().map(|value| Geometry::is_valid(value, cx.geospatial)))
}

fn is_valid_detailed<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let Some(value) = at(args, 0).as_deref() else { return Ok(None) };
    let report = match Geometry::parse(value, cx.geospatial) {
        Ok(_) => Object::new().with("valid", true),
        Err(invalid) => Object::new().with("valid", false).with("reason", invalid.reason),
    };
    let report = Value::from(report);
    cx.memory.reserve(memory_bytes(&report))?;
    Ok(Some(Cow::Owned(report)))
}

fn both(args: &[Datum<'_>], cx: &Context<'_>) -> Option<(Rc<Geometry>, Rc<Geometry>)> {
    Some((shape(args, 0, cx)?, shape(args, 1, cx)?))
}

/// The last parsed geometry and the value it was parsed from.
type GeometryCache = Cell<Option<(Value, Geospatial, Rc<Geometry>)>>;

// A query compares every item with the same geometry, which can have thousands of points. One cache per argument
// position: whichever side the constant is on, the items do not evict it.
thread_local! {
    static FIRST: GeometryCache = const { Cell::new(None) };
    static SECOND: GeometryCache = const { Cell::new(None) };
}

fn shape(args: &[Datum<'_>], position: usize, cx: &Context<'_>) -> Option<Rc<Geometry>> {
    let value = at(args, position).as_deref()?;
    cached_geometry(if position == 0 { &FIRST } else { &SECOND }, value, cx.geospatial)
}

fn cached_geometry(
    cache: &'static LocalKey<GeometryCache>,
    value: &Value,
    geospatial: Geospatial,
) -> Option<Rc<Geometry>> {
    let cached = cache.take().filter(|(text, on, _)| *on == geospatial && text == value);
    if let Some((_, _, shape)) = &cached {
        let shape = shape.clone();
        cache.set(cached);
        return Some(shape);
    }
    let shape = Rc::new(Geometry::parse(value, geospatial).ok()?);
    if shape.kind() != SpatialType::Point {
        // Parsing a point is faster than comparing and copying it for the cache.
        cache.set(Some((value.clone(), geospatial, shape.clone())));
    }
    Some(shape)
}

#[cfg(test)]
mod tests;
