//! JavaScript exceptions: converts a thrown value to a `ScriptError`.
//!
//! Guarantees: any thrown value becomes one `ScriptError` of bounded size. Reading an exception may run the script's
//! getters; they run under the same limits, and a property whose getter throws counts as missing.

use rquickjs::{Ctx, Error, Object, Value};

use crate::host_state::HostState;
use crate::outcome::{Cause, ScriptError};
use crate::program::{EXPRESSION_PREFIX, Program};
use crate::realm::INTERNAL_FILES;

#[cfg(test)]
mod tests;

const MESSAGE_BYTES_MAX: usize = 8 * 1024;
const STACK_BYTES_MAX: usize = 8 * 1024;

/// The file name that QuickJS gives to evaluated text.
const EVALUATED: [&str; 2] = ["<input>", "<evalScript>"];

/// The exception that is pending in the realm, or the error that prevented execution.
pub fn script_error(ctx: &Ctx<'_>, host_state: &HostState, program: &Program, error: &Error) -> ScriptError {
    let thrown = ctx.catch();
    let described = describe(ctx, program, &thrown, error);
    if host_state.was_interrupted() {
        return ScriptError::timed_out(host_state.limits.hard_ms);
    }
    if is_out_of_memory(&described, &thrown, error) {
        return ScriptError::out_of_memory(host_state.limits.memory_bytes_max);
    }
    described
}

/// QuickJS throws an error, or null if there is no memory for an error. A script that throws null itself gets the same
/// result.
fn is_out_of_memory(described: &ScriptError, thrown: &Value<'_>, error: &Error) -> bool {
    thrown.is_null() && error.is_exception()
        || described.message == "InternalError: out of memory"
        || matches!(error, Error::Allocation)
}

fn describe<'js>(ctx: &Ctx<'js>, program: &Program, thrown: &Value<'js>, error: &Error) -> ScriptError {
    if !error.is_exception() {
        return ScriptError::new(Cause::Thrown, truncated(error.to_string(), MESSAGE_BYTES_MAX));
    }
    let mut described = ScriptError::new(Cause::Thrown, truncated(text(ctx, thrown), MESSAGE_BYTES_MAX));
    let Some(object) = thrown.as_object() else { return described };
    described.number = number(ctx, object);
    let frames = property(ctx, object, "stack").and_then(|stack| string(&stack)).unwrap_or_default();
    (described.line, described.column) = frames.lines().find_map(frame_position).unzip();
    described.stack = truncated(script_frames(&frames, program.name()), STACK_BYTES_MAX);
    described
}

/// `Error: message` for an error, the JSON of any other object, the text of any other value.
fn text<'js>(ctx: &Ctx<'js>, thrown: &Value<'js>) -> String {
    let Some(object) = thrown.as_object() else { return plain_text(ctx, thrown) };
    let string_property = |name: &str| property(ctx, object, name).and_then(|value| string(&value));
    match (string_property("name"), string_property("message")) {
        (Some(name), Some(message)) if message.is_empty() => name,
        (Some(name), Some(message)) => format!("{name}: {message}"),
        (None, Some(message)) => message,
        (_, None) => json(ctx, thrown).unwrap_or_else(|| "an object that is no error".to_owned()),
    }
}

fn plain_text<'js>(ctx: &Ctx<'js>, thrown: &Value<'js>) -> String {
    let spelled = string(thrown).or_else(|| json(ctx, thrown));
    spelled.unwrap_or_else(|| thrown.type_name().to_owned())
}

fn json<'js>(ctx: &Ctx<'js>, thrown: &Value<'js>) -> Option<String> {
    let text = ctx.json_stringify(thrown.clone()).inspect_err(|_| drop(ctx.catch())).ok()??;
    text.to_string().ok()
}

fn property<'js>(ctx: &Ctx<'js>, object: &Object<'js>, name: &str) -> Option<Value<'js>> {
    let value = object.get::<_, Value<'js>>(name).inspect_err(|_| drop(ctx.catch())).ok()?;
    (!value.is_undefined()).then_some(value)
}

fn string(value: &Value<'_>) -> Option<String> {
    value.as_string()?.to_string().ok()
}

fn number<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Option<u16> {
    let n = property(ctx, object, "number")?.as_number()?;
    (n.fract() == 0.0 && (0.0..=f64::from(u16::MAX)).contains(&n)).then_some(n as u16)
}

/// Line and column of a frame in the script: `    at main (<input>:3:14)`.
fn frame_position(frame: &str) -> Option<(u32, u32)> {
    let at = EVALUATED.iter().find_map(|name| Some(frame.find(name)? + name.len() + 1))?;
    let (line, column) = frame.get(at..)?.trim_end_matches(')').split_once(':')?;
    let (line, column) = (line.parse::<u32>().ok()?, column.parse::<u32>().ok()?);
    let prefix = if line == 1 { EXPRESSION_PREFIX.len() as u32 } else { 0 };
    Some((line, column.saturating_sub(prefix)))
}

/// The script's own frames, with its name instead of the file name.
fn script_frames(frames: &str, name: &str) -> String {
    let is_script_frame =
        |frame: &&str| !frame.contains("(native)") && !INTERNAL_FILES.iter().any(|own| frame.contains(own));
    let named = |frame: &str| match frame_position(frame) {
        Some((line, column)) => {
            let function = frame.split_once('(').map_or("", |(before, _)| before.trim().trim_start_matches("at "));
            format!("   at {function} ({name}:{line}:{column})")
        }
        None => frame.to_owned(),
    };
    frames.lines().filter(is_script_frame).map(named).collect::<Vec<_>>().join("\n")
}

fn truncated(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
