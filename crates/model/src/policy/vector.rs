//! `vectorEmbeddingPolicy` and `vectorIndexes`.
//!
//! Invariant: every vector index is on a path that has an embedding, and its parameters are in the
//! range that the embedding's dimensions allow. A replace may add and remove entries, but not modify
//! them. The error messages are Cosmos's; clients compare them.

use super::read;
use crate::path::PropertyPath;
use crate::{Error, Object, Result, Value};

pub const DIMENSIONS_DEFAULT: u32 = 1_536;
pub const DIMENSIONS_MAX: u32 = 4_096;
/// A flat index stores whole vectors in addition to the range index.
pub const FLAT_DIMENSIONS_MAX: u32 = 505;
/// Also at most the number of the vector's dimensions.
pub const QUANTIZATION_BYTES_MAX: u32 = 512;
pub const SEARCH_LIST_SIZE_MIN: u32 = 25;
pub const SEARCH_LIST_SIZE_MAX: u32 = 500;
pub const SHARD_PATHS_MAX: usize = 1;

named! {
    pub enum VectorDataType { Float32 = "float32", Float16 = "float16", Int8 = "int8", Uint8 = "uint8" }
}

named! {
    pub enum DistanceFunction { Cosine = "cosine", DotProduct = "dotproduct", Euclidean = "euclidean" }
}

named! {
    pub enum VectorIndexType {
        /// Exact.
        Flat = "flat",
        /// Compares every quantized vector.
        QuantizedFlat = "quantizedFlat",
        /// Approximate: a graph.
        DiskAnn = "diskANN",
    }
}

named! {
    pub enum Quantizer { Product = "product", Spherical = "spherical" }
}

/// Type, dimensions and distance function of the vectors at a path.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorEmbedding {
    pub path: PropertyPath,
    pub data_type: VectorDataType,
    pub dimensions: u32,
    pub distance_function: DistanceFunction,
    /// The service that should compute the vector. Stored as sent; not supported.
    pub source: Option<Object>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct VectorIndex {
    pub path: PropertyPath,
    pub kind: VectorIndexType,
    pub quantization_bytes: Option<u32>,
    pub search_list_size: Option<u32>,
    pub quantizer: Option<Quantizer>,
    /// One graph per value at these paths.
    pub shard_key: Vec<PropertyPath>,
}

impl VectorEmbedding {
    pub fn parse_policy(body: &Value) -> Result<Vec<Self>> {
        let embeddings = read::each(read::object(body)?, "vectorEmbeddings", Self::parse)?;
        match read::repeated(embeddings.iter().map(|embedding| &embedding.path)) {
            Some(path) => Err(Error::invalid(format!(
                "The Vector Embedding Policy has the path {} twice. Keep it once.",
                path.as_str()
            ))),
            None => Ok(embeddings),
        }
    }

    pub fn policy_to_object(embeddings: &[Self]) -> Object {
        Object::new().with("vectorEmbeddings", read::render(embeddings, Self::to_object))
    }

    fn parse(entry: &Value) -> Result<Self> {
        let entry = read::object(entry)?;
        let text = read::required_text(entry, "path")?;
        Ok(VectorEmbedding {
            path: PropertyPath::parse(text).map_err(|why| {
                Error::invalid(format!("The Vector Embedding Policy has an invalid Path:{text}. {why}"))
            })?,
            data_type: read::optional(entry, "dataType", data_type)?.unwrap_or(VectorDataType::Float32),
            dimensions: read::optional(entry, "dimensions", dimensions)?.unwrap_or(DIMENSIONS_DEFAULT),
            distance_function: read::optional(entry, "distanceFunction", distance_function)?
                .unwrap_or(DistanceFunction::Cosine),
            source: read::optional(entry, "embeddingSource", source)?,
        })
    }

    fn to_object(&self) -> Object {
        let object = read::path_entry(self.path.as_str())
            .with("dataType", self.data_type.as_str())
            .with("dimensions", i64::from(self.dimensions))
            .with("distanceFunction", self.distance_function.as_str());
        match &self.source {
            Some(source) => object.with("embeddingSource", source.clone()),
            None => object,
        }
    }
}

