//! Index transformation: the rebuild of a container's index from former policies to the current one.
//!
//! Invariant: as long as an item may have rows of a former policy, that policy is listed here and in the container's
//! row; so after a crash the rebuild continues and no row is missed.

use std::sync::atomic::{AtomicU64, Ordering};

use pleiad_model::policy::{ComputedProperty, FullTextPolicy, Geospatial, IndexingPolicy, VectorEmbedding};
use pleiad_model::{Error, Kind, Object, Result, Value};
use pleiad_partition::IndexingConfig;

use crate::computed::ComputedProperties;

/// The most former policies: every write computes its rows under each of them.
const FORMER_MAX: usize = 8;

#[derive(Debug, Default)]
pub struct IndexTransformation {
    /// Policies whose rows items may still have.
    pub from: Vec<IndexingConfig>,
    /// The rows have an obsolete layout: all of them are replaced.
    pub rebuild: bool,
    items: AtomicU64,
    seen: AtomicU64,
}

impl IndexTransformation {
    /// For a container without usable rows.
    pub fn rebuild() -> Result<IndexTransformation> {
        let no_index = Object::new().with("indexingMode", "none").with("automatic", false);
        let policy = IndexingPolicy::parse(Some(&no_index.into()))?;
        let from = vec![IndexingConfig {
            policy,
            geospatial: Geospatial::Geography,
            embeddings: Vec::new(),
            full_text: None,
            computed: Default::default(),
        }];
        Ok(IndexTransformation { from, rebuild: true, ..IndexTransformation::default() })
    }

    /// For a container whose policy has indexes of a kind that had no rows when the container was written.
    pub fn backfill(indexing: IndexingConfig) -> Option<IndexTransformation> {
        let policy = IndexingPolicy { vector: Vec::new(), full_text: Vec::new(), ..indexing.policy.clone() };
        let from = IndexingConfig { policy, ..indexing.clone() };
        let differs = from.rules() != indexing.rules();
        differs.then(|| IndexTransformation { from: vec![from], ..IndexTransformation::default() })
    }

    /// For a container with rows of an earlier version of the analyzer. They will be dropped, so that all texts of the
    /// policy are indexed again.
    pub fn reanalyze(under_way: Option<IndexTransformation>, current: &IndexingConfig) -> IndexTransformation {
        let without_texts = |config: &IndexingConfig| {
            let policy = IndexingPolicy { full_text: Vec::new(), ..config.policy.clone() };
            IndexingConfig { policy, ..config.clone() }
        };
        let under_way = under_way.unwrap_or_default();
        let former: Vec<IndexingConfig> = under_way.from.iter().chain([current]).map(without_texts).collect();
        IndexTransformation { from: distinct(former.iter(), current), ..under_way }
    }

    /// The transformation to `next`, for a container whose earlier transformation may be unfinished. `None` if nothing
    /// differs.
    pub fn next(
        under_way: Option<&IndexTransformation>,
        old: IndexingConfig,
        next: &IndexingConfig,
    ) -> Result<Option<IndexTransformation>> {
        let from = distinct(under_way.iter().flat_map(|transformation| &transformation.from).chain([&old]), next);
        if from.len() > FORMER_MAX {
            return Err(Error::new(
                Kind::Locked,
                "The indexing policy has changed several times while the index was being rebuilt. Wait until it is finished.",
            ));
        }
        let rebuild = under_way.is_some_and(|transformation| transformation.rebuild);
        Ok((!from.is_empty()).then(|| IndexTransformation { from, rebuild, ..IndexTransformation::default() }))
    }

    pub fn begin(&self, items: u64) {
        self.seen.store(0, Ordering::Relaxed);
        self.items.store(items, Ordering::Relaxed);
    }

    pub fn add_seen(&self, items: u64) {
        self.seen.fetch_add(items, Ordering::Relaxed);
    }

    /// Never 100: a finished transformation is removed.
    pub fn percent(&self) -> u64 {
        let (seen, items) = (self.seen.load(Ordering::Relaxed), self.items.load(Ordering::Relaxed));
        (seen.saturating_mul(100) / items.max(1)).min(99)
    }

    pub fn to_value(&self) -> Value {
        let from = |indexing: &IndexingConfig| {
            let object = Object::new().with("indexingPolicy", indexing.policy.to_value());
            let object = object.with("geospatial", indexing.geospatial.as_str());
            let mut object =
                object.with("vectorEmbeddingPolicy", VectorEmbedding::policy_to_object(&indexing.embeddings));
            if let Some(policy) = &indexing.full_text {
                object.set("fullTextPolicy", policy.to_object());
            }
            Value::Object(
                object.with("computedProperties", ComputedProperty::to_value(indexing.computed.definitions())),
            )
        };
        let from: Vec<Value> = self.from.iter().map(from).collect();
        Object::new().with("from", from).with("anew", self.rebuild).into()
    }

    pub fn from_value(value: &Value) -> Result<IndexTransformation> {
        let corrupt = || Error::corrupt("transition of a container");
        let indexing = |entry: &Value| {
            let policy = IndexingPolicy::parse(entry.get("indexingPolicy"))?;
            let geospatial = entry.get("geospatial").and_then(Value::as_str).and_then(Geospatial::parse);
            let geospatial = geospatial.ok_or_else(corrupt)?;
            let definitions = entry.get("computedProperties").map_or(Ok(Vec::new()), ComputedProperty::parse_all)?;
            let computed = ComputedProperties::new(&definitions, geospatial)?.indexed;
            let embeddings =
                entry.get("vectorEmbeddingPolicy").map_or(Ok(Vec::new()), VectorEmbedding::parse_policy)?;
            let full_text = entry.get("fullTextPolicy").map(FullTextPolicy::parse).transpose()?;
            Ok(IndexingConfig { policy, geospatial, embeddings, full_text, computed })
        };
        let from = value.get("from").and_then(Value::as_array).ok_or_else(corrupt)?;
        let from = from.iter().map(indexing).collect::<Result<Vec<_>>>()?;
        let rebuild = value.get("anew").and_then(Value::as_bool).ok_or_else(corrupt)?;
        Ok(IndexTransformation { from, rebuild, ..IndexTransformation::default() })
    }
}

/// The former policies that produce other rows than the current one, each once.
fn distinct<'c>(former: impl Iterator<Item = &'c IndexingConfig>, current: &IndexingConfig) -> Vec<IndexingConfig> {
    let wanted = current.rules();
    let mut distinct: Vec<IndexingConfig> = Vec::new();
    for former in former {
        let rules = former.rules();
        if rules != wanted && distinct.iter().all(|known| known.rules() != rules) {
            distinct.push(former.clone());
        }
    }
    distinct
}
