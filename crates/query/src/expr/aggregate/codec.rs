//! The state of an aggregate as bytes.
//!
//! Promise: `decode(encode(a))` is `a` again, NaN and all; any other bytes give an error, in time and memory
//! linear in their number.
//!
//! ```text
//! kind u8 │ state                                              numbers are little-endian
//!         │ count u64                                          Count, CountIf
//!         │ flags u8 │ sum 8 bytes │ count u64                 Sum, Average
//!         │ flags u8 │ value, when there is one                Min, Max
//!         │ count u32 │ values                                 MakeList, MakeSet
//!
//! value    0 null │ 1 false │ 2 true │ 3 i64 │ 4 u64 │ 5 f64 bits
//!          6 length u32 │ UTF-8
//!          7 count u32 │ values
//!          8 count u32 │ (length u32 │ name │ value)…
//!
//! SUM over 7    01 │ 00 │ 0700000000000000 │ 0100000000000000
//! ```

use std::collections::BTreeSet;

use pleiad_model::{Error, Number, Result, Value, json};

use super::{AggregateKind, Aggregator, State, Sum};
use crate::expr::compare::Ordered;
use crate::expr::context::bytes;

const SPOILED: u8 = 1;
const SKIPPED: u8 = 2;
/// The sum is a double, not an integer.
const REAL: u8 = 4;
const HAS_VALUE: u8 = 8;

/// Deeper than any value a query can build: items nest 128 levels, constructors 256.
const DEPTH_MAX: usize = 1024;

pub fn encode(aggregator: &Aggregator, out: &mut Vec<u8>) {
    out.push(code(aggregator.kind));
    match &aggregator.state {
        State::Count(count) => out.extend_from_slice(&count.to_le_bytes()),
        State::Sum { sum, count, skipped, spoiled } => {
            let (real, bits) = match sum {
                Sum::Whole(sum) => (false, sum.to_le_bytes()),
                Sum::Real(sum) => (true, sum.to_bits().to_le_bytes()),
            };
            out.push(flag(*spoiled, SPOILED) | flag(*skipped, SKIPPED) | flag(real, REAL));
            out.extend_from_slice(&bits);
            out.extend_from_slice(&count.to_le_bytes());
        }
        State::Extreme { best, spoiled } => {
            out.push(flag(*spoiled, SPOILED) | flag(best.is_some(), HAS_VALUE));
            best.iter().for_each(|best| write(best, out));
        }
        State::List { values, .. } => write_all(values.len(), values.iter(), out),
        State::Set { values, .. } => write_all(values.len(), values.iter().map(|value| &value.0), out),
    }
}

pub fn decode(bytes: &[u8]) -> Result<Aggregator> {
    let mut reader = Reader { rest: bytes };
    let decoded = reader.aggregator().filter(|_| reader.rest.is_empty());
    decoded.ok_or_else(|| Error::invalid("The continuation token is not one that this query gave."))
}

fn code(kind: AggregateKind) -> u8 {
    match kind {
        AggregateKind::Count => 0,
        AggregateKind::Sum => 1,
        AggregateKind::Average => 2,
        AggregateKind::Min => 3,
        AggregateKind::Max => 4,
        AggregateKind::CountIf => 5,
        AggregateKind::MakeList => 6,
        AggregateKind::MakeSet => 7,
    }
}

fn flag(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}

// Writing.

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Bool(truth) => out.push(1 + u8::from(*truth)),
        Value::Number(Number::Int(n)) => tagged(3, &n.to_le_bytes(), out),
        Value::Number(Number::UInt(n)) => tagged(4, &n.to_le_bytes(), out),
        Value::Number(Number::Float(n)) => tagged(5, &n.to_bits().to_le_bytes(), out),
        Value::String(text) => {
            out.push(6);
            write_text(text, out);
        }
        Value::Array(items) => {
            out.push(7);
            write_all(items.len(), items.iter(), out);
        }
        Value::Object(object) => {
            out.push(8);
            write_length(object.len(), out);
            object.iter().for_each(|(name, value)| {
                write_text(name, out);
                write(value, out);
            });
        }
    }
}

