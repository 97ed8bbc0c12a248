//! GeoJSON parser: from a JSON value to a figure, or the reason why it is invalid.
//!
//! Guarantees: a parsed figure has finite coordinates in range, closed rings of at least three different points, and
//! polygons of at most `POLYGON_POINTS_MAX` points; no later code checks again. Altitudes and other members (`bbox`,
//! `crs`) are ignored.

use pleiad_model::Value;
use pleiad_model::policy::SpatialType;

use crate::InvalidGeometry;
use crate::figure::{Figure, Polygon, SurfacePoint};

pub const POLYGON_POINTS_MAX: usize = 4096;

type Result<T> = std::result::Result<T, InvalidGeometry>;

pub(crate) fn figure<P: SurfacePoint>(value: &Value) -> Result<(SpatialType, Figure<P>)> {
    let kind = kind(value)?;
    let Some(coordinates) = value.get("coordinates") else {
        return invalid("A GeoJSON object must have coordinates.");
    };
    let figure = match kind {
        SpatialType::Point => Figure::new(vec![position(coordinates)?], Vec::new(), Vec::new()),
        SpatialType::LineString => Figure::new(Vec::new(), vec![line(coordinates)?], Vec::new()),
        SpatialType::Polygon => Figure::new(Vec::new(), Vec::new(), vec![polygon(coordinates)?]),
        SpatialType::MultiPolygon => Figure::new(Vec::new(), Vec::new(), polygons(coordinates)?),
    };
    Ok((kind, figure))
}

fn kind(value: &Value) -> Result<SpatialType> {
    let Some(name) = value.get("type").and_then(Value::as_str) else {
        return invalid("The input must be a GeoJSON object with a type.");
    };
    match SpatialType::parse(name) {
        Some(kind) => Ok(kind),
        None => invalid("The type of a GeoJSON object must be Point, LineString, Polygon or MultiPolygon."),
    }
}

fn position<P: SurfacePoint>(value: &Value) -> Result<P> {
    let number = |at: usize| value.as_array()?.get(at)?.as_number();
    match (number(0), number(1)) {
        (Some(x), Some(y)) => P::new(x.as_f64(), y.as_f64()).or_else(invalid),
        _ => invalid("A position must be an array of at least two numbers."),
    }
}

fn line<P: SurfacePoint>(value: &Value) -> Result<Vec<P>> {
    let line = distinct(positions(value)?);
    if line.len() < 2 {
        return invalid("The LineString input is not valid because it does not have two distinct points.");
    }
    without_antipodal_edges(line)
}

fn polygons<P: SurfacePoint>(value: &Value) -> Result<Vec<Polygon<P>>> {
    match value.as_array() {
        Some(parts) if !parts.is_empty() => parts.iter().map(polygon).collect(),
        _ => invalid("The coordinates of a MultiPolygon must be an array of at least one polygon."),
    }
}

fn polygon<P: SurfacePoint>(value: &Value) -> Result<Polygon<P>> {
    let Some([first, others @ ..]) = value.as_array() else {
        return invalid("The coordinates of a Polygon must be an array of at least one ring.");
    };
    let outer = ring(first, 1)?;
    let holes = others.iter().zip(2..).map(|(value, number)| ring(value, number)).collect::<Result<Vec<_>>>()?;
    if outer.len() + holes.iter().map(Vec::len).sum::<usize>() > POLYGON_POINTS_MAX {
        return invalid(format!("A polygon can have at most {POLYGON_POINTS_MAX} points."));
    }
    Ok(Polygon::new(outer, holes))
}

/// Cosmos numbers rings from 1 in its error messages.
fn ring<P: SurfacePoint>(value: &Value, number: usize) -> Result<Vec<P>> {
    let too_few = format!(
        "The Polygon input is not valid because the ring number {number} does not have enough points. \
         Each ring of a polygon must have at least four points, three of them distinct."
    );
    let written = positions::<P>(value)?;
    if written.len() < 4 {
        return invalid(too_few);
    }
    if written.first().zip(written.last()).is_none_or(|(first, last)| !first.same(*last)) {
        return invalid(format!(
            "The Polygon input is not valid because the start and end points of the ring number {number} are not \
             the same. Each ring of a polygon must have the same start and end points."
        ));
    }
    let ring = distinct(written);
    if ring.len() < 4 { invalid(too_few) } else { without_antipodal_edges(ring) }
}

fn positions<P: SurfacePoint>(value: &Value) -> Result<Vec<P>> {
    match value.as_array() {
        Some(items) => items.iter().map(position).collect(),
        None => invalid("Points must be listed in an array."),
    }
}

/// Removes points that repeat the one before.
fn distinct<P: SurfacePoint>(mut chain: Vec<P>) -> Vec<P> {
    chain.dedup_by(|next, kept| next.same(*kept));
    chain
}

/// Between antipodal points of the globe there is no unique shortest edge.
fn without_antipodal_edges<P: SurfacePoint>(chain: Vec<P>) -> Result<Vec<P>> {
    let unambiguous = chain.iter().zip(chain.iter().skip(1)).all(|(from, to)| from.has_unique_edge_to(*to));
    if unambiguous { Ok(chain) } else { invalid("Neighbouring points must not lie at opposite ends of the globe.") }
}

fn invalid<T>(reason: impl Into<String>) -> Result<T> {
    Err(InvalidGeometry { reason: reason.into() })
}
