//! Diagnostics: query errors with code, position and hint.
//!
//! Guarantees: the message of the resulting error is the JSON text that SDKs parse:
//!
//! ```text
//! {"errors":[{"severity":"Error","location":{"start":9,"end":10,"line":1,"column":10},"code":"SC1001","message":"Syntax error, …"}]}
//! ```
//!
//! The service returns `start` and `end`; `line` and `column`, counted from 1, are added for people and editors. A
//! hint, if there is one, is a sentence after the service's message, because clients compare the beginning of messages.

mod hint; // hints for syntax errors

use pleiad_model::{Error, Object, Value, json};

use super::Span;

/// Longer tokens are truncated in messages: a token can be as long as the text.
const SHOWN_CHARS_MAX: usize = 60;
/// The largest number of errors per answer: more are not useful, and locating each one scans the text.
const DIAGNOSTICS_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub span: Span,
    /// The service's code. It is absent where the service's code is not known: none is invented.
    pub code: Option<&'static str>,
    pub message: String,
    /// A sentence that says what to write instead.
    pub hint: Option<String>,
    /// Further errors, if several are reported together.
    pub others: Vec<Diagnostic>,
}

impl Diagnostic {
    pub fn syntax(span: Span, text: &str) -> Self {
        let near: String = span.of(text).chars().take(SHOWN_CHARS_MAX).collect();
        let diagnostic = Diagnostic::coded(span, "SC1001", format!("Syntax error, incorrect syntax near '{near}'."));
        Diagnostic { hint: hint::for_syntax(span, text), ..diagnostic }
    }

    /// An object names a property twice.
    pub fn duplicate_property(span: Span, name: &str) -> Self {
        let message = format!("Object creation error, property name '{name}' specified more than once.");
        Diagnostic::coded(span, "SC2022", message)
    }

    pub fn coded(span: Span, code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic { span, code: Some(code), message: message.into(), hint: None, others: Vec::new() }
    }

    pub fn plain(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { span, code: None, message: message.into(), hint: None, others: Vec::new() }
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Diagnostic { hint: Some(hint.into()), ..self }
    }

    /// Combines errors into one, up to `DIAGNOSTICS_MAX`; `None` if there are none.
    pub fn combine(diagnostics: impl IntoIterator<Item = Diagnostic>) -> Option<Self> {
        let one_by_one = diagnostics.into_iter().flat_map(|mut diagnostic| {
            let others = std::mem::take(&mut diagnostic.others);
            std::iter::once(diagnostic).chain(others)
        });
        let mut diagnostics = one_by_one.take(DIAGNOSTICS_MAX);
        let first = diagnostics.next()?;
        Some(Diagnostic { others: diagnostics.collect(), ..first })
    }

    /// The error that is returned to the client that sent `text`.
    pub fn into_error(self, text: &str) -> Error {
        Error::invalid(self.message_for(text))
    }

    /// The message of that error.
    pub fn message_for(&self, text: &str) -> String {
        let mut errors = vec![self.entry(text)];
        errors.extend(self.others.iter().map(|diagnostic| diagnostic.entry(text)));
        let body = Object::new().with("errors", errors);
        json::to_string(&Value::from(body))
    }

    fn entry(&self, text: &str) -> Value {
        let mut error = Object::new().with("severity", "Error");
        // The service writes its older, numeric codes as JSON numbers, without a location.
        let number = self.code.and_then(|code| code.parse::<i64>().ok());
        if number.is_none() {
            error.set("location", location(self.span, text));
        }
        if let Some(code) = number.map(Value::from).or_else(|| self.code.map(Value::from)) {
            error.set("code", code);
        }
        let message = &self.message;
        error.set("message", self.hint.as_ref().map_or(message.clone(), |hint| format!("{message} {hint}")));
        Value::from(error)
    }
}

fn location(span: Span, text: &str) -> Object {
    let before = text.get(..span.start).unwrap_or(text);
    let upto = text.get(..span.end).unwrap_or(text);
    let line_start = before.rfind(['\n', '\r']).map_or(0, |end| end + 1);
    Object::new()
        .with("start", utf16_units(before))
        .with("end", utf16_units(upto))
        .with("line", line_ends(before) + 1)
        .with("column", utf16_units(&before[line_start..]) + 1)
}

/// Positions count UTF-16 units, because SDKs and editors store the text in UTF-16 (.NET, Java, JavaScript).
fn utf16_units(text: &str) -> u64 {
    text.encode_utf16().count() as u64
}

/// `\n`, `\r\n` and `\r` each end one line.
fn line_ends(text: &str) -> u64 {
    text.replace("\r\n", "\n").matches(['\n', '\r']).count() as u64
}

#[cfg(test)]
mod tests;
