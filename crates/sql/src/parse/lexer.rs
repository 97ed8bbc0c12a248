//! The lexer: text to tokens.
//!
//! Guarantees: it never fails and always ends. Text that is not a token becomes `Invalid`, which no rule of the grammar
//! accepts, so the parser reports the leftmost error, lexical or syntactic.

use pleiad_model::Number;

use super::Span;

#[derive(Clone, Debug, PartialEq)]
pub enum Token<'t> {
    /// An identifier or a keyword, depending on its position.
    Word(&'t str),
    /// With its `@`.
    Parameter(&'t str),
    /// Escapes resolved.
    String(String),
    /// Unsigned. May be infinite (`1e999`), which JSON cannot represent but an expression can.
    Number(Number),
    Symbol(Symbol),
    Invalid,
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Lexed<'t> {
    pub token: Token<'t>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub enum Symbol {
    OpenParen, CloseParen, OpenBracket, CloseBracket, OpenBrace, CloseBrace,
    Comma, Dot, Colon, Question, DoubleQuestion,
    Star, Slash, Percent, Plus, Minus, Tilde,
    ShiftLeft, ShiftRight, ShiftRightUnsigned,
    Less, Greater, LessOrEqual, GreaterOrEqual, Equal, NotEqual,
    And, Caret, Pipe, DoublePipe,
}

/// Longest first: the first match is the token.
const SYMBOLS: [(&str, Symbol); 31] = [
    (">>>", Symbol::ShiftRightUnsigned),
    ("<<", Symbol::ShiftLeft),
    (">>", Symbol::ShiftRight),
    ("<=", Symbol::LessOrEqual),
    (">=", Symbol::GreaterOrEqual),
    ("!=", Symbol::NotEqual),
    ("<>", Symbol::NotEqual),
    ("||", Symbol::DoublePipe),
    ("??", Symbol::DoubleQuestion),
    ("(", Symbol::OpenParen),
    (")", Symbol::CloseParen),
    ("[", Symbol::OpenBracket),
    ("]", Symbol::CloseBracket),
    ("{", Symbol::OpenBrace),
    ("}", Symbol::CloseBrace),
    (",", Symbol::Comma),
    (".", Symbol::Dot),
    (":", Symbol::Colon),
    ("?", Symbol::Question),
    ("*", Symbol::Star),
    ("/", Symbol::Slash),
    ("%", Symbol::Percent),
    ("+", Symbol::Plus),
    ("-", Symbol::Minus),
    ("~", Symbol::Tilde),
    ("<", Symbol::Less),
    (">", Symbol::Greater),
    ("=", Symbol::Equal),
    ("&", Symbol::And),
    ("^", Symbol::Caret),
    ("|", Symbol::Pipe),
];

#[derive(Clone, Copy, Debug)]
pub struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Self {
        Lexer { text, at: 0 }
    }

    /// The next token; after the last one, always `End`.
    pub fn advance(&mut self) -> Lexed<'t> {
        self.skip_blanks();
        let start = self.at;
        let token = match self.peek() {
            None => Token::End,
            Some('\'' | '"') => self.string(),
            Some('@') => self.parameter(),
            Some(c) if starts_word(c) => self.word(),
            Some(c) if c.is_ascii_digit() => self.number(),
            Some('.') if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number(),
            Some(c) => self.symbol(c),
        };
        Lexed { token, span: Span { start, end: self.at } }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Consumes and returns the longest prefix whose characters the predicate accepts.
    fn take_while(&mut self, accepts: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !accepts(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// White space and `-- comments`. Block comments are not part of the language.
    fn skip_blanks(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if !self.rest().starts_with("--") {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn word(&mut self) -> Token<'t> {
        Token::Word(self.take_while(continues_word))
    }

    fn parameter(&mut self) -> Token<'t> {
        let start = self.at;
        self.take();
        if !self.peek().is_some_and(starts_word) {
            return Token::Invalid;
        }
        self.take_while(continues_word);
        Token::Parameter(&self.text[start..self.at])
    }

    fn symbol(&mut self, first: char) -> Token<'t> {
        let rest = self.rest();
        match SYMBOLS.iter().find(|(text, _)| rest.starts_with(text)) {
            Some((text, symbol)) => {
                self.at += text.len();
                Token::Symbol(*symbol)
            }
            None => {
                self.at += first.len_utf8();
                Token::Invalid
            }
        }
    }

    fn number(&mut self) -> Token<'t> {
        let number = match self.hexadecimal() {
            Some(number) => Some(number),
            None => self.decimal(),
        };
        // `12ab` is neither a number nor a name.
        if self.peek().is_some_and(continues_word) {
            self.take_while(continues_word);
            return Token::Invalid;
        }
        number.map_or(Token::Invalid, Token::Number)
    }

    fn hexadecimal(&mut self) -> Option<Number> {
        let digits = self.rest().strip_prefix("0x").or_else(|| self.rest().strip_prefix("0X"))?;
        if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 2;
        let digits = self.take_while(|c| c.is_ascii_hexdigit());
        Some(match u64::from_str_radix(digits, 16) {
            Ok(n) => Number::from(n),
            Err(_) => {
                Number::Float(digits.chars().filter_map(|c| c.to_digit(16)).fold(0.0, |n, d| n * 16.0 + f64::from(d)))
            }
        })
    }

    /// `12`, `1.5`, `.5`, `1.`, `2e-3`.
    fn decimal(&mut self) -> Option<Number> {
        let start = self.at;
        self.take_while(|c| c.is_ascii_digit());
        let mut integral = true;
        if self.peek() == Some('.') {
            integral = false;
            self.take();
            self.take_while(|c| c.is_ascii_digit());
        }
        if self.exponent_follows() {
            integral = false;
            self.at += 2; // the letter, and a sign or a digit
            self.take_while(|c| c.is_ascii_digit());
        }
        let text = &self.text[start..self.at];
        match text.parse::<u64>() {
            Ok(n) if integral => Some(Number::from(n)),
            _ => text.parse::<f64>().ok().map(Number::Float),
        }
    }

    fn exponent_follows(&self) -> bool {
        match self.rest().as_bytes() {
            [b'e' | b'E', b'+' | b'-', digit, ..] => digit.is_ascii_digit(),
            [b'e' | b'E', digit, ..] => digit.is_ascii_digit(),
            _ => false,
        }
    }

    fn string(&mut self) -> Token<'t> {
        let quote = self.take();
        let mut value = String::new();
        let mut valid = true;
        loop {
            value.push_str(self.take_while(|c| c != '\\' && Some(c) != quote));
            match self.take() {
                None => return Token::Invalid,
                Some('\\') => match self.escape() {
                    Some(c) => value.push(c),
                    None => valid = false, // read up to the closing quote, so that the message shows the whole literal
                },
                Some(_) => return if valid { Token::String(value) } else { Token::Invalid },
            }
        }
    }

    /// The rest of an escape sequence, after the backslash.
    fn escape(&mut self) -> Option<char> {
        Some(match self.take()? {
            c @ ('\'' | '"' | '\\' | '/') => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.unicode_escape(),
            _ => return None,
        })
    }

    /// Four hex digits, or both halves of a surrogate pair. Half a pair is invalid.
    fn unicode_escape(&mut self) -> Option<char> {
        let first = self.four_hex_digits()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        if !self.rest().starts_with("\\u") {
            return None;
        }
        self.at += 2;
        let second = self.four_hex_digits()?;
        (0xDC00..0xE000)
            .contains(&second)
            .then(|| 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
            .and_then(char::from_u32)
    }

    fn four_hex_digits(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

fn starts_word(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn continues_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

#[cfg(test)]
mod tests;
