//! Effective keys of version 1: a 32-bit hash, then the key itself, both encoded so that bytes sort as the values do.
//!
//! ```text
//!   "pk" → 05 C1 E5 7B 25 45 AA   │ 08 71 6C 00
//!          the hash as a number   │ each UTF-8 byte plus one, then 00
//! ```
//!
//! Only the first 100 characters of a string count (S18): longer strings that agree in those are
//! one logical partition. At most 101 bytes of the text are appended, then without the 00, so that
//! long texts differ from short ones.

use super::component::{KeyComponent, NUMBER, STRING};
use super::effective::{EffectiveKey, EpkRange};
use super::hash::murmur3_x86_32;

/// In UTF-16 code units, as the clients count.
const STRING_CHARS_MAX: usize = 100;
const APPENDED_BYTES_MAX: usize = 100;

pub(super) fn effective(components: &[KeyComponent]) -> EffectiveKey {
    let mut bytes = Vec::with_capacity(128);
    components.iter().for_each(|component| append_hash_input(component, &mut bytes));
    let hash = murmur3_x86_32(&bytes);
    bytes.clear();
    append_number(f64::from(hash), &mut bytes);
    components.iter().for_each(|component| append_sortable(component, &mut bytes));
    EffectiveKey::from_bytes(&bytes)
}

/// The position of one hash value, without a key after it.
pub(super) fn position_of_hash(hash: u32) -> EffectiveKey {
    let mut bytes = Vec::with_capacity(16);
    append_number(f64::from(hash), &mut bytes);
    EffectiveKey::from_bytes(&bytes)
}

/// The position of the hash value in the middle of a range.
pub(super) fn midpoint(range: &EpkRange) -> EffectiveKey {
    let (low, high) = (lower_bound_hash(&range.min), lower_bound_hash(&range.max));
    position_of_hash(low + high.saturating_sub(low) / 2)
}

/// The smallest hash value whose position is not before this one, or the largest value.
fn lower_bound_hash(key: &EffectiveKey) -> u32 {
    let (mut low, mut high) = (0, u32::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        if position_of_hash(middle) < *key { low = middle + 1 } else { high = middle }
    }
    low
}

/// The prefix of a string that counts. A character that would be split is left out.
pub(super) fn truncated(text: &str) -> &str {
    if text.len() <= STRING_CHARS_MAX {
        return text;
    }
    let mut units = 0;
    let end = text.char_indices().find(|(_, c)| {
        units += c.len_utf16();
        units > STRING_CHARS_MAX
    });
    end.map_or(text, |(at, _)| &text[..at])
}

fn append_hash_input(component: &KeyComponent, out: &mut Vec<u8>) {
    const STRING_END: u8 = 0x00;
    out.push(component.type_byte());
    match component {
        KeyComponent::Number(n) => out.extend_from_slice(&n.to_le_bytes()),
        KeyComponent::String(text) => {
            out.extend_from_slice(truncated(text).as_bytes());
            out.push(STRING_END);
        }
        _ => {}
    }
}

fn append_sortable(component: &KeyComponent, out: &mut Vec<u8>) {
    match component {
        KeyComponent::Number(n) => append_number(*n, out),
        KeyComponent::String(text) => append_string(truncated(text), out),
        simple => out.push(simple.type_byte()),
    }
}

/// The double's bits, transformed so that they sort: first 8 bits, then 7 at a time. The lowest bit of
/// each byte after the first is set if another byte follows.
///
/// ```text
///   1 → 05 │ BF │ F0           -3.25 → 05 │ 3F │ F6          0 → 05 │ 80 │ 00
/// ```
fn append_number(n: f64, out: &mut Vec<u8>) {
    const SIGN: u64 = 1 << 63;
    const MORE_FOLLOWS: u8 = 1;
    let bits = n.to_bits();
    let mut remaining_bits = if bits & SIGN == 0 { bits ^ SIGN } else { bits.wrapping_neg() };
    out.extend_from_slice(&[NUMBER, (remaining_bits >> 56) as u8]);
    remaining_bits <<= 8;
    loop {
        let seven = (remaining_bits >> 56) as u8 & !MORE_FOLLOWS;
        remaining_bits <<= 7;
        if remaining_bits == 0 {
            return out.push(seven);
        }
        out.push(seven | MORE_FOLLOWS);
    }
}

fn append_string(text: &str, out: &mut Vec<u8>) {
    // UTF-8 has no FF, so adding one never wraps.
    let plus_one = |byte: &u8| byte.wrapping_add(1);
    out.push(STRING);
    out.extend(text.as_bytes().iter().take(APPENDED_BYTES_MAX + 1).map(plus_one));
    if text.len() <= APPENDED_BYTES_MAX {
        out.push(0x00);
    }
}
