//! Checks function calls: whether the function exists, and the number of its arguments.

use super::names::NameScope;
use super::{Checked, Checker, ExprContext, suggest};
use crate::compile::check_options;
use crate::expr::aggregate::AggregateKind;
use crate::expr::functions::{self, Arity};
use crate::parse::ast::Expr;
use crate::parse::{Diagnostic, Span};

const AGGREGATE: Arity = Arity { min: 1, max: Some(1) };

impl<'q> Checker<'q> {
    pub(super) fn call(
        &mut self,
        call: &'q Expr,
        function: &'q str,
        arguments: &'q [Expr],
        scope: &NameScope<'q>,
        context: ExprContext,
    ) -> Checked {
        let upper = function.to_ascii_uppercase();
        if AggregateKind::find(function).is_some() {
            check_arity(&upper, AGGREGATE, call, arguments)?;
            return self.aggregate(call, arguments, scope, context);
        }
        if upper == "FULLTEXTSCORE" {
            const ELSEWHERE: &str = "The FullTextScore function is only allowed in the ORDER BY RANK clause.";
            return Err(Diagnostic::coded(call.span, "SC2240", ELSEWHERE));
        }
        if upper == "RRF" {
            // The service does not know RRF as a function here, and reports errors in its arguments first.
            let scores = arguments.iter().filter_map(|score| self.scalar(score, scope, context).err());
            let diagnostics: Vec<Diagnostic> =
                scores.chain([unknown_function(call, function).with_hint("It stands in ORDER BY RANK.")]).collect();
            return Diagnostic::combine(diagnostics).map_or(Ok(()), Err);
        }
        let Some(known) = functions::find(function) else { return Err(unknown_function(call, function)) };
        check_arity(known.name, known.arity, call, arguments)?;
        if known.name == functions::VECTOR_DISTANCE {
            check_options(call, arguments)?;
        }
        self.scalars(arguments, scope, context)
    }
}

/// The span of the name alone, which the service reports.
fn name_span(call: &Expr, function: &str) -> Span {
    Span { start: call.span.start, end: call.span.start + function.len() }
}

fn unknown_function(call: &Expr, function: &str) -> Diagnostic {
    let message = format!("'{function}' is not a recognized built-in function name.");
    let diagnostic = Diagnostic::coded(name_span(call, function), "SC2005", message);
    match suggest::function(function) {
        Some(hint) => diagnostic.with_hint(hint),
        None => diagnostic,
    }
}

fn check_arity(name: &str, arity: Arity, call: &Expr, arguments: &[Expr]) -> Result<(), Diagnostic> {
    let fits = arguments.len() >= arity.min && arity.max.is_none_or(|max| arguments.len() <= max);
    if fits {
        return Ok(());
    }
    let wanted = match arity.max {
        None => format!("at least {}", arity.min),
        Some(max) if max == arity.min => max.to_string(),
        Some(max) => format!("{} to {max}", arity.min),
    };
    Err(Diagnostic::coded(call.span, "SC2050", format!("The {name} function requires {wanted} argument(s).")))
}
