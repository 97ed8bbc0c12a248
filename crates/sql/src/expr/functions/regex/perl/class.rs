//! Character classes: characters, ranges and named sets. In Perl, classes have no nesting and no set operations.

use super::{Translator, literal};

/// One member of a class.
enum Member {
    Char(char),
    /// A set in the syntax of the engines: `\d`, `\p{L}`, `[:alpha:]`.
    Set(String),
}

#[rustfmt::skip]
const NAMED: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word", "xdigit",
];

/// Horizontal white space for `h` and `H`, vertical white space for `v` and `V`.
pub fn blanks(letter: char) -> &'static str {
    match letter {
        'h' | 'H' => r"\x{9}\x{20}\x{a0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}",
        _ => r"\x{a}-\x{d}\x{85}\x{2028}\x{2029}",
    }
}

impl Translator<'_> {
    /// Translates the class after its opening bracket, including the closing one.
    pub(super) fn class(&mut self) -> Option<()> {
        self.text.push('[');
        if self.eat("^") {
            self.text.push('^');
        }
        let mut first = true;
        while first || !self.eat("]") {
            self.members()?;
            first = false;
        }
        self.atom("]");
        Some(())
    }

    /// A member or a range; a dash next to a set is literal.
    fn members(&mut self) -> Option<()> {
        let from = self.member()?;
        let dash = self.rest.starts_with('-') && !self.rest.starts_with("-]");
        if !dash {
            self.write(&from);
            return Some(());
        }
        self.rest = self.rest.get(1..).unwrap_or_default();
        match (from, self.member()?) {
            (Member::Char(from), Member::Char(to)) if from <= to => {
                self.text.push_str(&format!("{}-{}", literal(from), literal(to)));
            }
            (Member::Char(_), Member::Char(_)) => return None,
            (from, to) => [from, Member::Char('-'), to].iter().for_each(|member| self.write(member)),
        }
        Some(())
    }

    fn write(&mut self, member: &Member) {
        match member {
            Member::Char(one) => self.text.push_str(&literal(*one)),
            Member::Set(set) => self.text.push_str(set),
        }
    }

    fn member(&mut self) -> Option<Member> {
        match self.next()? {
            '[' if self.rest.starts_with(':') => self.named(),
            '\\' => self.escaped_member(),
            one => Some(Member::Char(one)),
        }
    }

    /// `[:alpha:]`, or a literal bracket.
    fn named(&mut self) -> Option<Member> {
        let name = self.rest.get(1..).and_then(|rest| rest.split_once(":]")).map(|(name, _)| name);
        let name = name.filter(|name| name.trim_start_matches('^').bytes().all(|byte| byte.is_ascii_lowercase()));
        let Some(name) = name else { return Some(Member::Char('[')) };
        self.rest = self.rest.get(name.len() + 3..).unwrap_or_default();
        NAMED.contains(&name.trim_start_matches('^')).then(|| Member::Set(format!("[:{name}:]")))
    }

    fn escaped_member(&mut self) -> Option<Member> {
        let escaped = self.next()?;
        let one = match escaped {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'f' => '\x0c',
            'a' => '\x07',
            'e' => '\x1b',
            'b' => '\x08',
            'c' => char::from_u32(u32::from(self.next().filter(char::is_ascii)?.to_ascii_uppercase()) ^ 64)?,
            '0'..='7' => self.octal(escaped)?,
            'x' | 'o' | 'N' => self.code(escaped)?,
            'u' => self.unit()?,
            'h' | 'v' => return Some(Member::Set(blanks(escaped).to_owned())),
            'H' | 'V' => return Some(Member::Set(format!("[^{}]", blanks(escaped)))),
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => return Some(Member::Set(format!("\\{escaped}"))),
            'p' | 'P' => return self.property(escaped),
            letter if letter.is_ascii_alphanumeric() => return None,
            itself => itself,
        };
        Some(Member::Char(one))
    }

    /// `\u0041` or `\u{41}`, an extension to Perl.
    fn unit(&mut self) -> Option<char> {
        let digits = if self.eat("{") { self.until('}')? } else { self.digits(4, 16) };
        char::from_u32(u32::from_str_radix(digits, 16).ok()?)
    }

    /// `\pL` or `\p{Greek}`.
    fn property(&mut self, letter: char) -> Option<Member> {
        if self.eat("{") {
            return Some(Member::Set(format!("\\{letter}{{{}}}", self.until('}')?)));
        }
        Some(Member::Set(format!("\\{letter}{}", self.next()?)))
    }
}
