//! Sparse bitmap of docnums: one bit per docnum, because docnums are assigned consecutively. Fifty million items take
//! six megabytes; where most items have been deleted, each remaining one takes half a kilobyte at worst.

use std::collections::BTreeMap;

const WORDS: usize = 64;
const BLOCK_BITS: u64 = WORDS as u64 * 64;

#[derive(Clone, Debug, Default)]
pub struct DocnumBitmap {
    blocks: BTreeMap<u64, Box<[u64; WORDS]>>,
}

impl DocnumBitmap {
    pub fn insert(&mut self, docnum: u64) {
        let block = self.blocks.entry(docnum / BLOCK_BITS).or_insert_with(|| Box::new([0; WORDS]));
        let (word, bit) = position(docnum);
        if let Some(word) = block.get_mut(word) {
            *word |= bit;
        }
    }

    pub fn contains(&self, docnum: u64) -> bool {
        let (word, bit) = position(docnum);
        self.blocks.get(&(docnum / BLOCK_BITS)).and_then(|block| block.get(word)).is_some_and(|word| word & bit != 0)
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.blocks.iter().flat_map(|(at, block)| {
            let words = (0..).zip(block.iter());
            words.flat_map(move |(word, bits)| {
                (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| at * BLOCK_BITS + word * 64 + bit)
            })
        })
    }
}

fn position(docnum: u64) -> (usize, u64) {
    ((docnum % BLOCK_BITS / 64) as usize, 1 << (docnum % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bitmap_contains_exactly_what_was_inserted(numbers in proptest::collection::btree_set(prop_oneof![0..9000u64, any::<u64>()], 0..200), other: u64) {
            let mut set = DocnumBitmap::default();
            numbers.iter().for_each(|&n| set.insert(n));
            prop_assert_eq!(set.iter().collect::<BTreeSet<_>>(), numbers.clone());
            prop_assert!(set.iter().is_sorted() && numbers.iter().all(|&n| set.contains(n)));
            prop_assert_eq!(set.contains(other), numbers.contains(&other));
        }
    }
}
