//! Array and object functions.
//!
//! Elements compare as with `=`. Functions that compare many elements with many others sort first, so that none is
//! quadratic.

use std::borrow::Cow;
use std::cmp::Ordering;

use pleiad_model::{Object, Result, Value};

use super::Function;
use super::arguments::{
    array, at, boolean_value, copy, flag, float_value, integer, items, or_default, size, string, take,
};
use super::sets::Members;
use crate::expr::aggregate::Sum;
use crate::expr::compare::{by_name, same, total_order};
use crate::expr::context::memory_bytes;
use crate::expr::{Context, Datum};

pub const FUNCTIONS: &[Function] = &[
    Function::exactly("ARRAY_AVG", 1, |args, _| float_value(average(args))),
    Function::at_least("ARRAY_CONCAT", 2, array_concat),
    Function::between("ARRAY_CONTAINS", 2, 3, |args, _| boolean_value(array_contains(args))),
    Function::at_least("ARRAY_CONTAINS_ALL", 2, |args, _| boolean_value(contains_each(args, false))),
    Function::at_least("ARRAY_CONTAINS_ANY", 2, |args, _| boolean_value(contains_each(args, true))),
    Function::exactly("ARRAY_LENGTH", 1, |args, _| size(array(args, 0).map(<[_]>::len))),
    Function::exactly("ARRAY_MAX", 1, |args, cx| extreme(args, cx, Ordering::Greater)),
    Function::exactly("ARRAY_MEDIAN", 1, |args, _| float_value(median(args))),
    Function::exactly("ARRAY_MIN", 1, |args, cx| extreme(args, cx, Ordering::Less)),
    Function::between("ARRAY_SLICE", 2, 3, array_slice),
    Function::exactly("ARRAY_SUM", 1, |args, _| Ok(sum(args).map(|sum| Cow::Owned(Value::Number(sum.number()))))),
    Function::at_least("CHOOSE", 2, choose),
    Function::between("OBJECTTOARRAY", 1, 3, object_to_array),
];

/// Up to this many arguments, the array is scanned for each; for more it is sorted.
const SCANNED_MAX: usize = 8;

// Containment.

