//! Parsing of scalar expressions, by precedence climbing.
//!
//! From loosest to tightest: `?:`, `??`, `OR`, `AND`, `NOT`, `IN`/`BETWEEN`/`LIKE`, the levels of
//! `BinaryOp`, `-`/`+`/`~`, `.name`/`[index]`.
//!
//! `NOT c.a = 1` is `NOT (c.a = 1)`: the documentation ranks `NOT` only relative to `AND` and `OR`, and `(NOT c.a) = 1`
//! would be undefined for every item.
//!
//! One loop handles all levels between `?:` and the prefix operators, so a level of parentheses needs five small stack
//! frames.

use std::collections::HashSet;

use pleiad_model::{Number, Value};

use super::super::ast::{AstStep, BinaryOp, Expr, ExprKind, SubqueryForm, UnaryOp};
use super::super::lexer::{Symbol, Token};
use super::super::{Diagnostic, PROPERTIES_MAX, Span};
use super::{Parsed, Parser};

/// An operator that can follow an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Infix {
    Binary(BinaryOp),
    /// `[NOT] IN`, `[NOT] BETWEEN`, `[NOT] LIKE`
    Predicate,
    And,
    Or,
    Coalesce,
}

const PREDICATE_LEVEL: u8 = BinaryOp::LEVEL_LOOSEST + 1;
const NOT_LEVEL: u8 = PREDICATE_LEVEL + 1;
const AND_LEVEL: u8 = NOT_LEVEL + 1;
const OR_LEVEL: u8 = AND_LEVEL + 1;
const COALESCE_LEVEL: u8 = OR_LEVEL + 1;

impl Infix {
    fn level(self) -> u8 {
        match self {
            Infix::Binary(op) => op.level(),
            Infix::Predicate => PREDICATE_LEVEL,
            Infix::And => AND_LEVEL,
            Infix::Or => OR_LEVEL,
            Infix::Coalesce => COALESCE_LEVEL,
        }
    }
}

