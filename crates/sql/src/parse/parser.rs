//! The recursive descent parser: clauses in `select`, scalars in `scalar`.
//!
//! Guarantees: `NESTING_MAX` bounds the recursion, so no text can exhaust the stack. The parser accepts the whole
//! language, including features that the engine does not support.

mod scalar;
mod select;

use super::ast::{Name, Select};
use super::lexer::{Lexed, Lexer, Symbol, Token};
use super::{Diagnostic, NESTING_MAX, Span};

type Parsed<T> = Result<T, Diagnostic>;

/// Words that are never identifiers, in any letter case.
const RESERVED: [&str; 22] = [
    "AND", "AS", "ASC", "BETWEEN", "BY", "DESC", "DISTINCT", "ESCAPE", "FROM", "GROUP", "IN", "JOIN", "LIKE", "LIMIT",
    "NOT", "OFFSET", "OR", "ORDER", "SELECT", "TOP", "VALUE", "WHERE",
];

/// Reserved in lower case only.
const RESERVED_EXACT: [&str; 5] = ["true", "false", "null", "undefined", "udf"];

/// Parses one query. The caller has checked the length of the text.
pub fn parse(text: &str) -> Parsed<Select> {
    let mut parser = Parser::new(text);
    let select = parser.select()?;
    match parser.token.token {
        Token::End => Ok(select),
        _ => Err(parser.unexpected()),
    }
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    token: Lexed<'t>,
    ahead: Lexed<'t>,
    /// The token before `token`.
    last: Span,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        let mut lexer = Lexer::new(text);
        let (token, ahead) = (lexer.advance(), lexer.advance());
        Parser { text, lexer, token, ahead, last: Span::default(), depth: 0 }
    }

    /// Consumes the current token and returns it.
    fn advance(&mut self) -> Lexed<'t> {
        self.last = self.token.span;
        let ahead = std::mem::replace(&mut self.ahead, self.lexer.advance());
        std::mem::replace(&mut self.token, ahead)
    }

    /// A syntax error at the current token; at the end of the text, at the last token.
    fn unexpected(&self) -> Diagnostic {
        let span = if self.token.token == Token::End { self.last } else { self.token.span };
        Diagnostic::syntax(span, self.text)
    }

    /// From `start` to the last token read.
    fn since(&self, start: Span) -> Span {
        start.to(self.last)
    }

    /// Every recursive rule calls this first. An error ends the whole parse, so only a successful rule calls `leave`.
    fn enter(&mut self) -> Parsed<()> {
        if self.depth == NESTING_MAX {
            let message = format!("The query nests deeper than {NESTING_MAX} levels. Flatten it or split it.");
            return Err(Diagnostic::plain(self.token.span, message));
        }
        self.depth += 1;
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    fn at(&self, symbol: Symbol) -> bool {
        self.token.token == Token::Symbol(symbol)
    }

    fn accept(&mut self, symbol: Symbol) -> bool {
        let found = self.at(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, symbol: Symbol) -> Parsed<()> {
        if self.accept(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn at_keyword(&self, keyword: &str) -> bool {
        is_keyword(&self.token, keyword)
    }

    fn accept_keyword(&mut self, keyword: &str) -> bool {
        let found = self.at_keyword(keyword);
        if found {
            self.advance();
        }
        found
    }

    fn expect_keyword(&mut self, keyword: &str) -> Parsed<()> {
        if self.accept_keyword(keyword) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The current token, if it is an identifier.
    fn peek_name(&self) -> Option<&'t str> {
        match self.token.token {
            Token::Word(word) if !is_reserved(word) => Some(word),
            _ => None,
        }
    }

    fn name(&mut self) -> Parsed<Name> {
        let text = self.peek_name().ok_or_else(|| self.unexpected())?.to_owned();
        Ok(Name { text, span: self.advance().span })
    }

    /// One or more items, separated by commas.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.accept(Symbol::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Zero or more items, separated by commas, and the token `close`.
    fn list_until<T>(&mut self, close: Symbol, item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        if self.accept(close) {
            return Ok(Vec::new());
        }
        let items = self.list(item)?;
        self.expect(close)?;
        Ok(items)
    }
}

fn is_keyword(lexed: &Lexed<'_>, keyword: &str) -> bool {
    matches!(lexed.token, Token::Word(word) if word.eq_ignore_ascii_case(keyword))
}

/// Whether the text can be written unquoted, as in `c.name`.
pub(super) fn is_name(text: &str) -> bool {
    let mut lexer = Lexer::new(text);
    lexer.advance().token == Token::Word(text) && !is_reserved(text)
}

pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED_EXACT.contains(&word) || RESERVED.iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}

#[cfg(test)]
pub(crate) mod tests;
