//! JSON value model. "Undefined" is not a value: it is `Option::None` around one.
//!
//! Invariant: an `Object` keeps its properties in insertion order and has each name once.

use crate::number::Number;

#[cfg(test)]
mod tests;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Value>),
    Object(Object),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    properties: Vec<(String, Value)>,
}

impl Object {
    pub fn new() -> Self {
        Object::default()
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.properties.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.properties.iter_mut().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// Sets a property; an existing name keeps its position.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.properties.iter_mut().find(|(n, _)| *n == name) {
            Some((_, old)) => *old = value,
            None => self.properties.push((name, value)),
        }
    }

    /// `set` for call chains.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.properties.iter().position(|(n, _)| n == name)?;
        Some(self.properties.remove(at).1)
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&str, &Value) -> bool) {
        self.properties.retain(|(n, v)| keep(n, v));
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.properties.iter().map(|(n, v)| (n.as_str(), v))
    }

    pub fn len(&self) -> usize {
        self.properties.len()
    }

    pub fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    /// For decoders that have already made the names unique.
    pub(crate) fn from_unique(properties: Vec<(String, Value)>) -> Self {
        Object { properties }
    }
}

impl Value {
    /// The property of that name, if this is an object that has one.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object()?.get(name)
    }

    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub fn as_number(&self) -> Option<Number> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// An integral number that fits, in either spelling (`400` and `400.0`).
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}
impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.to_owned())
    }
}
impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(text)
    }
}
impl From<i64> for Value {
    fn from(n: i64) -> Self {
        Value::Number(Number::from(n))
    }
}
impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Value::Number(Number::from(n))
    }
}
impl From<f64> for Value {
    fn from(n: f64) -> Self {
        Value::Number(Number::from(n))
    }
}
impl From<Number> for Value {
    fn from(n: Number) -> Self {
        Value::Number(n)
    }
}
impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Value::Object(object)
    }
}
impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Value::Array(items)
    }
}
