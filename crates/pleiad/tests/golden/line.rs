//! Line lexer of golden pages: splits one line into words.
//!
//! ```text
//! POST docs   key ["Sales"]   as first   +charge   {"id":"1","dept":"Sales"}
//! └first      └ options ──────────────┘  └ flags   └ body: the JSON at the end
//! ```
//!
//! Brackets and quotes extend a word up to where they close, so JSON and quoted names may contain spaces.

use crate::Result;

#[derive(Debug, Default, PartialEq)]
pub struct Words {
    pub first: String,
    pub rest: Vec<String>,
    /// `+word`s, without the plus.
    pub flags: Vec<String>,
    pub body: Option<String>,
}

impl Words {
    /// The word after `name`.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options(name).first().map(String::as_str)
    }

    /// All paths after `name`, as in `key /a /b`, or the one word after it.
    pub fn options(&self, name: &str) -> &[String] {
        let Some(at) = self.rest.iter().position(|word| word == name) else { return &[] };
        let after = &self.rest[at + 1..];
        let paths = after.iter().take_while(|word| word.starts_with('/')).count();
        &after[..paths.max(1).min(after.len())]
    }

    pub fn has(&self, word: &str) -> bool {
        self.rest.iter().any(|have| have == word)
    }

    pub fn has_flag(&self, word: &str) -> bool {
        self.flags.iter().any(|ask| ask == word)
    }
}

pub fn parse(line: &str) -> Result<Words> {
    let mut words = Words::default();
    let mut rest = line.trim();
    let mut after_key = false;
    while !rest.is_empty() {
        let is_body = rest.starts_with(['{', '[']) && !after_key && !words.first.is_empty();
        if is_body {
            words.body = Some(rest.to_owned());
            return Ok(words);
        }
        let (word, after_word) = rest.split_at(word_end(rest)?);
        after_key = word == "key";
        match word.strip_prefix('+') {
            Some(ask) => words.flags.push(ask.to_owned()),
            None if words.first.is_empty() => words.first = word.to_owned(),
            None => words.rest.push(word.to_owned()),
        }
        rest = after_word.trim_start();
    }
    Ok(words)
}

/// Up to the first space outside brackets and quotes.
fn word_end(text: &str) -> Result<usize> {
    let (mut depth, mut quoted, mut escaped) = (0i32, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ' ' if !quoted && depth <= 0 => return Ok(at),
            _ => {}
        }
    }
    if quoted { Err(format!("a quote is not closed in `{text}`")) } else { Ok(text.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_options_flags_and_a_body() {
        let words = parse(r#"POST docs   key ["a b", {}]  as x +charge {"id":"1"}"#).unwrap();
        assert_eq!((words.first.as_str(), words.rest[0].as_str()), ("POST", "docs"));
        assert_eq!(words.option("key"), Some(r#"["a b", {}]"#));
        assert_eq!(words.option("as"), Some("x"));
        assert!(words.has_flag("charge"));
        assert_eq!(words.body.as_deref(), Some(r#"{"id":"1"}"#));
    }

    #[test]
    fn key_paths_may_be_several_and_quoted() {
        let words = parse(r#"container c key /a /"b c"/d version 2"#).unwrap();
        assert_eq!(words.options("key"), ["/a", "/\"b c\"/d"]);
        assert_eq!(words.option("version"), Some("2"));
    }
}
