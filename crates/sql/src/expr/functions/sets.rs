//! Set functions on arrays.
//!
//! Guarantees: a result has no duplicates; the first of equal elements is kept. Elements are sorted, not hashed, so
//! that no choice of elements is slow.

use std::collections::BTreeSet;

use pleiad_model::{Result, Value};

use super::Function;
use super::arguments::{array, boolean_value, copy, items};
use crate::expr::compare::Ordered;
use crate::expr::{Context, Datum};

pub const FUNCTIONS: &[Function] = &[
    Function::exactly("SETDIFFERENCE", 2, |args, cx| {
        combine(args, cx, |a, b| {
            let excluded = Members::new(b);
            distinct(a.iter().filter(|value| !excluded.has(value)))
        })
    }),
    Function::exactly("SETEQUAL", 2, |args, _| boolean_value(set_equal(args))),
    // The documented sample has the order of the second array.
    Function::exactly("SETINTERSECT", 2, |args, cx| {
        combine(args, cx, |a, b| {
            let wanted = Members::new(a);
            distinct(b.iter().filter(|value| wanted.has(value)))
        })
    }),
    Function::exactly("SETUNION", 2, |args, cx| combine(args, cx, |a, b| distinct(a.iter().chain(b)))),
];

/// The elements of an array, sorted.
pub struct Members<'v>(Vec<Ordered<&'v Value>>);

impl<'v> Members<'v> {
    pub fn new(elements: &'v [Value]) -> Self {
        let mut members: Vec<_> = elements.iter().map(Ordered).collect();
        members.sort_unstable();
        Members(members)
    }

    pub fn has(&self, value: &Value) -> bool {
        self.0.binary_search(&Ordered(value)).is_ok()
    }
}

fn distinct<'v>(values: impl Iterator<Item = &'v Value>) -> Vec<&'v Value> {
    let mut seen = BTreeSet::new();
    values.filter(|value| seen.insert(Ordered(*value))).collect()
}

fn set_equal(args: &[Datum<'_>]) -> Option<bool> {
    let (mut left, mut right) = (Members::new(array(args, 0)?).0, Members::new(array(args, 1)?).0);
    left.dedup();
    right.dedup();
    Some(left == right)
}

fn combine<'a>(
    args: &[Datum<'a>],
    cx: &Context<'_>,
    function: for<'v> fn(&'v [Value], &'v [Value]) -> Vec<&'v Value>,
) -> Result<Datum<'a>> {
    let (Some(left), Some(right)) = (array(args, 0), array(args, 1)) else { return Ok(None) };
    items(function(left, right).into_iter().map(|value| copy(value, cx)).collect::<Result<_>>()?)
}
