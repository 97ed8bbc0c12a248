//! What names stand for while one row is looked at, and how much may be built from them.

use std::borrow::Cow;
use std::cell::Cell;

use pleiad_model::{Error, Kind, Result, Value};

use crate::Parameters;

pub struct Scope<'a> {
    /// Alias and value; an inner one hides an outer one of the same name.
    pub bindings: &'a [(&'a str, &'a Value)],
    pub parameters: &'a Parameters,
    pub room: &'a Room,
}

impl<'a> Scope<'a> {
    pub fn binding(&self, name: &str) -> Option<&'a Value> {
        self.bindings.iter().rev().find(|(alias, _)| *alias == name).map(|(_, value)| *value)
    }

    /// The value itself; pays for the copy when it is someone else's.
    pub fn own(&self, value: Cow<'_, Value>) -> Result<Value> {
        if let Cow::Borrowed(value) = value {
            self.room.take(bytes(value))?;
        }
        Ok(value.into_owned())
    }
}

/// How many bytes a run may still build. A short text can ask for a lot: `[@p, @p, @p, …]`.
#[derive(Debug)]
pub struct Room {
    bytes_left: Cell<usize>,
}

impl Room {
    pub fn new(bytes: usize) -> Self {
        Room { bytes_left: Cell::new(bytes) }
    }

    pub fn take(&self, bytes: usize) -> Result<()> {
        match self.bytes_left.get().checked_sub(bytes) {
            Some(left) => {
                self.bytes_left.set(left);
                Ok(())
            }
            None => {
                Err(Error::new(Kind::TooLarge, "The query's result is too large. Select fewer or smaller properties."))
            }
        }
    }
}

/// About what a copy of the value takes in memory.
fn bytes(value: &Value) -> usize {
    let content = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(object) => {
            object.iter().map(|(name, value)| size_of::<String>() + name.len() + bytes(value)).sum()
        }
    };
    size_of::<Value>() + content
}
