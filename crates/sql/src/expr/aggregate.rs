//! Aggregate functions: many values in, one out. Partial aggregates of partitions and pages can be merged.
//!
//! Invariant: the result depends only on the values, not on how they are distributed over partitions, except that sums
//! of fractions round, and `MAKELIST` lists its values, in the order of the rows. Undefined values are skipped. The sum
//! or average of anything but numbers is undefined, and so is the minimum or maximum of values with an array or object
//! among them.
//!
//! ```text
//! partition 1   add add add ─┐
//! partition 2   add add ─────┴ merge ─ finish
//! ```

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use pleiad_model::{Error, Kind, Number, Result, Value};

use super::Context;
use super::compare::{Ordered, total_order};
use super::context::memory_bytes;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateKind {
    Count,
    Sum,
    Average,
    Min,
    Max,
    /// The number of rows for which a condition is true.
    CountIf,
    /// All values, in the order of the rows.
    MakeList,
    /// All different values, sorted.
    MakeSet,
}

impl AggregateKind {
    pub const ALL: [AggregateKind; 8] = [
        AggregateKind::Count,
        AggregateKind::Sum,
        AggregateKind::Average,
        AggregateKind::Min,
        AggregateKind::Max,
        AggregateKind::CountIf,
        AggregateKind::MakeList,
        AggregateKind::MakeSet,
    ];

