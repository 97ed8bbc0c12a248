//! Translates Perl patterns to the syntax of the engines that run them.
//!
//! Syntax with the same meaning in Perl and the engines is copied; syntax that the engines would interpret
//! differently is rewritten; features that they do not have are rejected by name. The engines validate the rest.
//!
//! ```text
//! a\<b        a\x{3c}b                 engines: the start of a word
//! [a&&b]      [a\x{26}\x{26}b]         engines: an intersection
//! a$          a\z, or a(?:\z|(?=\n\z)) engines: the very end; Perl: also before a newline at the end
//! a*+         unchanged, backtracking  automaton: (a*)+
//! ```

mod class; // character classes

use std::iter;

use pleiad_model::{Error, Result};

/// A pattern that the engines interpret as Perl does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Translated {
    /// For texts that do not end in a newline: end anchors match only at the very end.
    pub text: String,
    /// For texts that end in a newline, if the pattern has end anchors.
    pub before_newline: Option<String>,
    /// Nothing but end anchors follows an end anchor. Then a text that ends in a newline matches if it matches with or
    /// without the newline.
    pub ends_last: bool,
    /// Only the backtracking engine can run it.
    pub backtracks: bool,
}

/// Flags that a group inherits from the enclosing groups.
#[derive(Clone, Copy)]
pub struct RegexFlags {
    pub multi_line: bool,
    pub ignore_space: bool,
}

/// The kind of the preceding token, which decides whether a quantifier may follow.
#[derive(Clone, Copy, PartialEq)]
enum PrecedingToken {
    Nothing,
    Atom,
    Quantifier,
}

/// Where end anchors occurred, relative to the current group.
#[derive(Clone, Copy, Default)]
struct EndAnchors {
    before: bool,
    in_branch: bool,
    in_other_branch: bool,
}

struct Translator<'s> {
    rest: &'s str,
    text: String,
    /// The positions of end anchors (`\z`) in `text`.
    ends: Vec<usize>,
    end_anchors: EndAnchors,
    /// Whether the preceding token is or contains an end anchor.
    last_has_end: bool,
    ends_last: bool,
    flags: RegexFlags,
    outer: Vec<(RegexFlags, EndAnchors)>,
    groups: usize,
    last: PrecedingToken,
    backtracks: bool,
}

/// `None` if the pattern is invalid.
pub fn translate(source: &str, flags: RegexFlags) -> Result<Option<Translated>> {
    let mut translator = Translator {
        rest: source,
        text: String::with_capacity(source.len()),
        ends: Vec::new(),
        end_anchors: EndAnchors::default(),
        last_has_end: false,
        ends_last: true,
        flags,
        outer: Vec::new(),
        groups: 0,
        last: PrecedingToken::Nothing,
        backtracks: false,
    };
    while !translator.rest.is_empty() {
        if translator.step()?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(translator.finish()))
}

const END: &str = r"\z";
/// A group, not a bare look-ahead, which the engine would not repeat.
const END_OR_NEWLINE: &str = r"(?:\z|(?=\n\z))";

impl<'s> Translator<'s> {
    fn finish(self) -> Translated {
        let before_newline = (!self.ends.is_empty()).then(|| {
            let starts = iter::once(0).chain(self.ends.iter().map(|end| end + END.len()));
            let stops = self.ends.iter().copied().chain(iter::once(self.text.len()));
            let parts: Vec<&str> = starts.zip(stops).filter_map(|(from, to)| self.text.get(from..to)).collect();
            parts.join(END_OR_NEWLINE)
        });
        Translated { text: self.text, before_newline, ends_last: self.ends_last, backtracks: self.backtracks }
    }

    /// Translates one token; `None` if the pattern is invalid.
    fn step(&mut self) -> Result<Option<()>> {
        let Some(first) = self.next() else { return Ok(None) };
        match first {
            '\\' => return self.escape(),
            '(' => return self.open(),
            '[' => return Ok(self.class()),
            '*' | '+' | '?' => return Ok(self.quantifier(first.encode_utf8(&mut [0; 4]))),
            '{' => return Ok(self.braces()),
            ')' => self.close(),
            '|' => self.branch(),
            '$' if !self.flags.multi_line => self.end(),
            '#' if self.flags.ignore_space => self.comment(),
            _ if self.flags.ignore_space && first.is_whitespace() => self.text.push(first),
            _ => self.atom(first.encode_utf8(&mut [0; 4])),
        }
        Ok(Some(()))
    }

    fn next(&mut self) -> Option<char> {
        let first = self.rest.chars().next()?;
        self.rest = self.rest.get(first.len_utf8()..).unwrap_or_default();
        Some(first)
    }

