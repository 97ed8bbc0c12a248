//! Answer renderer: writes an answer in the notation of a golden page.
//!
//! ```text
//! 400/1001                          status, and substatus when there is one
//! charge 6.95                       requested with `+charge`
//! Documents 2                       a feed: its name and how many
//! {"id":"1"}                        a row, or the body; system properties only with `+system`
//! Resource Not Found. …             or the message of an error
//! 201 {"id":"1"}                    an operation of a batch: its status and its item or message
//! ```

use pleiad_model::{Object, Value, json};

use crate::line::Words;
use crate::masks::Masks;
use crate::runner::Answer;

const COLUMNS_MAX: usize = 110;
/// Properties of every resource; shown with `+system`.
const SYSTEM_PROPERTIES: [&str; 13] = [
    "_rid",
    "_self",
    "_etag",
    "_ts",
    "_attachments",
    "_colls",
    "_users",
    "_docs",
    "_sprocs",
    "_triggers",
    "_udfs",
    "_conflicts",
    "_lsn",
];
const TIMES: [&str; 2] = ["_ts", "crts"];
/// Larger values of these properties are timestamps.
const TS_S_MIN: i64 = 1_600_000_000;
/// Words with a plus that do not request a header.
const NOT_HEADERS: [&str; 6] = ["system", "pages", "changes", "sorted", "ids", "nobody"];

pub fn answer(words: &Words, answer: &Answer, masks: &mut Masks) -> Vec<String> {
    let mut lines = vec![status(answer)];
    for ask in words.flags.iter().filter(|ask| !NOT_HEADERS.contains(&ask.as_str())) {
        lines.push(header(ask, answer.header_of(ask), masks));
    }
    if words.has_flag("pages") {
        let pages: Vec<String> = answer.pages.iter().map(usize::to_string).collect();
        lines.push(format!("pages {}", pages.join(" ")));
    }
    if !words.has_flag("nobody") {
        lines.extend(body(words, answer, masks));
    }
    lines
}

fn status(answer: &Answer) -> String {
    match answer.response.header("x-ms-substatus") {
        Some(substatus) => format!("{}/{substatus}", answer.response.status),
        None => answer.response.status.to_string(),
    }
}

fn header(ask: &str, value: Option<&str>, masks: &mut Masks) -> String {
    let shown = match (ask, value) {
        (_, None) => "none".to_owned(),
        ("continuation", Some(_)) => "<token>".to_owned(),
        ("range", Some(_)) => "<range>".to_owned(),
        ("position", Some(_)) => "<position>".to_owned(),
        // The partition depends on the world; its LSN does not.
        ("session", Some(token)) => {
            token.split_once(':').map_or(token.to_owned(), |(_, vector)| format!("<range>:{vector}"))
        }
        (_, Some(value)) => masks.mask(value),
    };
    format!("{ask} {shown}")
}

fn body(words: &Words, answer: &Answer, masks: &mut Masks) -> Vec<String> {
    let Some(body) = &answer.body else { return Vec::new() };
    if answer.response.status >= 400 {
        return vec![hide_range(masks.mask(message(body)), answer)];
    }
    match (feed(body), body) {
        (Some((name, rows)), _) => feed_lines(words, name, rows, masks),
        (None, Value::Array(results)) => {
            results.iter().flat_map(|result| operation_lines(words, result, masks)).collect()
        }
        (None, _) => pretty(&visible(words, body), masks),
    }
}

/// One operation of a batch: `404/0 Resource Not Found. …`, `200 {"id":"1"}`.
fn operation_lines(words: &Words, result: &Value, masks: &mut Masks) -> Vec<String> {
    let number = |name: &str| result.get(name).and_then(Value::as_i64);
    let (status, substatus) = (number("statusCode").unwrap_or_default(), number("subStatusCode"));
    let mut line = substatus.map_or(status.to_string(), |substatus| format!("{status}/{substatus}"));
    if words.has_flag("charge") {
        line += &format!(" charge {}", result.get("requestCharge").map(json::to_string).unwrap_or_default());
    }
    if status >= 400 {
        return vec![format!("{line} {}", masks.mask(message(result)))];
    }
    let Some(item) = result.get("resourceBody") else { return vec![line] };
    let mut lines = pretty(&visible(words, item), masks);
    lines[0].insert_str(0, &format!("{line} "));
    lines
}

/// Masks the partition in a message: it depends on the world.
fn hide_range(message: String, answer: &Answer) -> String {
    match answer.header_of("range") {
        Some(range) => message.replace(&format!("partition {range} "), "partition <range> "),
        None => message,
    }
}

