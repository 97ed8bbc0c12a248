//! Computed properties in the index: values that queries see and no item stores.
//!
//! Invariant: the index sees an item as queries see it. A computed property hides a stored one of the same name, and
//! its value is indexed if the policy lists the property by name; `/*` alone does not list it. The implementation of
//! `Extract` computes the values.
//!
//! ```text
//! computed low = LOWER(c.name)        stored   {"name":"Ann","low":7}
//! policy   /*, /low/?                 indexed  {"name":"Ann","low":"ann"}
//! policy   /*                         indexed  {"name":"Ann"}
//! ```

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use pleiad_model::policy::{ComputedProperty, IndexingPolicy, PathStep};
use pleiad_model::{Object, Value};

/// Computes the computed properties of a container.
pub trait Extract: Send + Sync {
    /// The name and value of each property; `None` is undefined. `item` has its `_ts` and no other system property.
    fn extract(&self, item: &Value) -> Vec<(String, Option<Value>)>;
}

/// The computed properties of a container: their definitions, and the code that computes them.
#[derive(Clone, Default)]
pub struct ComputedDefinitions {
    definitions: Vec<ComputedProperty>,
    extract: Option<Arc<dyn Extract>>,
}

impl ComputedDefinitions {
    pub fn new(definitions: Vec<ComputedProperty>, extract: Arc<dyn Extract>) -> ComputedDefinitions {
        ComputedDefinitions { definitions, extract: Some(extract) }
    }

    pub fn definitions(&self) -> &[ComputedProperty] {
        &self.definitions
    }

    fn find(&self, name: &str) -> Option<&ComputedProperty> {
        self.definitions.iter().find(|property| property.name == name)
    }
}

/// Equal definitions produce equal values.
impl PartialEq for ComputedDefinitions {
    fn eq(&self, other: &Self) -> bool {
        self.definitions == other.definitions
    }
}

impl fmt::Debug for ComputedDefinitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.definitions.fmt(f)
    }
}

/// The computed properties of a container under one indexing policy.
#[derive(Clone, Debug, Default)]
pub struct ComputedRules {
    computed: ComputedDefinitions,
    /// The names that the policy lists, sorted.
    listed: Vec<String>,
}

/// Where the indexed values of a property come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueOrigin<'a> {
    Stored,
    /// Computed by this query.
    Computed(&'a str),
    /// Computed, but not listed by the policy: not in the index.
    NotIndexed,
}

impl ComputedRules {
    pub fn new(policy: &IndexingPolicy, computed: &ComputedDefinitions) -> ComputedRules {
        let included = policy.included.iter().map(|path| path.steps.as_slice());
        let composite = policy.composite.iter().flat_map(|index| &index.paths).map(|path| path.path.steps.as_slice());
        let spatial = policy.spatial.iter().map(|index| index.path.steps.as_slice());
        let texts = policy.full_text.iter().filter_map(|index| index.path.segments().first().map(String::as_str));
        let first_names = included.chain(composite).chain(spatial).filter_map(first_name).chain(texts);
        let mut listed: Vec<String> =
            first_names.filter(|name| computed.find(name).is_some()).map(str::to_owned).collect();
        listed.sort_unstable();
        listed.dedup();
        ComputedRules { computed: computed.clone(), listed }
    }

    /// The origin of the values at a path.
    pub fn origin(&self, steps: &[PathStep]) -> ValueOrigin<'_> {
        match first_name(steps).and_then(|name| self.computed.find(name)) {
            None => ValueOrigin::Stored,
            Some(property) if self.is_listed(&property.name) => ValueOrigin::Computed(&property.query),
            Some(_) => ValueOrigin::NotIndexed,
        }
    }

    /// The item as the index sees it: computed properties replace or hide stored ones.
    pub fn with_computed<'i>(&self, item: &'i Value, ts_s: u32) -> Cow<'i, Value> {
        let (Some(extract), Value::Object(stored)) = (&self.computed.extract, item) else { return Cow::Borrowed(item) };
        let mut indexed = stored.clone();
        indexed.retain(|name, _| self.computed.find(name).is_none());
        if !self.listed.is_empty() {
            let values = extract.extract(&with_ts(stored.clone(), ts_s)).into_iter();
            for (name, value) in values.filter(|(name, _)| self.is_listed(name)) {
                value.into_iter().for_each(|value| indexed.set(name.as_str(), value));
            }
        }
        Cow::Owned(Value::Object(indexed))
    }

    fn is_listed(&self, name: &str) -> bool {
        self.listed.binary_search_by(|listed| listed.as_str().cmp(name)).is_ok()
    }

    /// What decides which terms an item has: names and queries of listed properties, only the names of the others.
    fn equality_key(&self) -> Vec<(&str, Option<&str>)> {
        let definitions = self.computed.definitions.iter();
        let mut key: Vec<(&str, Option<&str>)> = definitions
            .map(|property| (property.name.as_str(), self.is_listed(&property.name).then_some(property.query.as_str())))
            .collect();
        key.sort_unstable();
        key
    }
}

/// The queries of unlisted properties do not matter: their values are not in the index.
impl PartialEq for ComputedRules {
    fn eq(&self, other: &Self) -> bool {
        self.equality_key() == other.equality_key()
    }
}

fn with_ts(mut item: Object, ts_s: u32) -> Value {
    item.set("_ts", i64::from(ts_s));
    Value::Object(item)
}

fn first_name(steps: &[PathStep]) -> Option<&str> {
    match steps.first() {
        Some(PathStep::Property(name)) => Some(name),
        _ => None,
    }
}
