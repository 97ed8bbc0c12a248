//! Index rules: an indexing policy, compiled once and applied to every item.
//!
//! Invariant: `composites` lists only indexes that have rows. A composite index over array elements or over properties
//! that are generated when an item is read has none.

use pleiad_model::policy::{CompositeIndex, IndexMatcher, IndexingMode, PathStep, PolicyNode, is_generated_on_read};
use pleiad_model::{Number, Value};
use pleiad_spatial::cells::Space;

use super::IndexTerm;
use super::computed::ComputedRules;
use super::encoding::{encode_component, encode_scalar, encode_undefined};
use super::full_text::TextRule;
use super::path::{PathHash, composite_id, directions, ts_path};
use super::spatial::SpatialRule;
use super::vector::VectorRule;
use crate::schema::IndexingConfig;

#[derive(Clone, Debug, PartialEq)]
pub struct IndexRules {
    matcher: IndexMatcher,
    composites: Vec<CompositeIndex>,
    spatial: Vec<SpatialRule>,
    vectors: Vec<VectorRule>,
    texts: Vec<TextRule>,
    computed: ComputedRules,
}

impl IndexRules {
    pub fn new(config: &IndexingConfig) -> IndexRules {
        let policy = &config.policy;
        let matcher = policy.matcher();
        if policy.mode == IndexingMode::None {
            let (composites, spatial, vectors, texts, computed) = Default::default();
            return IndexRules { matcher, composites, spatial, vectors, texts, computed };
        }
        let composites = policy.composite.iter().filter(|index| has_rows(index)).cloned().collect();
        let spatial = policy.spatial.iter().map(|index| SpatialRule::new(index, config.geospatial)).collect();
        let vectors = policy.vector.iter().filter_map(|index| VectorRule::new(index, &config.embeddings)).collect();
        let texts = policy.full_text.iter().map(|index| TextRule::new(index, config.full_text.as_ref())).collect();
        IndexRules {
            matcher,
            composites,
            spatial,
            vectors,
            texts,
            computed: ComputedRules::new(policy, &config.computed),
        }
    }

    pub fn matcher(&self) -> &IndexMatcher {
        &self.matcher
    }

    pub fn computed(&self) -> &ComputedRules {
        &self.computed
    }

    pub fn composites(&self) -> &[CompositeIndex] {
        &self.composites
    }

    /// The spaces of the spatial indexes that cover this path.
    pub fn spaces<'a>(&'a self, steps: &'a [PathStep]) -> impl Iterator<Item = Space> + 'a {
        self.spatial.iter().filter(|rule| rule.covers(steps)).map(SpatialRule::space)
    }

    /// The vector indexes.
    pub fn vectors(&self) -> &[VectorRule] {
        &self.vectors
    }

    /// The full-text indexes.
    pub fn texts(&self) -> &[TextRule] {
        &self.texts
    }

    /// The terms of an item that was last written at `ts_s`, sorted and without duplicates.
    pub fn terms(&self, item: &Value, ts_s: u32) -> Vec<IndexTerm> {
        let ts = Value::Number(Number::Int(i64::from(ts_s)));
        let body = self.computed.with_computed(item, ts_s);
        let item = IndexedItem { body: &body, ts: &ts };
        let mut found = Vec::new();
        collect_children(item.body, self.matcher.root(), PathHash::ROOT, &mut found);
        self.add_time(item, &mut found);
        self.add_missing(item, &mut found);
        found.extend(self.composites.iter().map(|index| composite(index, item)));
        self.spatial.iter().for_each(|rule| rule.collect(item.body, &mut found));
        found.extend(self.vectors.iter().filter_map(|rule| rule.term(item.body)));
        self.texts.iter().for_each(|rule| rule.collect(item.body, &mut found));
        found.sort_unstable();
        found.dedup();
        found
    }

    fn add_time(&self, item: IndexedItem<'_>, found: &mut Vec<IndexTerm>) {
        if self.matcher.root().property("_ts").indexes_scalar() {
            found.push(IndexTerm::index(ts_path(), encode_scalar(item.ts)));
        }
    }

    fn add_missing(&self, item: IndexedItem<'_>, found: &mut Vec<IndexTerm>) {
        let missing = self.matcher.explicit_paths().iter().filter(|steps| item.at(steps).is_none());
        found.extend(missing.map(|steps| IndexTerm::index(PathHash::of(steps).finish(), encode_undefined())));
    }
}

/// An item as queries see it: with `_ts` as one of its properties.
#[derive(Clone, Copy)]
struct IndexedItem<'a> {
    body: &'a Value,
    ts: &'a Value,
}

impl<'a> IndexedItem<'a> {
    fn at(self, steps: &[PathStep]) -> Option<&'a Value> {
        match steps {
            [PathStep::Property(name)] if name == "_ts" => Some(self.ts),
            _ => steps.iter().try_fold(self.body, |value, step| match step {
                PathStep::Property(name) => value.get(name),
                PathStep::Element => None,
            }),
        }
    }
}

fn collect(value: &Value, node: PolicyNode<'_>, path: PathHash, found: &mut Vec<IndexTerm>) {
    if node.indexes_scalar() {
        found.push(IndexTerm::index(path.finish(), encode_scalar(value)));
    }
    collect_children(value, node, path, found);
}

fn collect_children(value: &Value, node: PolicyNode<'_>, path: PathHash, found: &mut Vec<IndexTerm>) {
    match value {
        Value::Object(object) if node.may_index_below() => {
            for (name, child) in object.iter() {
                collect(child, node.property(name), path.property(name), found);
            }
        }
        Value::Array(items) if node.may_index_below() => {
            items.iter().for_each(|child| collect(child, node.element(), path.element(), found));
        }
        _ => {}
    }
}

fn has_rows(index: &CompositeIndex) -> bool {
    let single = |steps: &[PathStep]| !steps.contains(&PathStep::Element) && !is_generated_on_read(steps);
    index.paths.iter().all(|path| single(&path.path.steps))
}

fn composite(index: &CompositeIndex, item: IndexedItem<'_>) -> IndexTerm {
    let mut value = Vec::with_capacity(index.paths.len() * 16);
    for (path, descending) in index.paths.iter().zip(directions(index)) {
        encode_component(item.at(&path.path.steps), descending, &mut value);
    }
    IndexTerm::index(composite_id(index), value)
}
