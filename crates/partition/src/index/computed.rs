//! Properties that no item stores, in the index.
//!
//! Promise: the index sees an item as queries see it: where the container computes a property, a stored one of the same name is out
//! of sight, and the computed value takes its place if the policy lists it by name. `/*` lists nothing. How a value comes about is
//! the business of whoever implements `Extract`.
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

/// Works out the computed properties of a container.
pub trait Extract: Send + Sync {
    /// Name and value of each; `None` is undefined. The item has its `_ts`, and no other system property.
    fn extract(&self, item: &Value) -> Vec<(String, Option<Value>)>;
}

/// The computed properties of a container: as defined, and as they are worked out.
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

/// Equal definitions make equal values.
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

/// What a policy makes of computed properties.
#[derive(Clone, Debug, Default)]
pub struct Made {
    computed: ComputedDefinitions,
    /// Names that the policy lists.
    listed: Vec<String>,
}

/// What the index knows of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueOrigin<'a> {
    Stored,
    /// By this query.
    Computed(&'a str),
    /// Computed, and not in the index.
    Unknown,
}

impl Made {
    pub fn new(policy: &IndexingPolicy, computed: &ComputedDefinitions) -> Made {
        let included = policy.included.iter().map(|path| path.steps.as_slice());
        let composite = policy.composite.iter().flat_map(|index| &index.paths).map(|path| path.path.steps.as_slice());
        let spatial = policy.spatial.iter().map(|index| index.path.steps.as_slice());
        let texts = policy.full_text.iter().filter_map(|index| index.path.segments().first().map(String::as_str));
        let firsts = included.chain(composite).chain(spatial).filter_map(first_name).chain(texts);
        let mut listed: Vec<String> = firsts.filter(|name| computed.find(name).is_some()).map(str::to_owned).collect();
        listed.sort_unstable();
        listed.dedup();
        Made { computed: computed.clone(), listed }
    }

    /// Where the values at a path come from.
    pub fn origin(&self, steps: &[PathStep]) -> ValueOrigin<'_> {
        match first_name(steps).and_then(|name| self.computed.find(name)) {
            None => ValueOrigin::Stored,
            Some(property) if self.is_listed(&property.name) => ValueOrigin::Computed(&property.query),
            Some(_) => ValueOrigin::Unknown,
        }
    }

    /// The item as the index sees it.
    pub fn seen<'i>(&self, item: &'i Value, ts_s: u32) -> Cow<'i, Value> {
        let (Some(extract), Value::Object(stored)) = (&self.computed.extract, item) else { return Cow::Borrowed(item) };
        let mut seen = stored.clone();
        seen.retain(|name, _| self.computed.find(name).is_none());
        if !self.listed.is_empty() {
            let values = extract.extract(&timed(stored.clone(), ts_s)).into_iter();
            for (name, value) in values.filter(|(name, _)| self.is_listed(name)) {
                value.into_iter().for_each(|value| seen.set(name.as_str(), value));
            }
        }
        Cow::Owned(Value::Object(seen))
    }

    fn is_listed(&self, name: &str) -> bool {
        self.listed.binary_search_by(|listed| listed.as_str().cmp(name)).is_ok()
    }

    /// What of it decides which terms an item has.
    fn essence(&self) -> Vec<(&str, Option<&str>)> {
        let definitions = self.computed.definitions.iter();
        let mut essence: Vec<(&str, Option<&str>)> = definitions
            .map(|property| (property.name.as_str(), self.is_listed(&property.name).then_some(property.query.as_str())))
            .collect();
        essence.sort_unstable();
        essence
    }
}

/// What is computed and not in the index may be computed in another way.
impl PartialEq for Made {
    fn eq(&self, other: &Self) -> bool {
        self.essence() == other.essence()
    }
}

fn timed(mut item: Object, ts_s: u32) -> Value {
    item.set("_ts", i64::from(ts_s));
    Value::Object(item)
}

fn first_name(steps: &[PathStep]) -> Option<&str> {
    match steps.first() {
        Some(PathStep::Property(name)) => Some(name),
        _ => None,
    }
}
