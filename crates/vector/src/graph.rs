//! The Vamana graph of DiskANN over quantized vectors, built one node at a time.
//!
//! Invariant: every neighbor list has at most `DEGREE_MAX` existing nodes and never its own node. `ann_index` maps
//! nodes to items and skips removed ones.
//!
//! A new node is linked to nodes that a greedy search for it has visited; a candidate is pruned if a selected neighbor
//! is much nearer to it than the new node is. Each selected neighbor is linked back, with the same pruning.
//!
//! ```text
//! greedy_search(L)  keeps the L nearest visited nodes, starting with all entry points; expands the nearest unexpanded
//!                   one; ends when all are expanded
//! robust_prune      nearest first; drops b if a selected a has  ALPHA × distance(a, b) <= distance(node, b)
//! cover             a node becomes an entry point unless one of its nearest neighbors is one
//! ```
//!
//! Vectors form clusters, and the neighbors of a node in a large cluster are all inside it: no edge leads in from
//! outside. But every such cluster has an entry point of its own, as long as their number is below the limit, and
//! comparing all of them is a small part of a search.

use crate::quantize::{QuantizedVector, QuantizedVectors};

/// The number of neighbors that pruning selects.
pub const DEGREE: usize = 32;
/// The largest number of neighbors. It exceeds `DEGREE` because pruning at every back link would be most of the work.
const DEGREE_MAX: usize = 48;
/// The pruning factor, in squared distances: how much nearer a detour must be for the direct edge to be dropped.
const ALPHA: f32 = 1.44;
/// A node is covered if it, or one of its first `COVERED_BY` neighbors, is an entry point.
const COVERED_BY: usize = 32;
/// The largest number of entry points: every search compares all of them.
const ENTRY_POINTS_MAX: usize = 1 << 14;
/// The largest number of candidates that pruning considers.
const CANDIDATES_MAX: usize = 400;

#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// `DEGREE_MAX` slots per node.
    neighbors: Vec<u32>,
    degrees: Vec<u8>,
    entry_points: Vec<u32>,
    is_entry: Vec<bool>,
}

/// A node that a search visited, and its distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VisitedNode {
    pub distance: f32,
    pub at: u32,
}

impl Graph {
    pub fn bytes(&self) -> usize {
        self.neighbors.capacity() * size_of::<u32>() + self.degrees.capacity() + self.is_entry.capacity()
    }

    pub fn neighbors(&self, at: u32) -> &[u32] {
        let at = at as usize;
        let degree = self.degrees.get(at).map_or(0, |degree| usize::from(*degree));
        self.neighbors.get(at * DEGREE_MAX..at * DEGREE_MAX + degree).unwrap_or_default()
    }

    pub fn set_neighbors(&mut self, at: u32, neighbors: &[u32]) {
        let at = at as usize;
        if at >= self.degrees.len() {
            self.degrees.resize(at + 1, 0);
            self.neighbors.resize((at + 1) * DEGREE_MAX, 0);
        }
        let count = neighbors.len().min(DEGREE_MAX);
        if let Some(degree) = self.degrees.get_mut(at) {
            *degree = count as u8;
        }
        let slots = self.neighbors.get_mut(at * DEGREE_MAX..at * DEGREE_MAX + count);
        if let (Some(slots), Some(neighbors)) = (slots, neighbors.get(..count)) {
            slots.copy_from_slice(neighbors);
        }
    }

    /// Makes a node whose neighbors are set an entry point, unless one is near.
    pub fn cover(&mut self, at: u32) {
        if self.is_covered(at) || self.entry_points.len() >= ENTRY_POINTS_MAX {
            return;
        }
        self.entry_points.push(at);
        let at = at as usize;
        self.is_entry.resize(self.is_entry.len().max(at + 1), false);
        if let Some(is_entry) = self.is_entry.get_mut(at) {
            *is_entry = true;
        }
    }

    pub fn is_covered(&self, at: u32) -> bool {
        self.is_entry(at) || self.neighbors(at).iter().take(COVERED_BY).any(|at| self.is_entry(*at))
    }

    pub fn is_entry(&self, at: u32) -> bool {
        self.is_entry.get(at as usize).is_some_and(|is| *is)
    }

    /// DiskANN's GreedySearch: the nearest nodes it visits, in order. `distance` gives the distance of a node.
    pub fn greedy_search(&self, list: usize, nodes: usize, distance: impl Fn(u32) -> f32) -> Vec<VisitedNode> {
        let mut visited = VisitedSet::new(nodes);
        let mut candidates = SearchList::new(list);
        for &entry in self.entry_points.iter().filter(|entry| (**entry as usize) < nodes) {
            if visited.insert(entry) {
                candidates.add(VisitedNode { distance: distance(entry), at: entry });
            }
        }
        while let Some(at) = candidates.next_unexpanded() {
            for &neighbor in self.neighbors(at) {
                if visited.insert(neighbor) {
                    candidates.add(VisitedNode { distance: distance(neighbor), at: neighbor });
                }
            }
        }
        candidates.nodes
    }

