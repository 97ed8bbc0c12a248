//! Usable index: the paths and indexes that a query can use during an index transformation.
//!
//! Invariant: whenever an item was written, it has every term that all policy versions (the current and the former
//! ones) produce, and no term that none of them produces. So a path or an index is usable if all versions have it.
//!
//! ```text
//! former   /a /b        item written before   a b        possible terms   a b c
//! current     /b /c     item written now        b c      certain terms      b       usable: b
//! ```

use pleiad_model::Value;
use pleiad_model::policy::{CompositeIndex, Language, PathStep};
use pleiad_spatial::cells::Space;

use super::computed::ValueOrigin;
use super::{IndexRules, IndexTerm, VectorRule, composite_id};

/// The current indexing policy over the former ones whose rows may still exist.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyVersions {
    current: IndexRules,
    former: Vec<IndexRules>,
    /// The composite indexes that every version has.
    composites: Vec<CompositeIndex>,
}

/// The planner's view of the index.
#[derive(Clone, Copy, Debug)]
pub struct UsableIndex<'a>(&'a PolicyVersions);

impl PolicyVersions {
    pub fn new(current: IndexRules, former: Vec<IndexRules>) -> PolicyVersions {
        let has = |rules: &IndexRules, id| rules.composites().iter().any(|index| composite_id(index) == id);
        let same = |index: &CompositeIndex, rules: &IndexRules| {
            index.paths.iter().all(|path| same_origin(&current, rules, &path.path.steps))
        };
        let everywhere =
            |index: &&CompositeIndex| former.iter().all(|rules| has(rules, composite_id(index)) && same(index, rules));
        let composites = current.composites().iter().filter(everywhere).cloned().collect();
        PolicyVersions { current, former, composites }
    }

    pub fn usable(&self) -> UsableIndex<'_> {
        UsableIndex(self)
    }

    pub fn has_one_version(&self) -> bool {
        self.former.is_empty()
    }

    /// The terms of an item that is written now.
    pub fn terms(&self, item: &Value, ts_s: u32) -> Vec<IndexTerm> {
        self.current.terms(item, ts_s)
    }

    /// The terms that an item can have, whenever it was written.
    pub fn possible_terms(&self, item: &Value, ts_s: u32) -> Vec<IndexTerm> {
        let mut terms = self.current.terms(item, ts_s);
        if !self.has_one_version() {
            terms.extend(self.former.iter().flat_map(|rules| rules.terms(item, ts_s)));
            terms.sort_unstable();
            terms.dedup();
        }
        terms
    }

    /// The terms that an item certainly has, whenever it was written.
    pub fn certain_terms(&self, item: &Value, ts_s: u32) -> Vec<IndexTerm> {
        let mut terms = self.current.terms(item, ts_s);
        for rules in &self.former {
            let former_terms = rules.terms(item, ts_s);
            terms.retain(|term| former_terms.binary_search(term).is_ok());
        }
        terms
    }

    /// Whether a condition holds for all versions, and they index the same values at the path.
    fn all(&self, steps: &[PathStep], holds: impl Fn(&IndexRules) -> bool) -> bool {
        self.is_consistent(steps) && holds(&self.current) && self.former.iter().all(holds)
    }

    /// Whether the values at the path are indexed, and have the same origin in all versions.
    fn is_consistent(&self, steps: &[PathStep]) -> bool {
        self.current.computed().origin(steps) != ValueOrigin::NotIndexed
            && self.former.iter().all(|rules| same_origin(&self.current, rules, steps))
    }
}

impl<'a> UsableIndex<'a> {
    /// Whether the index has every value at this path, except those of items under `index::UNINDEXED`.
    pub fn indexes(self, steps: &[PathStep]) -> bool {
        self.0.all(steps, |rules| rules.matcher().indexes(steps))
    }

    /// Whether the index will have every value at this path when the index transformation is finished.
    pub fn will_index(self, steps: &[PathStep]) -> bool {
        self.0.current.computed().origin(steps) != ValueOrigin::NotIndexed && self.0.current.matcher().indexes(steps)
    }

    /// Whether the policy includes a path whose values are generated when an item is read, and so are in no index.
    pub fn policy_includes(self, steps: &[PathStep]) -> bool {
        self.0.current.matcher().selects_generated(steps)
    }

    /// Whether the index also has a row for every item without a value at this path.
    pub fn is_explicit(self, steps: &[PathStep]) -> bool {
        self.0.all(steps, |rules| rules.matcher().is_explicit(steps))
    }

    /// The composite indexes with a row for every item. Their rows are under `index::composite_id`.
    pub fn composites(self) -> &'a [CompositeIndex] {
        &self.0.composites
    }

    /// The composite indexes that will have a row for every item when the index transformation is finished.
    pub fn planned_composites(self) -> &'a [CompositeIndex] {
        self.0.current.composites()
    }

    /// The usable vector index at this path.
    pub fn vector(self, steps: &[PathStep]) -> Option<&'a VectorRule> {
        self.vectors().find(|rule| rule.steps == steps)
    }

    /// The vector indexes with a row for every item that has a vector.
    pub fn vectors(self) -> impl Iterator<Item = &'a VectorRule> {
        let versions = self.0;
        let everywhere = move |rule: &&VectorRule| {
            versions.is_consistent(&rule.steps)
                && versions.former.iter().all(|rules| rules.vectors().iter().any(|has| has.id == rule.id))
        };
        versions.current.vectors().iter().filter(everywhere)
    }

    /// The language of the usable full-text index at this path. Its rows are under `index::full_text_id`.
    pub fn full_text(self, steps: &[PathStep]) -> Option<Language> {
        let rule = self.0.current.texts().iter().find(|rule| rule.steps == steps)?;
        let everywhere = self.0.former.iter().all(|rules| rules.texts().contains(rule));
        (everywhere && self.0.is_consistent(steps)).then_some(rule.language)
    }

    /// The space whose cells index the geometry at this path. Its rows are under `index::spatial_id`.
    pub fn spatial(self, steps: &[PathStep]) -> Option<Space> {
        let everywhere = |space: &Space| self.0.former.iter().all(|rules| rules.spaces(steps).any(|has| has == *space));
        self.0.current.spaces(steps).find(everywhere).filter(|_| self.0.is_consistent(steps))
    }
}

/// Whether both index the same values at this path: stored ones, or values computed by the same query.
fn same_origin(one: &IndexRules, other: &IndexRules, steps: &[PathStep]) -> bool {
    one.computed().origin(steps) == other.computed().origin(steps)
}
