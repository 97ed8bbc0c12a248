//! A sparse bitmap of docnums. The docnums of a partition are dense, so that one bit for each takes little memory.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

const WORD_BITS: u64 = u64::BITS as u64;
const WORDS: usize = 16;
const CHUNK_BITS: u64 = WORD_BITS * WORDS as u64;

#[derive(Default)]
pub struct DocnumSet(BTreeMap<u64, [u64; WORDS]>);

impl DocnumSet {
    pub fn insert(&mut self, docnum: u64) {
        let words = self.0.entry(docnum / CHUNK_BITS).or_default();
        words[word_of(docnum)] |= 1 << (docnum % WORD_BITS);
    }

    /// The docnums in a range, in order.
    pub fn within(&self, range: RangeInclusive<u64>) -> impl DoubleEndedIterator<Item = u64> {
        let (from, upto) = (*range.start(), *range.end());
        let chunks = (from <= upto).then(|| self.0.range(from / CHUNK_BITS..=upto / CHUNK_BITS));
        let bits = |(chunk, words): (&u64, &[u64; WORDS])| {
            let (first, words) = (chunk * CHUNK_BITS, *words);
            let is_set = move |docnum: &u64| words[word_of(*docnum)] >> (docnum % WORD_BITS) & 1 == 1;
            (first..=first + (CHUNK_BITS - 1)).filter(is_set)
        };
        chunks.into_iter().flatten().flat_map(bits).filter(move |docnum| range.contains(docnum))
    }
}

fn word_of(docnum: u64) -> usize {
    (docnum % CHUNK_BITS / WORD_BITS) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn docnum() -> impl Strategy<Value = u64> {
        prop_oneof![0..3000u64, (3 << 40)..(3 << 40) + 3000u64, u64::MAX - 2000..=u64::MAX]
    }

    proptest! {
        #[test]
        fn a_set_contains_exactly_what_was_inserted(docnums in prop::collection::vec(docnum(), 0..200), from in docnum(), upto in docnum()) {
            let (mut set, model) = (DocnumSet::default(), docnums.iter().copied().collect::<BTreeSet<u64>>());
            docnums.iter().for_each(|docnum| set.insert(*docnum));
            let wanted: Vec<u64> = model.into_iter().filter(|docnum| (from..=upto).contains(docnum)).collect();
            prop_assert_eq!(set.within(from..=upto).collect::<Vec<_>>(), wanted.clone());
            let backward: Vec<u64> = wanted.into_iter().rev().collect();
            prop_assert_eq!(set.within(from..=upto).rev().collect::<Vec<_>>(), backward);
        }
    }
}
