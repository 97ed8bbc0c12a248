//! Heavy hitters: the space-saving sketch, which finds the heaviest of many keys in little memory.
//!
//! Invariant: a key with more than 1/`COUNTERS` of the total weight is in the sketch, and no weight is too low; a new
//! key takes over the smallest counter with its weight, so a weight may be too high by that. A merged sketch is only an
//! estimate: `merge` adds the guaranteed part of each weight.

const COUNTERS: usize = 32;

#[derive(Clone, Debug, Default)]
pub struct SpaceSaving {
    counters: Vec<Counter>,
}

#[derive(Clone, Debug)]
struct Counter {
    key: Vec<u8>,
    weight: u64,
    /// How much of the weight may belong to other keys.
    inherited: u64,
}

impl SpaceSaving {
    pub fn add(&mut self, key: &[u8], weight: u64) {
        if let Some(counter) = self.counters.iter_mut().find(|counter| counter.key == key) {
            counter.weight = counter.weight.saturating_add(weight);
            return;
        }
        if self.counters.len() < COUNTERS {
            self.counters.push(Counter { key: key.to_vec(), weight, inherited: 0 });
            return;
        }
        if let Some(least) = self.counters.iter_mut().min_by_key(|counter| counter.weight) {
            least.inherited = least.weight;
            least.weight = least.weight.saturating_add(weight);
            least.key.clear();
            least.key.extend_from_slice(key);
        }
    }

    pub fn merge(&mut self, other: &SpaceSaving) {
        other.counters.iter().for_each(|counter| self.add(&counter.key, counter.weight - counter.inherited));
    }

    /// The heaviest keys by guaranteed weight, in descending order.
    pub fn top(&self, count: usize) -> Vec<(Vec<u8>, u64)> {
        let guaranteed = |counter: &Counter| (counter.key.clone(), counter.weight - counter.inherited);
        let mut top: Vec<_> = self.counters.iter().map(guaranteed).collect();
        top.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        top.truncate(count);
        top
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heavy_key_is_found_among_thousands() {
        let mut sketch = SpaceSaving::default();
        for n in 0..10_000u32 {
            sketch.add(&n.to_be_bytes(), 1);
            if n % 5 == 0 {
                sketch.add(b"hot", 2);
            }
        }
        assert_eq!(sketch.top(1)[0].0, b"hot");
        assert_eq!(sketch.counters.len(), COUNTERS);
    }

    #[test]
    fn few_keys_are_counted_exactly() {
        let mut sketch = SpaceSaving::default();
        [(b"a", 3), (b"b", 5), (b"a", 4)].iter().for_each(|(key, weight)| sketch.add(*key, *weight));
        assert_eq!(sketch.top(9), [(b"a".to_vec(), 7), (b"b".to_vec(), 5)]);
    }
}
