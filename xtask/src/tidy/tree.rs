//! The files that git tracks or would add, in memory, so that a check is a function and its test a few lines.
//!
//! Invariant: paths are relative to the repository, with `/`. Binary files are included, decoded lossily.

use std::collections::BTreeMap;
use std::path::Path;

use crate::shell::{self, Result};

#[derive(Default)]
pub struct SourceTree {
    files: BTreeMap<String, String>,
}

impl SourceTree {
    pub fn load(root: &Path) -> Result<SourceTree> {
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listed = shell::output(shell::command("git", list).current_dir(root))?;
        let mut files = BTreeMap::new();
        for path in listed.split('\0').filter(|path| !path.is_empty()) {
            // A file in git's list may already be deleted here: skip it.
            if let Ok(bytes) = std::fs::read(root.join(path)) {
                files.insert(path.to_owned(), String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        Ok(SourceTree { files })
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> SourceTree {
        SourceTree { files: files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect() }
    }

    /// Path and text of every file.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns true if the path is a file or directory.
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        path.is_empty() || self.files.contains_key(path) || !self.children(path).is_empty()
    }

    /// The names directly inside a directory.
    pub fn children(&self, dir: &str) -> Vec<&str> {
        let prefix = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let inside = self.files.keys().filter_map(|path| path.strip_prefix(&prefix));
        let mut names: Vec<&str> = inside.map(|rest| rest.split('/').next().unwrap_or(rest)).collect();
        names.dedup();
        names
    }
}

/// Returns true if the file contains only tests.
pub fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}
