//! Evaluates `VectorDistance` for one row.
//!
//! Undefined unless both sides are vectors of the metric's type and dimensions. The compiler has chosen the metric.

use std::borrow::Cow;

use pleiad_model::{Result, Value};
use pleiad_vector::DistanceMetric;

use super::{Context, Datum, evaluate};
use crate::block::{Distance, Operand};
use crate::document::Bindings;

pub fn between<'a>(distance: &'a Distance, rows: Bindings<'a>, cx: &Context<'_>) -> Result<Datum<'a>> {
    let Some(left) = vector(&distance.left, distance.metric, rows, cx)? else { return Ok(None) };
    let Some(right) = vector(&distance.right, distance.metric, rows, cx)? else { return Ok(None) };
    Ok(distance.metric.between(&left, &right).map(|distance| Cow::Owned(Value::from(distance))))
}

fn vector<'a>(
    operand: &'a Operand,
    measure: DistanceMetric,
    rows: Bindings<'a>,
    cx: &Context<'_>,
) -> Result<Option<Cow<'a, [f32]>>> {
    match operand {
        Operand::Known(vector) => Ok(Some(Cow::Borrowed(vector))),
        Operand::Computed(node) => {
            let value = evaluate(node, rows, cx)?;
            Ok(value.and_then(|value| measure.vector(&value)).map(Cow::Owned))
        }
    }
}
