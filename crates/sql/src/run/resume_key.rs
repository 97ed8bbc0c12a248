//! The place behind a row, in the order of rows.
//!
//! A row's key may be as long as an item, and what carries it around may not. A long one is cut: its beginning, its last
//! bytes, and a hash of all that comes before those stand for it.
//!
//! ```text
//!   whole   ├──────────────── key ────────────────┤
//!   cut     ├─ beginning ─┤ … hash of the head … ├─ end ─┤
//! ```
//!
//! Where rows are sorted the end tells the item, and an item that is still there tells the whole key again.
//!
//! Promise: no row is taken for one that it is not. With a whole key every row lies before or behind it. With a cut one so do
//! rows that differ from it in the beginning, and those that are equal up to the end, which is where the items of equal keys differ. For the others
//! there is no telling, and that is said.

use std::cmp::Ordering;

use pleiad_model::partition_key::hash::murmur3_x64_128;
use pleiad_model::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeKey {
    beginning: Vec<u8>,
    cut: Option<KeyDigest>,
}

/// What is left of a key behind its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyDigest {
    /// How long the whole key is.
    pub bytes: u64,
    /// Of what comes before its end.
    pub hash: (u64, u64),
    pub end: [u8; END_BYTES],
}

/// Number and row of an item: the end of a key by which items are sorted.
pub const END_BYTES: usize = 12;

impl ResumeKey {
    pub fn whole(key: Vec<u8>) -> ResumeKey {
        ResumeKey { beginning: key, cut: None }
    }

    pub fn cut(beginning: Vec<u8>, cut: KeyDigest) -> ResumeKey {
        ResumeKey { beginning, cut: Some(cut) }
    }

    /// The key, if it is whole.
    pub fn key(&self) -> Option<&[u8]> {
        self.cut.is_none().then_some(&self.beginning)
    }

    /// As much as there is of the key, and what stands for the rest.
    pub fn parts(&self) -> (&[u8], Option<KeyDigest>) {
        (&self.beginning, self.cut)
    }

    /// With a beginning of at most so many bytes.
    pub fn shortened(&self, bytes: usize) -> ResumeKey {
        if self.beginning.len() <= bytes {
            return self.clone();
        }
        match self.cut.or_else(|| KeyDigest::of(&self.beginning)) {
            Some(cut) => ResumeKey::cut(self.beginning[..bytes].to_vec(), cut),
            None => self.clone(),
        }
    }

    /// The number of the item whose row this is, where rows are sorted: in the direction of their first key.
    pub fn docnum(&self, backwards: bool) -> Option<u64> {
        let docnum = u64::from_be_bytes(*self.cut?.end.first_chunk()?);
        Some(if backwards { !docnum } else { docnum })
    }

    /// The whole key again, if it is this one with an end.
    pub fn completed(&self, head: &[u8]) -> Option<ResumeKey> {
        let cut =
            self.cut.filter(|cut| cut.bytes == (head.len() + END_BYTES) as u64 && cut.hash == murmur3_x64_128(head))?;
        Some(ResumeKey::whole([head, &cut.end].concat()))
    }

    /// Whether the row with this key is this one, or lies before it.
    pub fn is_behind(&self, key: &[u8]) -> Result<bool> {
        let Some(cut) = &self.cut else { return Ok(key <= self.beginning.as_slice()) };
        let shared = key.len().min(self.beginning.len());
        match key[..shared].cmp(&self.beginning[..shared]) {
            Ordering::Less => Ok(true),
            Ordering::Greater => Ok(false),
            Ordering::Equal if key.len() <= self.beginning.len() => Ok(true),
            Ordering::Equal => match KeyDigest::of(key).filter(|of| (of.bytes, of.hash) == (cut.bytes, cut.hash)) {
                Some(of) => Ok(of.end <= cut.end),
                None => Err(untold(self.beginning.len())),
            },
        }
    }
}

impl KeyDigest {
    /// None of a key that is all end.
    fn of(key: &[u8]) -> Option<KeyDigest> {
        let (head, end) = key.split_last_chunk()?;
        Some(KeyDigest { bytes: key.len() as u64, hash: murmur3_x64_128(head), end: *end })
    }
}

fn untold(bytes: usize) -> Error {
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
        // Few letters, so that keys share their beginnings.
        prop::collection::vec(prop::sample::select(vec![0, 1, 255]), 0..40)
    }

    #[test]
    fn keys_that_differ_where_one_was_cut_are_not_told_apart() {
        let cut = ResumeKey::whole([[7; 40], [1; 40]].concat()).shortened(40);
        for other in [vec![7; 41], [[7; 40], [2; 40]].concat(), [[7; 40], [0; 40]].concat()] {
            assert!(cut.is_behind(&other).unwrap_err().message.contains("the same 40 bytes"));
        }
        assert!(cut.is_behind(&[7; 40]).unwrap() && cut.is_behind(&[6; 80]).unwrap() && !cut.is_behind(&[8]).unwrap());
    }

    proptest! {
        #[test]
        fn a_cut_mark_tells_what_a_whole_one_does_or_nothing(place in key(), other in key(), bytes in 0usize..40) {
            let whole = ResumeKey::whole(place.clone());
            let cut = whole.shortened(bytes);
            prop_assert_eq!(whole.is_behind(&other).unwrap(), other <= place);
            if let Ok(told) = cut.is_behind(&other) {
                prop_assert_eq!(told, other <= place);
            }
            prop_assert!(cut.is_behind(&place).unwrap());
        }

        #[test]
        fn items_of_equal_keys_are_told_apart(sorted in key(), ends in any::<[[u8; END_BYTES]; 2]>(), bytes in 0usize..40) {
            let [place, other] = ends.map(|end| [sorted.as_slice(), &end].concat());
            let cut = ResumeKey::whole(place.clone()).shortened(bytes);
            prop_assert_eq!(cut.is_behind(&other).unwrap(), other <= place);
            let whole = ResumeKey::whole(place);
            prop_assert_eq!(cut.completed(&sorted), (cut != whole).then_some(whole));
            prop_assert_eq!(cut.completed(&ends[0]), None);
        }

        #[test]
        fn cut_twice_is_cut_once(place in key(), long in 0usize..40, short in 0usize..40) {
            let whole = ResumeKey::whole(place);
            prop_assert_eq!(whole.shortened(long.max(short)).shortened(short), whole.shortened(short));
        }
    }
}