fn feed_lines(words: &Words, name: &str, rows: &[Value], masks: &mut Masks) -> Vec<String> {
    let title = format!("{name} {}", rows.len());
    if words.has_flag("ids") {
        let mut ids: Vec<&str> = rows.iter().filter_map(|row| row.get("id")?.as_str()).collect();
        if words.has_flag("sorted") {
            ids.sort_unstable();
        }
        let shown = Some(masks.mask(&ids.join(" "))).filter(|ids| !ids.is_empty());
        return std::iter::once(title).chain(shown).collect();
    }
    let mut rows = rows.to_vec();
    if words.has_flag("sorted") {
        rows.sort_by_cached_key(|row| json::to_string(&without_system(row)));
    }
    std::iter::once(title).chain(rows.iter().flat_map(|row| pretty(&visible(words, row), masks))).collect()
}

/// The visible members of a resource: those of `only`, all with `+system`, otherwise all but the system properties.
pub fn visible(words: &Words, value: &Value) -> Value {
    let Value::Object(object) = value else { return value.clone() };
    let mut object = object.clone();
    if let Some(only) = words.option("only") {
        object.retain(|name, _| only.split(',').any(|wanted| wanted == name));
    } else if !words.has_flag("system") {
        return without_times(&without_system(value));
    }
    without_times(&Value::Object(object))
}

fn without_times(value: &Value) -> Value {
    let Value::Object(object) = value else { return value.clone() };
    let is_time = |name: &str, value: &Value| TIMES.contains(&name) && value.as_i64().is_some_and(|s| s > TS_S_MIN);
    let shown = |name: &str, value: &Value| if is_time(name, value) { "<ts>".into() } else { without_times(value) };
    object.iter().fold(Object::new(), |object, (name, value)| object.with(name, shown(name, value))).into()
}

fn without_system(value: &Value) -> Value {
    let Value::Object(object) = value else { return value.clone() };
    let mut object = object.clone();
    object.retain(|name, _| !SYSTEM_PROPERTIES.contains(&name));
    Value::Object(object)
}

/// `{"_rid": …, "Documents": […], "_count": 2}`
fn feed(body: &Value) -> Option<(&str, &[Value])> {
    let object = body.as_object()?;
    let count = object.get("_count")?.as_i64()?;
    let (name, rows) = object.iter().find_map(|(name, value)| Some((name, value.as_array()?)))?;
    (usize::try_from(count).ok()? == rows.len()).then_some((name, rows))
}

pub fn rows(body: Option<&Value>) -> &[Value] {
    body.and_then(feed).map_or(&[], |(_, rows)| rows)
}

/// Joins two pages of a feed.
pub fn joined(first: Option<Value>, second: Option<Value>) -> Option<Value> {
    let (first, second) = (first?, second?);
    let (name, mut all) = feed(&first).map(|(name, rows)| (name.to_owned(), rows.to_vec()))?;
    all.extend_from_slice(rows(Some(&second)));
    let count = all.len() as u64;
    Some(Object::new().with(&name, all).with("_count", count).into())
}

/// Whether this is `{"code": "NotFound", "message": "…"}` with the name of that status.
pub fn is_failure(status: u16, body: Option<&Value>) -> bool {
    let name = match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        409 => "Conflict",
        410 => "Gone",
        412 => "PreconditionFailed",
        413 => "RequestEntityTooLarge",
        423 => "Locked",
        429 => "TooManyRequests",
        501 => "NotImplemented",
        _ => return false,
    };
    body.is_some_and(|body| body.get("code").and_then(Value::as_str) == Some(name) && !message(body).is_empty())
}

/// The message without the activity id that follows it.
pub fn message(body: &Value) -> &str {
    let message = body.get("message").and_then(Value::as_str).unwrap_or_default();
    message.split("\r\n").next().unwrap_or_default()
}

/// On one line if it fits, otherwise a line per member.
pub fn pretty(value: &Value, masks: &mut Masks) -> Vec<String> {
    let flat = masks.mask(&json::to_string(value));
    let members: Vec<(String, &Value)> = match value {
        _ if flat.chars().count() <= COLUMNS_MAX => return vec![flat],
        Value::Object(object) => {
            object.iter().map(|(name, value)| (format!("{}:", json::to_string(&Value::from(name))), value)).collect()
        }
        Value::Array(items) => items.iter().map(|item| (String::new(), item)).collect(),
        _ => return vec![flat],
    };
    let (open, close) = if value.as_array().is_some() { ("[", "]") } else { ("{", "}") };
    let mut lines = vec![open.to_owned()];
    let last = members.len().saturating_sub(1);
    for (at, (name, value)) in members.into_iter().enumerate() {
        let mut inner = pretty(value, masks);
        inner[0].insert_str(0, &name);
        if let Some(end) = inner.last_mut().filter(|_| at < last) {
            end.push(',');
        }
        lines.extend(inner.into_iter().map(|line| format!("  {line}")));
    }
    lines.push(close.to_owned());
    lines
}
