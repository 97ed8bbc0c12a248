//! Scalar expressions.
//!
//! From loosest to tightest: `?:`, `??`, `OR`, `AND`, `NOT`, `IN`/`BETWEEN`/`LIKE`, the levels of
//! `BinaryOp`, `-`/`+`/`~`, `.name`/`[index]`.
//!
//! `NOT c.a = 1` is `NOT (c.a = 1)`: the documents rank `NOT` only against `AND` and `OR`, and the other
//! reading would be undefined for every item.

use pleiad_model::{Number, Value};

use super::super::ast::{BinaryOp, Expr, ExprKind, Step, SubqueryForm, UnaryOp};
use super::super::lexer::{Symbol, Token};
use super::super::{Fault, PROPERTIES_MAX, Span};
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn scalar(&mut self) -> Parsed<Expr> {
        self.nested(Self::conditional)
    }

    /// `a ? b : c ? d : e` associates to the right, so the arms are one list.
    fn conditional(&mut self) -> Parsed<Expr> {
        let start = self.token.span;
        let mut arms = Vec::new();
        let mut last = self.coalesce()?;
        while self.accept(Symbol::Question) {
            let value = self.scalar()?;
            self.expect(Symbol::Colon)?;
            arms.push((last, value));
            last = self.coalesce()?;
        }
        if arms.is_empty() {
            return Ok(last);
        }
        Ok(self.node(start, ExprKind::Conditional { arms, otherwise: Box::new(last) }))
    }

    fn coalesce(&mut self) -> Parsed<Expr> {
        self.chain(|p| p.accept(Symbol::DoubleQuestion), Self::or, ExprKind::Coalesce)
    }

    fn or(&mut self) -> Parsed<Expr> {
        self.chain(|p| p.accept_keyword("OR"), Self::and, ExprKind::Or)
    }

    fn and(&mut self) -> Parsed<Expr> {
        self.chain(|p| p.accept_keyword("AND"), Self::negation, ExprKind::And)
    }

    /// `term {separator term}`; a single term stays itself.
    fn chain(
        &mut self,
        separator: impl Fn(&mut Self) -> bool,
        term: impl Fn(&mut Self) -> Parsed<Expr>,
        kind: impl FnOnce(Vec<Expr>) -> ExprKind,
    ) -> Parsed<Expr> {
        let start = self.token.span;
        let first = term(self)?;
        if !separator(self) {
            return Ok(first);
        }
        let mut terms = vec![first, term(self)?];
        while separator(self) {
            terms.push(term(self)?);
        }
        Ok(self.node(start, kind(terms)))
    }

    fn negation(&mut self) -> Parsed<Expr> {
        if !self.at_keyword("NOT") {
            return self.predicate();
        }
        let start = self.advance().span;
        let operand = Box::new(self.nested(Self::negation)?);
        Ok(self.node(start, ExprKind::Unary { op: UnaryOp::Not, operand }))
    }

    fn predicate(&mut self) -> Parsed<Expr> {
        let start = self.token.span;
        let operand = self.binary(BinaryOp::LEVEL_LOOSEST)?;
        let not = self.accept_keyword("NOT");
        if self.accept_keyword("IN") {
            return self.in_list(start, not, Box::new(operand));
        }
        if self.accept_keyword("BETWEEN") {
            return self.between(start, not, Box::new(operand));
        }
        if self.accept_keyword("LIKE") {
            return self.like(start, not, Box::new(operand));
        }
        if not { Err(self.unexpected()) } else { Ok(operand) }
    }

    fn in_list(&mut self, start: Span, not: bool, operand: Box<Expr>) -> Parsed<Expr> {
        self.expect(Symbol::OpenParen)?;
        let list = self.list(Self::scalar)?;
        self.expect(Symbol::CloseParen)?;
        Ok(self.node(start, ExprKind::In { not, operand, list }))
    }

    /// The bounds bind tighter than `AND`, so the first `AND` is ours.
    fn between(&mut self, start: Span, not: bool, operand: Box<Expr>) -> Parsed<Expr> {
        let low = Box::new(self.binary(BinaryOp::LEVEL_LOOSEST)?);
        self.expect_keyword("AND")?;
        let high = Box::new(self.binary(BinaryOp::LEVEL_LOOSEST)?);
        Ok(self.node(start, ExprKind::Between { not, operand, low, high }))
    }

    fn like(&mut self, start: Span, not: bool, operand: Box<Expr>) -> Parsed<Expr> {
        let pattern = Box::new(self.binary(BinaryOp::LEVEL_LOOSEST)?);
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

    /// Operators of `loosest` and every tighter level, left to right within a level.
    fn binary(&mut self, loosest: u8) -> Parsed<Expr> {
        let start = self.token.span;
        let mut left = self.unary()?;
        while let Some(op) = self.binary_operator().filter(|op| op.level() <= loosest) {
            self.advance();
            let right = self.nested(|p| p.binary(op.level() - 1))?;
            left = self.append(start, left, op, right);
        }
        Ok(left)
    }

    /// `(a - b) - c` is `a - b - c`: a left operand of the same level grows by one instead of getting a parent.
    fn append(&mut self, start: Span, left: Expr, op: BinaryOp, right: Expr) -> Expr {
        let kind = match left.kind {
            ExprKind::Binary { first, mut rest }
                if rest.first().is_some_and(|(other, _)| other.level() == op.level()) =>
            {
                rest.push((op, right));
                ExprKind::Binary { first, rest }
            }
            kind => {
                let first = Box::new(Expr { kind, span: left.span });
                ExprKind::Binary { first, rest: vec![(op, right)] }
            }
        };
        self.node(start, kind)
    }

    #[rustfmt::skip]
    fn binary_operator(&self) -> Option<BinaryOp> {
        let Token::Symbol(symbol) = self.token.token else { return None };
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

    fn unary(&mut self) -> Parsed<Expr> {
        let op = match self.token.token {
            Token::Symbol(Symbol::Minus) => UnaryOp::Minus,
            Token::Symbol(Symbol::Plus) => UnaryOp::Plus,
            Token::Symbol(Symbol::Tilde) => UnaryOp::BitNot,
            // As a right operand (`a = NOT b`): reaches as far as it would on its own.
            Token::Word(_) if self.at_keyword("NOT") => return self.nested(Self::negation),
            _ => return self.postfix(),
        };
        let start = self.advance().span;
        let operand = Box::new(self.nested(Self::unary)?);
        Ok(self.node(start, ExprKind::Unary { op, operand }))
    }

    /// A primary and the path that hangs on it.
    pub(super) fn postfix(&mut self) -> Parsed<Expr> {
        let start = self.token.span;
        let base = self.primary()?;
        let mut steps = Vec::new();
        loop {
            if self.accept(Symbol::Dot) {
                steps.push(Step::Property(self.name()?.text));
            } else if self.accept(Symbol::OpenBracket) {
                steps.push(Step::Index(self.scalar()?));
                self.expect(Symbol::CloseBracket)?;
            } else if steps.is_empty() {
                return Ok(base);
            } else {
                return Ok(self.node(start, ExprKind::Access { base: Box::new(base), steps }));
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
            _ => return Err(Fault::syntax(lexed.span, self.text)),
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
        let select = Box::new(self.nested(Self::select)?);
        self.expect(Symbol::CloseParen)?;
        Ok(self.node(start, ExprKind::Subquery { form, select }))
    }

    fn object(&mut self) -> Parsed<Expr> {
        let start = self.advance().span;
        let properties = self.list_until(Symbol::CloseBrace, Self::property)?;
        if properties.len() > PROPERTIES_MAX {
            return Err(Fault::plain(start, format!("An object can be built of at most {PROPERTIES_MAX} properties.")));
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

/// Lower case only, as JSON has them; `NaN` and `Infinity` as their names are printed.
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