impl Parser<'_> {
    /// `a ? b : c ? d : e` is right-associative, so the arms form one list.
    pub(super) fn scalar(&mut self) -> Parsed<Expr> {
        self.enter()?;
        let start = self.token.span;
        let mut arms = Vec::new();
        let mut last = self.operators(COALESCE_LEVEL)?;
        while self.accept(Symbol::Question) {
            let value = self.scalar()?;
            self.expect(Symbol::Colon)?;
            arms.push((last, value));
            last = self.operators(COALESCE_LEVEL)?;
        }
        self.leave();
        if arms.is_empty() {
            return Ok(last);
        }
        Ok(self.node(start, ExprKind::Conditional { arms, otherwise: Box::new(last) }))
    }

    /// Operators of level `loosest` and all tighter levels, left to right within a level.
    fn operators(&mut self, loosest: u8) -> Parsed<Expr> {
        let start = self.token.span;
        let mut tightest = if self.at_keyword("NOT") { NOT_LEVEL } else { 0 };
        let mut left = self.prefix()?;
        while let Some(infix) = self.infix().filter(|infix| (tightest..=loosest).contains(&infix.level())) {
            if infix == Infix::Predicate {
                left = self.predicate(start, left)?;
                tightest = NOT_LEVEL; // predicates do not chain: `a IN (1) IN (2)`
            } else {
                self.advance();
                let right = self.right_operand(infix.level() - 1)?;
                left = self.append(start, left, infix, right);
            }
        }
        Ok(left)
    }

    fn right_operand(&mut self, loosest: u8) -> Parsed<Expr> {
        self.enter()?;
        let operand = self.operators(loosest)?;
        self.leave();
        Ok(operand)
    }

    /// Appends to a left operand of the same kind instead of nesting it: `(a - b) - c` is `a - b - c`, and `AND`, `OR`
    /// and `??` are associative.
    fn append(&self, start: Span, left: Expr, infix: Infix, right: Expr) -> Expr {
        let kind = match (infix, left.kind) {
            (Infix::Binary(op), ExprKind::Binary { first, mut rest }) if same_level(&rest, op) => {
                rest.push((op, right));
                ExprKind::Binary { first, rest }
            }
            (Infix::Binary(op), kind) => {
                ExprKind::Binary { first: Box::new(Expr { kind, span: left.span }), rest: vec![(op, right)] }
            }
            (Infix::And, ExprKind::And(terms)) => ExprKind::And(with_term(terms, right)),
            (Infix::Or, ExprKind::Or(terms)) => ExprKind::Or(with_term(terms, right)),
            (Infix::Coalesce, ExprKind::Coalesce(terms)) => ExprKind::Coalesce(with_term(terms, right)),
            (infix, kind) => {
                let pair = vec![Expr { kind, span: left.span }, right];
                match infix {
                    Infix::And => ExprKind::And(pair),
                    Infix::Or => ExprKind::Or(pair),
                    _ => ExprKind::Coalesce(pair),
                }
            }
        };
        self.node(start, kind)
    }

    fn infix(&self) -> Option<Infix> {
        match self.token.token {
            Token::Symbol(Symbol::DoubleQuestion) => Some(Infix::Coalesce),
            Token::Symbol(symbol) => binary_operator(symbol).map(Infix::Binary),
            Token::Word(word) => infix_word(word),
            _ => None,
        }
    }

    fn predicate(&mut self, start: Span, operand: Expr) -> Parsed<Expr> {
        let not = self.accept_keyword("NOT");
        let operand = Box::new(operand);
        if self.accept_keyword("IN") {
            self.in_list(start, not, operand)
        } else if self.accept_keyword("BETWEEN") {
            self.between(start, not, operand)
        } else if self.accept_keyword("LIKE") {
            self.like(start, not, operand)
        } else {
            Err(self.unexpected())
        }
    }

    fn in_list(&mut self, start: Span, not: bool, operand: Box<Expr>) -> Parsed<Expr> {
        self.expect(Symbol::OpenParen)?;
        let list = self.list(Self::scalar)?;
        self.expect(Symbol::CloseParen)?;
        Ok(self.node(start, ExprKind::In { not, operand, list }))
    }

    /// The bounds bind tighter than `AND`, so the first `AND` belongs to `BETWEEN`.
    fn between(&mut self, start: Span, not: bool, operand: Box<Expr>) -> Parsed<Expr> {
        let low = Box::new(self.right_operand(BinaryOp::LEVEL_LOOSEST)?);
        self.expect_keyword("AND")?;
        let high = Box::new(self.right_operand(BinaryOp::LEVEL_LOOSEST)?);
        Ok(self.node(start, ExprKind::Between { not, operand, low, high }))
    }

    fn like(&mut self, start: Span, not: bool, operand: Box<Expr>) -> Parsed<Expr> {
        let pattern = Box::new(self.right_operand(BinaryOp::LEVEL_LOOSEST)?);
        let escape = if self.accept_keyword("ESCAPE") { Some(self.escape_character()?) } else { None };
        Ok(self.node(start, ExprKind::Like { not, operand, pattern, escape }))
    }

    fn escape_character(&mut self) -> Parsed<char> {
        let mut characters = match &self.token.token {
            Token::String(text) => text.chars(),
            _ => return Err(self.unexpected()),
        };
        match (characters.next(), characters.next()) {
            (Some(escape), None) => {
                self.advance();
                Ok(escape)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn prefix(&mut self) -> Parsed<Expr> {
        let op = match self.token.token {
            Token::Symbol(Symbol::Minus) => UnaryOp::Minus,
            Token::Symbol(Symbol::Plus) => UnaryOp::Plus,
            Token::Symbol(Symbol::Tilde) => UnaryOp::BitNot,
            Token::Word(_) if self.at_keyword("NOT") => UnaryOp::Not,
            _ => return self.postfix(),
        };
        let start = self.advance().span;
        // The operand of `NOT` includes comparisons and predicates; the other prefixes bind tightest.
        let operand_level = if op == UnaryOp::Not { NOT_LEVEL } else { 0 };
        let operand = Box::new(self.right_operand(operand_level)?);
        Ok(self.node(start, ExprKind::Unary { op, operand }))
    }

    /// A primary expression and the path that follows it.
    pub(super) fn postfix(&mut self) -> Parsed<Expr> {
        let start = self.token.span;
        let base = self.primary()?;
        let mut steps = Vec::new();
        loop {
            if self.accept(Symbol::Dot) {
                steps.push(AstStep::Property(self.name()?.text));
            } else if self.accept(Symbol::OpenBracket) {
                steps.push(AstStep::Index(self.scalar()?));
                self.expect(Symbol::CloseBracket)?;
            } else if steps.is_empty() {
                return Ok(base);
            } else {
                return Ok(self.node(start, path(base, steps)));
            }
        }
    }

    pub(super) fn primary(&mut self) -> Parsed<Expr> {
        match self.token.token {
            Token::Word(word) => self.word(word),
            Token::Symbol(Symbol::OpenParen) => self.parenthesised(),
            Token::Symbol(Symbol::OpenBrace) => self.object(),
            Token::Symbol(Symbol::OpenBracket) => self.array(),
            _ => self.literal(),
        }
    }

    fn literal(&mut self) -> Parsed<Expr> {
        if !matches!(self.token.token, Token::Number(_) | Token::String(_) | Token::Parameter(_)) {
            return Err(self.unexpected());
        }
        let lexed = self.advance();
        let kind = match lexed.token {
            Token::Number(number) => ExprKind::Constant(Value::Number(number)),
            Token::String(text) => ExprKind::Constant(Value::String(text)),
            Token::Parameter(name) => ExprKind::Parameter(name.to_owned()),
            _ => return Err(Diagnostic::syntax(lexed.span, self.text)),
        };
        Ok(Expr { kind, span: lexed.span })
    }

    /// A constant, a call, a subquery or an alias.
    fn word(&mut self, word: &str) -> Parsed<Expr> {
        if let Some(kind) = constant_word(word) {
            return Ok(Expr { kind, span: self.advance().span });
        }
        if word == "udf" {
            return self.user_call();
        }
        let start = self.token.span;
        let name = self.name()?.text;
        if !self.at(Symbol::OpenParen) {
            return Ok(self.node(start, ExprKind::Name(name)));
        }
        if let Some(form) = subquery_form(&name) {
            self.advance();
            return self.subquery(start, form);
        }
        let arguments = self.arguments()?;
        Ok(self.node(start, ExprKind::Call { function: name, arguments }))
    }

    fn user_call(&mut self) -> Parsed<Expr> {
        let start = self.advance().span;
        self.expect(Symbol::Dot)?;
        let function = self.name()?.text;
        let arguments = self.arguments()?;
        Ok(self.node(start, ExprKind::UserCall { function, arguments }))
    }

    fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.expect(Symbol::OpenParen)?;
        self.list_until(Symbol::CloseParen, Self::scalar)
    }

    fn parenthesised(&mut self) -> Parsed<Expr> {
        let start = self.advance().span;
        if self.at_keyword("SELECT") {
            return self.subquery(start, SubqueryForm::Scalar);
        }
        let inner = self.scalar()?;
        self.expect(Symbol::CloseParen)?;
        Ok(self.node(start, inner.kind))
    }

    /// The query and the closing parenthesis.
    fn subquery(&mut self, start: Span, form: SubqueryForm) -> Parsed<Expr> {
        self.enter()?;
        let select = Box::new(self.select()?);
        self.leave();
        self.expect(Symbol::CloseParen)?;
        Ok(self.node(start, ExprKind::Subquery { form, select }))
    }

    fn object(&mut self) -> Parsed<Expr> {
        let start = self.advance().span;
        let properties = self.list_until(Symbol::CloseBrace, Self::property)?;
        if properties.len() > PROPERTIES_MAX {
            return Err(Diagnostic::plain(
                start,
                format!("An object can be built of at most {PROPERTIES_MAX} properties."),
            ));
        }
        let mut names = HashSet::new();
        if let Some((name, expr)) = properties.iter().find(|(name, _)| !names.insert(name.as_str())) {
            return Err(Diagnostic::duplicate_property(expr.span, name));
        }
        Ok(self.node(start, ExprKind::Object(properties)))
    }

    fn property(&mut self) -> Parsed<(String, Expr)> {
        let name = match &self.token.token {
            Token::String(name) => {
                let name = name.clone();
                self.advance();
                name
            }
            _ => self.name()?.text,
        };
        self.expect(Symbol::Colon)?;
        Ok((name, self.scalar()?))
    }

    fn array(&mut self) -> Parsed<Expr> {
        let start = self.advance().span;
        let items = self.list_until(Symbol::CloseBracket, Self::scalar)?;
        Ok(self.node(start, ExprKind::Array(items)))
    }

    fn node(&self, start: Span, kind: ExprKind) -> Expr {
        Expr { kind, span: self.since(start) }
    }
}

fn same_level(rest: &[(BinaryOp, Expr)], op: BinaryOp) -> bool {
    rest.first().is_some_and(|(other, _)| other.level() == op.level())
}

fn with_term(mut terms: Vec<Expr>, right: Expr) -> Vec<Expr> {
    terms.push(right);
    terms
}

#[rustfmt::skip]
fn binary_operator(symbol: Symbol) -> Option<BinaryOp> {
    Some(match symbol {
        Symbol::Star => BinaryOp::Multiply,
        Symbol::Slash => BinaryOp::Divide,
        Symbol::Percent => BinaryOp::Remainder,
        Symbol::Plus => BinaryOp::Add,
        Symbol::Minus => BinaryOp::Subtract,
        Symbol::ShiftLeft => BinaryOp::ShiftLeft,
        Symbol::ShiftRight => BinaryOp::ShiftRight,
        Symbol::ShiftRightUnsigned => BinaryOp::ShiftRightUnsigned,
        Symbol::Less => BinaryOp::Less,
        Symbol::Greater => BinaryOp::Greater,
        Symbol::LessOrEqual => BinaryOp::LessOrEqual,
        Symbol::GreaterOrEqual => BinaryOp::GreaterOrEqual,
        Symbol::Equal => BinaryOp::Equal,
        Symbol::NotEqual => BinaryOp::NotEqual,
        Symbol::And => BinaryOp::BitAnd,
        Symbol::Caret => BinaryOp::BitXor,
        Symbol::Pipe => BinaryOp::BitOr,
        Symbol::DoublePipe => BinaryOp::Concat,
        _ => return None,
    })
}

fn infix_word(word: &str) -> Option<Infix> {
    const WORDS: [(&str, Infix); 6] = [
        ("AND", Infix::And),
        ("OR", Infix::Or),
        ("IN", Infix::Predicate),
        ("BETWEEN", Infix::Predicate),
        ("LIKE", Infix::Predicate),
        ("NOT", Infix::Predicate), // after an operand, only as in `a NOT IN (…)`
    ];
    WORDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, infix)| *infix)
}

