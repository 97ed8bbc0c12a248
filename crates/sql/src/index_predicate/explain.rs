//! Displays index predicates as text, for people and for the headers that SDKs read.
//!
//! ```text
//! WHERE c.a = 1 AND (c.s LIKE 'ab%' OR ARRAY_CONTAINS(c.t, 'x'))
//!    /a = 1 & (/s ^ "ab" | /t/[] = "x")
//! ```

use std::fmt::{Display, Formatter, Result, Write};
use std::ops::Bound;

use pleiad_model::json;
use pleiad_model::policy::PathStep;

use super::{IndexPredicate, PathPredicate, SpatialPredicate, ValuePredicate, ValueType};

/// A path in the syntax of an indexing policy, without `/?` or `/*` at the end: `/a/[]/"b c"`.
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

impl Display for IndexPredicate<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            IndexPredicate::Never => f.write_str("nothing"),
            IndexPredicate::And(all) => list(f, all, " & "),
            IndexPredicate::Or(any) => list(f, any, " | "),
            IndexPredicate::Path(lookup) => lookup.fmt(f),
            IndexPredicate::Spatial(near) => near.fmt(f),
            IndexPredicate::Term(word) => {
                write!(f, "{} has {}", path_text(&word.path), json::to_string(&word.word.into()))
            }
        }
    }
}

/// Nested lists are parenthesised.
fn list(f: &mut Formatter<'_>, conditions: &[IndexPredicate<'_>], between: &str) -> Result {
    if conditions.is_empty() {
        return f.write_str("()");
    }
    for (at, condition) in conditions.iter().enumerate() {
        if at > 0 {
            f.write_str(between)?;
        }
        match condition {
            IndexPredicate::And(_) | IndexPredicate::Or(_) => write!(f, "({condition})")?,
            _ => condition.fmt(f)?,
        }
    }
    Ok(())
}

impl Display for PathPredicate<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let path = path_text(&self.path);
        match &self.value {
            ValuePredicate::Equal(value) => write!(f, "{path} = {}", json::to_string(value)),
            ValuePredicate::Range(low, high) => {
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
            ValuePredicate::Prefix(text) => write!(f, "{path} ^ {}", json::to_string(&text.as_str().into())),
            ValuePredicate::Strings(test) => write!(f, "{path} ~ {test:?}"),
            ValuePredicate::Type(of) => write!(f, "{path} is {}", type_name(*of)),
            ValuePredicate::Defined => write!(f, "{path} is defined"),
        }
    }
}

impl Display for SpatialPredicate<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} within {} of {}", path_text(&self.path), self.distance, json::to_string(self.region))
    }
}

fn type_name(of: ValueType) -> &'static str {
    match of {
        ValueType::Bool => "a boolean",
        ValueType::Number => "a number",
        ValueType::String => "a string",
        ValueType::Array => "an array",
        ValueType::Object => "an object",
    }
}
