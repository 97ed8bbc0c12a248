//! The configuration file (`--config`): settings at the top, then `[[database]]` declarations.
//!
//! Guarantees: an unknown key is an error with its line and the most similar known key. Relative paths are relative to
//! the file, so that a project can contain it. Settings are returned as unparsed strings; `precedence` combines them with
//! the other sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pleiad_model::{Error, Result};
use toml::de::DeValue;

use super::table::{Setting, TABLE};
use super::toml_document::{TomlDocument, TomlEntry};
use super::value::ValueArity;
use crate::seed::Declaration;

#[derive(Debug)]
pub struct ConfigFile {
    pub path: PathBuf,
    /// Line number and unparsed values, by setting.
    pub values: BTreeMap<&'static str, (usize, Vec<String>)>,
    pub declaration: Declaration,
}

const DATABASE: &str = "database";

impl ConfigFile {
    pub fn read(path: &Path) -> Result<ConfigFile> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::invalid(format!("cannot read the configuration {}: {error}", path.display())))?;
        ConfigFile::parse(path, &text)
    }

    pub fn parse(path: &Path, text: &str) -> Result<ConfigFile> {
        let document = TomlDocument::new(path, text);
        let table = document.parse()?;
        let mut file =
            ConfigFile { path: path.to_owned(), values: BTreeMap::new(), declaration: Declaration::default() };
        for entry in document.entries(&table, &known())? {
            match Setting::find(entry.name) {
                Some(setting) => {
                    file.values.insert(setting.name, (document.line(&entry), raw_values(&document, &entry, setting)?));
                }
                None => file.declaration = Declaration::parse(&document, &entry)?,
            }
        }
        Ok(file)
    }
}

fn known() -> Vec<&'static str> {
    let settings = TABLE.iter().filter(|setting| setting.is_in_file()).map(|setting| setting.name);
    settings.chain([DATABASE]).collect()
}

fn raw_values(document: &TomlDocument, entry: &TomlEntry, setting: &Setting) -> Result<Vec<String>> {
    let values = match (entry.value, setting.arity) {
        (DeValue::Array(items), ValueArity::Many) => items.iter().map(|item| raw_value(item.get_ref())).collect(),
        (value, _) => raw_value(value).map(|word| vec![word]),
    };
    let words = values.ok_or_else(|| document.must_be(entry, expected_form(setting.arity)))?;
    Ok(match setting.arity {
        ValueArity::Path => words.iter().map(|word| relative_to(document.path, word)).collect(),
        _ => words,
    })
}

fn raw_value(value: &DeValue) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok().map(|n| n.to_string()),
        _ => None,
    }
}

fn expected_form(arity: ValueArity) -> &'static str {
    match arity {
        ValueArity::One => "a string or a whole number",
        ValueArity::Path => "a path, in quotes",
        ValueArity::Flag => "true or false",
        ValueArity::Many => "a string or an array of strings",
    }
}

fn relative_to(file: &Path, path: &str) -> String {
    let directory = file.parent().unwrap_or(Path::new(""));
    directory.join(path).to_string_lossy().into_owned()
}
