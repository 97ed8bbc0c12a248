//! Effective keys of version 2: a 128-bit hash with its two highest bits cleared, 16 bytes big-endian.
//!
//! ```text
//!   ["pk"] → 20 FD 8F E7 80 DC FA 06 92 90 51 52 C3 5E 10 D9        always below 40
//! ```
//!
//! A hierarchical key has 16 such bytes for each of its levels, hashed separately, so that all keys
//! with a common prefix are adjacent.

use super::component::KeyComponent;
use super::effective::{EffectiveKey, EpkRange};
use super::hash::murmur3_x64_128;

/// One more than the largest position.
pub(super) const POSITIONS: u128 = 1 << 126;

/// Keys of up to this size are hashed without a heap allocation.
const STACK_BYTES: usize = 256;

pub(super) fn position(components: &[KeyComponent]) -> [u8; 16] {
    let len = encoded_len(components);
    if len <= STACK_BYTES {
        let mut bytes = [0; STACK_BYTES];
        encode(components, &mut bytes[..len]);
        position_of_bytes(&bytes[..len])
    } else {
        let mut bytes = vec![0; len];
        encode(components, &mut bytes);
        position_of_bytes(&bytes)
    }
}

fn position_of_bytes(bytes: &[u8]) -> [u8; 16] {
    let (h1, h2) = murmur3_x64_128(bytes);
    let hash = u128::from(h2) << 64 | u128::from(h1);
    (hash % POSITIONS).to_be_bytes()
}

pub(super) fn encoded_len(components: &[KeyComponent]) -> usize {
    components.iter().map(KeyComponent::encoded_len).sum()
}

/// The length of `out` must be exactly `encoded_len`.
pub(super) fn encode(components: &[KeyComponent], out: &mut [u8]) {
    components.iter().fold(out, |rest, component| component.encode(rest));
}

const LEVEL_BYTES: usize = 16;

/// The middle of a range, computed as a number of `levels` levels and truncated to one level, to two, and so on. The
/// shorter ones may lie outside the range.
pub(super) fn midpoint_candidates(range: &EpkRange, levels: usize) -> Vec<EffectiveKey> {
    let mut bytes = padded(&range.min, levels);
    let mut carry = 0;
    for (byte, other) in bytes.iter_mut().zip(padded(&range.max, levels)).rev() {
        let sum = u16::from(*byte) + u16::from(other) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    let mut low = carry as u8; // the bit shifted into the next lower byte
    for byte in &mut bytes {
        (*byte, low) = (low << 7 | *byte >> 1, *byte & 1);
    }
    (1..=levels).filter_map(|levels| bytes.get(..levels * LEVEL_BYTES)).map(EffectiveKey::from_bytes).collect()
}

/// Pads a key with zeros; the end of the space becomes the largest position.
fn padded(key: &EffectiveKey, levels: usize) -> Vec<u8> {
    let mut bytes =
        if *key == EffectiveKey::MAX { (POSITIONS - 1).to_be_bytes().to_vec() } else { key.as_bytes().to_vec() };
    bytes.resize(levels * LEVEL_BYTES, 0);
    bytes
}
