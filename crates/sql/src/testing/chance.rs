//! Bytes to choices.

/// Where choices come from. Once a fuzzer's bytes are used up every choice is the first, so that a case ends soon.
pub struct Choices<'b> {
    bytes: &'b [u8],
    /// Goes on for ever when there is a seed.
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
            // SplitMix64: every seed gives another sequence, also 0 and 1.
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

    /// Less than `end`, which is at most 256; 0 when there is nothing to choose from.
    pub fn below(&mut self, end: usize) -> usize {
        if end < 2 { 0 } else { usize::from(self.byte()) % end }
    }

    /// Whether a fuzzer's bytes are used up.
    pub fn is_over(&self) -> bool {
        self.bytes.is_empty() && self.seed.is_none()
    }

    /// Once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times.saturating_sub(1)
    }

    /// One of these; there is at least one.
    pub fn pick<'t, T: ?Sized>(&mut self, all: &[&'t T]) -> &'t T {
        all[self.below(all.len())]
    }

    /// So many things, `least` at least and `most` at most.
    pub fn some<T>(&mut self, least: usize, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = least + self.below(most - least + 1);
        (0..count).map(|_| make(self)).collect()
    }
}
