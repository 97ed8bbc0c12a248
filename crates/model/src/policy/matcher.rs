//! Index matcher: decides which values of an item are indexed.
//!
//! Invariant: the most precise path of the policy decides. Of the paths that cover a scalar, the one
//! with more steps wins; with equally many, `/?` wins over `/*`. `id` and `_ts` are indexed if
//! anything is.
//!
//! The policy's paths are compiled to a trie, which is traversed together with the item: one step per
//! property or element, without building or comparing paths.
//!
//! ```text
//! included /*, /a/b/?     root *=yes ── a *=no ── b ?=yes
//! excluded /a/*           item {"a":{"b":1,"c":2},"d":3}  →  a.b yes, a.c no, d yes
//! ```
//!
//! A path that the policy names is *explicit*: the index also has a row for items without a value there. `/*` names no
//! path, and paths into arrays are never explicit.
//!
//! Of the system properties only `_ts` is in the index, regardless of the paths: the others are generated when an item
//! is read.
//!
//! Tuples are not handled here: `/a/[]/{x,y}/?` is an index of its own and does not index x alone.

use super::index_path::{End, IndexPath, PathStep};
use crate::item::SYSTEM_PROPERTIES;

/// Every item has them, so they are indexed regardless of the paths.
const ALWAYS_INDEXED: [&str; 2] = ["id", TS];
const TS: &str = "_ts";

#[derive(Clone, Debug, PartialEq)]
pub struct IndexMatcher {
    /// Parents come before their children; the root is always present.
    nodes: Vec<TrieNode>,
    /// Sorted.
    explicit: Vec<Vec<PathStep>>,
}

/// A node of the trie: a position that some path of the policy goes through.
#[derive(Clone, Debug, Default, PartialEq)]
struct TrieNode {
    /// The decision of a `/?` here.
    scalar: Option<bool>,
    /// The decision of a `/*` here.
    subtree: Option<bool>,
    /// Sorted by name.
    properties: Vec<(String, usize)>,
    element: Option<usize>,
    /// Some path below this node includes something.
    includes_below: bool,
}

/// A position in an item, with the policy's decision for it.
#[derive(Clone, Copy, Debug)]
pub struct PolicyNode<'a> {
    matcher: &'a IndexMatcher,
    /// None if no path of the policy leads to this position.
    node: Option<&'a TrieNode>,
    /// The decision of the nearest `/*` at or above this position.
    inherited: bool,
}

impl IndexMatcher {
    /// Indexes nothing: for indexing mode none.
    pub fn nothing() -> Self {
        IndexMatcher { nodes: vec![TrieNode::default()], explicit: Vec::new() }
    }

