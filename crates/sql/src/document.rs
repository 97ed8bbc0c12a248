//! Row bindings: the values that expressions read, by slot.
//!
//! Items are parsed lazily: a path locates the JSON text of one property and parses only that. Names are compiled to
//! *slots*, numbered from the outermost source inwards; frames form a chain, one per slot.
//!
//! ```text
//! SELECT … FROM c JOIN t IN c.tags WHERE EXISTS(SELECT VALUE w FROM w IN t.words)
//!               slot 0    slot 1                                   slot 2
//! ```

use std::borrow::Cow;

use pleiad_model::json::{self, lazy};
use pleiad_model::{Result, Value};

use crate::expr::Datum;

/// One stored item.
pub trait Document {
    /// The JSON text of a property of the item, including system properties.
    fn property(&self, name: &PropertyName) -> Option<Cow<'_, [u8]>>;

    /// Appends the whole item as JSON text.
    fn write(&self, out: &mut Vec<u8>);
}

/// A property name and its hash, by which stored items index their properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyName {
    pub text: String,
    pub hash: u32,
}

impl PropertyName {
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        PropertyName { hash: lazy::name_hash(&text), text }
    }
}

/// The value bound to a slot.
#[derive(Clone, Copy)]
pub enum SlotValue<'a> {
    Item(&'a dyn Document),
    /// JSON text inside an item: an element of one of its arrays.
    Text(&'a [u8]),
    Value(&'a Value),
    Group(&'a GroupRow),
}

/// An aggregated group: its `GROUP BY` keys and aggregate results.
#[derive(Clone, Debug, Default)]
pub struct GroupRow {
    pub keys: Vec<Option<Value>>,
    pub aggregates: Vec<Option<Value>>,
}

/// One slot and the enclosing ones.
#[derive(Clone, Copy)]
pub struct SlotFrame<'a> {
    pub slot: usize,
    pub bound: SlotValue<'a>,
    pub outer: Bindings<'a>,
}

/// The slots that an expression can read, innermost first.
pub type Bindings<'a> = Option<&'a SlotFrame<'a>>;

/// The value of the slot; `None` if it is not bound.
pub fn lookup<'a>(rows: Bindings<'a>, slot: usize) -> Option<SlotValue<'a>> {
    let mut frame = rows?;
    while frame.slot > slot {
        frame = frame.outer?;
    }
    (frame.slot == slot).then_some(frame.bound)
}

impl<'a> SlotValue<'a> {
    pub fn value(self) -> Result<Datum<'a>> {
        match self {
            SlotValue::Value(value) => Ok(Some(Cow::Borrowed(value))),
            SlotValue::Item(item) => {
                let mut text = Vec::new();
                item.write(&mut text);
                json::parse(&text).map(|value| Some(Cow::Owned(value)))
            }
            SlotValue::Text(text) => parse(text).map(|value| Some(Cow::Owned(value))),
            SlotValue::Group(_) => Ok(None),
        }
    }

    /// The value at the end of a path of properties.
    pub fn path(self, steps: &[PropertyName]) -> Result<Datum<'a>> {
        match self {
            SlotValue::Value(value) => Ok(value_at(value, steps).map(Cow::Borrowed)),
            SlotValue::Item(_) | SlotValue::Text(_) => match self.text(steps) {
                Some(text) => parse(&text).map(|value| Some(Cow::Owned(value))),
                None => Ok(None),
            },
            SlotValue::Group(_) => Ok(None),
        }
    }

    /// Whether the value is JSON text, not yet parsed.
    pub fn is_text(self) -> bool {
        matches!(self, SlotValue::Item(_) | SlotValue::Text(_))
    }

    /// The JSON text at the end of a path. `None` if nothing is there, for a value that is already parsed, and for an
    /// empty path of an item.
    pub fn text(self, steps: &[PropertyName]) -> Option<Cow<'a, [u8]>> {
        match (self, steps) {
            (SlotValue::Item(item), [first]) => item.property(first),
            (SlotValue::Item(item), [first, rest @ ..]) => descend(item.property(first)?, rest),
            (SlotValue::Text(text), steps) => descend(Cow::Borrowed(text), steps),
            _ => None,
        }
    }
}

fn descend<'a>(text: Cow<'a, [u8]>, steps: &[PropertyName]) -> Option<Cow<'a, [u8]>> {
    match text {
        Cow::Borrowed(text) => {
            steps.iter().try_fold(text, |text, step| lazy::property(text, &step.text)).map(Cow::Borrowed)
        }
        Cow::Owned(text) => {
            let found = steps.iter().try_fold(text.as_slice(), |text, step| lazy::property(text, &step.text))?;
            Some(Cow::Owned(found.to_vec()))
        }
    }
}

fn value_at<'v>(value: &'v Value, steps: &[PropertyName]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| value.get(&step.text))
}

/// Most values read are scalars, which need no full parser.
fn parse(text: &[u8]) -> Result<Value> {
    match lazy::scalar(text) {
        Some(scalar) => Ok(scalar),
        None => json::parse(text),
    }
}
