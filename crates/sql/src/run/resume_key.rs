//! Resume keys: the sort key after which the next page continues, whole or truncated.
//!
//! A row's key can be as long as an item, but a continuation token cannot. A long key is truncated: its prefix, its
//! last bytes, and a hash of everything before those last bytes represent it.
//!
//! ```text
//!   whole       ├──────────────── key ────────────────┤
//!   truncated   ├─ prefix ─┤ … hash of the head … ├─ end ─┤
//! ```
//!
//! For sorted rows the end identifies the item. If the item still exists, the whole key can be restored from it.
//!
//! Guarantees: a row is never put on the wrong side of a resume key. With a whole key, every row sorts before or after
//! it. With a truncated key this is also decided for rows that differ from it in the prefix, and for rows that are
//! equal to it up to the end, which is where items with equal sort keys differ. For all other rows the side is unknown,
//! and `has_passed` returns an error.

use std::cmp::Ordering;

use pleiad_model::memcomparable::{FALSE, NULL, NUMBER, STRING, STRING_END, TRUE, UNDEFINED};
use pleiad_model::partition_key::hash::murmur3_x64_128;
use pleiad_model::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeKey {
    prefix: Vec<u8>,
    digest: Option<KeyDigest>,
}

/// What represents a truncated key after its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyDigest {
    /// The length of the whole key.
    pub bytes: u64,
    /// The hash of the key without its end.
    pub hash: (u64, u64),
    pub end: [u8; END_BYTES],
}

/// Docnum and row number: the end of a sort key.
pub const END_BYTES: usize = 12;

impl ResumeKey {
    pub fn whole(key: Vec<u8>) -> ResumeKey {
        ResumeKey { prefix: key, digest: None }
    }

    pub fn truncated(prefix: Vec<u8>, digest: KeyDigest) -> ResumeKey {
        ResumeKey { prefix, digest: Some(digest) }
    }

    /// The key, if it is not truncated.
    pub fn key(&self) -> Option<&[u8]> {
        self.digest.is_none().then_some(&self.prefix)
    }

    /// The key or its prefix, and the digest of a truncated key.
    pub fn parts(&self) -> (&[u8], Option<KeyDigest>) {
        (&self.prefix, self.digest)
    }

    /// Truncated to a prefix of at most this many bytes.
    pub fn truncated_to(&self, bytes: usize) -> ResumeKey {
        if self.prefix.len() <= bytes {
            return self.clone();
        }
        match self.digest.or_else(|| KeyDigest::of(&self.prefix)) {
            Some(cut) => ResumeKey::truncated(self.prefix[..bytes].to_vec(), cut),
            None => self.clone(),
        }
    }

    /// For a truncated key of sorted rows: the docnum of its item, which is stored in the direction of the first sort
    /// key.
    pub fn docnum(&self, ties_descend: bool) -> Option<u64> {
        let docnum = u64::from_be_bytes(*self.digest?.end.first_chunk()?);
        Some(if ties_descend { !docnum } else { docnum })
    }

    /// The whole key: `head` and the stored end, if they match the digest.
    pub fn expand(&self, head: &[u8]) -> Option<ResumeKey> {
        let digest = self
            .digest
            .filter(|cut| cut.bytes == (head.len() + END_BYTES) as u64 && cut.hash == murmur3_x64_128(head))?;
        Some(ResumeKey::whole([head, &digest.end].concat()))
    }

    /// Whether no value in this key of sorted rows, or in its prefix, is an array or object. `descending` has the
    /// direction of each value.
    pub fn is_scalar(&self, descending: impl IntoIterator<Item = bool>) -> bool {
        let mut rest = self.prefix.as_slice();
        descending.into_iter().all(|descending| skip_scalar(rest, descending).map(|after| rest = after).is_some())
    }

    /// The later of this position and that of a whole key.
    pub fn max(self, other: ResumeKey) -> Result<ResumeKey> {
        let is_passed = match other.key() {
            Some(key) => self.has_passed(key)?,
            None => true,
        };
        Ok(if is_passed { self } else { other })
    }

    /// Whether the row with this key is at or before this position.
    pub fn has_passed(&self, key: &[u8]) -> Result<bool> {
        let Some(digest) = &self.digest else { return Ok(key <= self.prefix.as_slice()) };
        let shared = key.len().min(self.prefix.len());
        match key[..shared].cmp(&self.prefix[..shared]) {
            Ordering::Less => Ok(true),
            Ordering::Greater => Ok(false),
            Ordering::Equal if key.len() <= self.prefix.len() => Ok(true),
            Ordering::Equal => match KeyDigest::of(key).filter(|of| (of.bytes, of.hash) == (digest.bytes, digest.hash))
            {
                Some(of) => Ok(of.end <= digest.end),
                None => Err(ambiguous(self.prefix.len())),
            },
        }
    }
}

