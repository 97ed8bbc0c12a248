//! `geospatialConfig` and `spatialIndexes`.
//!
//! Invariant: every spatial index of a Geometry container has a bounding box, none of a Geography
//! container has one. Definitions are returned as they were sent.

use super::index_path::IndexPath;
use super::read;
use crate::{Error, Number, Object, Result, Value};

named! {
    /// The meaning of coordinates in a container: points on the globe or points in a plane.
    pub enum Geospatial { Geography = "Geography", Geometry = "Geometry" }
}

named! {
    pub enum SpatialType {
        Point = "Point",
        LineString = "LineString",
        Polygon = "Polygon",
        MultiPolygon = "MultiPolygon",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SpatialIndex {
    pub path: IndexPath,
    /// As the client sent it; missing means all types.
    types: Option<Vec<SpatialType>>,
    pub bounding_box: Option<BoundingBox>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundingBox {
    pub xmin: Number,
    pub ymin: Number,
    pub xmax: Number,
    pub ymax: Number,
}

impl Geospatial {
    pub(super) fn from_policy(body: &Value) -> Result<Self> {
        let kind = read::optional(read::object(body)?, "type", read::text)?;
        match kind {
            None => Ok(Geospatial::Geography),
            Some(kind) => Geospatial::parse(kind).ok_or_else(read::wrong_type),
        }
    }

    pub(super) fn to_object(self) -> Object {
        Object::new().with("type", self.as_str())
    }
}

impl SpatialIndex {
    pub fn types(&self) -> &[SpatialType] {
        self.types.as_deref().unwrap_or(SpatialType::ALL)
    }

    pub(super) fn parse(entry: &Value) -> Result<Self> {
        let entry = read::object(entry)?;
        Ok(SpatialIndex {
            path: IndexPath::parse(read::required_text(entry, "path")?)?,
            types: read::optional(entry, "types", types)?,
            bounding_box: read::optional(entry, "boundingBox", BoundingBox::parse)?,
        })
    }

    pub(super) fn to_object(&self) -> Object {
        let mut object = read::path_entry(self.path.as_str());
        if let Some(types) = &self.types {
            object.set("types", types.iter().map(|kind| Value::from(kind.as_str())).collect::<Vec<_>>());
        }
        if let Some(bounds) = self.bounding_box {
            object.set("boundingBox", bounds.to_object());
        }
        object
    }
}

impl BoundingBox {
    fn parse(body: &Value) -> Result<Self> {
        let side = |name| body.get(name).and_then(Value::as_number).ok_or_else(read::wrong_type);
        let bounds = BoundingBox { xmin: side("xmin")?, ymin: side("ymin")?, xmax: side("xmax")?, ymax: side("ymax")? };
        if bounds.xmin.as_f64() >= bounds.xmax.as_f64() || bounds.ymin.as_f64() >= bounds.ymax.as_f64() {
            return Err(Error::invalid("A bounding box needs xmin below xmax and ymin below ymax."));
        }
        Ok(bounds)
    }

    fn to_object(self) -> Object {
        Object::new().with("xmin", self.xmin).with("ymin", self.ymin).with("xmax", self.xmax).with("ymax", self.ymax)
    }
}

fn types(value: &Value) -> Result<Vec<SpatialType>> {
    read::array(value)?.iter().map(|kind| SpatialType::parse(read::text(kind)?).ok_or_else(read::wrong_type)).collect()
}

/// Bounding boxes are required in the plane and not allowed on the globe.
pub(super) fn check(indexes: &[SpatialIndex], geospatial: Geospatial) -> Result<()> {
    for index in indexes {
        let path = index.path.as_str();
        match (geospatial, index.bounding_box) {
            (Geospatial::Geometry, None) => {
                return Err(Error::invalid(format!(
                    "The spatial index on '{path}' needs a boundingBox, because the container is of type Geometry."
                )));
            }
            (Geospatial::Geography, Some(_)) => {
                return Err(Error::invalid(format!(
                    "The spatial index on '{path}' cannot have a boundingBox, because the container is of type Geography."
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