fn data_type(value: &Value) -> Result<VectorDataType> {
    let text = read::text(value)?;
    VectorDataType::parse(text)
        .ok_or_else(|| Error::invalid(format!("The Vector Embedding Policy has an invalid DataType:{text}.")))
}

fn distance_function(value: &Value) -> Result<DistanceFunction> {
    let text = read::text(value)?;
    DistanceFunction::parse(text)
        .ok_or_else(|| Error::invalid(format!("The Vector Embedding Policy has an invalid DistanceFunction:{text}.")))
}

fn dimensions(value: &Value) -> Result<u32> {
    let given = read::integer(value)?;
    let unsupported = |side: &str, limit: u32| {
        Error::invalid(format!(
            "The Vector Embedding Policy has Dimensions:{given} which is {side} supported value: {limit}."
        ))
    };
    match u32::try_from(given) {
        Ok(count @ 1..=DIMENSIONS_MAX) => Ok(count),
        _ if given > 0 => Err(unsupported("more than the maximum", DIMENSIONS_MAX)),
        _ => Err(unsupported("less than the minimum", 1)),
    }
}

fn source(value: &Value) -> Result<Object> {
    let source = read::object(value)?;
    match read::optional(source, "authType", read::text)? {
        Some(kind) if kind.eq_ignore_ascii_case("Entra") => Ok(source.clone()),
        _ => Err(Error::invalid("The auth type provided in the embedding source of vector policy is invalid.")),
    }
}

impl VectorIndex {
    pub(super) fn parse(entry: &Value) -> Result<Self> {
        let entry = read::object(entry)?;
        let text = read::required_text(entry, "path")?;
        Ok(VectorIndex {
            path: PropertyPath::parse(text).map_err(|why| {
                Error::invalid(format!("The Vector Indexing Policy has an invalid Path: {text}. {why}"))
            })?,
            kind: index_type(read::required_text(entry, "type")?)?,
            quantization_bytes: read::optional(entry, "quantizationByteSize", quantization_bytes)?,
            search_list_size: read::optional(entry, "indexingSearchListSize", search_list_size)?,
            quantizer: read::optional(entry, "quantizerType", quantizer)?,
            shard_key: shard_key(entry)?,
        })
    }

    pub(super) fn to_object(&self) -> Object {
        let mut object = read::path_entry(self.path.as_str()).with("type", self.kind.as_str());
        if let Some(bytes) = self.quantization_bytes {
            object.set("quantizationByteSize", i64::from(bytes));
        }
        if let Some(size) = self.search_list_size {
            object.set("indexingSearchListSize", i64::from(size));
        }
        if let Some(quantizer) = self.quantizer {
            object.set("quantizerType", quantizer.as_str());
        }
        if !self.shard_key.is_empty() {
            let paths = self.shard_key.iter().map(|path| Value::from(path.as_str())).collect::<Vec<_>>();
            object.set("vectorIndexShardKey", paths);
        }
        object
    }
}

fn index_type(text: &str) -> Result<VectorIndexType> {
    VectorIndexType::parse(text)
        .ok_or_else(|| Error::invalid(format!("The Vector Indexing Policy's Index Type::{text} is invalid.")))
}

/// The upper bound depends on the embedding: see `check_index`.
fn quantization_bytes(value: &Value) -> Result<u32> {
    let given = read::integer(value)?;
    u32::try_from(given).map_err(|_| out_of_range("QuantizationByteSize", given, 1, QUANTIZATION_BYTES_MAX))
}

fn search_list_size(value: &Value) -> Result<u32> {
    let given = read::integer(value)?;
    match u32::try_from(given) {
        Ok(size @ SEARCH_LIST_SIZE_MIN..=SEARCH_LIST_SIZE_MAX) => Ok(size),
        _ => Err(out_of_range("IndexingSearchListSize", given, SEARCH_LIST_SIZE_MIN, SEARCH_LIST_SIZE_MAX)),
    }
}

