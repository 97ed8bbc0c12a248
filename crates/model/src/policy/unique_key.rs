//! `uniqueKeyPolicy`: unique constraints, on values that at most one item per logical partition may have.
//!
//! Invariant: at most ten constraints with sixteen paths in all; no constraint occurs twice, and none is on a system
//! property.

use super::read;
use crate::item::SYSTEM_PROPERTIES;
use crate::path::PropertyPath;
use crate::{Error, Object, Result, Value};

pub const UNIQUE_KEYS_MAX: usize = 10;
/// Over all constraints of a container.
pub const UNIQUE_PATHS_MAX: usize = 16;

#[derive(Clone, Debug, PartialEq)]
pub struct UniqueKey {
    pub paths: Vec<PropertyPath>,
}

impl UniqueKey {
    pub(super) fn parse_policy(body: &Value) -> Result<Vec<Self>> {
        let keys = read::each(read::object(body)?, "uniqueKeys", Self::parse)?;
        check(&keys)?;
        Ok(keys)
    }

    pub(super) fn policy_to_object(keys: &[Self]) -> Object {
        Object::new().with("uniqueKeys", read::render(keys, Self::to_object))
    }

    /// Whether both constrain the same properties in the same order.
    pub(super) fn same(&self, other: &UniqueKey) -> bool {
        self.paths.len() == other.paths.len()
            && self.paths.iter().zip(&other.paths).all(|(one, other)| read::same_property(one, other))
    }

    fn parse(entry: &Value) -> Result<Self> {
        let paths = read::each(read::object(entry)?, "paths", path)?;
        if paths.is_empty() {
            return Err(Error::invalid("A unique key has no paths. Give it at least one."));
        }
        match read::repeated(&paths) {
            Some(path) => {
                Err(Error::invalid(format!("The path '{}' is twice in one unique key. Keep it once.", path.as_str())))
            }
            None => Ok(UniqueKey { paths }),
        }
    }

    fn to_object(&self) -> Object {
        Object::new().with("paths", self.paths.iter().map(|path| Value::from(path.as_str())).collect::<Vec<_>>())
    }
}

fn path(value: &Value) -> Result<PropertyPath> {
    let text = read::text(value)?;
    PropertyPath::parse(text)
        .map_err(|why| Error::invalid(format!("The unique key path '{text}' could not be accepted: {why}")))
}

/// System properties are unique anyway, or equal in all items.
pub(super) fn check_no_system_properties(keys: &[UniqueKey]) -> Result<()> {
    let is_system_property =
        |path: &&PropertyPath| path.segments().first().is_some_and(|name| SYSTEM_PROPERTIES.contains(&name.as_str()));
    match keys.iter().flat_map(|key| &key.paths).find(is_system_property) {
        Some(path) => Err(Error::invalid(format!(
            "The unique key path '{}' could not be accepted: it names a system property. Name a property of your items.",
            path.as_str()
        ))),
        None => Ok(()),
    }
}

fn check(keys: &[UniqueKey]) -> Result<()> {
    let (count, paths_count) = (keys.len(), keys.iter().map(|key| key.paths.len()).sum::<usize>());
    if count > UNIQUE_KEYS_MAX {
        return Err(Error::invalid(format!(
            "The unique key policy has {count} unique keys. A maximum of {UNIQUE_KEYS_MAX} is allowed."
        )));
    }
    if paths_count > UNIQUE_PATHS_MAX {
        return Err(Error::invalid(format!(
            "The unique key policy has {paths_count} paths in all. A maximum of {UNIQUE_PATHS_MAX} is allowed."
        )));
    }
    for (at, one) in keys.iter().enumerate() {
        if keys.iter().take(at).any(|earlier| earlier.same(one)) {
            return Err(Error::invalid("The same unique key is there twice. Keep it once."));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
