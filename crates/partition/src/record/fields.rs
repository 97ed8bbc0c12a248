//! Field offsets: a list of where each top-level property of an item is in its JSON text.
//!
//! Guarantees: with the list a property is found, or known to be missing, without reading the others. The list is only
//! a hint: the name is compared in the text, so that names with equal hashes are distinguished.
//!
//! ```text
//! count u16 │ (name hash u32 │ offset of the value in the body u32)*         top-level properties, in their order
//!   00 02   │ 37 38 6a e0    │ 00 00 00 06
//!           │ eb 0c 34 31    │ 00 00 00 0f                                  {"id":"a1","n":5}
//!   ff ff   │                                                              not listed: scan the text
//! ```

use pleiad_model::json::lazy;

/// In place of a count: too many properties to list, or too long a text.
const UNLISTED: u16 = u16::MAX;
const ENTRY_BYTES: usize = 8;

/// The list of one body, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldOffsets {
    list: Vec<u8>,
}

impl FieldOffsets {
    pub fn of(body: &[u8]) -> FieldOffsets {
        listed(body).unwrap_or_else(|| FieldOffsets { list: UNLISTED.to_be_bytes().to_vec() })
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.list
    }
}

fn listed(body: &[u8]) -> Option<FieldOffsets> {
    let mut list = vec![0; 2];
    for property in lazy::properties(body) {
        let name = lazy::string(property.name)?;
        list.extend_from_slice(&lazy::name_hash(&name).to_be_bytes());
        list.extend_from_slice(&u32::try_from(property.value_at).ok()?.to_be_bytes());
    }
    let count = u16::try_from(list.len() / ENTRY_BYTES).ok().filter(|count| *count != UNLISTED)?;
    list[..2].copy_from_slice(&count.to_be_bytes());
    Some(FieldOffsets { list })
}

/// The length of the entries that follow a count, in bytes; `None` if nothing is listed.
pub fn entries_bytes(count: u16) -> Option<usize> {
    (count != UNLISTED).then_some(usize::from(count) * ENTRY_BYTES)
}

/// The text of a property's value, by the entries of a list.
pub fn find<'a>(entries: &[u8], body: &'a [u8], name: &str, hash: u32) -> Option<&'a [u8]> {
    let (entries, _) = entries.as_chunks::<ENTRY_BYTES>();
    let mut hash_matched = false;
    for [h0, h1, h2, h3, at @ ..] in entries {
        if [*h0, *h1, *h2, *h3] == hash.to_be_bytes() {
            let at = u32::from_be_bytes(*at) as usize;
            if is_named(body.get(..at)?, name) {
                return body.get(at..lazy::skip(body, at));
            }
            hash_matched = true;
        }
    }
    // Another name with this hash, or the same one with escapes in the text.
    if hash_matched { lazy::property(body, name) } else { None }
}

/// Whether text ends with `{"name":` or `,"name":`. A quote after a comma or a brace opens a string: a quote inside a
/// string would have a backslash before it.
fn is_named(before: &[u8], name: &str) -> bool {
    let opened = before.strip_suffix(b"\":").and_then(|before| before.strip_suffix(name.as_bytes()));
    matches!(opened, Some([.., b'{' | b',', b'"'])) && !name.contains(['"', '\\'])
}

#[cfg(test)]
mod tests;
