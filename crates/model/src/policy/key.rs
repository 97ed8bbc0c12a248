//! `partitionKey`: the properties that determine an item's partition.
//!
//! Invariant: `Hash` has one path, `MultiHash` one to three and version 2. A definition is rendered with
//! exactly the members `paths`, `kind` and `version`, because clients compare the whole object
//! (`systemKey` appears on migrated containers only).

use super::read;
use crate::partition_key::{KeyKind, KeyVersion, PartitionKeyDefinition};
use crate::path::PropertyPath;
use crate::{Error, Object, Result, Value};

pub const HASH_PATHS_MAX: usize = 1;
pub const MULTI_HASH_PATHS_MAX: usize = 3;

/// `default_version` applies to a definition without `version`: 1 on create, the container's own on replace.
pub(super) fn parse(body: &Value, default_version: KeyVersion) -> Result<PartitionKeyDefinition> {
    let body = read::object(body)?;
    let kind = read::optional(body, "kind", kind)?.unwrap_or(KeyKind::Hash);
    let default_version = if kind == KeyKind::MultiHash { KeyVersion::V2 } else { default_version };
    let version = read::optional(body, "version", version)?.unwrap_or(default_version);
    let system_key = read::optional(body, "systemKey", read::flag)?.unwrap_or(false);
    let paths = read::each(body, "paths", path)?;
    check(PartitionKeyDefinition { paths, kind, version, system_key })
}

pub(super) fn to_object(key: &PartitionKeyDefinition) -> Object {
    let paths = key.paths.iter().map(|path| Value::from(path.as_str())).collect::<Vec<_>>();
    let kind = match key.kind {
        KeyKind::Hash => "Hash",
        KeyKind::MultiHash => "MultiHash",
    };
    let version: i64 = match key.version {
        KeyVersion::V1 => 1,
        KeyVersion::V2 => 2,
    };
    let object = Object::new().with("paths", paths).with("kind", kind).with("version", version);
    if key.system_key { object.with("systemKey", true) } else { object }
}

/// Whether both hash the same properties in the same way.
pub(super) fn same(one: &PartitionKeyDefinition, other: &PartitionKeyDefinition) -> bool {
    one.kind == other.kind
        && one.version == other.version
        && one.paths.len() == other.paths.len()
        && one.paths.iter().zip(&other.paths).all(|(one, other)| read::same_property(one, other))
}

fn kind(value: &Value) -> Result<KeyKind> {
    match read::text(value)? {
        text if text.eq_ignore_ascii_case("Hash") => Ok(KeyKind::Hash),
        text if text.eq_ignore_ascii_case("MultiHash") => Ok(KeyKind::MultiHash),
        text => Err(Error::invalid(format!("The partition key kind '{text}' is not Hash or MultiHash."))),
    }
}

/// One SDK sends the name of its constant in place of the number.
fn version(value: &Value) -> Result<KeyVersion> {
    match value.as_str() {
        Some("V1") => return Ok(KeyVersion::V1),
        Some("V2") => return Ok(KeyVersion::V2),
        _ => {}
    }
    match read::integer(value)? {
        1 => Ok(KeyVersion::V1),
        2 => Ok(KeyVersion::V2),
        other => Err(Error::invalid(format!("The partition key version {other} is not 1 or 2."))),
    }
}

fn path(value: &Value) -> Result<PropertyPath> {
    let text = read::text(value)?;
    PropertyPath::parse(text).map_err(|why| {
        Error::invalid(format!(
            "The partition key component definition path '{text}' could not be accepted: {why} A partition key path \
             names a property, without a trailing slash or wildcard."
        ))
    })
}

fn check(key: PartitionKeyDefinition) -> Result<PartitionKeyDefinition> {
    let paths_max = match key.kind {
        KeyKind::Hash => HASH_PATHS_MAX,
        KeyKind::MultiHash => MULTI_HASH_PATHS_MAX,
    };
    match key.paths.len() {
        0 => return Err(Error::invalid("The partition key definition has no paths. Give one property path.")),
        count if count > paths_max => {
            return Err(Error::invalid(format!(
                "Too many partition key paths ({count}) specified. A maximum of {paths_max} is allowed."
            )));
        }
        _ => {}
    }
    if let Some(path) = read::repeated(&key.paths) {
        return Err(Error::invalid(format!("The partition key path '{}' is there twice.", path.as_str())));
    }
    if key.kind == KeyKind::MultiHash && key.version == KeyVersion::V1 {
        return Err(Error::invalid("A MultiHash partition key needs version 2."));
    }
    Ok(key)
}
