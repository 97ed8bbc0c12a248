//! `fullTextPolicy` and `fullTextIndexes`.
//!
//! Invariant: every path has a language, its own or the policy's, and every full-text index is on a
//! path of the policy. The error messages are Cosmos's; clients compare them.

use super::index_path::PathStep;
use super::read;
use crate::path::PropertyPath;
use crate::{Error, Object, Result, Value};

/// The languages of the service; case-sensitive, as in the service. A policy returns the name that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language(&'static str);

/// Another name of English: its Windows language code.
const ENGLISH_CODE: Language = Language("1033");

impl Language {
    /// The language of text for which no policy names one.
    pub const ENGLISH: Language = Language("en-US");

    pub const ALL: [Language; 7] = [
        Language::ENGLISH,
        Language("de-DE"),
        Language("es-ES"),
        Language("fr-FR"),
        Language("it-IT"),
        Language("pt-BR"),
        Language("pt-PT"),
    ];

    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// The same language under its first name.
    fn canonical(self) -> Self {
        if self == ENGLISH_CODE { Self::ENGLISH } else { self }
    }

    fn parse(value: &Value) -> Result<Self> {
        let text = read::text(value)?;
        Self::ALL.into_iter().chain([ENGLISH_CODE]).find(|known| known.0 == text).ok_or_else(|| {
            let supported = Self::ALL.map(|known| format!("\"{}\"", known.0)).join(", ");
            Error::invalid(format!(
                "The Full Text Policy contains an unsupported language {text}. Supported languages are: {supported}."
            ))
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct FullTextPolicy {
    pub default_language: Option<Language>,
    pub paths: Vec<FullTextPath>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FullTextPath {
    pub path: PropertyPath,
    /// None for the policy's default.
    pub language: Option<Language>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FullTextIndex {
    pub path: PropertyPath,
}

impl FullTextPolicy {
    /// The language of the text at a path; English if the policy names none.
    pub fn language(&self, steps: &[PathStep]) -> Language {
        let path = self.paths.iter().find(|known| matches_steps(&known.path, steps));
        path.and_then(|path| path.language).or(self.default_language).map_or(Language::ENGLISH, Language::canonical)
    }

    pub fn parse(body: &Value) -> Result<Self> {
        let body = read::object(body)?;
        let default_language = read::optional(body, "defaultLanguage", Language::parse)?;
        let paths = read::each(body, "fullTextPaths", FullTextPath::parse)?;
        if default_language.is_none() && (paths.is_empty() || paths.iter().any(|path| path.language.is_none())) {
            return Err(Error::invalid(
                "The Full Text Policy contains invalid syntax. Give a defaultLanguage, or every path its language.",
            ));
        }
        if let Some(path) = read::repeated(paths.iter().map(|path| &path.path)) {
            return Err(Error::invalid(format!("The Full Text Policy contains the path {} twice.", path.as_str())));
        }
        Ok(FullTextPolicy { default_language, paths })
    }

    pub fn to_object(&self) -> Object {
        let mut object = Object::new();
        if let Some(language) = self.default_language {
            object.set("defaultLanguage", language.as_str());
        }
        if !self.paths.is_empty() {
            object.set("fullTextPaths", read::render(&self.paths, FullTextPath::to_object));
        }
        object
    }
}

impl FullTextPath {
    fn parse(entry: &Value) -> Result<Self> {
        let entry = read::object(entry)?;
        let text = read::required_text(entry, "path")?;
        let path = PropertyPath::parse(text)
            .map_err(|_| Error::invalid(format!("The Full Text Policy contains an invalid Path: {text}")))?;
        Ok(FullTextPath { path, language: read::optional(entry, "language", Language::parse)? })
    }

    fn to_object(&self) -> Object {
        let object = read::path_entry(self.path.as_str());
        match self.language {
            Some(language) => object.with("language", language.as_str()),
            None => object,
        }
    }
}

impl FullTextIndex {
    pub(super) fn parse_all(policy: &Object) -> Result<Vec<Self>> {
        let entries = read::list(policy, "fullTextIndexes")?;
        entries.iter().enumerate().map(|(at, entry)| Self::parse(at, entry)).collect()
    }

    fn parse(at: usize, entry: &Value) -> Result<Self> {
        let path = read::optional(read::object(entry)?, "path", read::text)?
            .ok_or_else(|| Error::invalid(format!("Missing path in full-text index specification at index ({at})")))?;
        let path = PropertyPath::parse(path).map_err(|_| {
            Error::invalid(format!("Full-text index specification at index ({at}) contains invalid path"))
        })?;
        Ok(FullTextIndex { path })
    }

    pub(super) fn to_object(&self) -> Object {
        read::path_entry(self.path.as_str())
    }
}

fn matches_steps(path: &PropertyPath, steps: &[PathStep]) -> bool {
    let named = |(name, step): (&String, &PathStep)| matches!(step, PathStep::Property(property) if property == name);
    path.segments().len() == steps.len() && path.segments().iter().zip(steps).all(named)
}

/// Checks every index against the policy.
pub(super) fn check(indexes: &[FullTextIndex], policy: Option<&FullTextPolicy>) -> Result<()> {
    if let Some(path) = read::repeated(indexes.iter().map(|index| &index.path)) {
        return Err(Error::invalid(format!("The Full Text Index {} is there twice. Keep it once.", path.as_str())));
    }
    let paths = policy.map_or(&[][..], |policy| &policy.paths);
    match indexes.iter().find(|index| !paths.iter().any(|known| read::same_property(&known.path, &index.path))) {
        Some(index) => Err(Error::invalid(format!(
            "The path of the Full Text Index {} does not match the path specified in the Full Text Policy",
            index.path.as_str()
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
