//! Effective partition keys (EPKs): positions in a container's hash space, and ranges of them.
//!
//! Invariant: positions compare as their bytes do, and so as their upper-case hex text does, which is
//! what clients compare. The space extends from the empty position (included) to `FF` (excluded).

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::{Error, Result};

/// Enough for three levels of a hierarchical key.
const INLINE_BYTES: usize = 48;

#[derive(Clone)]
pub struct EffectiveKey(Repr);

/// Every version 2 key and most version 1 keys are stored inline and cloned without a heap allocation.
#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Long(Box<[u8]>),
}

impl EffectiveKey {
    /// `""`
    pub const MIN: EffectiveKey = EffectiveKey(Repr::Inline { len: 0, bytes: [0; INLINE_BYTES] });

    /// `"FF"`
    pub const MAX: EffectiveKey = {
        let mut bytes = [0; INLINE_BYTES];
        bytes[0] = 0xFF;
        EffectiveKey(Repr::Inline { len: 1, bytes })
    };

    /// Parses hex text in upper or lower case, because some clients print version 1 keys in lower case.
    pub fn parse(hex: &str) -> Result<Self> {
        let digits = hex.as_bytes();
        let invalid =
            || Error::invalid(format!("'{hex}' is not an effective partition key: write pairs of hex digits."));
        if !digits.len().is_multiple_of(2) {
            return Err(invalid());
        }
        let bytes: Option<Vec<u8>> = digits.chunks_exact(2).map(parse_hex_pair).collect();
        Ok(EffectiveKey::from_bytes(&bytes.ok_or_else(invalid)?))
    }

    pub fn from_bytes(bytes: &[u8]) -> Self {
        EffectiveKey::of_parts(&[bytes])
    }

    /// Concatenates the parts.
    pub(super) fn of_parts(parts: &[&[u8]]) -> Self {
        let len = parts.iter().map(|part| part.len()).sum::<usize>();
        if len > INLINE_BYTES {
            return EffectiveKey(Repr::Long(parts.concat().into()));
        }
        let mut bytes = [0; INLINE_BYTES];
        let mut at = 0;
        for part in parts {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        EffectiveKey(Repr::Inline { len: len as u8, bytes })
    }

    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Long(bytes) => bytes,
        }
    }

    /// This position with one more byte.
    fn with_byte(&self, byte: u8) -> EffectiveKey {
        EffectiveKey::of_parts(&[self.as_bytes(), &[byte]])
    }

    /// Adds one to the last byte, with carry into the bytes before it; the length is unchanged.
    fn next_of_same_length(&self) -> Option<EffectiveKey> {
        let mut bytes = self.as_bytes().to_vec();
        for byte in bytes.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                return Some(EffectiveKey::from_bytes(&bytes));
            }
        }
        None
    }
}

fn parse_hex_pair(pair: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(pair[at]).to_digit(16);
    u8::try_from(digit(0)? << 4 | digit(1)?).ok()
}

impl Default for EffectiveKey {
    fn default() -> Self {
        EffectiveKey::MIN
    }
}

impl PartialEq for EffectiveKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for EffectiveKey {}

impl Ord for EffectiveKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl PartialOrd for EffectiveKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for EffectiveKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

/// Upper-case hex.
impl fmt::Display for EffectiveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Debug for EffectiveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// From `min` (included) to `max` (excluded).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpkRange {
    pub min: EffectiveKey,
    pub max: EffectiveKey,
}

impl EpkRange {
    pub const FULL: EpkRange = EpkRange { min: EffectiveKey::MIN, max: EffectiveKey::MAX };

    pub fn contains(&self, key: &EffectiveKey) -> bool {
        self.min <= *key && *key < self.max
    }

    pub fn is_empty(&self) -> bool {
        self.min >= self.max
    }

    pub fn intersect(&self, other: &EpkRange) -> Option<EpkRange> {
        let min = Ord::max(&self.min, &other.min).clone();
        let max = Ord::min(&self.max, &other.max).clone();
        let both = EpkRange { min, max };
        (!both.is_empty()).then_some(both)
    }

    /// All hierarchical keys that begin with these levels.
    pub fn of_prefix(prefix: EffectiveKey) -> EpkRange {
        let max = prefix.with_byte(0xFF);
        EpkRange { min: prefix, max }
    }

    /// Exactly one key: `…49B7` to `…49B8`, and for the empty key `""` to `00`.
    pub fn of_point(key: EffectiveKey) -> EpkRange {
        let max = key.next_of_same_length().unwrap_or_else(|| key.with_byte(0x00));
        EpkRange { min: key, max }
    }
}