/// An undefined third argument makes the answer false.
fn array_contains(args: &[Datum<'_>]) -> Option<bool> {
    let (elements, wanted) = (array(args, 0)?, at(args, 1).as_deref()?);
    if matches!(args.get(2), Some(None)) {
        return Some(false);
    }
    let matches = if flag(args, 2)? { partly_same } else { same };
    Some(elements.iter().any(|element| matches(element, wanted)))
}

/// Whether an object has at least the properties of the wanted one, recursively for nested objects.
fn partly_same(element: &Value, wanted: &Value) -> bool {
    match (element, wanted) {
        (Value::Object(element), Value::Object(wanted)) => wanted.len() <= element.len() && covers(element, wanted),
        _ => same(element, wanted),
    }
}

fn covers(element: &Object, wanted: &Object) -> bool {
    let mut own = by_name(element).into_iter();
    by_name(wanted).into_iter().all(|(name, wanted)| {
        own.by_ref().find(|(n, _)| *n >= name).is_some_and(|(n, value)| n == name && partly_same(value, wanted))
    })
}

/// The three-valued `OR` (`any`) or `AND` of whether the array contains each argument after the first.
fn contains_each(args: &[Datum<'_>], any: bool) -> Option<bool> {
    let (elements, wanted) = (array(args, 0)?, args.get(1..)?);
    let members = (wanted.len() > SCANNED_MAX).then(|| Members::new(elements));
    let has = |wanted: &Value| match &members {
        Some(members) => members.has(wanted),
        None => elements.iter().any(|element| same(element, wanted)),
    };
    let mut answer = Some(!any);
    for wanted in wanted {
        match wanted.as_deref().map(has) {
            Some(found) if found == any => return Some(any),
            Some(_) => {}
            None => answer = None,
        }
    }
    answer
}

// Sums and extremes.

/// Undefined unless all are numbers.
fn sum(args: &[Datum<'_>]) -> Option<Sum> {
    array(args, 0)?.iter().try_fold(Sum::default(), |sum, value| Some(sum.plus(value.as_number()?)))
}

fn average(args: &[Datum<'_>]) -> Option<f64> {
    let count = array(args, 0)?.len();
    (count > 0).then_some(sum(args)?.number().as_f64() / count as f64)
}

fn median(args: &[Datum<'_>]) -> Option<f64> {
    let numbers = array(args, 0)?.iter().map(|value| value.as_number().map(|n| n.as_f64()));
    let mut numbers = numbers.collect::<Option<Vec<f64>>>()?;
    numbers.sort_unstable_by(f64::total_cmp);
    let upper = *numbers.get(numbers.len() / 2)?;
    if numbers.len() % 2 == 1 {
        return Some(upper);
    }
    Some((*numbers.get(numbers.len() / 2 - 1)? + upper) / 2.0)
}

/// The minimum or maximum; undefined if an array or object is among the elements.
fn extreme<'a>(args: &mut [Datum<'a>], cx: &Context<'_>, wanted: Ordering) -> Result<Datum<'a>> {
    let Some(elements) = array(args, 0) else { return Ok(None) };
    if elements.iter().any(|value| matches!(value, Value::Array(_) | Value::Object(_))) {
        return Ok(None);
    }
    let best = elements.iter().reduce(|best, value| if total_order(value, best) == wanted { value } else { best });
    Ok(best.map(|best| copy(best, cx)).transpose()?.map(Cow::Owned))
}

// Concatenation, slices, choices, conversion.

fn array_concat<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    if (0..args.len()).any(|position| array(args, position).is_none()) {
        return Ok(None);
    }
    let mut whole = Vec::new();
    for part in args.iter_mut().filter_map(Option::take) {
        match cx.own(part)? {
            Value::Array(part) if whole.is_empty() => whole = part,
            Value::Array(part) => whole.extend(part),
            _ => return Ok(None),
        }
    }
    items(whole)
}

/// A negative start counts from the end.
fn array_slice<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let part = || {
        let (elements, start) = (array(args, 0)?, integer(args, 1)?);
        let length = or_default(args, 2, i64::MAX, || integer(args, 2))?;
        let back = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
        let start = if start < 0 { elements.len().saturating_sub(back) } else { back.min(elements.len()) };
        let length = usize::try_from(length.max(0)).unwrap_or(usize::MAX);
        elements.get(start..start.saturating_add(length).min(elements.len()))
    };
    match part() {
        Some(part) => items(part.iter().map(|value| copy(value, cx)).collect::<Result<_>>()?),
        None => Ok(None),
    }
}

/// One-based: the index is argument 0, so its value is also the position of the chosen argument.
fn choose<'a>(args: &mut [Datum<'a>], _: &Context<'_>) -> Result<Datum<'a>> {
    let chosen = integer(args, 0).filter(|index| *index > 0).and_then(|index| usize::try_from(index).ok());
    Ok(chosen.and_then(|position| take(args, position)))
}

fn object_to_array<'a>(args: &mut [Datum<'a>], cx: &Context<'_>) -> Result<Datum<'a>> {
    let object = at(args, 0).as_ref().and_then(|value| value.as_object());
    let names = or_default(args, 1, "k", || string(args, 1)).zip(or_default(args, 2, "v", || string(args, 2)));
    let (Some(object), Some((key, value))) = (object, names) else { return Ok(None) };
    items(object.iter().map(|property| entry(key, value, property, cx)).collect::<Result<_>>()?)
}

fn entry(key: &str, value: &str, property: (&str, &Value), cx: &Context<'_>) -> Result<Value> {
    let names = key.len() + value.len() + property.0.len();
    cx.memory.reserve(2 * size_of::<(String, Value)>() + names + memory_bytes(property.1))?;
    Ok(Object::new().with(key, property.0).with(value, property.1.clone()).into())
}