fn tagged(tag: u8, bytes: &[u8; 8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

/// What a run may build is far below 4 GiB; should it ever not be, the count does not fit and `decode` refuses.
fn write_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    write_length(text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

fn write_all<'v>(count: usize, values: impl Iterator<Item = &'v Value>, out: &mut Vec<u8>) {
    write_length(count, out);
    values.for_each(|value| write(value, out));
}

// Reading. Nothing is reserved for a count: a few bytes may claim any.

struct Reader<'b> {
    rest: &'b [u8],
}

impl Reader<'_> {
    fn aggregator(&mut self) -> Option<Aggregator> {
        let wanted = self.byte()?;
        let kind = AggregateKind::ALL.into_iter().find(|kind| code(*kind) == wanted)?;
        let state = match kind {
            AggregateKind::Count | AggregateKind::CountIf => State::Count(self.word()?),
            AggregateKind::Sum | AggregateKind::Average => self.sum()?,
            AggregateKind::Min | AggregateKind::Max => self.extreme()?,
            AggregateKind::MakeList => self.list()?,
            AggregateKind::MakeSet => self.set()?,
        };
        Some(Aggregator { kind, state })
    }

    fn sum(&mut self) -> Option<State> {
        let flags = self.flags(SPOILED | SKIPPED | REAL)?;
        let bits = self.word()?;
        let sum = if flags & REAL == 0 { Sum::Whole(bits as i64) } else { Sum::Real(f64::from_bits(bits)) };
        Some(State::Sum { sum, count: self.word()?, skipped: flags & SKIPPED != 0, spoiled: flags & SPOILED != 0 })
    }

    fn extreme(&mut self) -> Option<State> {
        let flags = self.flags(SPOILED | HAS_VALUE)?;
        let best = if flags & HAS_VALUE == 0 { None } else { Some(self.value(0)?) };
        Some(State::Extreme { best, spoiled: flags & SPOILED != 0 })
    }

    fn list(&mut self) -> Option<State> {
        let values = self.values(0)?;
        Some(State::List { held_bytes: values.iter().map(bytes).sum(), values })
    }

    fn set(&mut self) -> Option<State> {
        let values = self.values(0)?;
        let (count, held_bytes) = (values.len(), values.iter().map(bytes).sum());
        let values: BTreeSet<_> = values.into_iter().map(Ordered).collect();
        (values.len() == count).then_some(State::Set { values, held_bytes })
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        Some(match self.byte()? {
            0 => Value::Null,
            1 => Value::Bool(false),
            2 => Value::Bool(true),
            3 => Value::Number(Number::Int(self.word()? as i64)),
            4 => Value::Number(Number::UInt(self.word()?)),
            5 => Value::Number(Number::Float(f64::from_bits(self.word()?))),
            6 => Value::String(self.text()?),
            7 => Value::Array(self.values(depth + 1)?),
            8 => Value::Object(json::with_unique_names(self.properties(depth + 1)?)),
            _ => return None,
        })
    }

    fn values(&mut self, depth: usize) -> Option<Vec<Value>> {
        (0..self.length()?).map(|_| self.value(depth)).collect()
    }

    fn properties(&mut self, depth: usize) -> Option<Vec<(String, Value)>> {
        (0..self.length()?).map(|_| Some((self.text()?, self.value(depth)?))).collect()
    }

    fn flags(&mut self, known: u8) -> Option<u8> {
        self.byte().filter(|flags| flags & !known == 0)
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.length()?).ok()?;
        Some(std::str::from_utf8(self.take(length)?).ok()?.to_owned())
    }

    fn length(&mut self) -> Option<u32> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    fn word(&mut self) -> Option<u64> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }
}
