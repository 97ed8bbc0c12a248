//! `indexingPolicy`: what is indexed and how.
//!
//! Invariant: a policy is normalized as Cosmos would return it. An empty policy becomes the default;
//! legacy `indexes` members are dropped; `_etag` is excluded unless a path names it; the root is in
//! exactly one of the two lists, and no path is in both. Only mode `none` without paths keeps both lists
//! empty.
//!
//! `container` checks that vector and full-text indexes fit the container's other policies.

use std::collections::HashSet;

use super::composite::{self, CompositeIndex};
use super::full_text::FullTextIndex;
use super::index_path::{End, IndexPath};
use super::matcher::IndexMatcher;
use super::read;
use super::spatial::SpatialIndex;
use super::vector::VectorIndex;
use crate::{Error, Object, Result, Value};

pub const INCLUDED_PATHS_MAX: usize = 1_500;
pub const EXCLUDED_PATHS_MAX: usize = 1_500;

const ROOT: &str = "/*";
const ETAG: &str = "/\"_etag\"/?";

named! {
    pub enum IndexingMode {
        Consistent = "consistent",
        /// A mode of older services; not supported.
        Lazy = "lazy",
        None = "none",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexingPolicy {
    pub mode: IndexingMode,
    /// Whether a write without an indexing directive is indexed.
    pub automatic: bool,
    pub included: Vec<IndexPath>,
    pub excluded: Vec<IndexPath>,
    pub composite: Vec<CompositeIndex>,
    pub spatial: Vec<SpatialIndex>,
    pub vector: Vec<VectorIndex>,
    pub full_text: Vec<FullTextIndex>,
}

impl IndexingPolicy {
    pub fn parse(body: Option<&Value>) -> Result<Self> {
        let empty = Object::new();
        let body = body.map(read::object).transpose()?.unwrap_or(&empty);
        let mode = read::optional(body, "indexingMode", mode)?.unwrap_or(IndexingMode::Consistent);
        let automatic = read::optional(body, "automatic", read::flag)?.unwrap_or(mode != IndexingMode::None);
        let (included, excluded) = (paths(body, "includedPaths")?, paths(body, "excludedPaths")?);
        check_paths(&included, &excluded)?;
        let (included, excluded) = add_default_paths(mode, included, excluded)?;
        Ok(IndexingPolicy {
            mode,
            automatic,
            included,
            excluded,
            composite: composite::parse(body)?,
            spatial: read::each(body, "spatialIndexes", SpatialIndex::parse)?,
            vector: read::each(body, "vectorIndexes", VectorIndex::parse)?,
            full_text: FullTextIndex::parse_all(body)?,
        })
    }

    pub fn to_value(&self) -> Value {
        let mut object = Object::new()
            .with("indexingMode", self.mode.as_str())
            .with("automatic", self.automatic)
            .with("includedPaths", read::render(&self.included, |path| read::path_entry(path.as_str())))
            .with("excludedPaths", read::render(&self.excluded, |path| read::path_entry(path.as_str())));
        if !self.composite.is_empty() {
            object.set("compositeIndexes", composite::to_value(&self.composite));
        }
        if !self.spatial.is_empty() {
            object.set("spatialIndexes", read::render(&self.spatial, SpatialIndex::to_object));
        }
        if !self.vector.is_empty() {
            object.set("vectorIndexes", read::render(&self.vector, VectorIndex::to_object));
        }
        if !self.full_text.is_empty() {
            object.set("fullTextIndexes", read::render(&self.full_text, FullTextIndex::to_object));
        }
        object.into()
    }

    /// The decision about included and excluded paths, compiled once per policy.
    pub fn matcher(&self) -> IndexMatcher {
        match self.mode {
            IndexingMode::None => IndexMatcher::nothing(),
            IndexingMode::Consistent | IndexingMode::Lazy => IndexMatcher::new(&self.included, &self.excluded),
        }
    }
}

fn mode(value: &Value) -> Result<IndexingMode> {
    let text = read::text(value)?;
    IndexingMode::parse(text)
        .ok_or_else(|| Error::invalid(format!("The indexing mode '{text}' is not consistent or none.")))
}

/// The legacy `indexes` member of a path (kind, data type, precision) is ignored: every included path
/// has a range index.
fn paths(body: &Object, name: &str) -> Result<Vec<IndexPath>> {
    read::each(body, name, |entry| IndexPath::parse(read::required_text(read::object(entry)?, "path")?))
}

fn check_paths(included: &[IndexPath], excluded: &[IndexPath]) -> Result<()> {
    check_count("included", included, INCLUDED_PATHS_MAX)?;
    check_count("excluded", excluded, EXCLUDED_PATHS_MAX)?;
    if let Some(tuple) = excluded.iter().find(|path| matches!(path.end, End::Tuple(_))) {
        return Err(Error::invalid(format!("The tuple '{}' can be an included path only.", tuple.as_str())));
    }
    let mut seen = HashSet::new();
    match included.iter().chain(excluded).find(|path| !seen.insert((&path.steps, &path.end))) {
        Some(path) => {
            Err(Error::invalid(format!("The indexing path '{}' is there twice. Keep it once.", path.as_str())))
        }
        None => Ok(()),
    }
}

/// `_etag` does not count: the service itself adds it, also to a policy at its limit.
fn check_count(which: &str, paths: &[IndexPath], paths_max: usize) -> Result<()> {
    let count = paths.iter().filter(|path| !path.starts_at("_etag")).count();
    if count <= paths_max {
        return Ok(());
    }
    Err(Error::invalid(format!("The indexing policy has {count} {which} paths. A maximum of {paths_max} is allowed.")))
}

/// Adds the paths that Cosmos adds: the root to an empty policy, and the excluded `_etag`.
fn add_default_paths(
    mode: IndexingMode,
    mut included: Vec<IndexPath>,
    mut excluded: Vec<IndexPath>,
) -> Result<(Vec<IndexPath>, Vec<IndexPath>)> {
    let is_unspecified = included.is_empty() && excluded.is_empty();
    if mode == IndexingMode::None && is_unspecified {
        return Ok((included, excluded));
    }
    if is_unspecified {
        included.push(IndexPath::parse(ROOT)?);
    }
    if !included.iter().chain(&excluded).any(IndexPath::is_root) {
        return Err(Error::invalid(
            "The special mandatory indexing path \"/\" is not provided in any of the path type sets. Add /* to the \
             included or to the excluded paths.",
        ));
    }
    if !included.iter().chain(&excluded).any(|path| path.starts_at("_etag")) {
        excluded.push(IndexPath::parse(ETAG)?);
    }
    Ok((included, excluded))
}

#[cfg(test)]
mod tests;
