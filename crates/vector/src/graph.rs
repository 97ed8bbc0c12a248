//! A graph over codes: from anywhere, a short walk leads near anything.
//!
//! Promise: every list of neighbours has at most `DEGREE_MAX` places of nodes that are there, never its own. Which nodes
//! count as found, and under which names, is for `sketch` to say.
//!
//! This is the Vamana graph of DiskANN, grown one node at a time: a new node is linked to those that a walk towards it has met, of
//! which one is left out if another that was taken is much nearer to it; and each of them is linked back, by the same rule.
//!
//! ```text
//! walk(L)     the L nearest met so far, entries first; go on from the nearest that was not gone from; end when there is none
//! choose      nearest first; leave out b if taken a has  ALPHA × apart(a, b) <= away(b)
//! cover       a node is an entry unless one of its nearest neighbours is
//! ```
//!
//! Vectors come in clusters, and the neighbours of a node in a large one are all in it: no way leads there from outside. But such a
//! cluster has an entry of its own, and to look at all entries is a small part of a walk.

use crate::quantize::{QuantizedVector, QuantizedVectors};

/// How many neighbours a node has after they were chosen.
pub const DEGREE: usize = 32;
/// How many it has at most: choosing among them at every link back would be most of the work.
const DEGREE_MAX: usize = 48;
/// How much nearer a detour must be, in squared lengths, for the direct way to be left out.
const ALPHA: f32 = 1.44;
/// Of so many of a node's neighbours, one is an entry, or it is one itself.
const COVERED_BY: usize = 32;
/// Where walks begin, at most: they look at all of them.
const ENTRIES_MAX: usize = 1 << 14;
/// Candidates from which neighbours are chosen.
const CANDIDATES_MAX: usize = 400;

#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// `DEGREE_MAX` places per node.
    neighbours: Vec<u32>,
    degrees: Vec<u8>,
    entries: Vec<u32>,
    is_entry: Vec<bool>,
}

/// A node met on a walk, and how far away it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VisitedNode {
    pub away: f32,
    pub at: u32,
}

impl Graph {
    pub fn bytes(&self) -> usize {
        self.neighbours.capacity() * size_of::<u32>() + self.degrees.capacity() + self.is_entry.capacity()
    }

    pub fn neighbours(&self, at: u32) -> &[u32] {
        let at = at as usize;
        let degree = self.degrees.get(at).map_or(0, |degree| usize::from(*degree));
        self.neighbours.get(at * DEGREE_MAX..at * DEGREE_MAX + degree).unwrap_or_default()
    }

    pub fn set_neighbours(&mut self, at: u32, neighbours: &[u32]) {
        let at = at as usize;
        if at >= self.degrees.len() {
            self.degrees.resize(at + 1, 0);
            self.neighbours.resize((at + 1) * DEGREE_MAX, 0);
        }
        let count = neighbours.len().min(DEGREE_MAX);
        if let Some(degree) = self.degrees.get_mut(at) {
            *degree = count as u8;
        }
        let places = self.neighbours.get_mut(at * DEGREE_MAX..at * DEGREE_MAX + count);
        if let (Some(places), Some(neighbours)) = (places, neighbours.get(..count)) {
            places.copy_from_slice(neighbours);
        }
    }

    /// Sees to it that walks begin near a node which has its neighbours.
    pub fn cover(&mut self, at: u32) {
        if self.is_covered(at) || self.entries.len() >= ENTRIES_MAX {
            return;
        }
        self.entries.push(at);
        let at = at as usize;
        self.is_entry.resize(self.is_entry.len().max(at + 1), false);
        if let Some(is_entry) = self.is_entry.get_mut(at) {
            *is_entry = true;
        }
    }

    pub fn is_covered(&self, at: u32) -> bool {
        self.is_entry(at) || self.neighbours(at).iter().take(COVERED_BY).any(|at| self.is_entry(*at))
    }

    pub fn is_entry(&self, at: u32) -> bool {
        self.is_entry.get(at as usize).is_some_and(|is| *is)
    }

