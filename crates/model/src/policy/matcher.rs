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
const ALWAYS: [&str; 2] = ["id", TS];
const TS: &str = "_ts";

#[derive(Clone, Debug, PartialEq)]
pub struct IndexMatcher {
    /// Parents come before their children; the root is always present.
    places: Vec<PathPosition>,
    /// Sorted.
    explicit: Vec<Vec<PathStep>>,
}

/// A node of the trie: a position that some path of the policy goes through.
#[derive(Clone, Debug, Default, PartialEq)]
struct PathPosition {
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
    /// None where no path of the policy goes.
    place: Option<&'a PathPosition>,
    /// The decision of the nearest `/*` at or above this position.
    inherited: bool,
}

impl IndexMatcher {
    /// Indexes nothing: for indexing mode none.
    pub fn nothing() -> Self {
        IndexMatcher { places: vec![PathPosition::default()], explicit: Vec::new() }
    }

    pub(super) fn new<'p>(
        included: impl IntoIterator<Item = &'p IndexPath> + Clone,
        excluded: impl IntoIterator<Item = &'p IndexPath>,
    ) -> Self {
        let mut matcher = Self::nothing();
        excluded.into_iter().for_each(|path| matcher.add(path, false));
        included.clone().into_iter().for_each(|path| matcher.add(path, true));
        for always in ALWAYS {
            let at = matcher.property_at(0, always);
            matcher.places[at].scalar = Some(true);
        }
        matcher.look_ahead();
        matcher.explicit = matcher.named(included);
        matcher
    }

    /// The property paths that the policy names; their indexes also contain the items without a value. Sorted.
    pub fn explicit_paths(&self) -> &[Vec<PathStep>] {
        &self.explicit
    }

    /// Whether the index at this path has a row for every item, including items without a value there.
    pub fn is_explicit(&self, steps: &[PathStep]) -> bool {
        self.in_every_item(steps) || self.explicit.binary_search_by(|path| path.as_slice().cmp(steps)).is_ok()
    }

    /// Whether every value at this path is in the index.
    pub fn indexes(&self, steps: &[PathStep]) -> bool {
        !steps.is_empty() && !is_made_when_read(steps) && self.node(steps).indexes_scalar()
    }

    /// Whether the policy selects this path, although its values are generated on read and thus not in the index.
    pub fn wants(&self, steps: &[PathStep]) -> bool {
        is_made_when_read(steps) && self.node(steps).indexes_scalar()
    }

    fn node(&self, steps: &[PathStep]) -> PolicyNode<'_> {
        steps.iter().fold(self.root(), |node, step| match step {
            PathStep::Property(name) => node.property(name),
            PathStep::Element => node.element(),
        })
    }

    fn in_every_item(&self, steps: &[PathStep]) -> bool {
        matches!(steps, [PathStep::Property(name)] if ALWAYS.contains(&name.as_str())) && self.indexes(steps)
    }

    fn named<'p>(&self, included: impl IntoIterator<Item = &'p IndexPath>) -> Vec<Vec<PathStep>> {
        let names = |path: &&IndexPath| {
            !matches!(path.end, End::Tuple(_)) && !path.steps.contains(&PathStep::Element) && self.indexes(&path.steps)
        };
        let mut named: Vec<_> = included.into_iter().filter(names).map(|path| path.steps.clone()).collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    pub fn root(&self) -> PolicyNode<'_> {
        PolicyNode { matcher: self, place: None, inherited: false }.at(Some(0))
    }

    fn add(&mut self, path: &IndexPath, included: bool) {
        let at = path.steps.iter().fold(0, |at, step| match step {
            PathStep::Property(name) => self.property_at(at, name),
            PathStep::Element => self.element_at(at),
        });
        match path.end {
            End::Scalar => self.places[at].scalar = Some(included),
            End::Subtree => self.places[at].subtree = Some(included),
            End::Tuple(_) => {}
        }
    }

    fn property_at(&mut self, parent: usize, name: &str) -> usize {
        match self.places[parent].find(name) {
            Ok(at) => self.places[parent].properties[at].1,
            Err(at) => {
                let new = self.new_place();
                self.places[parent].properties.insert(at, (name.to_owned(), new));
                new
            }
        }
    }

    fn element_at(&mut self, parent: usize) -> usize {
        match self.places[parent].element {
            Some(at) => at,
            None => {
                let new = self.new_place();
                self.places[parent].element = Some(new);
                new
            }
        }
    }

    fn new_place(&mut self) -> usize {
        self.places.push(PathPosition::default());
        self.places.len() - 1
    }

    /// Fills `includes_below`, children first.
    fn look_ahead(&mut self) {
        for at in (0..self.places.len()).rev() {
            let place = &self.places[at];
            let children = place.properties.iter().map(|(_, child)| *child).chain(place.element);
            let includes_below = children.into_iter().any(|child| self.places[child].includes());
            self.places[at].includes_below = includes_below;
        }
    }
}

/// Whether this is one of the system properties that are generated on read and not stored.
pub fn is_made_when_read(steps: &[PathStep]) -> bool {
    matches!(steps.first(), Some(PathStep::Property(name)) if name != TS && SYSTEM_PROPERTIES.contains(&name.as_str()))
}

impl PathPosition {
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
        let child = self.place.and_then(|place| place.find(name).ok().map(|at| place.properties[at].1));
        self.at(child)
    }

    /// Any element of the array here.
    pub fn element(self) -> PolicyNode<'a> {
        self.at(self.place.and_then(|place| place.element))
    }

    /// Whether a scalar at this position is indexed.
    pub fn indexes_scalar(self) -> bool {
        self.place.and_then(|place| place.scalar).unwrap_or(self.inherited)
    }

    /// Whether anything inside an object or array at this position can be indexed. If not, the traversal skips it.
    pub fn may_index_below(self) -> bool {
        self.inherited || self.place.is_some_and(|place| place.includes_below)
    }

    fn at(self, child: Option<usize>) -> PolicyNode<'a> {
        let place = child.and_then(|child| self.matcher.places.get(child));
        let inherited = place.and_then(|place| place.subtree).unwrap_or(self.inherited);
        PolicyNode { place, inherited, ..self }
    }
}

#[cfg(test)]
mod tests;
