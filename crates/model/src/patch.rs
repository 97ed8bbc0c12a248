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

use crate::error::{PatchError, PatchFault, PatchVerb};
use crate::item::SYSTEM_PROPERTIES;
use crate::json::NESTING_MAX;
use crate::path::PropertyPath;
use crate::{Error, Fact, Number, Result, Value};
use pointer::{Pointer, PointerParent};

pub const PATCH_OPERATIONS_MAX: usize = 10;

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
                .ok_or_else(|| rejected(None, PatchFault::NoOperationsArray))?,
        };
        let condition = match body.get("condition") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => return Err(rejected(None, PatchFault::ConditionNotString)),
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
            Some(pointer) => Err(rejected(None, PatchFault::PartitionKey { path: pointer.to_string() })),
        }
    }

    /// Changes the item. After an error the item is partly changed and must be discarded.
    pub fn apply(&self, item: &mut Value) -> Result<()> {
        (1..).zip(&self.operations).try_for_each(|(n, operation)| with_operation_number(n, operation.apply(item)))
    }
}

fn check_count(operations: usize) -> Result<()> {
    match operations {
        0 => Err(rejected(None, PatchFault::NoOperations)),
        1..=PATCH_OPERATIONS_MAX => Ok(()),
        _ => Err(rejected(None, PatchFault::TooManyOperations { operations_max: PATCH_OPERATIONS_MAX })),
    }
}

fn with_operation_number<T>(n: usize, result: Result<T, PatchFault>) -> Result<T> {
    result.map_err(|fault| rejected(Some(n), fault))
}

fn rejected(operation: Option<usize>, fault: PatchFault) -> Error {
    Fact::Patch(Box::new(PatchError { operation, fault })).into()
}

impl PatchOperation {
    fn parse(operation: &Value) -> Result<PatchOperation, PatchFault> {
        let op = operation.get("op").and_then(Value::as_str).unwrap_or_default();
        let path = pointer_at(operation, "path")?;
        let value = || operation.get("value").cloned().ok_or_else(|| missing(op, "value"));
        Ok(match op {
            "add" => PatchOperation::Add(path, value()?),
            "set" => PatchOperation::Set(path, value()?),
            "replace" => PatchOperation::Replace(path, value()?),
            "remove" => PatchOperation::Remove(path),
            "incr" => PatchOperation::Increment(path, value()?.as_number().ok_or(PatchFault::NotNumeric)?),
            "move" => move_operation(pointer_at(operation, "from")?, path)?,
            _ => return Err(PatchFault::UnknownOperation { name: op.to_owned() }),
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

    fn apply(&self, item: &mut Value) -> Result<(), PatchFault> {
        match self {
            PatchOperation::Add(at, value) => {
                add(at, at.parent(item).ok_or_else(|| at.parent_not_found(PatchVerb::Add))?, value.clone())
            }
            PatchOperation::Set(at, value) => {
                set(at, at.parent(item).ok_or_else(|| at.parent_not_found(PatchVerb::Set))?, value.clone())
            }
            PatchOperation::Replace(at, value) => {
                check_depth(at, value)?;
                *at.find(item).ok_or_else(|| path_not_found(PatchVerb::Replace, at))? = value.clone();
                Ok(())
            }
            PatchOperation::Remove(at) => {
                at.remove(item).map(drop).ok_or_else(|| path_not_found(PatchVerb::Remove, at))
            }
            PatchOperation::Increment(at, by) => increment(at, item, *by),
            PatchOperation::Move { from, to } => {
                let value = from.remove(item).ok_or_else(|| path_not_found(PatchVerb::Move, from))?;
                to.create_parent(item);
                add(to, to.parent(item).ok_or_else(|| to.parent_not_found(PatchVerb::Move))?, value)
            }
        }
    }
}

fn pointer_at(operation: &Value, name: &'static str) -> Result<Pointer, PatchFault> {
    let text = operation.get(name).and_then(Value::as_str).ok_or_else(|| missing("patch", name))?;
    let pointer = Pointer::parse(text)?;
    match pointer.names() {
        [first, ..] if first == "id" || SYSTEM_PROPERTIES.contains(&first.as_str()) => {
            Err(PatchFault::SystemProperty { path: text.to_owned() })
        }
        _ => Ok(pointer),
    }
}

fn move_operation(from: Pointer, to: Pointer) -> Result<PatchOperation, PatchFault> {
    if to.names().starts_with(from.names()) && to.names() != from.names() {
        return Err(PatchFault::MoveIntoItself { from: from.to_string(), to: to.to_string() });
    }
    Ok(PatchOperation::Move { from, to })
}

/// Inserts into an array; in an object it replaces an existing value.
fn add(at: &Pointer, parent: PointerParent<'_>, value: Value) -> Result<(), PatchFault> {
    check_depth(at, &value)?;
    match parent {
        PointerParent::Object(object, name) => object.set(name, value),
        PointerParent::Array(items, index) if index <= items.len() => items.insert(index, value),
        PointerParent::Array(..) => return Err(index_out_of_range(at)),
    }
    Ok(())
}

/// As `add`, but replaces an existing array element.
fn set(at: &Pointer, parent: PointerParent<'_>, value: Value) -> Result<(), PatchFault> {
    match parent {
        PointerParent::Array(items, index) if index < items.len() => {
            check_depth(at, &value)?;
            items[index] = value;
            Ok(())
        }
        parent => add(at, parent, value),
    }
}

fn increment(at: &Pointer, item: &mut Value, by: Number) -> Result<(), PatchFault> {
    let Some(value) = at.find(item) else {
        let parent = at.parent(item).ok_or_else(|| at.parent_not_found(PatchVerb::Increment))?;
        return match parent {
            PointerParent::Object(object, name) => {
                object.set(name, by);
                Ok(())
            }
            PointerParent::Array(..) => Err(index_out_of_range(at)),
        };
    };
    let number = value.as_number().ok_or(PatchFault::NotNumeric)?;
    *value = sum(number, by)?.into();
    Ok(())
}

/// Integers stay integers while they fit 64 bits; beyond that they become doubles.
fn sum(a: Number, b: Number) -> Result<Number, PatchFault> {
    if let (Some(a), Some(b)) = (integer(a), integer(b)) {
        let sum = a + b; // both are within 65 bits
        let fits = i64::try_from(sum).map(Number::from).or_else(|_| u64::try_from(sum).map(Number::from));
        return Ok(fits.unwrap_or(Number::Float(sum as f64)));
    }
    let sum = a.as_f64() + b.as_f64();
    match sum.is_finite() {
        true => Ok(Number::Float(sum)),
        false => Err(PatchFault::NotFinite),
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
fn check_depth(at: &Pointer, value: &Value) -> Result<(), PatchFault> {
    if at.names().len() + depth(value) <= NESTING_MAX {
        return Ok(());
    }
    Err(PatchFault::TooDeep { depth_max: NESTING_MAX })
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(object) => 1 + object.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
        _ => 0,
    }
}

fn missing(operation: &str, member: &'static str) -> PatchFault {
    PatchFault::MemberMissing { operation: operation.to_owned(), member }
}

fn path_not_found(verb: PatchVerb, at: &Pointer) -> PatchFault {
    PatchFault::PathNotFound { verb, path: at.to_string() }
}

fn index_out_of_range(at: &Pointer) -> PatchFault {
    PatchFault::IndexOutOfRange { path: at.to_string() }
}

#[cfg(test)]
mod tests;
