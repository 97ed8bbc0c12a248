//! Parser for the translatable subset of JavaScript.
//!
//! Guarantees: `Lambda::parse` either parses the whole text of a function or returns None. It runs nothing. Length and
//! depth are bounded, because the trees are traversed recursively.

const DEPTH_MAX: usize = 64;

/// A chain of members or operators is a tree as deep as the chain is long: this bounds what `DEPTH_MAX` does not count.
const TEXT_BYTES_MAX: usize = 2048;

/// A function of one expression: `d => d.a > 1`, `function (d) { return d.a > 1; }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Lambda {
    pub parameters: Vec<String>,
    pub body: Js,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Js {
    Name(String),
    Number(f64),
    Text(String),
    Bool(bool),
    Null,
    Member(Box<Js>, String),
    Index(Box<Js>, u32),
    Not(Box<Js>),
    Minus(Box<Js>),
    TypeOf(Box<Js>),
    Binary(&'static str, Box<Js>, Box<Js>),
    /// `target.method(arguments)`
    Call(Box<Js>, String, Vec<Js>),
    Object(Vec<(String, Js)>),
}

#[derive(Clone, Debug, PartialEq)]
enum JsToken {
    Word(String),
    Number(f64),
    Text(String),
    Punctuator(&'static str),
}

/// Longer punctuators first: the first match wins. Those that the parser does not use end the parse.
const PUNCTUATORS: [&str; 38] = [
    "===", "!==", ">>>", "...", "**", "=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "<<", ">>", "++", "--",
    "+", "-", "*", "/", "%", "<", ">", "!", "(", ")", "{", "}", "[", "]", ".", ",", ":", ";", "=", "?",
];

/// Binary operators by precedence, the lowest first.
const PRECEDENCE: [&[&str]; 6] =
    [&["||"], &["&&"], &["===", "!==", "==", "!="], &["<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];

impl Lambda {
    pub fn parse(text: &str) -> Option<Lambda> {
        (text.len() <= TEXT_BYTES_MAX).then_some(())?;
        let mut parser = JsParser { tokens: tokens(text)?, at: 0, depth: 0 };
        let lambda = if parser.take_keyword("function") { parser.function() } else { parser.arrow() }?;
        (parser.at == parser.tokens.len()).then_some(lambda)
    }
}

struct JsParser {
    /// Each with whether a line break precedes it.
    tokens: Vec<(JsToken, bool)>,
    at: usize,
    depth: usize,
}

impl JsParser {
    fn function(&mut self) -> Option<Lambda> {
        if matches!(self.peek(), Some(JsToken::Word(_))) {
            self.at += 1; // its name
        }
        let parameters = self.parameters()?;
        self.return_body(parameters)
    }

    fn arrow(&mut self) -> Option<Lambda> {
        let parameters = match self.peek()? {
            JsToken::Word(_) => vec![self.word()?],
            _ => self.parameters()?,
        };
        self.punctuator("=>")?;
        if self.peek() == Some(&JsToken::Punctuator("{")) {
            return self.return_body(parameters);
        }
        Some(Lambda { parameters, body: self.expression()? })
    }

    fn parameters(&mut self) -> Option<Vec<String>> {
        self.punctuator("(")?;
        let mut names = Vec::new();
        while self.punctuator(")").is_none() {
            if !names.is_empty() {
                self.punctuator(",")?;
            }
            names.push(self.word()?);
        }
        Some(names)
    }

    /// `{ return …; }`
    fn return_body(&mut self, parameters: Vec<String>) -> Option<Lambda> {
        self.punctuator("{")?;
        self.take_keyword("return").then_some(())?;
        // After `return` a line break ends the statement, too.
        self.tokens.get(self.at).filter(|(_, is_on_new_line)| !is_on_new_line)?;
        let body = self.expression()?;
        while self.punctuator(";").is_some() {}
        self.punctuator("}")?;
        Some(Lambda { parameters, body })
    }

    fn expression(&mut self) -> Option<Js> {
        self.depth += 1;
        let parsed = if self.depth > DEPTH_MAX { None } else { self.binary(0) };
        self.depth -= 1;
        parsed
    }

    fn binary(&mut self, level: usize) -> Option<Js> {
        let Some(operators) = PRECEDENCE.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().copied().find(|operator| self.punctuator(operator).is_some()) {
            left = Js::Binary(operator, Box::new(left), Box::new(self.binary(level + 1)?));
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Js> {
        self.depth += 1;
        let parsed = if self.depth > DEPTH_MAX { None } else { self.prefixed() };
        self.depth -= 1;
        parsed
    }

    fn prefixed(&mut self) -> Option<Js> {
        if self.punctuator("!").is_some() {
            return Some(Js::Not(Box::new(self.unary()?)));
        }
        if self.punctuator("-").is_some() {
            return Some(Js::Minus(Box::new(self.unary()?)));
        }
        if self.take_keyword("typeof") {
            return Some(Js::TypeOf(Box::new(self.unary()?)));
        }
        let mut parsed = self.primary()?;
        while let Some(longer) = self.postfix(&parsed)? {
            parsed = longer;
        }
        Some(parsed)
    }

    /// The postfix of a value: a member, an index or a call. Some(None) if none follows.
    fn postfix(&mut self, target: &Js) -> Option<Option<Js>> {
        if self.punctuator(".").is_some() || self.punctuator("?.").is_some() {
            let name = self.word()?;
            return if self.punctuator("(").is_some() {
                self.call(target, name)
            } else {
                Some(Some(member(target, name)))
            };
        }
        if self.punctuator("[").is_none() {
            return Some(None);
        }
        let access = match self.next()? {
            JsToken::Text(name) => member(target, name),
            JsToken::Number(n) if n.fract() == 0.0 && n <= f64::from(u32::MAX) => {
                Js::Index(Box::new(target.clone()), n as u32)
            }
            _ => return None,
        };
        self.punctuator("]")?;
        Some(Some(access))
    }

    fn call(&mut self, target: &Js, name: String) -> Option<Option<Js>> {
        let mut arguments = Vec::new();
        while self.punctuator(")").is_none() {
            if !arguments.is_empty() {
                self.punctuator(",")?;
            }
            arguments.push(self.expression()?);
        }
        Some(Some(Js::Call(Box::new(target.clone()), name, arguments)))
    }

    fn primary(&mut self) -> Option<Js> {
        match self.next()? {
            JsToken::Number(n) => Some(Js::Number(n)),
            JsToken::Text(text) => Some(Js::Text(text)),
            JsToken::Word(word) => Some(name_or_literal(word)),
            JsToken::Punctuator("(") => {
                let inner = self.expression()?;
                self.punctuator(")").map(|()| inner)
            }
            JsToken::Punctuator("{") => self.object(),
            JsToken::Punctuator(_) => None,
        }
    }

    fn object(&mut self) -> Option<Js> {
        let mut properties: Vec<(String, Js)> = Vec::new();
        while self.punctuator("}").is_none() {
            if !properties.is_empty() {
                self.punctuator(",")?;
            }
            let (JsToken::Word(name) | JsToken::Text(name)) = self.next()? else { return None };
            self.punctuator(":")?;
            let is_new = properties.iter().all(|(known, _)| *known != name) && name != "__proto__";
            is_new.then_some(())?;
            properties.push((name, self.expression()?));
        }
        Some(Js::Object(properties))
    }

    fn peek(&self) -> Option<&JsToken> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn next(&mut self) -> Option<JsToken> {
        let token = self.peek()?.clone();
        self.at += 1;
        Some(token)
    }

    fn punctuator(&mut self, expected: &str) -> Option<()> {
        let is_next = matches!(self.peek(), Some(JsToken::Punctuator(next)) if *next == expected);
        self.at += usize::from(is_next);
        is_next.then_some(())
    }

    fn word(&mut self) -> Option<String> {
        match self.next()? {
            JsToken::Word(word) => Some(word),
            _ => None,
        }
    }

    fn take_keyword(&mut self, word: &str) -> bool {
        let is_next = matches!(self.peek(), Some(JsToken::Word(next)) if next == word);
        self.at += usize::from(is_next);
        is_next
    }
}

fn member(target: &Js, name: String) -> Js {
    Js::Member(Box::new(target.clone()), name)
}

fn name_or_literal(word: String) -> Js {
    match word.as_str() {
        "true" => Js::Bool(true),
        "false" => Js::Bool(false),
        "null" => Js::Null,
        _ => Js::Name(word),
    }
}

fn tokens(text: &str) -> Option<Vec<(JsToken, bool)>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((is_on_new_line, from)) = skip_trivia(rest)? {
        let (token, remaining) = token(from)?;
        found.push((token, is_on_new_line));
        rest = remaining;
    }
    Some(found)
}

/// Skips spaces and comments. None for an unterminated comment, Some(None) at the end of the text.
fn skip_trivia(text: &str) -> Option<Option<(bool, &str)>> {
    let mut rest = text.trim_start();
    loop {
        rest = if let Some(comment) = rest.strip_prefix("//") {
            comment.find('\n').map_or("", |at| &comment[at..])
        } else if let Some(comment) = rest.strip_prefix("/*") {
            &comment[comment.find("*/")? + 2..]
        } else {
            break;
        }
        .trim_start();
    }
    let skipped = &text[..text.len() - rest.len()];
    Some((!rest.is_empty()).then(|| (skipped.contains(['\n', '\r', '\u{2028}', '\u{2029}']), rest)))
}

fn token(text: &str) -> Option<(JsToken, &str)> {
    let first = text.chars().next()?;
    if first == '"' || first == '\'' {
        return string(&text[1..], first);
    }
    if first.is_ascii_digit() {
        return number(text);
    }
    if first.is_alphabetic() || first == '_' || first == '$' {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(text.len());
        return Some((JsToken::Word(text[..end].to_owned()), &text[end..]));
    }
    let punctuator = PUNCTUATORS.into_iter().find(|punctuator| text.starts_with(punctuator))?;
    Some((JsToken::Punctuator(punctuator), &text[punctuator.len()..]))
}

/// Decimal numbers; functions with `0x10`, `010`, `1_000` or `1n` are not translated.
fn number(text: &str) -> Option<(JsToken, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(text);
    if end > 1 && text.starts_with('0') {
        return None;
    }
    if text[end..].starts_with('.') {
        end += 1 + digits(&text[end + 1..]);
    }
    let is_complete = !text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == '.');
    is_complete.then_some(())?;
    Some((JsToken::Number(text[..end].parse().ok()?), &text[end..]))
}

fn string(text: &str, quote: char) -> Option<(JsToken, &str)> {
    let mut unescaped = String::new();
    let mut rest = text.chars();
    loop {
        match rest.next()? {
            c if c == quote => return Some((JsToken::Text(unescaped), rest.as_str())),
            '\\' => unescaped.push(unescape(rest.next()?)?),
            '\n' | '\r' => return None,
            c => unescaped.push(c),
        }
    }
}

fn unescape(letter: char) -> Option<char> {
    match letter {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        '\\' | '\'' | '"' | '/' => Some(letter),
        _ => None,
    }
}
