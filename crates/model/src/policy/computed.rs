//! `computedProperties`: properties that queries see and no item stores.
//!
//! Invariant: at most twenty; names are unique and not names of system properties. The queries are
//! validated in `sql::computed`.

use super::read;
use crate::item::SYSTEM_PROPERTIES;
use crate::{Error, Object, Result, Value};

pub const COMPUTED_PROPERTIES_MAX: usize = 20;

#[derive(Clone, Debug, PartialEq)]
pub struct ComputedProperty {
    pub name: String,
    pub query: String,
}

impl ComputedProperty {
    pub fn parse_all(body: &Value) -> Result<Vec<Self>> {
        let properties = read::array(body)?.iter().map(Self::parse).collect::<Result<Vec<_>>>()?;
        let count = properties.len();
        if count > COMPUTED_PROPERTIES_MAX {
            return Err(Error::invalid(format!(
                "The container has {count} computed properties. A maximum of {COMPUTED_PROPERTIES_MAX} is allowed."
            )));
        }
        let mut seen = std::collections::HashSet::new();
        match properties.iter().find(|property| !seen.insert(&property.name)) {
            Some(ComputedProperty { name, .. }) => {
                Err(Error::invalid(format!("The computed property '{name}' is there twice. Keep it once.")))
            }
            None => Ok(properties),
        }
    }

    /// The member of a container's definition.
    pub fn to_value(all: &[Self]) -> Value {
        read::render(all, Self::to_object)
    }

    fn to_object(&self) -> Object {
        Object::new().with("name", self.name.as_str()).with("query", self.query.as_str())
    }

    fn parse(entry: &Value) -> Result<Self> {
        let entry = read::object(entry)?;
        let (name, query) = (read::required_text(entry, "name")?, read::required_text(entry, "query")?);
        if name.is_empty() || name == "id" || SYSTEM_PROPERTIES.contains(&name) {
            return Err(Error::invalid(format!("A computed property cannot be called '{name}'. Choose another name.")));
        }
        if query.trim().is_empty() {
            return Err(Error::invalid(format!("The computed property '{name}' has no query.")));
        }
        Ok(ComputedProperty { name: name.to_owned(), query: query.to_owned() })
    }
}

#[cfg(test)]
mod tests;
