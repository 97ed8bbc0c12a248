//! Item validation: ids, resource names and time to live.
//!
//! Guarantees: an item that passes can be addressed by a URL, and its time to live is in range. The
//! partition key is checked in `partition_key`; the size is checked where the item's bytes are
//! counted.

use crate::error::NameStart;
use crate::{Fact, Result, Value};

#[cfg(test)]
mod tests;

/// As UTF-8 JSON.
pub const ITEM_BYTES_MAX: usize = 2 * 1024 * 1024;
pub const ITEM_ID_BYTES_MAX: usize = 1023;
/// For databases, containers and every other resource that is not an item.
pub const RESOURCE_NAME_CHARS_MAX: usize = 255;
pub const TTL_S_MAX: i64 = 2_147_483_647;

/// Written by the server only: dropped from a client's request body, added to the response.
pub const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

pub fn check_item_id(id: &str) -> Result<()> {
    if id.is_empty() || id.len() > ITEM_ID_BYTES_MAX {
        let start = Box::new(NameStart::of(id));
        return Err(Fact::ItemIdLength { start, bytes_max: ITEM_ID_BYTES_MAX }.into());
    }
    check_addressable(id)
}

pub fn check_resource_name(id: &str) -> Result<()> {
    if id.is_empty() || id.chars().count() > RESOURCE_NAME_CHARS_MAX {
        let start = Box::new(NameStart::of(id));
        return Err(Fact::ResourceNameLength { start, chars_max: RESOURCE_NAME_CHARS_MAX }.into());
    }
    check_addressable(id)
}

/// A name is one segment of a URL: these characters would end it, and a trailing space gets lost.
fn check_addressable(id: &str) -> Result<()> {
    if id.contains(['/', '\\', '#', '?']) {
        return Err(Fact::NameCharacter { name: id.into() }.into());
    }
    if id.ends_with(' ') {
        return Err(Fact::NameTrailingSpace { name: id.into() }.into());
    }
    check_distinct(id)
}

/// Two texts with different unpaired surrogates are one text here: as names, the second would replace the first.
pub fn check_distinct(text: &str) -> Result<()> {
    if text.contains(char::REPLACEMENT_CHARACTER) {
        return Err(Fact::ReplacementCharacter { text: text.into() }.into());
    }
    Ok(())
}

/// The item's `id`, which is required and must be a string.
pub fn item_id(item: &Value) -> Result<&str> {
    match item.get("id") {
        Some(Value::String(id)) => Ok(id),
        Some(_) => Err(Fact::IdNotString.into()),
        None => Err(Fact::IdMissing.into()),
    }
}

/// Seconds to live, or -1 for no expiry; an item without `ttl` uses the container's default.
pub fn check_ttl(item: &Value) -> Result<()> {
    let Some(ttl) = item.get("ttl") else { return Ok(()) };
    match ttl.as_i64() {
        Some(-1 | 1..=TTL_S_MAX) => Ok(()),
        _ => Err(Fact::TtlOutOfRange { ttl: Box::new(ttl.clone()), seconds_max: TTL_S_MAX }.into()),
    }
}