    fn eat(&mut self, beginning: &str) -> bool {
        let rest = self.rest.strip_prefix(beginning);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes the text up to this character, and the character.
    fn until(&mut self, closing: char) -> Option<&'s str> {
        let (before, after) = self.rest.split_once(closing)?;
        self.rest = after;
        Some(before)
    }

    fn digits(&mut self, count_max: usize, radix: u32) -> &'s str {
        let count = self.rest.chars().take(count_max).take_while(|digit| digit.is_digit(radix)).count();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits
    }

    fn atom(&mut self, text: &str) {
        self.text.push_str(text);
        self.last = PrecedingToken::Atom;
        self.last_has_end = false;
        self.ends_last &= !(self.end_anchors.before || self.end_anchors.in_branch);
    }

    /// An end anchor: matches at the end of the subject, or before a newline that is its last character.
    fn end(&mut self) {
        self.ends.push(self.text.len());
        self.text.push_str(END);
        self.last = PrecedingToken::Atom;
        self.last_has_end = true;
        self.end_anchors.in_branch = true;
    }

    fn comment(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        self.rest = self.rest.get(end..).unwrap_or_default();
    }

    /// Two quantifiers in a row are invalid. A following `?` makes it lazy, a following `+` possessive.
    fn quantifier(&mut self, repeats: &str) -> Option<()> {
        if self.last == PrecedingToken::Quantifier {
            return None;
        }
        self.text.push_str(repeats);
        self.last = PrecedingToken::Quantifier;
        self.ends_last &= !self.last_has_end;
        if self.eat("?") {
            self.text.push('?');
        } else if self.eat("+") {
            self.text.push('+');
            self.backtracks = true;
        }
        Some(())
    }

    /// `{2}`, `{2,}`, `{2,3}` and `{,3}` are quantifiers; anything else in braces is literal.
    fn braces(&mut self) -> Option<()> {
        let repeats = |inside: &str| {
            let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let is_range = digits(least) && digits(most) && !(least.is_empty() && most.is_empty());
            is_range.then(|| {
                let least = if least.is_empty() { "0" } else { least };
                if inside.contains(',') { format!("{{{least},{most}}}") } else { format!("{{{least}}}") }
            })
        };
        let inside = self.rest.split_once('}').map(|(inside, _)| inside);
        match inside.and_then(|inside| Some((inside, repeats(inside)?))) {
            Some((inside, _)) if is_reversed_range(inside) => None,
            Some((inside, text)) => {
                self.rest = self.rest.get(inside.len() + 1..).unwrap_or_default();
                self.quantifier(&text)
            }
            None => {
                self.atom(r"\{");
                Some(())
            }
        }
    }

    // Escapes.

    fn escape(&mut self) -> Result<Option<()>> {
        let Some(escaped) = self.next() else { return Ok(None) };
        match escaped {
            'h' | 'H' | 'v' | 'V' => {
                let negated = if escaped.is_ascii_uppercase() { "^" } else { "" };
                self.atom(&format!("[{negated}{}]", class::blanks(escaped)));
            }
            'Z' => self.end(),
            'Q' => self.quoted(),
            'E' => {}
            'c' => return Ok(self.control()),
            '0' => return Ok(self.octal(escaped).map(|one| self.atom(&literal(one)))),
            '1'..='9' => return Ok(self.number(escaped)),
            'x' | 'o' => return Ok(self.code(escaped).map(|one| self.atom(&literal(one)))),
            'N' if !self.rest.starts_with('{') => self.atom(r"[^\n]"),
            'N' if !self.rest.starts_with("{U+") => return Err(unsupported("Characters by name")),
            'N' => return Ok(self.code(escaped).map(|one| self.atom(&literal(one)))),
            'g' | 'k' => return Ok(self.reference(escaped)),
            'X' => return Err(unsupported(r"\X")),
            'b' | 'B' if self.rest.starts_with('{') => return Err(unsupported("Boundaries by name")),
            sign if sign.is_ascii_punctuation() || sign.is_whitespace() => self.atom(&literal(sign)),
            _ => self.escaped(escaped),
        }
        Ok(Some(()))
    }

    /// Copies an escape with the same meaning in Perl and the engines, with its braces.
    fn escaped(&mut self, escaped: char) {
        self.ends_last &= escaped != 'z';
        self.atom("\\");
        self.text.push(escaped);
        let braced = matches!(escaped, 'p' | 'P' | 'u') && self.rest.starts_with('{');
        if let Some(inside) = braced.then(|| self.until('}')).flatten() {
            self.text.push_str(inside);
            self.text.push('}');
        }
    }

    /// `\1` is a back-reference; `\12` is one if there are 12 groups, otherwise an octal character code.
    fn number(&mut self, first: char) -> Option<()> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = format!("{first}{}", self.rest.get(..digits)?).parse().unwrap_or(usize::MAX);
        if number < 10 || number <= self.groups {
            self.rest = self.rest.get(digits..)?;
            return self.numbered(number);
        }
        let one = self.octal(first)?;
        self.atom(&literal(one));
        Some(())
    }

    /// `\x41`, `\x{41}`, `\o{101}` or `\N{U+41}`.
    fn code(&mut self, kind: char) -> Option<char> {
        let (digits, radix) = match kind {
            'x' if !self.rest.starts_with('{') => (self.digits(2, 16), 16),
            'o' => (self.braced("{")?, 8),
            'N' => (self.braced("{U+")?, 16),
            _ => (self.braced("{")?, 16),
        };
        char::from_u32(if digits.is_empty() { 0 } else { u32::from_str_radix(digits, radix).ok()? })
    }

    fn braced(&mut self, beginning: &str) -> Option<&'s str> {
        if self.eat(beginning) { self.until('}').map(str::trim) } else { None }
    }

    /// Up to three digits.
    fn octal(&mut self, first: char) -> Option<char> {
        let code = format!("{first}{}", self.digits(2, 8));
        char::from_u32(u32::from_str_radix(&code, 8).ok()?)
    }

    /// `\Q…\E`: every character is literal.
    fn quoted(&mut self) {
        let (quoted, rest) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
        self.rest = rest;
        for one in quoted.chars() {
            self.atom(&literal(one));
        }
    }

    /// Control characters: `\cA` is 1.
    fn control(&mut self) -> Option<()> {
        let letter = self.next().filter(char::is_ascii)?;
        self.atom(&code_point(u32::from(letter.to_ascii_uppercase()) ^ 64));
        Some(())
    }

    /// `\g1`, `\g{-1}`, `\g{name}`, `\k{name}`, `\k<name>`, `\k'name'`: back-references.
    fn reference(&mut self, kind: char) -> Option<()> {
        let name = match self.next()? {
            '{' => self.until('}')?,
            '<' if kind == 'k' => self.until('>')?,
            '\'' if kind == 'k' => self.until('\'')?,
            '-' if kind == 'g' => return self.group(self.groups.checked_add(1)?, true),
            digit if kind == 'g' && digit.is_ascii_digit() => return self.group(digit.to_digit(10)? as usize, false),
            _ => return None,
        };
        match (name.strip_prefix('-'), kind) {
            (Some(back), 'g') => self.numbered((self.groups + 1).checked_sub(back.parse().ok()?)?),
            (None, 'g') if name.bytes().all(|byte| byte.is_ascii_digit()) => self.numbered(name.parse().ok()?),
            _ => {
                self.atom(&format!(r"\k<{name}>"));
                Some(())
            }
        }
    }

    /// The rest of a group number without braces; with `back`, counted backwards from `from`.
    fn group(&mut self, from: usize, back: bool) -> Option<()> {
        let digits = self.digits(3, 10);
        if back {
            return self.numbered(from.checked_sub(digits.parse().ok()?)?);
        }
        self.numbered(format!("{from}{digits}").parse().ok()?)
    }

    fn numbered(&mut self, group: usize) -> Option<()> {
        let group = Some(group).filter(|group| *group > 0)?;
        self.atom(&format!(r"(?:\{group})"));
        Some(())
    }

    // Groups.

    fn open(&mut self) -> Result<Option<()>> {
        if self.rest.starts_with('*') {
            return Err(unsupported("Verbs"));
        }
        if !self.eat("?") {
            self.groups += 1;
            self.enter("(");
            return Ok(Some(()));
        }
        if self.eat("#") {
            return Ok(self.until(')').map(|_| ()));
        }
        if self.rest.starts_with("P=") {
            let back = self.until(')').and_then(|name| name.strip_prefix("P="));
            return Ok(back.map(|name| self.atom(&format!(r"\k<{name}>"))));
        }
        self.check_supported()?;
        Ok(self.special())
    }

    fn check_supported(&self) -> Result<()> {
        let rest = self.rest.trim_start_matches(['+', '-']);
        let recursion = rest.starts_with(|first: char| first.is_ascii_digit())
            || ["R)", "&", "P>"].iter().any(|beginning| self.rest.starts_with(beginning));
        let code = ["{", "?{"].iter().any(|beginning| self.rest.starts_with(beginning));
        let flags = self.rest.split([')', ':']).next().unwrap_or_default();
        let is_switch = flags.bytes().all(|flag| flag.is_ascii_lowercase() || matches!(flag, b'^' | b'-'));
        match self.rest.starts_with('|') {
            _ if is_switch && flags.contains(['a', 'd', 'l', 'n', 'p']) => Err(unsupported("One of these flags")),
            _ if recursion => Err(unsupported("Recursion")),
            _ if code => Err(unsupported("Code")),
            true => Err(unsupported("Numbering groups anew in each branch")),
            false => Ok(()),
        }
    }

    /// `(?:`, `(?=`, `(?<name>`, `(?(1)`, `(?i)` and similar.
    fn special(&mut self) -> Option<()> {
        for beginning in ["<=", "<!", ":", "=", "!", ">"] {
            if self.eat(beginning) {
                self.enter(&format!("(?{beginning}"));
                return Some(());
            }
        }
        for (beginning, closing) in [("P<", '>'), ("<", '>'), ("'", '\'')] {
            if self.eat(beginning) {
                let name = self.until(closing)?;
                self.groups += 1;
                self.enter(&format!("(?<{name}>"));
                return Some(());
            }
        }
        if self.rest.starts_with('(') {
            return self.condition();
        }
        self.switch()
    }

    fn enter(&mut self, text: &str) {
        self.outer.push((self.flags, self.end_anchors));
        self.end_anchors =
            EndAnchors { before: self.end_anchors.before || self.end_anchors.in_branch, ..EndAnchors::default() };
        self.text.push_str(text);
        self.last = PrecedingToken::Nothing;
    }

    fn branch(&mut self) {
        self.end_anchors.in_other_branch |= self.end_anchors.in_branch;
        self.end_anchors.in_branch = false;
        self.text.push('|');
        self.last = PrecedingToken::Nothing;
    }

    fn close(&mut self) {
        self.last_has_end = self.end_anchors.in_branch || self.end_anchors.in_other_branch;
        if let Some((flags, enclosing)) = self.outer.pop() {
            self.flags = flags;
            self.end_anchors = EndAnchors { in_branch: enclosing.in_branch || self.last_has_end, ..enclosing };
        }
        self.text.push(')');
        self.last = PrecedingToken::Atom;
    }

    /// `(?(1)yes|no)`: the condition is not a group, unless it is a look-around.
    fn condition(&mut self) -> Option<()> {
        self.enter("(?");
        if !self.rest.starts_with("(?") {
            let condition = self.until(')')?;
            self.text.push_str(condition);
            self.text.push(')');
        }
        Some(())
    }

    /// `(?i)` applies to the rest of the enclosing group, `(?i:…)` to its own; `(?^…)` resets all flags first.
    fn switch(&mut self) -> Option<()> {
        let end = self.rest.find([')', ':'])?;
        let (letters, rest) = self.rest.split_at(end);
        let (letters, resets) = letters.strip_prefix('^').map_or((letters, false), |letters| (letters, true));
        let (on, off) = letters.split_once('-').unwrap_or((letters, ""));
        if on.contains('R') || off.contains('R') {
            return None;
        }
        let off: String =
            if resets { "imsx".chars().filter(|flag| !on.contains(*flag)).collect() } else { off.to_owned() };
        let dash = if off.is_empty() { "" } else { "-" };
        let mut flags = self.flags;
        for (letters, set) in [(on, true), (off.as_str(), false)] {
            flags.multi_line = if letters.contains('m') { set } else { flags.multi_line };
            flags.ignore_space = if letters.contains('x') { set } else { flags.ignore_space };
        }
        self.rest = rest.get(1..).unwrap_or_default();
        match rest.starts_with(':') {
            true => self.enter(&format!("(?{on}{dash}{off}:")),
            // `(?^)` without any flag to change.
            false if on.is_empty() && off.is_empty() => {}
            false => self.text.push_str(&format!("(?{on}{dash}{off})")),
        }
        self.flags = flags;
        Some(())
    }
}

/// `{3,2}`, which is invalid.
fn is_reversed_range(repeats: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().ok();
    repeats.split_once(',').is_some_and(|(least, most)| number(least).zip(number(most)).is_some_and(|(l, m)| l > m))
}

fn unsupported(what: &str) -> Error {
    Error::unsupported(format!("{what} in a regular expression"))
}

/// A character, escaped so that it is literal in every context.
fn literal(one: char) -> String {
    if one.is_ascii_alphanumeric() || !one.is_ascii() { one.to_string() } else { code_point(u32::from(one)) }
}

fn code_point(code: u32) -> String {
    format!(r"\x{{{code:x}}}")
}

#[cfg(test)]
mod tests;
