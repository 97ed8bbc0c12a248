//! What a query may rely on while the index is being changed.
//!
//! Promise: an item has every term of the current policy that all former ones ask for as well, whenever it was written;
//! and none but those that one of them asks for. So a path, or an index, can be used if all of them have it.
//!
//! ```text
//! former   /a /b        item from before   a b        it may have   a b c
//! current     /b /c     item of now          b c      it has          b       usable: b
//! ```

use pleiad_model::Value;
use pleiad_model::policy::{CompositeIndex, Language, PathStep};
use pleiad_spatial::cells::Space;

use super::computed::ValueOrigin;
use super::{IndexRules, IndexTerm, VectorRule, composite_id};

/// The policy that holds, over those whose terms may still be there.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyVersions {
    current: IndexRules,
    former: Vec<IndexRules>,
    /// Those that every layer has.
    composites: Vec<CompositeIndex>,
}

/// Questions a planner asks.
#[derive(Clone, Copy, Debug)]
pub struct UsableIndex<'a>(&'a PolicyVersions);

impl PolicyVersions {
    pub fn new(current: IndexRules, former: Vec<IndexRules>) -> PolicyVersions {
        let has = |rules: &IndexRules, id| rules.composites().iter().any(|index| composite_id(index) == id);
        let same = |index: &CompositeIndex, rules: &IndexRules| {
            index.paths.iter().all(|path| is_same(&current, rules, &path.path.steps))
        };
        let everywhere =
            |index: &&CompositeIndex| former.iter().all(|rules| has(rules, composite_id(index)) && same(index, rules));
        let composites = current.composites().iter().filter(everywhere).cloned().collect();
        PolicyVersions { current, former, composites }
    }

    pub fn usable(&self) -> UsableIndex<'_> {
        UsableIndex(self)
    }

    pub fn is_settled(&self) -> bool {
        self.former.is_empty()
    }

    /// What an item that is written now gets.
    pub fn terms(&self, item: &Value, ts_s: u32) -> Vec<IndexTerm> {
        self.current.terms(item, ts_s)
    }

    /// What an item may have, whenever it was written.
    pub fn possible_terms(&self, item: &Value, ts_s: u32) -> Vec<IndexTerm> {
        let mut terms = self.current.terms(item, ts_s);
        if !self.is_settled() {
            terms.extend(self.former.iter().flat_map(|rules| rules.terms(item, ts_s)));
            terms.sort_unstable();
            terms.dedup();
        }
        terms
    }

    /// What an item has, whenever it was written.
    pub fn certain_terms(&self, item: &Value, ts_s: u32) -> Vec<IndexTerm> {
        let mut terms = self.current.terms(item, ts_s);
        for rules in &self.former {
            let theirs = rules.terms(item, ts_s);
            terms.retain(|term| theirs.binary_search(term).is_ok());
        }
        terms
    }

    /// Whether all of them say so, of the same values.
    fn all(&self, steps: &[PathStep], holds: impl Fn(&IndexRules) -> bool) -> bool {
        self.is_known(steps) && holds(&self.current) && self.former.iter().all(holds)
    }

    /// Whether what lies at the path came about in the same way under all of them, and is in the index at all.
    fn is_known(&self, steps: &[PathStep]) -> bool {
        self.current.made().origin(steps) != ValueOrigin::Unknown
            && self.former.iter().all(|rules| is_same(&self.current, rules, steps))
    }
}

impl<'a> UsableIndex<'a> {
    /// Does the index know every value at this path? Items under `index::UNINDEXED` aside.
    pub fn indexes(self, steps: &[PathStep]) -> bool {
        self.0.all(steps, |rules| rules.matcher().indexes(steps))
    }

    /// Will it know them when it is as the policy says?
    pub fn will_index(self, steps: &[PathStep]) -> bool {
        self.0.current.made().origin(steps) != ValueOrigin::Unknown && self.0.current.matcher().indexes(steps)
    }

    /// Does the policy want values that are made when an item is read, and so in no index?
    pub fn wants(self, steps: &[PathStep]) -> bool {
        self.0.current.matcher().wants(steps)
    }

    /// Does it know the items that have no value there as well?
    pub fn is_explicit(self, steps: &[PathStep]) -> bool {
        self.0.all(steps, |rules| rules.matcher().is_explicit(steps))
    }

    /// Those that have a row for every item. Their rows are under `index::composite_id`.
    pub fn composites(self) -> &'a [CompositeIndex] {
        &self.0.composites
    }

    /// Those that will have one when it is as the policy says.
    pub fn composites_to_be(self) -> &'a [CompositeIndex] {
        self.0.current.composites()
    }

    /// The index that has the vectors at this path.
    pub fn vector(self, steps: &[PathStep]) -> Option<&'a VectorRule> {
        self.vectors().find(|rule| rule.steps == steps)
    }

    /// Those that have a row for every item with a vector.
    pub fn vectors(self) -> impl Iterator<Item = &'a VectorRule> {
        let layers = self.0;
        let everywhere = move |rule: &&VectorRule| {
            layers.is_known(&rule.steps)
                && layers.former.iter().all(|rules| rules.vectors().iter().any(|has| has.id == rule.id))
        };
        layers.current.vectors().iter().filter(everywhere)
    }

    /// The language of the words that the index has of every text at this path. Their rows are under `index::full_text_id`.
    pub fn full_text(self, steps: &[PathStep]) -> Option<Language> {
        let rule = self.0.current.texts().iter().find(|rule| rule.steps == steps)?;
        let everywhere = self.0.former.iter().all(|rules| rules.texts().contains(rule));
        (everywhere && self.0.is_known(steps)).then_some(rule.language)
    }

    /// The space whose cells tell where the geometry at this path is. Its rows are under `index::spatial_id`.
    pub fn spatial(self, steps: &[PathStep]) -> Option<Space> {
        let everywhere = |space: &Space| self.0.former.iter().all(|rules| rules.spaces(steps).any(|has| has == *space));
        self.0.current.spaces(steps).find(everywhere).filter(|_| self.0.is_known(steps))
    }
}

/// Whether both keep the same values at this path: stored ones, or computed in the same way.
fn is_same(one: &IndexRules, other: &IndexRules, steps: &[PathStep]) -> bool {
    one.made().origin(steps) == other.made().origin(steps)
}
