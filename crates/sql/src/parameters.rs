//! Query parameters: the values that a request sends with the query text, as `[{"name": "@id", "value": …}]`.
//!
//! Invariant: names include their `@` and are unique; values are any JSON. A parameter without `value` is undefined,
//! which is what a JavaScript client sends for `undefined`; so is a missing parameter.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use pleiad_model::{Error, Result, Value};

use crate::sort_encoding;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    values: HashMap<String, Option<Value>>,
}

impl Parameters {
    /// Parses the `parameters` property of the request body, which may be absent.
    pub fn from_value(parameters: Option<&Value>) -> Result<Self> {
        let list = match parameters {
            None | Some(Value::Null) => &[],
            Some(Value::Array(list)) => list.as_slice(),
            Some(_) => {
                return Err(Error::invalid("The query's 'parameters' must be an array of {\"name\", \"value\"}."));
            }
        };
        let mut values = HashMap::with_capacity(list.len());
        for entry in list {
            let (name, value) = parameter(entry)?;
            if values.insert(name.clone(), value).is_some() {
                return Err(Error::invalid(format!("Invalid query. Specified duplicate parameter name '{name}'.")));
            }
        }
        Ok(Parameters { values })
    }

    /// Whether the request has a parameter of this name, with a value or without.
    pub fn contains(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)?.as_ref()
    }
}

/// Hashes independently of the order of the list.
impl Hash for Parameters {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut values: Vec<_> = self.values.iter().collect();
        values.sort_unstable_by_key(|(name, _)| *name);
        for (name, value) in values {
            name.hash(state);
            let mut bytes = Vec::new();
            sort_encoding::encode(value.as_ref(), &mut bytes);
            bytes.hash(state);
        }
    }
}

fn parameter(entry: &Value) -> Result<(String, Option<Value>)> {
    match entry.get("name").and_then(Value::as_str) {
        Some(name) if name.starts_with('@') => Ok((name.to_owned(), entry.get("value").cloned())),
        Some(name) => Err(Error::invalid(format!(
            "Invalid query. Specified parameter name '{name}' is invalid. Parameter names should be in the format of symbol '@' \
             followed by a valid identifier. E.g. @param1"
        ))),
        None => Err(Error::invalid("Each query parameter must have a 'name' that starts with '@'.")),
    }
}
