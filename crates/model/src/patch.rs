//! Patch: a partial update of an item by operations: add, set, replace, remove, incr, move.
//!
//! Guarantees: `parse` rejects operations that no item could accept, `apply` those that this item cannot; operations
//! are applied in order, and after an error the caller discards the item. The engine evaluates the `condition`, which
//! is SQL; the writer checks that the result is a valid item of its container.
//!
//! ```text
//! {"condition": "FROM c WHERE c.stock > 0",
//!  "operations": [{"op": "incr", "path": "/stock", "value": -1}, {"op": "add", "path": "/tags/-", "value": "sold"}]}
//! ```

mod pointer; // JSON pointers (RFC 6901)

use crate::item::SYSTEM_PROPERTIES;
use crate::json::NESTING_MAX;
use crate::path::PropertyPath;
use crate::{Error, Number, Result, Value};
use pointer::{Pointer, PointerParent};

pub const PATCH_OPERATIONS_MAX: usize = 10;

const LEARN_MORE: &str = "Learn more: https://aka.ms/cosmosPatchDocs";

#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// SQL that begins with FROM: the item is changed only if the condition matches it.
    pub condition: Option<String>,
    operations: Vec<PatchOperation>,
}

#[derive(Clone, Debug, PartialEq)]
enum PatchOperation {
    Add(Pointer, Value),
    Set(Pointer, Value),
    Replace(Pointer, Value),
    Remove(Pointer),
    Increment(Pointer, Number),
    Move { from: Pointer, to: Pointer },
}

impl Patch {
    /// The object drawn above, or only the array of operations, as one SDK sends it.
    pub fn parse(body: &Value) -> Result<Patch> {
        let operations = match body {
            Value::Array(operations) => operations,
            _ => body
                .get("operations")
                .and_then(Value::as_array)
                .ok_or_else(|| Error::invalid("The patch request is invalid: it needs an array 'operations'."))?,
        };
        let condition = match body.get("condition") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => return Err(Error::invalid("The patch request is invalid: its condition is not a string.")),
        };
        check_count(operations.len())?;
        let operations =
            (1..).zip(operations).map(|(n, operation)| with_operation_number(n, PatchOperation::parse(operation)));
        Ok(Patch { condition, operations: operations.collect::<Result<_>>()? })
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Always false: `parse` rejects a patch without operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Rejects operations on a partition key property, which is immutable.
    pub fn check_partition_key(&self, key: &PropertyPath) -> Result<()> {
        let touches = |pointer: &&Pointer| pointer.names() == key.segments();
        match self.operations.iter().flat_map(PatchOperation::pointers).find(touches) {
            None => Ok(()),
            Some(pointer) => Err(Error::invalid(format!(
                "The partition key of an item cannot be patched: '{pointer}'. {LEARN_MORE}"
            ))),
        }
    }

    /// Changes the item. After an error the item is partly changed and must be discarded.
    pub fn apply(&self, item: &mut Value) -> Result<()> {
        (1..).zip(&self.operations).try_for_each(|(n, operation)| with_operation_number(n, operation.apply(item)))
    }
}

fn check_count(operations: usize) -> Result<()> {
    match operations {
        0 => Err(Error::invalid("The patch request has no operations.")),
        1..=PATCH_OPERATIONS_MAX => Ok(()),
        _ => Err(Error::invalid(format!(
            "The number of patch operations can't exceed '{PATCH_OPERATIONS_MAX}'. {LEARN_MORE}"
        ))),
    }
}

/// Adds the operation's number to the message, in the service's words.
fn with_operation_number<T>(n: usize, result: Result<T>) -> Result<T> {
    result.map_err(|error| Error { message: format!("For Operation({n}): {}", error.message), ..error })
}

impl PatchOperation {
    fn parse(operation: &Value) -> Result<PatchOperation> {
        let op = operation.get("op").and_then(Value::as_str).unwrap_or_default();
        let path = pointer_at(operation, "path")?;
        let value = || operation.get("value").cloned().ok_or_else(|| missing(op, "value"));
        Ok(match op {
            "add" => PatchOperation::Add(path, value()?),
            "set" => PatchOperation::Set(path, value()?),
            "replace" => PatchOperation::Replace(path, value()?),
            "remove" => PatchOperation::Remove(path),
            "incr" => PatchOperation::Increment(path, value()?.as_number().ok_or_else(not_a_number)?),
            "move" => move_operation(pointer_at(operation, "from")?, path)?,
            _ => return Err(Error::invalid(format!("'{op}' is not a patch operation. {LEARN_MORE}"))),
        })
    }

