//! Computed properties: one compilation for the query executor and for the index.
//!
//! Invariant: a container's definitions are compiled once, when it is created, replaced or loaded; queries and the
//! index evaluate the same compiled expressions, so that an index lookup finds what a query sees.

use std::sync::Arc;

use pleiad_model::policy::{ComputedProperty, ContainerDefinition, Geospatial};
use pleiad_model::{Error, Result, Value};
use pleiad_partition::index::{ComputedDefinitions as Indexed, Extract};
use pleiad_sql::computed::ComputedExprs;

/// The same properties, for queries and for the index.
#[derive(Clone)]
pub(crate) struct ComputedProperties {
    pub queried: Arc<ComputedExprs>,
    pub indexed: Indexed,
}

struct Extractor(Arc<ComputedExprs>);

impl Extract for Extractor {
    fn extract(&self, item: &Value) -> Vec<(String, Option<Value>)> {
        self.0.values(item).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl ComputedProperties {
    pub fn of(definition: &ContainerDefinition) -> Result<ComputedProperties> {
        ComputedProperties::new(&definition.computed_properties, definition.geospatial)
    }

    pub fn new(definitions: &[ComputedProperty], geospatial: Geospatial) -> Result<ComputedProperties> {
        let queried = Arc::new(ComputedExprs::compile(definitions, geospatial)?);
        let indexed = match definitions {
            [] => Indexed::default(),
            _ => Indexed::new(definitions.to_vec(), Arc::new(Extractor(queried.clone()))),
        };
        Ok(ComputedProperties { queried, indexed })
    }
}

/// Rejects a computed property with the name of a partition key: the partition of an item follows from what it stores.
pub(crate) fn check(definition: &ContainerDefinition) -> Result<()> {
    let paths = definition.partition_key.iter().flat_map(|key| &key.paths);
    let mut names = paths.filter_map(|path| path.segments().first());
    let is_computed = |name: &&String| definition.computed_properties.iter().any(|property| property.name == **name);
    match names.find(is_computed) {
        Some(name) => Err(Error::invalid(format!(
            "The computed property '{name}' cannot have the name of a partition key. Choose another name."
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
