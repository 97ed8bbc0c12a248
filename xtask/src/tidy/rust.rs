//! A lexer for Rust sources that separates code, comments and string literals.
//!
//! Guarantees: `code` and `comments` keep the line structure of the file, so that a finding can name its line. Contents of
//! string and character literals appear in neither.
//!
//! ```text
//! let url = "http://x"; // reads the page        code      let url = ""; ‥
//!                                                comments  ‥ // reads the page
//! ```

/// A source file, split into code and comments.
pub struct RustSource {
    /// The code without comments and without the contents of literals.
    pub code: String,
    /// Line number and text of each line that has a comment.
    pub comments: Vec<(usize, String)>,
}

pub fn lex(text: &str) -> RustSource {
    RustLexer { rest: text, line: 1, code: String::new(), comments: Vec::new() }.run()
}

struct RustLexer<'a> {
    rest: &'a str,
    line: usize,
    code: String,
    comments: Vec<(usize, String)>,
}

impl RustLexer<'_> {
    fn run(mut self) -> RustSource {
        while let Some(next) = self.rest.chars().next() {
            if self.rest.starts_with("//") {
                let len = self.rest.find('\n').unwrap_or(self.rest.len());
                self.comment(len);
            } else if self.rest.starts_with("/*") {
                let len = self.rest.find("*/").map_or(self.rest.len(), |at| at + 2);
                self.comment(len);
            } else if let Some(len) = literal(self.rest, self.code.chars().next_back()) {
                self.code.push_str("\"\"");
                self.skip(len);
            } else {
                self.code.push(next);
                self.line += usize::from(next == '\n');
                self.rest = &self.rest[next.len_utf8()..];
            }
        }
        RustSource { code: self.code, comments: self.comments }
    }

    fn comment(&mut self, len: usize) {
        for (index, text) in self.rest[..len].lines().enumerate() {
            self.comments.push((self.line + index, text.to_owned()));
        }
        self.skip(len);
    }

    /// Drops text, but keeps its line breaks.
    fn skip(&mut self, len: usize) {
        let breaks = self.rest[..len].matches('\n').count();
        self.code.extend(std::iter::repeat_n('\n', breaks));
        self.line += breaks;
        self.rest = &self.rest[len..];
    }
}

/// The length of the string or character literal that begins here.
fn literal(rest: &str, before: Option<char>) -> Option<usize> {
    let inside_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    match rest.as_bytes()[0] {
        b'"' => Some(quoted(rest, 1)),
        b'r' | b'b' if !inside_word => prefixed(rest),
        b'\'' => character(rest),
        _ => None,
    }
}

/// The end of `"…"`, scanned from after its opening quote: a backslash escapes the next character.
fn quoted(rest: &str, start: usize) -> usize {
    let bytes = rest.as_bytes();
    let mut at = start;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// `r"…"`, `r#"…"#`, `b"…"`, `br"…"`.
fn prefixed(rest: &str) -> Option<usize> {
    let letters = rest.len() - rest.trim_start_matches(['r', 'b']).len();
    let hashes = rest[letters..].len() - rest[letters..].trim_start_matches('#').len();
    let open = letters + hashes;
    if letters > 2 || rest.as_bytes().get(open) != Some(&b'"') {
        return None;
    }
    if !rest[..letters].contains('r') {
        return (hashes == 0).then(|| quoted(rest, open + 1));
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let end = rest[open + 1..].find(&close).map_or(rest.len(), |at| open + 1 + at + close.len());
    Some(end)
}

/// `'x'` and `'\n'`, but not the lifetime `'x`.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    match chars.next()?.1 {
        '\\' => {
            chars.next()?;
            chars.find(|(_, c)| *c == '\'').map(|(at, _)| at + 1)
        }
        _ => chars.next().filter(|(_, c)| *c == '\'').map(|(at, _)| at + 1),
    }
}
