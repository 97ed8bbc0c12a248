//! The in-memory ANN index of a partition's vectors: quantized vectors and, optionally, a Vamana graph over them.
//!
//! Guarantees: a search returns the docnums of items that were put and not removed, each once, approximately nearest
//! first. The caller checks the results: the index may be out of date, and its distances are estimates.
//!
//! ```text
//! put(docnum, vector)      remove(docnum)           search(vector, list) → docnums
//! take_changed → rows      restore(rows, vectors)   so that a graph is not built twice
//! ```
//!
//! A removed node stays in the graph and searches still traverse it. When `needs_rebuild` reports too many removed
//! nodes, `rebuilt` makes an index without them.

use std::collections::{BTreeSet, HashMap};

use pleiad_model::policy::DistanceFunction;

use crate::graph::Graph;
use crate::quantize::{QuantizedVector, QuantizedVectors};

/// The shape of an ANN index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnConfig {
    pub dimensions: usize,
    pub function: DistanceFunction,
    /// The search list size of insertions. Without it there is no graph, and a search scans all codes.
    pub search_list_size: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct AnnIndex {
    config: AnnConfig,
    codes: QuantizedVectors,
    graph: Graph,
    /// The item of each slot; `None` for a removed node.
    docnums: Vec<Option<u64>>,
    slots: HashMap<u64, u32>,
    /// Items whose rows have to be written or, if the item was removed, deleted.
    changed: BTreeSet<u64>,
}

/// The row change of an item: its neighbors, or `None` to delete the row.
pub type NeighborChange = (u64, Option<Vec<u64>>);