    pub(super) fn new<'p>(
        included: impl IntoIterator<Item = &'p IndexPath> + Clone,
        excluded: impl IntoIterator<Item = &'p IndexPath>,
    ) -> Self {
        let mut matcher = Self::nothing();
        excluded.into_iter().for_each(|path| matcher.add(path, false));
        included.clone().into_iter().for_each(|path| matcher.add(path, true));
        for always in ALWAYS_INDEXED {
            let at = matcher.property_child(0, always);
            matcher.nodes[at].scalar = Some(true);
        }
        matcher.fill_includes_below();
        matcher.explicit = matcher.explicit_steps(included);
        matcher
    }

    /// The property paths that the policy names; their indexes also contain the items without a value. Sorted.
    pub fn explicit_paths(&self) -> &[Vec<PathStep>] {
        &self.explicit
    }

    /// Whether the index at this path has a row for every item, including items without a value there.
    pub fn is_explicit(&self, steps: &[PathStep]) -> bool {
        self.is_always_indexed(steps) || self.explicit.binary_search_by(|path| path.as_slice().cmp(steps)).is_ok()
    }

    /// Whether every value at this path is in the index.
    pub fn indexes(&self, steps: &[PathStep]) -> bool {
        !steps.is_empty() && !is_generated_on_read(steps) && self.node(steps).indexes_scalar()
    }

    /// Whether the policy selects this path, although its values are generated on read and thus not in the index.
    pub fn selects_generated(&self, steps: &[PathStep]) -> bool {
        is_generated_on_read(steps) && self.node(steps).indexes_scalar()
    }

    fn node(&self, steps: &[PathStep]) -> PolicyNode<'_> {
        steps.iter().fold(self.root(), |node, step| match step {
            PathStep::Property(name) => node.property(name),
            PathStep::Element => node.element(),
        })
    }

    fn is_always_indexed(&self, steps: &[PathStep]) -> bool {
        matches!(steps, [PathStep::Property(name)] if ALWAYS_INDEXED.contains(&name.as_str())) && self.indexes(steps)
    }

    fn explicit_steps<'p>(&self, included: impl IntoIterator<Item = &'p IndexPath>) -> Vec<Vec<PathStep>> {
        let names = |path: &&IndexPath| {
            !matches!(path.end, End::Tuple(_)) && !path.steps.contains(&PathStep::Element) && self.indexes(&path.steps)
        };
        let mut explicit: Vec<_> = included.into_iter().filter(names).map(|path| path.steps.clone()).collect();
        explicit.sort_unstable();
        explicit.dedup();
        explicit
    }

    pub fn root(&self) -> PolicyNode<'_> {
        PolicyNode { matcher: self, node: None, inherited: false }.descend(Some(0))
    }

    fn add(&mut self, path: &IndexPath, included: bool) {
        let at = path.steps.iter().fold(0, |at, step| match step {
            PathStep::Property(name) => self.property_child(at, name),
            PathStep::Element => self.element_child(at),
        });
        match path.end {
            End::Scalar => self.nodes[at].scalar = Some(included),
            End::Subtree => self.nodes[at].subtree = Some(included),
            End::Tuple(_) => {}
        }
    }

    fn property_child(&mut self, parent: usize, name: &str) -> usize {
        match self.nodes[parent].find(name) {
            Ok(at) => self.nodes[parent].properties[at].1,
            Err(at) => {
                let new = self.new_node();
                self.nodes[parent].properties.insert(at, (name.to_owned(), new));
                new
            }
        }
    }

    fn element_child(&mut self, parent: usize) -> usize {
        match self.nodes[parent].element {
            Some(at) => at,
            None => {
                let new = self.new_node();
                self.nodes[parent].element = Some(new);
                new
            }
        }
    }

    fn new_node(&mut self) -> usize {
        self.nodes.push(TrieNode::default());
        self.nodes.len() - 1
    }

    /// Fills `includes_below`, children first.
    fn fill_includes_below(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let node = &self.nodes[at];
            let children = node.properties.iter().map(|(_, child)| *child).chain(node.element);
            let includes_below = children.into_iter().any(|child| self.nodes[child].includes());
            self.nodes[at].includes_below = includes_below;
        }
    }
}

/// Whether this is one of the system properties that are generated on read and not stored.
pub fn is_generated_on_read(steps: &[PathStep]) -> bool {
    matches!(steps.first(), Some(PathStep::Property(name)) if name != TS && SYSTEM_PROPERTIES.contains(&name.as_str()))
}

impl TrieNode {
    fn find(&self, name: &str) -> Result<usize, usize> {
        self.properties.binary_search_by(|(known, _)| known.as_str().cmp(name))
    }

    fn includes(&self) -> bool {
        self.scalar == Some(true) || self.subtree == Some(true) || self.includes_below
    }
}

impl<'a> PolicyNode<'a> {
    /// The value of that property.
    pub fn property(self, name: &str) -> PolicyNode<'a> {
        let child = self.node.and_then(|node| node.find(name).ok().map(|at| node.properties[at].1));
        self.descend(child)
    }

    /// Any element of the array here.
    pub fn element(self) -> PolicyNode<'a> {
        self.descend(self.node.and_then(|node| node.element))
    }

    /// Whether a scalar at this position is indexed.
    pub fn indexes_scalar(self) -> bool {
        self.node.and_then(|node| node.scalar).unwrap_or(self.inherited)
    }

    /// Whether anything inside an object or array at this position can be indexed. If not, the traversal skips it.
    pub fn may_index_below(self) -> bool {
        self.inherited || self.node.is_some_and(|node| node.includes_below)
    }

    fn descend(self, child: Option<usize>) -> PolicyNode<'a> {
        let node = child.and_then(|child| self.matcher.nodes.get(child));
        let inherited = node.and_then(|node| node.subtree).unwrap_or(self.inherited);
        PolicyNode { node, inherited, ..self }
    }
}

#[cfg(test)]
mod tests;
