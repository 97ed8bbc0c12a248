//! `compositeIndexes`: several properties indexed as one key.
//!
//! Invariant: two to eight paths each, a hundred in all, no path twice in one index, no index twice. An
//! omitted order stays omitted and means ascending.

use super::index_path::IndexPath;
use super::read;
use crate::{Error, Object, Result, Value};

pub const COMPOSITE_PATHS_PER_INDEX_MIN: usize = 2;
pub const COMPOSITE_PATHS_PER_INDEX_MAX: usize = 8;
/// Over all composite indexes of a container.
pub const COMPOSITE_PATHS_MAX: usize = 100;

named! {
    pub enum SortOrder { Ascending = "ascending", Descending = "descending" }
}

#[derive(Clone, Debug, PartialEq)]
pub struct CompositeIndex {
    pub paths: Vec<CompositePath>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CompositePath {
    /// Its text has no `/?`; it may go into arrays.
    pub path: IndexPath,
    /// As the client sent it, so that it is returned unchanged.
    order: Option<SortOrder>,
}

impl CompositePath {
    pub fn order(&self) -> SortOrder {
        self.order.unwrap_or(SortOrder::Ascending)
    }

    fn parse(entry: &Value) -> Result<Self> {
        let entry = read::object(entry)?;
        let path = IndexPath::parse_bare(read::required_text(entry, "path")?)?;
        Ok(CompositePath { path, order: read::optional(entry, "order", order)? })
    }

    fn to_object(&self) -> Object {
        let object = read::path_entry(self.path.as_str());
        match self.order {
            Some(order) => object.with("order", order.as_str()),
            None => object,
        }
    }

    fn same(&self, other: &CompositePath) -> bool {
        self.path.steps == other.path.steps && self.order() == other.order()
    }
}

pub(super) fn parse(policy: &Object) -> Result<Vec<CompositeIndex>> {
    let indexes = read::each(policy, "compositeIndexes", |index| {
        let paths = read::array(index)?.iter().map(CompositePath::parse).collect::<Result<Vec<_>>>()?;
        check_index(CompositeIndex { paths })
    })?;
    check_all(&indexes)?;
    Ok(indexes)
}

pub(super) fn to_value(indexes: &[CompositeIndex]) -> Value {
    Value::Array(indexes.iter().map(|index| read::render(&index.paths, CompositePath::to_object)).collect())
}

fn order(value: &Value) -> Result<SortOrder> {
    let text = read::text(value)?;
    SortOrder::parse(text)
        .ok_or_else(|| Error::invalid(format!("The composite order '{text}' is not ascending or descending.")))
}

fn check_index(index: CompositeIndex) -> Result<CompositeIndex> {
    let count = index.paths.len();
    if !(COMPOSITE_PATHS_PER_INDEX_MIN..=COMPOSITE_PATHS_PER_INDEX_MAX).contains(&count) {
        return Err(Error::invalid(format!(
            "A composite index has {count} paths. It needs {COMPOSITE_PATHS_PER_INDEX_MIN} to \
             {COMPOSITE_PATHS_PER_INDEX_MAX}."
        )));
    }
    for (at, one) in index.paths.iter().enumerate() {
        if index.paths.iter().take(at).any(|earlier| earlier.path.steps == one.path.steps) {
            let path = one.path.as_str();
            return Err(Error::invalid(format!("The path '{path}' is twice in one composite index. Keep it once.")));
        }
    }
    Ok(index)
}

fn check_all(indexes: &[CompositeIndex]) -> Result<()> {
    let count: usize = indexes.iter().map(|index| index.paths.len()).sum();
    if count > COMPOSITE_PATHS_MAX {
        return Err(Error::invalid(format!(
            "The composite indexes have {count} paths in all. A maximum of {COMPOSITE_PATHS_MAX} is allowed."
        )));
    }
    for (at, one) in indexes.iter().enumerate() {
        if indexes.iter().take(at).any(|earlier| same(earlier, one)) {
            return Err(Error::invalid("The same composite index is there twice. Keep it once."));
        }
    }
    Ok(())
}

fn same(one: &CompositeIndex, other: &CompositeIndex) -> bool {
    one.paths.len() == other.paths.len() && one.paths.iter().zip(&other.paths).all(|(one, other)| one.same(other))
}

#[cfg(test)]
mod tests;
