//! The language rule: in comments and docs, the agent of a sentence is a noun.
//!
//! "Idle workers take the next morsel" names its agent; with a pronoun the reader has to guess it. The words below
//! nearly always replace a noun such as writer, reader, client or job.

use super::rust;
use super::tree::SourceTree;

const PRONOUNS: [&str; 9] =
    ["who", "whoever", "whom", "somebody", "someone", "nobody", "anybody", "anyone", "everybody"];

pub fn check(tree: &SourceTree) -> Vec<String> {
    tree.files().flat_map(|(path, text)| of_file(path, text)).collect()
}

fn of_file(path: &str, text: &str) -> Vec<String> {
    let prose = if path.ends_with(".rs") {
        rust::lex(text).comments
    } else if path.ends_with(".md") {
        outside_fences(text)
    } else {
        return Vec::new();
    };
    prose
        .iter()
        .filter_map(|(line, text)| Some(format!("{path}:{line}: name the agent instead of {}", first_pronoun(text)?)))
        .collect()
}

/// The first pronoun of a line, in backquotes. A word in quotes or backquotes is mentioned, not used.
fn first_pronoun(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '"' && c != '`' && c != '_');
    let word = words.map(str::to_lowercase).find(|word| PRONOUNS.contains(&word.as_str()))?;
    Some(format!("`{word}`"))
}

/// The lines of a page outside code samples.
fn outside_fences(text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push((index + 1, line.to_owned()));
        }
    }
    lines
}
