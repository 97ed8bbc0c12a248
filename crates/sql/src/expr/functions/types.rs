//! Type checks: `IS_ARRAY`, `IS_STRING`, ….
//!
//! Guarantees: the result is true or false, never undefined; for an undefined argument it is false.

use pleiad_model::{Result, Value};

use super::Function;
use super::arguments::{at, boolean_value};
use super::dates::DateTime;
use crate::expr::Datum;

pub const FUNCTIONS: &[Function] = &[
    Function::exactly("IS_ARRAY", 1, |args, _| is(args, |v| matches!(v, Value::Array(_)))),
    Function::exactly("IS_BOOL", 1, |args, _| is(args, |v| matches!(v, Value::Bool(_)))),
    // The spelling in the filters that SDKs generate to resume an ORDER BY.
    Function::exactly("IS_BOOLEAN", 1, |args, _| is(args, |v| matches!(v, Value::Bool(_)))),
    Function::exactly("IS_DATETIME", 1, |args, _| is(args, |v| v.as_str().and_then(DateTime::parse).is_some())),
    Function::exactly("IS_DEFINED", 1, |args, _| is(args, |_| true)),
    Function::exactly("IS_FINITE_NUMBER", 1, |args, _| {
        is(args, |v| v.as_number().is_some_and(|n| n.as_f64().is_finite()))
    }),
    Function::exactly("IS_INTEGER", 1, |args, _| is(args, |v| v.as_i64().is_some())),
    Function::exactly("IS_NULL", 1, |args, _| is(args, |v| matches!(v, Value::Null))),
    Function::exactly("IS_NUMBER", 1, |args, _| is(args, |v| matches!(v, Value::Number(_)))),
    Function::exactly("IS_OBJECT", 1, |args, _| is(args, |v| matches!(v, Value::Object(_)))),
    Function::exactly("IS_PRIMITIVE", 1, |args, _| is(args, |v| !matches!(v, Value::Array(_) | Value::Object(_)))),
    Function::exactly("IS_STRING", 1, |args, _| is(args, |v| matches!(v, Value::String(_)))),
];

fn is<'a>(args: &[Datum<'a>], test: fn(&Value) -> bool) -> Result<Datum<'a>> {
    boolean_value(Some(at(args, 0).as_deref().is_some_and(test)))
}