    /// The nearest that a walk meets, in order; with `length`, how far a node is away.
    pub fn walk(&self, list: usize, nodes: usize, length: impl Fn(u32) -> f32) -> Vec<VisitedNode> {
        let mut seen = VisitedSet::new(nodes);
        let mut nearest = SearchList::new(list);
        for &entry in self.entries.iter().filter(|entry| (**entry as usize) < nodes) {
            if seen.first_time(entry) {
                nearest.meet(VisitedNode { away: length(entry), at: entry });
            }
        }
        while let Some(at) = nearest.next() {
            for &neighbour in self.neighbours(at) {
                if seen.first_time(neighbour) {
                    nearest.meet(VisitedNode { away: length(neighbour), at: neighbour });
                }
            }
        }
        nearest.met
    }

    /// Links a node, whose code is in its place, into the graph; tells whose lists changed.
    pub fn link(
        &mut self,
        at: u32,
        code: &QuantizedVector,
        codes: &QuantizedVectors,
        list: usize,
        is_usable: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        let met = self.walk(list, codes.len(), |other| codes.apart_from(other, code));
        let met: Vec<VisitedNode> = met.into_iter().filter(|met| met.at != at && is_usable(met.at)).collect();
        let chosen = choose(met, codes);
        self.set_neighbours(at, &chosen);
        for &neighbour in &chosen {
            self.link_back(neighbour, at, codes);
        }
        chosen.into_iter().chain([at]).collect()
    }

    fn link_back(&mut self, from: u32, to: u32, codes: &QuantizedVectors) {
        let known = self.neighbours(from);
        if known.contains(&to) {
            return;
        }
        let all: Vec<u32> = known.iter().copied().chain([to]).collect();
        let all = if all.len() <= DEGREE_MAX { all } else { self.chosen(from, all, codes) };
        self.set_neighbours(from, &all);
    }

    /// The neighbours of a node, of these.
    pub fn chosen(&self, of: u32, candidates: Vec<u32>, codes: &QuantizedVectors) -> Vec<u32> {
        let mut met: Vec<VisitedNode> = candidates
            .into_iter()
            .filter(|at| *at != of)
            .map(|at| VisitedNode { away: codes.apart(of, at), at })
            .collect();
        met.sort_unstable_by(|a, b| a.away.total_cmp(&b.away).then(a.at.cmp(&b.at)));
        met.dedup_by_key(|met| met.at);
        choose(met, codes)
    }
}

/// Neighbours in all directions: `met` comes nearest first.
fn choose(met: Vec<VisitedNode>, codes: &QuantizedVectors) -> Vec<u32> {
    let mut taken: Vec<u32> = Vec::with_capacity(DEGREE);
    for candidate in met.into_iter().take(CANDIDATES_MAX) {
        let has_detour = |taken: &u32| ALPHA * codes.apart(*taken, candidate.at) <= candidate.away;
        if !taken.iter().any(has_detour) {
            taken.push(candidate.at);
            if taken.len() == DEGREE {
                break;
            }
        }
    }
    taken
}

/// The nearest of those that were met.
struct SearchList {
    met: Vec<VisitedNode>,
    gone_from: Vec<bool>,
    list: usize,
    /// All before it were gone from.
    first: usize,
}

impl SearchList {
    fn new(list: usize) -> SearchList {
        let list = list.max(1);
        SearchList { met: Vec::with_capacity(list + 1), gone_from: Vec::with_capacity(list + 1), list, first: 0 }
    }

    fn meet(&mut self, met: VisitedNode) {
        if self.met.len() >= self.list && self.met.last().is_some_and(|last| met.away >= last.away) {
            return;
        }
        let place = self.met.partition_point(|known| known.away <= met.away);
        self.met.insert(place, met);
        self.gone_from.insert(place, false);
        self.met.truncate(self.list);
        self.gone_from.truncate(self.list);
        self.first = self.first.min(place);
    }

    fn next(&mut self) -> Option<u32> {
        let ahead = self.gone_from.get(self.first..)?.iter().position(|gone| !gone)?;
        self.first += ahead;
        *self.gone_from.get_mut(self.first)? = true;
        self.met.get(self.first).map(|met| met.at)
    }
}

/// A bit per node.
struct VisitedSet(Vec<u64>);

impl VisitedSet {
    fn new(nodes: usize) -> VisitedSet {
        VisitedSet(vec![0; nodes.div_ceil(64)])
    }

    /// A node beyond the last is not looked at.
    fn first_time(&mut self, at: u32) -> bool {
        let (word, bit) = (at as usize / 64, 1u64 << (at % 64));
        let Some(word) = self.0.get_mut(word) else { return false };
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}
