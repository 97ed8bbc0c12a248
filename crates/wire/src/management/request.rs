//! A management request: verb, the names on the path, the query string and the body, decoded into types.

use bytes::Bytes;
use pleiad_model::{Error, Object, Result, Value, json};

use crate::nosql::address::decode_onto;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagementVerb {
    Get,
    Put,
    Post,
    Delete,
    /// No resource has it.
    Other,
}

pub struct ManagementRequest<'a> {
    pub verb: ManagementVerb,
    pub names: Vec<String>,
    pub query: Option<&'a str>,
    pub body: Bytes,
}

impl ManagementRequest<'_> {
    /// A parameter of the query string, decoded.
    pub fn param(&self, name: &str) -> Result<Option<String>> {
        let pairs = self.query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let Some((_, value)) = pairs.into_iter().find(|(known, _)| *known == name) else { return Ok(None) };
        let mut out = String::new();
        decode_onto(value, &mut out).map(|()| Some(out))
    }

    /// `?wait=true`
    pub fn waits(&self) -> Result<bool> {
        match self.param("wait")?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Error::invalid("'wait' is true or false.")),
        }
    }

    /// The body's members; an empty body has none.
    pub fn object(&self) -> Result<Object> {
        if self.body.is_empty() {
            return Ok(Object::new());
        }
        match json::parse(&self.body)? {
            Value::Object(object) => Ok(object),
            _ => Err(Error::invalid("The body must be a JSON object.")),
        }
    }
}

/// A whole number, 0 or more, if the member is present.
pub fn number(object: &Object, name: &str) -> Result<Option<u64>> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_i64().and_then(|n| u64::try_from(n).ok()) {
            Some(n) => Ok(Some(n)),
            None => Err(Error::invalid(format!("'{name}' must be a whole number, 0 or more."))),
        },
    }
}

/// Unknown members are mistakes: an error is better than ignoring them.
pub fn reject_unknown_members(object: &Object, known: &[&str]) -> Result<()> {
    match object.iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => {
            Err(Error::invalid(format!("'{name}' is not known here; the body may have {}.", known.join(", "))))
        }
        None => Ok(()),
    }
}
