//! Random choices, from a fuzzer's bytes or from a seed.

/// A source of choices. After a fuzzer's bytes are used up every choice is the first, so that a case ends soon.
pub struct Choices<'b> {
    bytes: &'b [u8],
    /// The state of the generator; with a seed the choices never end.
    seed: Option<u64>,
}

impl<'b> Choices<'b> {
    pub fn of_bytes(bytes: &'b [u8]) -> Self {
        Choices { bytes, seed: None }
    }

    pub fn of_seed(seed: u64) -> Self {
        Choices { bytes: &[], seed: Some(seed) }
    }

    fn byte(&mut self) -> u8 {
        if let Some(state) = &mut self.seed {
            // SplitMix64: every seed, including 0 and 1, gives a different sequence.
            *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            return (mixed >> 33) as u8;
        }
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number less than `end`, which is at most 256; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end < 2 { 0 } else { usize::from(self.byte()) % end }
    }

    /// Whether a fuzzer's bytes are used up.
    pub fn is_exhausted(&self) -> bool {
        self.bytes.is_empty() && self.seed.is_none()
    }

    /// True once in `times` calls, on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times.saturating_sub(1)
    }

    /// One of these. `all` is not empty.
    pub fn pick<'t, T: ?Sized>(&mut self, all: &[&'t T]) -> &'t T {
        all[self.below(all.len())]
    }

    /// Between `least` and `most` values.
    pub fn list<T>(&mut self, least: usize, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = least + self.below(most - least + 1);
        (0..count).map(|_| make(self)).collect()
    }
}
