//! Initial items, inline in the configuration file or in a separate file.
//!
//! Guarantees: items are returned one at a time, each an object; a file with one item per line is never loaded
//! completely. An error names the file and, in that format, the line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use pleiad_model::{Error, Result, Value, json};

#[derive(Clone, Debug, PartialEq)]
pub enum Items {
    None,
    Inline(Vec<Value>),
    File { path: PathBuf, format: SeedFormat },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedFormat {
    /// One JSON array of items.
    Array,
    /// One item per line (NDJSON); empty lines are skipped.
    Lines,
}

/// No item is longer than this, newline included; a longer line means that the file has another format.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

impl Items {
    /// The file name's extension determines the format.
    pub fn file(path: PathBuf) -> Result<Items> {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        let format = match extension.as_deref() {
            Some("json") => SeedFormat::Array,
            Some("ndjson" | "jsonl") => SeedFormat::Lines,
            _ => return Err(Error::invalid("`seed` must name a .json, .ndjson or .jsonl file.")),
        };
        Ok(Items::File { path, format })
    }

    pub fn open(&self) -> Result<ItemReader> {
        Ok(match self {
            Items::None => ItemReader::Loaded(Vec::new().into_iter()),
            Items::Inline(items) => ItemReader::Loaded(items.clone().into_iter()),
            Items::File { path, format: SeedFormat::Array } => ItemReader::Loaded(read_array(path)?.into_iter()),
            Items::File { path, format: SeedFormat::Lines } => {
                let lines = BufReader::new(File::open(path).map_err(|error| unreadable(path, &error))?);
                ItemReader::Lines { path: path.clone(), lines, line: 0 }
            }
        })
    }
}

/// Iterator over the items; it ends after an error.
#[derive(Debug)]
pub enum ItemReader {
    Loaded(std::vec::IntoIter<Value>),
    Lines { path: PathBuf, lines: BufReader<File>, line: usize },
}

impl Iterator for ItemReader {
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Result<Value>> {
        match self {
            ItemReader::Loaded(items) => items.next().map(Ok),
            ItemReader::Lines { path, lines, line } => {
                let item = next_item(path, lines, line);
                if matches!(item, Some(Err(_))) {
                    *self = ItemReader::Loaded(Vec::new().into_iter());
                }
                item
            }
        }
    }
}

fn next_item(path: &Path, lines: &mut BufReader<File>, line: &mut usize) -> Option<Result<Value>> {
    loop {
        *line += 1;
        let mut bytes = Vec::new();
        match std::io::Read::take(&mut *lines, LINE_BYTES_MAX).read_until(b'\n', &mut bytes) {
            Ok(0) => return None,
            Ok(_) if bytes.trim_ascii().is_empty() => continue,
            Ok(_) => return Some(item(bytes.trim_ascii(), || format!("{}:{line}", path.display()))),
            Err(error) => return Some(Err(unreadable(path, &error))),
        }
    }
}

fn item(text: &[u8], location: impl Fn() -> String) -> Result<Value> {
    let value = json::parse(text).map_err(|error| Error::invalid(format!("{}: {error}", location())))?;
    object(value, location)
}

fn object(value: Value, location: impl Fn() -> String) -> Result<Value> {
    match value {
        Value::Object(_) => Ok(value),
        _ => Err(Error::invalid(format!("{}: an item must be a JSON object.", location()))),
    }
}

fn read_array(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
    let value = json::parse(&text).map_err(|error| Error::invalid(format!("{}: {error}", path.display())))?;
    let Value::Array(items) = value else {
        return Err(Error::invalid(format!("{}: must hold a JSON array of items.", path.display())));
    };
    let checked = |(at, value)| object(value, || format!("{}: item {}", path.display(), at + 1));
    items.into_iter().enumerate().map(checked).collect()
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::invalid(format!("cannot read the items in {}: {error}", path.display()))
}
