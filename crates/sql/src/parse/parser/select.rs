//! Parsing of the clauses of a query block.
//!
//! ```text
//! SELECT [DISTINCT] [TOP n] spec [FROM source {JOIN source}] [WHERE scalar]
//!        [GROUP BY scalars] [ORDER BY keys | ORDER BY RANK score] [OFFSET n LIMIT n]
//! ```

use super::super::ast::{
    AstStep, ClauseSpans, Expr, ExprKind, FromItem, Name, OrderBy, OrderByItem, Select, SelectItem, SelectSpec,
};
use super::super::lexer::{Symbol, Token};
use super::super::{Diagnostic, PROPERTIES_MAX, Span};
use super::{Parsed, Parser, is_keyword};

impl Parser<'_> {
    pub(super) fn select(&mut self) -> Parsed<Select> {
        let start = self.token.span;
        let mut spans = ClauseSpans::default();
        self.expect_keyword("SELECT")?;
        Ok(Select {
            distinct: self.accept_keyword("DISTINCT"),
            top: self.with_span(&mut spans.top, Self::top)?,
            spec: self.select_spec()?,
            from: if self.accept_keyword("FROM") { self.sources()? } else { Vec::new() },
            filter: if self.accept_keyword("WHERE") { Some(self.scalar()?) } else { None },
            group_by: self.group_by()?,
            order_by: self.with_span(&mut spans.order_by, Self::order_by)?,
            offset_limit: self.with_span(&mut spans.offset_limit, Self::offset_limit)?,
            spans,
            span: self.since(start),
        })
    }

    /// Parses an optional clause and records its span.
    fn with_span<T>(&mut self, span: &mut Span, clause: fn(&mut Self) -> Parsed<Option<T>>) -> Parsed<Option<T>> {
        let start = self.token.span;
        let found = clause(self)?;
        if found.is_some() {
            *span = self.since(start);
        }
        Ok(found)
    }

    fn top(&mut self) -> Parsed<Option<Expr>> {
        if self.accept_keyword("TOP") { self.count().map(Some) } else { Ok(None) }
    }

    /// An unsigned number or a parameter. `check` validates the number.
    fn count(&mut self) -> Parsed<Expr> {
        match self.token.token {
            Token::Number(_) | Token::Parameter(_) => self.primary(),
            _ => Err(self.unexpected()),
        }
    }

    fn select_spec(&mut self) -> Parsed<SelectSpec> {
        if self.at(Symbol::Star) {
            return Ok(SelectSpec::Star(self.advance().span));
        }
        if self.accept_keyword("VALUE") {
            return Ok(SelectSpec::Value(self.select_item()?));
        }
        let start = self.token.span;
        let items = self.list(Self::select_item)?;
        if items.len() > PROPERTIES_MAX {
            return Err(Diagnostic::plain(start, format!("A SELECT list can have at most {PROPERTIES_MAX} items.")));
        }
        Ok(SelectSpec::List(items))
    }

    fn select_item(&mut self) -> Parsed<SelectItem> {
        Ok(SelectItem { expr: self.scalar()?, alias: self.alias()? })
    }

    /// `[AS] name`. According to the documentation, `AS` is optional everywhere.
    fn alias(&mut self) -> Parsed<Option<Name>> {
        if self.accept_keyword("AS") || self.peek_name().is_some() { self.name().map(Some) } else { Ok(None) }
    }

    fn sources(&mut self) -> Parsed<Vec<FromItem>> {
        let mut sources = vec![self.source()?];
        while self.accept_keyword("JOIN") {
            sources.push(self.source()?);
        }
        Ok(sources)
    }

    fn source(&mut self) -> Parsed<FromItem> {
        if self.peek_name().is_some() && is_keyword(&self.ahead, "IN") {
            let alias = self.name()?;
            self.expect_keyword("IN")?;
            return Ok(FromItem { unnest: true, expr: self.collection()?, alias: Some(alias) });
        }
        Ok(FromItem { unnest: false, expr: self.collection()?, alias: self.alias()? })
    }

    /// The source of rows: a name, a path of constants from a name, a subquery, or a function call.
    fn collection(&mut self) -> Parsed<Expr> {
        let start = self.token.span;
        let source = self.postfix()?;
        if is_collection(&source) { Ok(source) } else { Err(Diagnostic::syntax(start, self.text)) }
    }

    fn group_by(&mut self) -> Parsed<Vec<Expr>> {
        if !self.accept_keyword("GROUP") {
            return Ok(Vec::new());
        }
        self.expect_keyword("BY")?;
        self.list(Self::scalar)
    }

    fn order_by(&mut self) -> Parsed<Option<OrderBy>> {
        if !self.accept_keyword("ORDER") {
            return Ok(None);
        }
        self.expect_keyword("BY")?;
        // `RANK` may also be an alias: it is a keyword only if a scoring function follows.
        if self.at_keyword("RANK") && matches!(self.ahead.token, Token::Word(_)) {
            self.advance();
            return Ok(Some(OrderBy::Rank(self.rank_score()?)));
        }
        Ok(Some(OrderBy::Keys(self.list(Self::order_by_item)?)))
    }

    fn rank_score(&mut self) -> Parsed<Expr> {
        let score = self.scalar()?;
        if self.at_keyword("ASC") || self.at_keyword("DESC") {
            let message = "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed.";
            return Err(Diagnostic::plain(self.token.span, message).with_hint("The most relevant comes first."));
        }
        Ok(score)
    }

    fn order_by_item(&mut self) -> Parsed<OrderByItem> {
        let expr = self.scalar()?;
        let at = self.token.span;
        let descending = self.accept_keyword("DESC");
        let direction = (descending || self.accept_keyword("ASC")).then_some(at);
        Ok(OrderByItem { expr, descending, direction })
    }

    fn offset_limit(&mut self) -> Parsed<Option<(Expr, Expr)>> {
        if !self.accept_keyword("OFFSET") {
            return Ok(None);
        }
        let offset = self.count()?;
        self.expect_keyword("LIMIT")?;
        Ok(Some((offset, self.count()?)))
    }
}

fn is_collection(source: &Expr) -> bool {
    match &source.kind {
        ExprKind::Name(_) | ExprKind::Subquery { .. } | ExprKind::Call { .. } => true,
        ExprKind::Access { base, steps } => is_collection(base) && steps.iter().all(is_constant_step),
        _ => false,
    }
}

fn is_constant_step(step: &AstStep) -> bool {
    match step {
        AstStep::Property(_) => true,
        AstStep::Index(index) => matches!(index.kind, ExprKind::Constant(_)),
    }
}