impl AnnIndex {
    pub fn new(config: AnnConfig) -> AnnIndex {
        let (graph, docnums, slots, changed) = Default::default();
        AnnIndex {
            config,
            codes: QuantizedVectors::new(config.dimensions, config.function),
            graph,
            docnums,
            slots,
            changed,
        }
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub fn bytes(&self) -> usize {
        let items = self.docnums.capacity() * size_of::<Option<u64>>() + self.slots.capacity() * 2 * size_of::<u64>();
        self.codes.bytes() + self.graph.bytes() + items
    }

    pub fn contains(&self, docnum: u64) -> bool {
        self.slots.contains_key(&docnum)
    }

    pub fn docnums(&self) -> impl Iterator<Item = u64> {
        self.slots.keys().copied()
    }

    /// Sets an item's vector, replacing an earlier one.
    pub fn put(&mut self, docnum: u64, vector: &[f32]) {
        self.remove(docnum);
        let (at, code) = self.add_slot(docnum, vector);
        self.insert_node(at, &code);
    }

    fn add_slot(&mut self, docnum: u64, vector: &[f32]) -> (u32, QuantizedVector) {
        let at = u32::try_from(self.docnums.len()).unwrap_or(u32::MAX);
        let code = self.codes.encode(vector);
        self.codes.put(at, &code);
        self.docnums.push(Some(docnum));
        self.slots.insert(docnum, at);
        (at, code)
    }

    fn insert_node(&mut self, at: u32, code: &QuantizedVector) {
        let Some(list_size) = self.config.search_list_size else { return };
        let docnums = &self.docnums;
        let is_live = |at: u32| docnums.get(at as usize).is_some_and(Option::is_some);
        let changed = self.graph.insert(at, code, &self.codes, list_size, is_live);
        self.changed.extend(changed.into_iter().filter_map(|at| self.docnums.get(at as usize).copied().flatten()));
        self.graph.cover(at);
    }

    pub fn remove(&mut self, docnum: u64) {
        let Some(at) = self.slots.remove(&docnum) else { return };
        if let Some(slot) = self.docnums.get_mut(at as usize) {
            *slot = None;
        }
        if self.config.search_list_size.is_some() {
            self.changed.insert(docnum);
        }
    }

    /// Approximately the nearest `list` items, in order.
    pub fn search(&self, to: &[f32], list: usize) -> Vec<u64> {
        let to = self.codes.encode(to);
        let at = match self.config.search_list_size {
            Some(_) => {
                let nodes = self.graph.greedy_search(list, self.docnums.len(), |at| self.codes.distance_to(at, &to));
                nodes.into_iter().map(|node| node.at).collect()
            }
            None => self.scan(&to, list),
        };
        at.into_iter().filter_map(|at: u32| self.docnums.get(at as usize).copied().flatten()).collect()
    }

    fn scan(&self, to: &QuantizedVector, list: usize) -> Vec<u32> {
        let live = (0u32..).zip(&self.docnums).filter(|(_, docnum)| docnum.is_some());
        let mut all: Vec<(f32, u32)> = live.map(|(at, _)| (self.codes.distance_to(at, to), at)).collect();
        if list < all.len() && list > 0 {
            all.select_nth_unstable_by(list - 1, |a, b| a.0.total_cmp(&b.0));
            all.truncate(list);
        }
        all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        all.into_iter().map(|(_, at)| at).collect()
    }

    // Saving and restoring.

    /// The row changes since the last call.
    pub fn take_changed(&mut self) -> Vec<NeighborChange> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|docnum| (docnum, self.neighbors(docnum))).collect()
    }

    pub fn changed_count(&self) -> usize {
        self.changed.len()
    }

    fn neighbors(&self, docnum: u64) -> Option<Vec<u64>> {
        let at = self.slots.get(&docnum)?;
        let neighbors = self.graph.neighbors(*at).iter();
        Some(neighbors.filter_map(|at| self.docnums.get(*at as usize).copied().flatten()).collect())
    }

    /// Adds an item that is being restored, before `restore_neighbors`.
    pub fn restore(&mut self, docnum: u64, vector: &[f32]) {
        self.add_slot(docnum, vector);
    }

    /// Sets the stored neighbors of an item. Removed items are skipped.
    pub fn restore_neighbors(&mut self, docnum: u64, neighbors: impl Iterator<Item = u64>) {
        let Some(&at) = self.slots.get(&docnum) else { return };
        let slots: Vec<u32> =
            neighbors.filter_map(|other| self.slots.get(&other).copied()).filter(|to| *to != at).collect();
        self.graph.set_neighbors(at, &slots);
    }

    /// Searches for an item's neighbors again. The item keeps its slot, which other nodes may refer to.
    pub fn reinsert(&mut self, docnum: u64) {
        if let Some(&at) = self.slots.get(&docnum) {
            let code = self.codes.code(at);
            self.insert_node(at, &code);
        }
    }

    /// Selects the entry points after the last `restore_neighbors`; searches may start.
    pub fn finish_restore(&mut self) {
        let last = u32::try_from(self.docnums.len()).unwrap_or(u32::MAX);
        for at in 0..last {
            // Nodes without neighbors are inserted again, and covered then.
            if !self.graph.neighbors(at).is_empty() {
                self.graph.cover(at);
            }
        }
    }

    /// Items without neighbors, from which no search can continue. The caller inserts each of them again.
    pub fn unlinked(&self) -> Vec<u64> {
        let isolated = self.slots.iter().filter(|(_, at)| self.graph.neighbors(**at).is_empty());
        isolated.map(|(docnum, _)| *docnum).collect()
    }

    // Rebuilding.

    /// Whether too many of its nodes are removed.
    pub fn needs_rebuild(&self) -> bool {
        let removed = self.docnums.len() - self.slots.len();
        removed > 64 && removed * 4 > self.docnums.len()
    }

    /// An index of the same items without removed nodes. A node that had a removed neighbor selects among that
    /// neighbor's neighbors instead.
    pub fn rebuilt(&self) -> AnnIndex {
        let mut next = AnnIndex::new(self.config);
        let mut new_slots: Vec<Option<u32>> = Vec::with_capacity(self.docnums.len());
        for (at, docnum) in (0u32..).zip(&self.docnums) {
            new_slots.push(docnum.map(|docnum| {
                let to = u32::try_from(next.docnums.len()).unwrap_or(u32::MAX);
                next.codes.put(to, &self.codes.code(at));
                next.docnums.push(Some(docnum));
                next.slots.insert(docnum, to);
                to
            }));
        }
        let new_slot = |at: &u32| new_slots.get(*at as usize).copied().flatten();
        for (at, docnum) in (0u32..).zip(&self.docnums) {
            let (Some(docnum), Some(slot)) = (docnum, new_slot(&at)) else { continue };
            let own = self.graph.neighbors(at);
            let mut neighbors: Vec<u32> = own.iter().filter_map(new_slot).collect();
            if neighbors.len() < own.len() {
                let lost = own.iter().filter(|at| new_slot(at).is_none());
                neighbors.extend(lost.flat_map(|at| self.graph.neighbors(*at)).filter_map(new_slot));
                neighbors = next.graph.robust_prune(slot, neighbors, &next.codes);
                next.changed.insert(*docnum);
            }
            next.graph.set_neighbors(slot, &neighbors);
        }
        next.changed.extend(&self.changed);
        next.finish_restore();
        next
    }
}

#[cfg(test)]
mod tests;