/// `(c.a).b` is `c.a.b`.
fn path(base: Expr, mut steps: Vec<AstStep>) -> ExprKind {
    match base.kind {
        ExprKind::Access { base, steps: mut first } => {
            first.append(&mut steps);
            ExprKind::Access { base, steps: first }
        }
        _ => ExprKind::Access { base: Box::new(base), steps },
    }
}

/// In lower case only, as in JSON; `NaN` and `Infinity` exactly as the printer writes them.
fn constant_word(word: &str) -> Option<ExprKind> {
    Some(match word {
        "undefined" => ExprKind::Undefined,
        "null" => ExprKind::Constant(Value::Null),
        "true" => ExprKind::Constant(Value::Bool(true)),
        "false" => ExprKind::Constant(Value::Bool(false)),
        "NaN" => ExprKind::Constant(Value::Number(Number::Float(f64::NAN))),
        "Infinity" => ExprKind::Constant(Value::Number(Number::Float(f64::INFINITY))),
        _ => return None,
    })
}

/// These words are keywords only before a parenthesis.
fn subquery_form(word: &str) -> Option<SubqueryForm> {
    const FORMS: [(&str, SubqueryForm); 5] = [
        ("EXISTS", SubqueryForm::Exists),
        ("ARRAY", SubqueryForm::Array),
        ("ALL", SubqueryForm::All),
        ("FIRST", SubqueryForm::First),
        ("LAST", SubqueryForm::Last),
    ];
    FORMS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, form)| *form)
}