    fn pointers(&self) -> impl Iterator<Item = &Pointer> {
        let (first, second) = match self {
            PatchOperation::Add(at, _) | PatchOperation::Set(at, _) | PatchOperation::Replace(at, _) => (at, None),
            PatchOperation::Remove(at) | PatchOperation::Increment(at, _) => (at, None),
            PatchOperation::Move { from, to } => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }

    fn apply(&self, item: &mut Value) -> Result<()> {
        match self {
            PatchOperation::Add(at, value) => {
                add(at, at.parent(item).ok_or_else(|| at.parent_not_found("Add"))?, value.clone())
            }
            PatchOperation::Set(at, value) => {
                set(at, at.parent(item).ok_or_else(|| at.parent_not_found("Set"))?, value.clone())
            }
            PatchOperation::Replace(at, value) => {
                check_depth(at, value)?;
                *at.find(item).ok_or_else(|| path_not_found("Replace", at))? = value.clone();
                Ok(())
            }
            PatchOperation::Remove(at) => at.remove(item).map(drop).ok_or_else(|| path_not_found("Remove", at)),
            PatchOperation::Increment(at, by) => increment(at, item, *by),
            PatchOperation::Move { from, to } => {
                let value = from.remove(item).ok_or_else(|| path_not_found("Move", from))?;
                to.create_parent(item);
                add(to, to.parent(item).ok_or_else(|| to.parent_not_found("Move"))?, value)
            }
        }
    }
}

fn pointer_at(operation: &Value, name: &str) -> Result<Pointer> {
    let text = operation.get(name).and_then(Value::as_str).ok_or_else(|| missing("patch", name))?;
    let pointer = Pointer::parse(text)?;
    match pointer.names() {
        [first, ..] if first == "id" || SYSTEM_PROPERTIES.contains(&first.as_str()) => {
            Err(Error::invalid(format!("The system property '{text}' cannot be patched. {LEARN_MORE}")))
        }
        _ => Ok(pointer),
    }
}

fn move_operation(from: Pointer, to: Pointer) -> Result<PatchOperation> {
    if to.names().starts_with(from.names()) && to.names() != from.names() {
        return Err(Error::invalid(format!(
            "'{to}' lies inside of '{from}', which it would be moved from. {LEARN_MORE}"
        )));
    }
    Ok(PatchOperation::Move { from, to })
}

/// Inserts into an array; in an object it replaces an existing value.
fn add(at: &Pointer, parent: PointerParent<'_>, value: Value) -> Result<()> {
    check_depth(at, &value)?;
    match parent {
        PointerParent::Object(object, name) => object.set(name, value),
        PointerParent::Array(items, index) if index <= items.len() => items.insert(index, value),
        PointerParent::Array(..) => return Err(index_out_of_range(at)),
    }
    Ok(())
}

/// As `add`, but replaces an existing array element.
fn set(at: &Pointer, parent: PointerParent<'_>, value: Value) -> Result<()> {
    match parent {
        PointerParent::Array(items, index) if index < items.len() => {
            check_depth(at, &value)?;
            items[index] = value;
            Ok(())
        }
        parent => add(at, parent, value),
    }
}

fn increment(at: &Pointer, item: &mut Value, by: Number) -> Result<()> {
    let Some(value) = at.find(item) else {
        let parent = at.parent(item).ok_or_else(|| at.parent_not_found("Increment"))?;
        return match parent {
            PointerParent::Object(object, name) => {
                object.set(name, by);
                Ok(())
            }
            PointerParent::Array(..) => Err(index_out_of_range(at)),
        };
    };
    let number = value.as_number().ok_or_else(not_a_number)?;
    *value = sum(number, by)?.into();
    Ok(())
}

/// Integers stay integers while they fit 64 bits; beyond that they become doubles.
fn sum(a: Number, b: Number) -> Result<Number> {
    if let (Some(a), Some(b)) = (integer(a), integer(b)) {
        let sum = a + b; // both are within 65 bits
        let fits = i64::try_from(sum).map(Number::from).or_else(|_| u64::try_from(sum).map(Number::from));
        return Ok(fits.unwrap_or(Number::Float(sum as f64)));
    }
    let sum = a.as_f64() + b.as_f64();
    match sum.is_finite() {
        true => Ok(Number::Float(sum)),
        false => Err(Error::invalid("Increment leads to a number that is too large.")),
    }
}

fn integer(number: Number) -> Option<i128> {
    match number {
        Number::Int(n) => Some(n.into()),
        Number::UInt(n) => Some(n.into()),
        Number::Float(_) => None,
    }
}

/// Rejects a value that would nest the item deeper than the parser allows.
fn check_depth(at: &Pointer, value: &Value) -> Result<()> {
    if at.names().len() + depth(value) <= NESTING_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!("An item has at most {NESTING_MAX} arrays and objects inside each other.")))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(object) => 1 + object.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
        _ => 0,
    }
}

fn missing(op: &str, name: &str) -> Error {
    Error::invalid(format!("The {op} operation needs '{name}'. {LEARN_MORE}"))
}

fn not_a_number() -> Error {
    Error::invalid(format!("Increment Operation can only be performed on numbers. {LEARN_MORE}"))
}

fn path_not_found(op: &str, at: &Pointer) -> Error {
    Error::invalid(format!(
        "{op} Operation can only be performed on an existing node, no path found: '{at}'. {LEARN_MORE}"
    ))
}

fn index_out_of_range(at: &Pointer) -> Error {
    Error::invalid(format!("The array index is beyond the end of the array: '{at}'. {LEARN_MORE}"))
}

#[cfg(test)]
mod tests;
