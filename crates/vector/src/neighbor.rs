//! Results of a nearest neighbor search, sorted on demand.
//!
//! Guarantees: the order is that of `ORDER BY VectorDistance`: by distance; of equal distances, the highest docnum
//! first.

use std::cmp::Ordering;

use pleiad_model::policy::DistanceFunction;

use crate::distance::compare_nearness;

/// An item and its distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbor {
    pub distance: f64,
    pub docnum: u64,
}

impl Neighbor {
    pub fn order(&self, other: &Neighbor, function: DistanceFunction) -> Ordering {
        compare_nearness(function, self.distance, other.distance).then(other.docnum.cmp(&self.docnum))
    }
}

/// Neighbors that are returned in order, a batch at a time: only the batches that callers ask for are sorted.
pub struct NeighborList {
    neighbors: Vec<Neighbor>,
    function: DistanceFunction,
    returned: usize,
}

impl NeighborList {
    pub fn new(neighbors: Vec<Neighbor>, function: DistanceFunction) -> NeighborList {
        NeighborList { neighbors, function, returned: 0 }
    }

    pub fn len(&self) -> usize {
        self.neighbors.len()
    }

    pub fn is_empty(&self) -> bool {
        self.neighbors.is_empty()
    }

    /// The next `count` neighbors in order; empty when all were returned.
    pub fn next(&mut self, count: usize) -> &[Neighbor] {
        let function = self.function;
        let remaining = self.neighbors.get_mut(self.returned..).unwrap_or_default();
        let count = count.min(remaining.len());
        if count < remaining.len() && count > 0 {
            remaining.select_nth_unstable_by(count - 1, |a, b| a.order(b, function));
        }
        let next = remaining.get_mut(..count).unwrap_or_default();
        next.sort_unstable_by(|a, b| a.order(b, function));
        self.returned += count;
        next
    }
}

#[cfg(test)]
mod tests;
