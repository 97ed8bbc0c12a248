//! Conditions as text, for people and for the headers that SDKs read.
//!
//! ```text
//! WHERE c.a = 1 AND (c.s LIKE 'ab%' OR ARRAY_CONTAINS(c.t, 'x'))
//!    /a = 1 & (/s ^ "ab" | /t/[] = "x")
//! ```

use std::fmt::{Display, Formatter, Result, Write};
use std::ops::Bound;

use pleiad_model::json;
use pleiad_model::policy::PathStep;

use super::{Condition, Lookup, Near, Type, What};

/// A path as an indexing policy writes it, without its end: `/a/[]/"b c"`.
pub fn path_text(path: &[PathStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            PathStep::Element => text.push_str("/[]"),
            PathStep::Property(name) if is_plain(name) => {
                text.push('/');
                text.push_str(name);
            }
            PathStep::Property(name) => {
                // Writing to a String cannot fail.
                let _ = write!(text, "/\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
            }
        }
    }
    text
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

impl Display for Condition<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Condition::Nothing => f.write_str("nothing"),
            Condition::All(all) => list(f, all, " & "),
            Condition::Any(any) => list(f, any, " | "),
            Condition::Is(lookup) => lookup.fmt(f),
            Condition::Near(near) => near.fmt(f),
            Condition::Word(word) => write!(f, "{} has {}", path_text(&word.path), json::to_string(&word.word.into())),
        }
    }
}

/// Lists inside of lists have parentheses.
fn list(f: &mut Formatter<'_>, conditions: &[Condition<'_>], between: &str) -> Result {
    if conditions.is_empty() {
        return f.write_str("()");
    }
    for (at, condition) in conditions.iter().enumerate() {
        if at > 0 {
            f.write_str(between)?;
        }
        match condition {
            Condition::All(_) | Condition::Any(_) => write!(f, "({condition})")?,
            _ => condition.fmt(f)?,
        }
    }
    Ok(())
}

impl Display for Lookup<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let path = path_text(&self.path);
        match &self.what {
            What::Equal(value) => write!(f, "{path} = {}", json::to_string(value)),
            What::Range(low, high) => {
                match low {
                    Bound::Included(low) => write!(f, "{} <= ", json::to_string(low))?,
                    Bound::Excluded(low) => write!(f, "{} < ", json::to_string(low))?,
                    Bound::Unbounded => {}
                }
                f.write_str(&path)?;
                match high {
                    Bound::Included(high) => write!(f, " <= {}", json::to_string(high)),
                    Bound::Excluded(high) => write!(f, " < {}", json::to_string(high)),
                    Bound::Unbounded => Ok(()),
                }
            }
            What::Prefix(text) => write!(f, "{path} ^ {}", json::to_string(&text.as_str().into())),
            What::Strings(test) => write!(f, "{path} ~ {test:?}"),
            What::Type(of) => write!(f, "{path} is {}", type_name(*of)),
            What::Defined => write!(f, "{path} is defined"),
        }
    }
}

impl Display for Near<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} within {} of {}", path_text(&self.path), self.distance, json::to_string(self.region))
    }
}

fn type_name(of: Type) -> &'static str {
    match of {
        Type::Bool => "a boolean",
        Type::Number => "a number",
        Type::String => "a string",
        Type::Array => "an array",
        Type::Object => "an object",
    }
}
