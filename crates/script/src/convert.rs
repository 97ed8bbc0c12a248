//! Conversion of values into and out of a realm.
//!
//! Guarantees: a value is converted to what `JSON.parse` would make of its text, and back to what `JSON.stringify`
//! would write. Scalars are converted directly; objects on their way out go through text, because a script may have
//! given them `toJSON`, getters and cycles.

use pleiad_model::{Number, Object, Value, json};
use rquickjs::{Ctx, Error, Exception, Result};

pub fn to_js<'js>(ctx: &Ctx<'js>, value: &Value) -> Result<rquickjs::Value<'js>> {
    let js = || ctx.clone();
    match value {
        Value::Null => Ok(rquickjs::Value::new_null(js())),
        Value::Bool(flag) => Ok(rquickjs::Value::new_bool(js(), *flag)),
        Value::Number(number) => Ok(rquickjs::Value::new_number(js(), number.as_f64())),
        Value::String(text) => Ok(rquickjs::String::from_str(js(), text)?.into_value()),
        Value::Array(items) => array(ctx, items),
        Value::Object(object) => self::object(ctx, object),
    }
}

fn array<'js>(ctx: &Ctx<'js>, items: &[Value]) -> Result<rquickjs::Value<'js>> {
    let array = rquickjs::Array::new(ctx.clone())?;
    for (at, item) in items.iter().enumerate() {
        array.set(at, to_js(ctx, item)?)?;
    }
    Ok(array.into_value())
}

fn object<'js>(ctx: &Ctx<'js>, object: &Object) -> Result<rquickjs::Value<'js>> {
    // Setting this name would change the prototype, and with it other properties; parsing makes it a property.
    if object.get("__proto__").is_some() {
        let mut text = Vec::new();
        json::write_object(object, &mut text);
        return ctx.json_parse(text);
    }
    let js_object = rquickjs::Object::new(ctx.clone())?;
    for (name, value) in object.iter() {
        js_object.set(name, to_js(ctx, value)?)?;
    }
    Ok(js_object.into_value())
}

/// None for undefined, and for functions and symbols, which JSON does not have.
pub fn from_js<'js>(ctx: &Ctx<'js>, value: rquickjs::Value<'js>) -> Result<Option<Value>> {
    if let Some(n) = value.as_int() {
        return Ok(Some(Value::from(i64::from(n))));
    }
    if let Some(n) = value.as_float() {
        return Ok(Some(float(n)));
    }
    if let Some(flag) = value.as_bool() {
        return Ok(Some(Value::Bool(flag)));
    }
    if let Some(text) = value.as_string() {
        return text_of(text).map(|text| Some(Value::String(text)));
    }
    if value.is_undefined() || value.is_function() || value.is_symbol() {
        return Ok(None);
    }
    if value.is_null() {
        return Ok(Some(Value::Null));
    }
    let Some(text) = ctx.json_stringify(value)? else { return Ok(None) };
    let parsed = json::parse(text.to_string()?.as_bytes());
    parsed.map(Some).map_err(|error| Exception::throw_range(ctx, &error.to_string()))
}

/// JSON has no infinity: `JSON.stringify` writes null. It writes `10.0` and `-0` as integers.
fn float(n: f64) -> Value {
    const EXACT_MAX: f64 = (1u64 << 53) as f64;
    match n {
        n if !n.is_finite() => Value::Null,
        n if n.fract() == 0.0 && n.abs() <= EXACT_MAX => Value::from(n as i64),
        n => Value::Number(Number::Float(n)),
    }
}

/// A string with a lone surrogate is not valid UTF-8; the whole string becomes one replacement character.
fn text_of(text: &rquickjs::String<'_>) -> Result<String> {
    match text.to_string() {
        Err(Error::Utf8(_)) => Ok(char::REPLACEMENT_CHARACTER.to_string()),
        other => other,
    }
}