fn out_of_range(parameter: &str, given: i64, min: u32, max: u32) -> Error {
    Error::invalid(format!(
        "The Vector Indexing Policy parameter {parameter} value :: {given} is out of range. The allowed range is \
         between {min} and {max}."
    ))
}

fn quantizer(value: &Value) -> Result<Quantizer> {
    let text = read::text(value)?;
    Quantizer::parse(text)
        .ok_or_else(|| Error::invalid(format!("The Vector Indexing Policy has an invalid QuantizerType:{text}.")))
}

fn shard_key(entry: &Object) -> Result<Vec<PropertyPath>> {
    let count = read::list(entry, "vectorIndexShardKey")?.len();
    if count > SHARD_PATHS_MAX {
        return Err(Error::invalid(format!(
            "The number of shard paths defined in the Vector Indexing Policy: {count} exceeds the maximum: \
             {SHARD_PATHS_MAX}."
        )));
    }
    read::each(entry, "vectorIndexShardKey", |path| {
        let text = read::text(path)?;
        PropertyPath::parse(text)
            .map_err(|_| Error::invalid(format!("The Vector Indexing Policy has an invalid Shard Path: {text}.")))
    })
}

/// Checks every index against the embedding at its path.
pub(super) fn check(indexes: &[VectorIndex], embeddings: &[VectorEmbedding]) -> Result<()> {
    if let Some(path) = read::repeated(indexes.iter().map(|index| &index.path)) {
        let path = path.as_str();
        return Err(Error::invalid(format!("The Vector Indexing Policy has the path {path} twice. Keep it once.")));
    }
    indexes.iter().try_for_each(|index| {
        let path = &index.path;
        let embedding = embeddings.iter().find(|embedding| read::same_property(&embedding.path, path));
        let embedding = embedding.ok_or_else(|| {
            let path = path.as_str();
            Error::invalid(format!("The Vector Indexing Policy's path::{path} not matching in Embedding's path."))
        })?;
        check_index(index, embedding)
    })
}

fn check_index(index: &VectorIndex, embedding: &VectorEmbedding) -> Result<()> {
    let bytes_max = embedding.dimensions.min(QUANTIZATION_BYTES_MAX);
    match index.quantization_bytes {
        Some(bytes) if !(1..=bytes_max).contains(&bytes) => {
            return Err(out_of_range("QuantizationByteSize", i64::from(bytes), 1, bytes_max));
        }
        _ => {}
    }
    if index.kind == VectorIndexType::Flat && embedding.dimensions > FLAT_DIMENSIONS_MAX {
        let (path, dimensions) = (index.path.as_str(), embedding.dimensions);
        return Err(Error::invalid(format!(
            "The flat vector index on {path} has Dimensions:{dimensions} which is more than the maximum supported \
             value: {FLAT_DIMENSIONS_MAX}. Use quantizedFlat or diskANN."
        )));
    }
    Ok(())
}

/// A replace may add and remove entries, but not modify one.
pub(super) fn check_embeddings_unmodified(old: &[VectorEmbedding], new: &[VectorEmbedding]) -> Result<()> {
    if any_modified(old, new, |entry| &entry.path) { Err(not_modifiable("embedding")) } else { Ok(()) }
}

pub(super) fn check_indexes_unmodified(old: &[VectorIndex], new: &[VectorIndex]) -> Result<()> {
    if any_modified(old, new, |entry| &entry.path) { Err(not_modifiable("vector indexing")) } else { Ok(()) }
}

fn any_modified<T: PartialEq>(old: &[T], new: &[T], path: impl Fn(&T) -> &PropertyPath) -> bool {
    let edit = |old: &T, new: &T| read::same_property(path(old), path(new)) && old != new;
    new.iter().any(|new| old.iter().any(|old| edit(old, new)))
}

fn not_modifiable(policy: &str) -> Error {
    Error::invalid(format!(
        "Paths in existing {policy} policy cannot be modified in Collection Replace. They can only be added or removed."
    ))
}

#[cfg(test)]
mod tests;
