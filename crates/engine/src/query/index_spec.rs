//! Index specs: the names of indexes in plans and index metrics.
//!
//! ```text
//! Path       index /a/?             /a/?
//! Composite  index (/a, /b)         /a ASC, /b DESC
//! Spatial    spatial index /loc     /loc/*
//! FullText   full-text index /text  /text
//! Vector     vector index /v        /v
//! ```

use std::fmt::{Display, Formatter};

use pleiad_model::policy::{CompositeIndex, CompositePath, PathStep, SortOrder};
use pleiad_sql::index_predicate::path_text;

#[derive(Clone, Debug, PartialEq)]
pub enum IndexSpec {
    Path(Vec<PathStep>),
    Composite(CompositeIndex),
    Spatial(Vec<PathStep>),
    FullText(Vec<PathStep>),
    Vector(Vec<PathStep>),
}

impl IndexSpec {
    /// The spec as an indexing policy contains it and as index metrics report it.
    pub fn specs(&self) -> Vec<String> {
        match self {
            IndexSpec::Path(path) => vec![format!("{}/?", path_text(path))],
            IndexSpec::Composite(index) => index.paths.iter().map(path_with_order).collect(),
            IndexSpec::Spatial(path) => vec![format!("{}/*", path_text(path))],
            IndexSpec::FullText(path) | IndexSpec::Vector(path) => vec![path_text(path)],
        }
    }

    /// Whether a predicate on the values at this path can use the index.
    pub fn covers_path(&self, steps: &[PathStep]) -> bool {
        match self {
            IndexSpec::Composite(index) => index.paths.iter().any(|path| path.path.steps == steps),
            IndexSpec::Path(path) => path == steps,
            IndexSpec::Spatial(_) | IndexSpec::FullText(_) | IndexSpec::Vector(_) => false,
        }
    }
}

fn path_with_order(path: &CompositePath) -> String {
    let order = if path.order() == SortOrder::Descending { "DESC" } else { "ASC" };
    format!("{} {order}", path_text(&path.path.steps))
}

impl Display for IndexSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            IndexSpec::Path(path) => write!(f, "index {}/?", path_text(path)),
            IndexSpec::Composite(index) => {
                let paths = index.paths.iter().map(|path| path_text(&path.path.steps)).collect::<Vec<_>>();
                write!(f, "index ({})", paths.join(", "))
            }
            IndexSpec::Spatial(path) => write!(f, "spatial index {}", path_text(path)),
            IndexSpec::FullText(path) => write!(f, "full-text index {}", path_text(path)),
            IndexSpec::Vector(path) => write!(f, "vector index {}", path_text(path)),
        }
    }
}

/// How many indexes of one access path are named.
const NAMED_MAX: usize = 4;

/// `index /a/?, spatial index /loc`
pub fn index_names(indexes: &[IndexSpec]) -> String {
    let mut names: Vec<String> = indexes.iter().take(NAMED_MAX).map(IndexSpec::to_string).collect();
    if indexes.len() > NAMED_MAX {
        names.push(format!("{} more", indexes.len() - NAMED_MAX));
    }
    names.join(", ")
}