    /// DiskANN's Insert: links a node, whose code is stored, into the graph. Returns the nodes whose neighbor lists
    /// changed.
    pub fn insert(
        &mut self,
        at: u32,
        code: &QuantizedVector,
        codes: &QuantizedVectors,
        list: usize,
        is_usable: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        let nodes = self.greedy_search(list, codes.len(), |other| codes.graph_distance_to(other, code));
        let nodes: Vec<VisitedNode> = nodes.into_iter().filter(|node| node.at != at && is_usable(node.at)).collect();
        let neighbors = prune_sorted(nodes, codes);
        self.set_neighbors(at, &neighbors);
        for &neighbor in &neighbors {
            self.add_back_link(neighbor, at, codes);
        }
        neighbors.into_iter().chain([at]).collect()
    }

    fn add_back_link(&mut self, from: u32, to: u32, codes: &QuantizedVectors) {
        let known = self.neighbors(from);
        if known.contains(&to) {
            return;
        }
        let all: Vec<u32> = known.iter().copied().chain([to]).collect();
        let all = if all.len() <= DEGREE_MAX { all } else { self.robust_prune(from, all, codes) };
        self.set_neighbors(from, &all);
    }

    /// DiskANN's RobustPrune: selects a node's neighbors from candidates.
    pub fn robust_prune(&self, owner: u32, candidates: Vec<u32>, codes: &QuantizedVectors) -> Vec<u32> {
        let mut nodes: Vec<VisitedNode> = candidates
            .into_iter()
            .filter(|at| *at != owner)
            .map(|at| VisitedNode { distance: codes.distance_between(owner, at), at })
            .collect();
        nodes.sort_unstable_by(|a, b| a.distance.total_cmp(&b.distance).then(a.at.cmp(&b.at)));
        nodes.dedup_by_key(|node| node.at);
        prune_sorted(nodes, codes)
    }
}

/// Selects neighbors in all directions from candidates that are sorted nearest first.
fn prune_sorted(nodes: Vec<VisitedNode>, codes: &QuantizedVectors) -> Vec<u32> {
    let mut selected: Vec<u32> = Vec::with_capacity(DEGREE);
    for candidate in nodes.into_iter().take(CANDIDATES_MAX) {
        let has_detour = |taken: &u32| ALPHA * codes.distance_between(*taken, candidate.at) <= candidate.distance;
        if !selected.iter().any(has_detour) {
            selected.push(candidate.at);
            if selected.len() == DEGREE {
                break;
            }
        }
    }
    selected
}

/// DiskANN's search list: the nearest visited nodes, sorted by distance.
struct SearchList {
    nodes: Vec<VisitedNode>,
    expanded: Vec<bool>,
    capacity: usize,
    /// All nodes before this index are expanded.
    first_unexpanded: usize,
}

impl SearchList {
    fn new(list: usize) -> SearchList {
        let list = list.max(1);
        SearchList {
            nodes: Vec::with_capacity(list + 1),
            expanded: Vec::with_capacity(list + 1),
            capacity: list,
            first_unexpanded: 0,
        }
    }

    fn add(&mut self, node: VisitedNode) {
        if self.nodes.len() >= self.capacity && self.nodes.last().is_some_and(|last| node.distance >= last.distance) {
            return;
        }
        let position = self.nodes.partition_point(|other| other.distance <= node.distance);
        self.nodes.insert(position, node);
        self.expanded.insert(position, false);
        self.nodes.truncate(self.capacity);
        self.expanded.truncate(self.capacity);
        self.first_unexpanded = self.first_unexpanded.min(position);
    }

    fn next_unexpanded(&mut self) -> Option<u32> {
        let ahead = self.expanded.get(self.first_unexpanded..)?.iter().position(|is_expanded| !is_expanded)?;
        self.first_unexpanded += ahead;
        *self.expanded.get_mut(self.first_unexpanded)? = true;
        self.nodes.get(self.first_unexpanded).map(|node| node.at)
    }
}

/// A bit per node.
struct VisitedSet(Vec<u64>);

impl VisitedSet {
    fn new(nodes: usize) -> VisitedSet {
        VisitedSet(vec![0; nodes.div_ceil(64)])
    }

    /// Returns true on the first call for a node; false for a node beyond the last.
    fn insert(&mut self, at: u32) -> bool {
        let (word, bit) = (at as usize / 64, 1u64 << (at % 64));
        let Some(word) = self.0.get_mut(word) else { return false };
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}
