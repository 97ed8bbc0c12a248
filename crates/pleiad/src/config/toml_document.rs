//! TOML documents with line numbers: every error names the file and the line.
//!
//! Guarantees: an error message contains names and positions, never the text of a line, because the line may contain an
//! account key. Entries of a table are returned in the order of the file.

use std::ops::Range;
use std::path::Path;

use pleiad_model::{Error, Number, Object, Result, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub struct TomlDocument<'t> {
    pub path: &'t Path,
    text: &'t str,
}

/// One `name = value`.
#[derive(Clone)]
pub struct TomlEntry<'d> {
    pub name: &'d str,
    pub value: &'d DeValue<'d>,
    at: Range<usize>,
}

impl<'t> TomlDocument<'t> {
    pub fn new(path: &'t Path, text: &'t str) -> Self {
        TomlDocument { path, text }
    }

    pub fn parse(&self) -> Result<DeTable<'t>> {
        match DeTable::parse(self.text) {
            Ok(table) => Ok(table.into_inner()),
            Err(error) => Err(self.error_at(error.span().unwrap_or_default(), error.message())),
        }
    }

    /// The table's entries in the order of the file. An unknown name is an error that suggests the most similar name.
    pub fn entries<'d>(&self, table: &'d DeTable<'d>, known: &[&str]) -> Result<Vec<TomlEntry<'d>>> {
        let entries = in_order(table);
        match entries.iter().find(|entry| !known.contains(&entry.name)) {
            Some(unknown_entry) => Err(self.error(unknown_entry, &unknown(unknown_entry.name, known))),
            None => Ok(entries),
        }
    }

    pub fn line(&self, entry: &TomlEntry) -> usize {
        self.line_at(entry.at.start)
    }

    pub fn error(&self, entry: &TomlEntry, message: &str) -> Error {
        self.error_at(entry.at.clone(), message)
    }

    pub fn string<'d>(&self, entry: &TomlEntry<'d>) -> Result<&'d str> {
        entry.value.as_str().ok_or_else(|| self.must_be(entry, "a string"))
    }

    /// A whole number of at least 1.
    pub fn count(&self, entry: &TomlEntry) -> Result<u64> {
        let number = entry.value.as_integer().and_then(|n| u64::from_str_radix(n.as_str(), n.radix()).ok());
        number.filter(|n| *n > 0).ok_or_else(|| self.must_be(entry, "a whole number, 1 or more"))
    }

    /// The tables of `[[name]]`.
    pub fn tables<'d>(&self, entry: &TomlEntry<'d>) -> Result<Vec<&'d DeTable<'d>>> {
        let tables = entry.value.as_array().map(|array| array.iter().map(|item| item.get_ref().as_table()).collect());
        tables.flatten().ok_or_else(|| self.must_be(entry, &format!("written as [[{}]]", entry.name)))
    }

    /// The entry's value, converted to JSON.
    pub fn json(&self, entry: &TomlEntry) -> Result<Value> {
        to_json(entry.value).map_err(|wanted| self.must_be(entry, wanted))
    }

    pub fn must_be(&self, entry: &TomlEntry, expected: &str) -> Error {
        self.error(entry, &format!("`{}` must be {expected}.", entry.name))
    }

    fn error_at(&self, at: Range<usize>, message: &str) -> Error {
        Error::invalid(format!("{}:{}: {message}", self.path.display(), self.line_at(at.start)))
    }

    fn line_at(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

/// The parser sorts entries by name; their spans give the order of the file.
fn in_order<'d>(table: &'d DeTable<'d>) -> Vec<TomlEntry<'d>> {
    let entry = |(name, value): (&'d Spanned<_>, &'d Spanned<DeValue<'d>>)| -> TomlEntry<'d> {
        let name: &'d Spanned<std::borrow::Cow<'d, str>> = name;
        TomlEntry { name: name.get_ref(), value: value.get_ref(), at: name.span() }
    };
    let mut entries: Vec<_> = table.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.at.start);
    entries
}

pub fn unknown(name: &str, known: &[&str]) -> String {
    match known.iter().min_by_key(|other| strsim::damerau_levenshtein(name, other)) {
        Some(nearest) => format!("`{name}` is not known here; did you mean `{nearest}`?"),
        None => format!("`{name}` is not known here."),
    }
}

/// Dates, which JSON does not have, become strings. `Err` completes the sentence "must be …".
fn to_json(value: &DeValue) -> Result<Value, &'static str> {
    Ok(match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Integer(number) => integer(number.as_str(), number.radix())?,
        DeValue::Float(number) => float(number.as_str())?,
        DeValue::Array(items) => {
            items.iter().map(|item| to_json(item.get_ref())).collect::<Result<Vec<_>, _>>()?.into()
        }
        DeValue::Table(table) => {
            let mut object = Object::new();
            for entry in in_order(table) {
                object.set(entry.name, to_json(entry.value)?);
            }
            object.into()
        }
    })
}

fn integer(text: &str, radix: u32) -> Result<Value, &'static str> {
    let signed = i64::from_str_radix(text, radix).map(Number::from);
    let number = signed.or_else(|_| u64::from_str_radix(text, radix).map(Number::from));
    number.map(Value::from).map_err(|_| "made of whole numbers of at most 64 bits")
}

fn float(text: &str) -> Result<Value, &'static str> {
    let number = text.parse::<f64>().ok().filter(|n| n.is_finite());
    number.map(Value::from).ok_or("made of finite numbers, since JSON has no others")
}
