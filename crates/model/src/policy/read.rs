//! Typed access to the members of a policy's JSON.
//!
//! Guarantees: a `null` member counts as missing (several clients send it so), and a member of the
//! wrong type gets Cosmos's error message for it. Unknown members are ignored: a definition that a
//! client read, changed and sent back also has the system properties.

use crate::path::PropertyPath;
use crate::{Error, Object, Result, Value};

/// Cosmos's error for any member of the wrong type; clients compare it.
pub(super) fn wrong_type() -> Error {
    Error::invalid("One of the specified inputs is invalid")
}

pub(super) fn member<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| **value != Value::Null)
}

/// The member, converted by `read`, if it is present.
pub(super) fn optional<'a, T>(
    object: &'a Object,
    name: &str,
    read: impl FnOnce(&'a Value) -> Result<T>,
) -> Result<Option<T>> {
    member(object, name).map(read).transpose()
}

/// The elements of an array member; empty if it is missing.
pub(super) fn list<'a>(object: &'a Object, name: &str) -> Result<&'a [Value]> {
    Ok(optional(object, name, array)?.unwrap_or_default())
}

/// Every element of an array member, converted by `read`.
pub(super) fn each<'a, T>(object: &'a Object, name: &str, read: impl FnMut(&'a Value) -> Result<T>) -> Result<Vec<T>> {
    list(object, name)?.iter().map(read).collect()
}

/// A required string member.
pub(super) fn required_text<'a>(object: &'a Object, name: &str) -> Result<&'a str> {
    optional(object, name, text)?.ok_or_else(wrong_type)
}

pub(super) fn object(value: &Value) -> Result<&Object> {
    value.as_object().ok_or_else(wrong_type)
}

pub(super) fn array(value: &Value) -> Result<&[Value]> {
    value.as_array().ok_or_else(wrong_type)
}

pub(super) fn text(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(wrong_type)
}

pub(super) fn flag(value: &Value) -> Result<bool> {
    value.as_bool().ok_or_else(wrong_type)
}

pub(super) fn integer(value: &Value) -> Result<i64> {
    value.as_i64().ok_or_else(wrong_type)
}

/// An object with the member `path`, as policies list their paths.
pub(super) fn path_entry(path: &str) -> Object {
    Object::new().with("path", path)
}

/// Rendered elements as an array.
pub(super) fn render<T>(elements: &[T], to_object: impl Fn(&T) -> Object) -> Value {
    Value::Array(elements.iter().map(|element| Value::Object(to_object(element))).collect())
}

/// Whether two paths name the same property, regardless of quoting.
pub(super) fn same_property(one: &PropertyPath, other: &PropertyPath) -> bool {
    one.segments() == other.segments()
}

/// The first path that names the same property as an earlier one.
pub(super) fn repeated<'a>(paths: impl IntoIterator<Item = &'a PropertyPath>) -> Option<&'a PropertyPath> {
    let mut seen = std::collections::HashSet::new();
    paths.into_iter().find(|path| !seen.insert(path.segments()))
}

/// An enum whose variants have a name in JSON. Names are parsed case-insensitively, since clients differ,
/// and written as Cosmos writes them.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $Type:ident { $($(#[$note:meta])* $Variant:ident = $name:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Type {
            $($(#[$note])* $Variant),+
        }

        impl $Type {
            pub const ALL: &[$Type] = &[$($Type::$Variant),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $($Type::$Variant => $name),+
                }
            }

            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|variant| variant.as_str().eq_ignore_ascii_case(name))
            }
        }
    };
}
