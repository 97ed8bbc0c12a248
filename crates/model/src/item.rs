//! Item validation: ids, resource names and time to live.
//!
//! Guarantees: an item that passes can be addressed by a URL, and its time to live is in range. The
//! partition key is checked in `partition_key`; the size is checked where the item's bytes are
//! counted.

use crate::{Error, Result, Value, json};

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
        return Err(wrong_length(id, ITEM_ID_BYTES_MAX + 1));
    }
    check_addressable(id)
}

pub fn check_resource_name(id: &str) -> Result<()> {
    if id.is_empty() || id.chars().count() > RESOURCE_NAME_CHARS_MAX {
        return Err(wrong_length(id, RESOURCE_NAME_CHARS_MAX));
    }
    check_addressable(id)
}

fn wrong_length(id: &str, limit: usize) -> Error {
    let start: String = id.chars().take(32).collect();
    let dots = if start.len() < id.len() { "…" } else { "" };
    Error::invalid(format!(
        "The input name '{start}{dots}' is invalid. Ensure to provide a unique non-empty string less than '{limit}' characters."
    ))
}

/// A name is one segment of a URL: these characters would end it, and a trailing space gets lost.
fn check_addressable(id: &str) -> Result<()> {
    if id.contains(['/', '\\', '#', '?']) {
        return Err(Error::invalid(format!(
            "The input name '{id}' is invalid: it must not contain '/', '\\', '#' or '?'."
        )));
    }
    if id.ends_with(' ') {
        return Err(Error::invalid(format!("The input name '{id}' is invalid: it must not end with a space.")));
    }
    Ok(())
}

/// The item's `id`, which is required and must be a string.
pub fn item_id(item: &Value) -> Result<&str> {
    match item.get("id") {
        Some(Value::String(id)) => Ok(id),
        Some(_) => {
            Err(Error::invalid("The input content is invalid because the required property 'id' is not a string."))
        }
        None => {
            Err(Error::invalid("The input content is invalid because the required properties - 'id; ' - are missing"))
        }
    }
}

/// Seconds to live, or -1 for no expiry; an item without `ttl` uses the container's default.
pub fn check_ttl(item: &Value) -> Result<()> {
    let Some(ttl) = item.get("ttl") else { return Ok(()) };
    match ttl.as_i64() {
        Some(-1 | 1..=TTL_S_MAX) => Ok(()),
        _ => Err(Error::invalid(format!(
            "The input ttl '{}' is invalid. Ensure to provide a nonzero positive integer less than or equal to '{TTL_S_MAX}', or '-1' which means never expire.",
            json::to_string(ttl)
        ))),
    }
}
