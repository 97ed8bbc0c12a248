//! JSON pointers (RFC 6901): the location of a value in an item.
//!
//! ```text
//! /a/b~1c/0      a → "b/c" → 0           ~1 is a slash, ~0 a tilde
//! /tags/-        after the last element of tags
//! ```
//!
//! A number is an index into an array or the name of an object's property: the item decides.

use std::fmt;

use crate::error::{PatchFault, PatchVerb};
use crate::{Object, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Not empty.
    names: Vec<String>,
}

/// The parent of a location, and the location's name or index in it.
pub enum PointerParent<'a> {
    Object(&'a mut Object, &'a str),
    /// The index may be past the end.
    Array(&'a mut Vec<Value>, usize),
}

impl Pointer {
    pub fn parse(text: &str) -> Result<Pointer, PatchFault> {
        let Some(rest) = text.strip_prefix('/').filter(|rest| !rest.is_empty()) else {
            return Err(PatchFault::PathNotAbsolute { path: text.to_owned() });
        };
        let names = rest.split('/').map(unescape).collect::<Option<_>>();
        let names = names.ok_or_else(|| PatchFault::PathEscape { path: text.to_owned() })?;
        Ok(Pointer { names })
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn find<'a>(&self, item: &'a mut Value) -> Option<&'a mut Value> {
        self.names.iter().try_fold(item, |at, name| child(at, name))
    }

    /// Removes and returns the value.
    pub fn remove(&self, item: &mut Value) -> Option<Value> {
        match self.parent(item)? {
            PointerParent::Object(object, name) => object.remove(name),
            PointerParent::Array(items, index) if index < items.len() => Some(items.remove(index)),
            PointerParent::Array(..) => None,
        }
    }

    /// `None` if the parent does not exist or is a scalar.
    pub fn parent<'a>(&'a self, item: &'a mut Value) -> Option<PointerParent<'a>> {
        let (last, ancestors) = self.names.split_last()?;
        match ancestors.iter().try_fold(item, |at, name| child(at, name))? {
            Value::Object(object) => Some(PointerParent::Object(object, last)),
            Value::Array(items) => {
                let at = if last == "-" { items.len() } else { index(last)? };
                Some(PointerParent::Array(items, at))
            }
            _ => None,
        }
    }

    /// Creates the parent object, if it is the only missing ancestor.
    pub fn create_parent(&self, item: &mut Value) {
        let [ancestors @ .., parent, _] = self.names.as_slice() else { return };
        if let Some(Value::Object(object)) = ancestors.iter().try_fold(item, |at, name| child(at, name))
            && object.get(parent).is_none()
        {
            object.set(parent.as_str(), Object::new());
        }
    }

    pub fn parent_not_found(&self, verb: PatchVerb) -> PatchFault {
        let above = self.names.len() - 1;
        let parent = Pointer { names: self.names[..above].to_vec() }.to_string();
        PatchFault::ParentNotFound { verb, parent }
    }
}

fn child<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    match value {
        Value::Object(object) => object.get_mut(name),
        Value::Array(items) => items.get_mut(index(name)?),
        _ => None,
    }
}

/// Digits without leading zeros.
fn index(name: &str) -> Option<usize> {
    let canonical = name == "0" || name.starts_with(|first: char| matches!(first, '1'..='9'));
    if canonical && name.bytes().all(|byte| byte.is_ascii_digit()) { name.parse().ok() } else { None }
}

fn unescape(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('~') {
        out.push_str(before);
        out.push(match after.as_bytes().first()? {
            b'0' => '~',
            b'1' => '/',
            _ => return None,
        });
        rest = &after[1..];
    }
    out.push_str(rest);
    Some(out)
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.names.iter().try_for_each(|name| write!(f, "/{}", name.replace('~', "~0").replace('/', "~1")))
    }
}