/// The bytes after the scalar at the beginning of `key`, none if it is truncated; `None` if it is no scalar.
fn skip_scalar(key: &[u8], descending: bool) -> Option<&[u8]> {
    let byte = |at: usize| key.get(at).map(|byte| if descending { !byte } else { *byte });
    let Some(tag) = byte(0) else { return Some(&[]) };
    let end = match tag {
        UNDEFINED | NULL | FALSE | TRUE => 1,
        NUMBER => 1 + size_of::<f64>(),
        STRING => {
            let mut at = 1;
            while let (Some(first), Some(second)) = (byte(at), byte(at + 1)) {
                match [first, second] {
                    STRING_END => return key.get(at + STRING_END.len()..),
                    [0, _] => at += 2, // an escaped character
                    _ => at += 1,
                }
            }
            key.len()
        }
        _ => return None,
    };
    Some(key.get(end..).unwrap_or_default())
}

impl KeyDigest {
    /// `None` if the key is shorter than an end.
    fn of(key: &[u8]) -> Option<KeyDigest> {
        let (head, end) = key.split_last_chunk()?;
        Some(KeyDigest { bytes: key.len() as u64, hash: murmur3_x64_128(head), end: *end })
    }
}

fn ambiguous(bytes: usize) -> Error {
    Error::invalid(format!(
        "The row where the last page ended, and one that is left, begin with the same {bytes} bytes, which is all that the continuation token \
         could hold: the next page cannot be told. Allow longer tokens, ask for larger pages, or sort by something shorter."
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        // A small alphabet, so that keys share prefixes.
        prop::collection::vec(prop::sample::select(vec![0, 1, 255]), 0..40)
    }

    #[test]
    fn keys_that_differ_after_the_prefix_are_ambiguous() {
        let cut = ResumeKey::whole([[7; 40], [1; 40]].concat()).truncated_to(40);
        for other in [vec![7; 41], [[7; 40], [2; 40]].concat(), [[7; 40], [0; 40]].concat()] {
            assert!(cut.has_passed(&other).unwrap_err().to_string().contains("the same 40 bytes"));
        }
        assert!(
            cut.has_passed(&[7; 40]).unwrap() && cut.has_passed(&[6; 80]).unwrap() && !cut.has_passed(&[8]).unwrap()
        );
    }

    #[test]
    fn arrays_and_objects_in_a_key_are_found() {
        let values = ["null", "false", "-1.5", "\"\"", "\"a\\u0000b\"", "\"\\u0001\"", "[]", "[1]", "{}", "{\"a\":[]}"];
        let parse = |text: &&str| pleiad_model::json::parse(text.as_bytes()).unwrap();
        for descending in [[false, false], [true, false], [false, true]] {
            for (first, second) in values.iter().flat_map(|first| values.iter().map(move |second| (first, second))) {
                let mut key = Vec::new();
                for (value, descending) in [parse(first), parse(second)].iter().zip(descending) {
                    let start = key.len();
                    crate::sort_encoding::encode(Some(value), &mut key); // as older keys have it
                    key[start..].iter_mut().for_each(|byte| *byte = if descending { !*byte } else { *byte });
                }
                key.extend([0; END_BYTES]);
                let expected = [first, second].iter().all(|text| !text.starts_with(['[', '{']));
                assert_eq!(ResumeKey::whole(key).is_scalar(descending), expected, "{first} {second} {descending:?}");
            }
        }
        let long = ResumeKey::whole([vec![8], vec![b'x'; 100]].concat()).truncated_to(40);
        assert!(long.is_scalar([false, false]));
    }

    proptest! {
        #[test]
        fn a_truncated_key_agrees_with_the_whole_key_or_fails(last in key(), other in key(), bytes in 0usize..40) {
            let whole = ResumeKey::whole(last.clone());
            let cut = whole.truncated_to(bytes);
            prop_assert_eq!(whole.has_passed(&other).unwrap(), other <= last);
            if let Ok(passed) = cut.has_passed(&other) {
                prop_assert_eq!(passed, other <= last);
            }
            prop_assert!(cut.has_passed(&last).unwrap());
        }

        #[test]
        fn items_with_equal_sort_keys_are_distinguished(sorted in key(), ends in any::<[[u8; END_BYTES]; 2]>(), bytes in 0usize..40) {
            let [last, other] = ends.map(|end| [sorted.as_slice(), &end].concat());
            let cut = ResumeKey::whole(last.clone()).truncated_to(bytes);
            prop_assert_eq!(cut.has_passed(&other).unwrap(), other <= last);
            let whole = ResumeKey::whole(last);
            prop_assert_eq!(cut.expand(&sorted), (cut != whole).then_some(whole));
            prop_assert_eq!(cut.expand(&ends[0]), None);
        }

        #[test]
        fn truncating_twice_equals_truncating_once(last in key(), long in 0usize..40, short in 0usize..40) {
            let whole = ResumeKey::whole(last);
            prop_assert_eq!(whole.truncated_to(long.max(short)).truncated_to(short), whole.truncated_to(short));
        }
    }
}