    /// Finds an aggregate by its name in queries, ignoring case.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    /// The name in queries.
    pub fn name(self) -> &'static str {
        match self {
            AggregateKind::Count => "COUNT",
            AggregateKind::Sum => "SUM",
            AggregateKind::Average => "AVG",
            AggregateKind::Min => "MIN",
            AggregateKind::Max => "MAX",
            AggregateKind::CountIf => "COUNTIF",
            AggregateKind::MakeList => "MAKELIST",
            AggregateKind::MakeSet => "MAKESET",
        }
    }

    /// The name in query plans.
    pub fn wire_name(self) -> &'static str {
        match self {
            AggregateKind::Count => "Count",
            AggregateKind::Sum => "Sum",
            AggregateKind::Average => "Average",
            AggregateKind::Min => "Min",
            AggregateKind::Max => "Max",
            AggregateKind::CountIf => "CountIf",
            AggregateKind::MakeList => "MakeList",
            AggregateKind::MakeSet => "MakeSet",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Aggregator {
    kind: AggregateKind,
    state: AggregateState,
}

/// `spoiled`: one of the values makes the result undefined.
#[derive(Clone, Debug, PartialEq)]
enum AggregateState {
    Count(u64),
    Sum { sum: Sum, count: u64, spoiled: bool },
    Extreme { best: Option<Value>, spoiled: bool },
    List { values: Vec<Value>, held_bytes: usize },
    Set { values: BTreeSet<Ordered<Value>>, held_bytes: usize },
}

/// The memory limit of one `MAKELIST` or `MAKESET`.
pub const HELD_BYTES_MAX: usize = 4 * 1024 * 1024;

impl Aggregator {
    pub fn new(kind: AggregateKind) -> Self {
        let state = match kind {
            AggregateKind::Count | AggregateKind::CountIf => AggregateState::Count(0),
            AggregateKind::Sum | AggregateKind::Average => {
                AggregateState::Sum { sum: Sum::default(), count: 0, spoiled: false }
            }
            AggregateKind::Min | AggregateKind::Max => AggregateState::Extreme { best: None, spoiled: false },
            AggregateKind::MakeList => AggregateState::List { values: Vec::new(), held_bytes: 0 },
            AggregateKind::MakeSet => AggregateState::Set { values: BTreeSet::new(), held_bytes: 0 },
        };
        Aggregator { kind, state }
    }

    pub fn kind(&self) -> AggregateKind {
        self.kind
    }

    /// The heap memory of the state.
    pub fn held_bytes(&self) -> usize {
        match &self.state {
            AggregateState::Count(_) | AggregateState::Sum { .. } => 0,
            AggregateState::Extreme { best, .. } => best.as_ref().map_or(0, memory_bytes),
            AggregateState::List { held_bytes, .. } | AggregateState::Set { held_bytes, .. } => *held_bytes,
        }
    }

    /// Adds this many defined values to a count; no effect on other aggregates.
    pub fn count_values(&mut self, values: u64) {
        if let AggregateState::Count(count) = &mut self.state {
            *count += values;
        }
    }

    /// Adds a precomputed total to a count or sum; no effect on other aggregates.
    pub fn add_text_count(&mut self, total: u64) {
        match &mut self.state {
            AggregateState::Count(count) => *count += total,
            AggregateState::Sum { sum, count, .. } => (*sum, *count) = (sum.plus(Number::from(total)), *count + 1),
            _ => {}
        }
    }

    pub fn add(&mut self, value: Option<&Value>, cx: &Context<'_>) -> Result<()> {
        let replacing = self.kind.replacing_order();
        match (&mut self.state, value) {
            (_, None) => {}
            (AggregateState::Count(count), Some(value)) => {
                *count += u64::from(self.kind == AggregateKind::Count || *value == Value::Bool(true));
            }
            (AggregateState::Sum { sum, count, spoiled, .. }, Some(value)) => match value.as_number() {
                Some(number) => (*sum, *count) = (sum.plus(number), *count + 1),
                None => *spoiled = true,
            },
            (AggregateState::Extreme { spoiled, .. }, Some(Value::Array(_) | Value::Object(_))) => *spoiled = true,
            (AggregateState::Extreme { best, .. }, Some(value)) => {
                if best.as_ref().is_none_or(|best| total_order(value, best) == replacing) {
                    *best = Some(value.clone());
                }
            }
            (AggregateState::List { values, held_bytes }, Some(value)) => {
                add_held_bytes(held_bytes, value)?;
                values.push(cx.own(Cow::Borrowed(value))?);
            }
            (AggregateState::Set { values, held_bytes }, Some(value)) => {
                if values.insert(Ordered(cx.own(Cow::Borrowed(value))?)) {
                    add_held_bytes(held_bytes, value)?;
                }
            }
        }
        Ok(())
    }

    /// Merges the partial aggregate of another partition or a later page. Its values follow those of `self`.
    pub fn merge(&mut self, other: Aggregator) -> Result<()> {
        let replacing = self.kind.replacing_order();
        if self.kind != other.kind {
            return Err(Error::internal("two different aggregates do not merge"));
        }
        match (&mut self.state, other.state) {
            (AggregateState::Count(count), AggregateState::Count(more)) => *count = count.saturating_add(more),
            (
                AggregateState::Sum { sum, count, spoiled },
                AggregateState::Sum { sum: more, count: more_count, spoiled: also_spoiled },
            ) => {
                *sum = sum.plus(more.number());
                *count = count.saturating_add(more_count);
                *spoiled |= also_spoiled;
            }
            (
                AggregateState::Extreme { best, spoiled },
                AggregateState::Extreme { best: theirs, spoiled: also_spoiled },
            ) => {
                *spoiled |= also_spoiled;
                if let Some(theirs) = theirs
                    && best.as_ref().is_none_or(|best| total_order(&theirs, best) == replacing)
                {
                    *best = Some(theirs);
                }
            }
            (AggregateState::List { values, held_bytes }, AggregateState::List { values: more, .. }) => {
                more.iter().try_for_each(|value| add_held_bytes(held_bytes, value))?;
                values.extend(more);
            }
            (AggregateState::Set { values, held_bytes }, AggregateState::Set { values: more, .. }) => {
                more.difference(values).try_for_each(|value| add_held_bytes(held_bytes, &value.0))?;
                values.extend(more);
            }
            _ => return Err(Error::internal("an aggregate has the state of another")),
        }
        Ok(())
    }

    pub fn finish(self) -> Option<Value> {
        match self.state {
            AggregateState::Count(count) => Some(Value::from(count)),
            AggregateState::Sum { spoiled: true, .. } | AggregateState::Extreme { spoiled: true, .. } => None,
            AggregateState::Sum { sum, count, .. } => self.kind.sum_result(sum, count),
            AggregateState::Extreme { best, .. } => best,
            AggregateState::List { values, .. } => Some(Value::Array(values)),
            AggregateState::Set { values, .. } => Some(Value::Array(values.into_iter().map(|value| value.0).collect())),
        }
    }
}

fn add_held_bytes(held_bytes: &mut usize, value: &Value) -> Result<()> {
    *held_bytes = held_bytes.saturating_add(memory_bytes(value));
    if *held_bytes > HELD_BYTES_MAX {
        return Err(Error::new(Kind::TooLarge, "An aggregate collects too many values. Filter or group them."));
    }
    Ok(())
}

impl AggregateKind {
    /// How a value must compare to the current minimum or maximum to replace it.
    fn replacing_order(self) -> Ordering {
        if self == AggregateKind::Min { Ordering::Less } else { Ordering::Greater }
    }

    /// Without values, a sum is 0, as clients that add up the sums of partitions expect; an average is undefined.
    fn sum_result(self, sum: Sum, count: u64) -> Option<Value> {
        match (self, count) {
            (AggregateKind::Average, 0) => None,
            (AggregateKind::Average, _) => Some(Value::from(sum.number().as_f64() / count as f64)),
            _ => Some(Value::Number(sum.number())),
        }
    }
}

/// A sum that is an exact integer as long as all values are integers and it fits into 64 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sum {
    Int(i64),
    Float(f64),
}

impl Default for Sum {
    fn default() -> Self {
        Sum::Int(0)
    }
}

impl Sum {
    pub fn plus(self, number: Number) -> Self {
        let exact = match (self, number.as_i64()) {
            (Sum::Int(sum), Some(number)) => sum.checked_add(number),
            _ => None,
        };
        exact.map_or_else(|| Sum::Float(self.number().as_f64() + number.as_f64()), Sum::Int)
    }

    pub fn number(self) -> Number {
        match self {
            Sum::Int(sum) => Number::Int(sum),
            Sum::Float(sum) => Number::Float(sum),
        }
    }
}

#[cfg(test)]
mod tests;
