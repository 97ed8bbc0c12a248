//! `ORDER BY RANK`: its component scores, and reciprocal rank fusion (RRF) of several of them.
//!
//! Guarantees: a clause that parses here has at least one component; each is a text score or a vector distance with a
//! weight. `query_plan::hybrid` writes the queries of the components; a client and the engine fuse their results in the
//! same way.
//!
//! ```text
//! ORDER BY RANK RRF(FullTextScore(c.text, "swim"), VectorDistance(c.image, [1, 2]), [2, 1])
//!    component   score of each item      rank of each: 1, 2, 2, 3 …     equal scores share a rank
//!    fused       Σ weight / (60 + rank)                                 a negative weight ranks the lowest score first
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use pleiad_model::Value;

use crate::Parameters;
use crate::parse::ast::{AstStep, Expr, ExprKind, OrderBy, Select, UnaryOp};
use crate::parse::{Diagnostic, Span};

/// The constant of the published RRF method: how fast the weight decreases with the rank.
const RRF_CONSTANT: f64 = 60.0;

/// The limits that a service account reports: `queryMaxRrfArgumentCount` and `queryMaxFullTextScoreSearchTerms`.
pub const RRF_COMPONENTS_MAX: usize = 100;
pub const SCORE_TERMS_MAX: usize = 30;

/// The components in text order; at least one.
pub struct RankClause<'q> {
    pub components: Vec<Component<'q>>,
    /// Whether the query gives weights.
    pub is_weighted: bool,
}

pub struct Component<'q> {
    pub score: Score<'q>,
    pub weight: f64,
    pub expr: &'q Expr,
}

#[derive(Clone, Copy)]
pub enum Score<'q> {
    Text {
        property: &'q Expr,
        terms: &'q [Expr],
    },
    /// The arguments of `VectorDistance`.
    Vector(&'q [Expr]),
}

impl<'q> RankClause<'q> {
    /// Parses the scoring function after `RANK`; `clause` is the span of the `ORDER BY` clause. Without `parameters`,
    /// weights in a parameter count as 1.
    pub fn parse(score: &'q Expr, clause: Span, parameters: Option<&Parameters>) -> Result<RankClause<'q>, Diagnostic> {
        match &score.kind {
            ExprKind::Call { function, arguments } if function.eq_ignore_ascii_case("RRF") => {
                parse_rrf(score, arguments, clause, parameters)
            }
            _ => {
                let component = component(score, 1.0, clause)?;
                Ok(RankClause { components: vec![component], is_weighted: false })
            }
        }
    }
}

fn parse_rrf<'q>(
    call: &Expr,
    arguments: &'q [Expr],
    clause: Span,
    parameters: Option<&Parameters>,
) -> Result<RankClause<'q>, Diagnostic> {
    let (scores, weights) = match arguments.split_last() {
        Some((last, scores)) if is_not_a_score(last) => (scores, Some(last)),
        _ => (arguments, None),
    };
    if scores.len() < 2 {
        return Err(Diagnostic::coded(clause, "SC2221", INVALID_SCORE).with_hint("RRF takes two or more of them."));
    }
    if scores.len() > RRF_COMPONENTS_MAX {
        let message = format!("The RRF function takes at most {RRF_COMPONENTS_MAX} component scores.");
        return Err(Diagnostic::plain(call.span, message));
    }
    let is_weighted = weights.is_some();
    let weights = match weights {
        Some(Expr { kind: ExprKind::Parameter(_), .. }) if parameters.is_none() => vec![1.0; scores.len()],
        Some(weights) => numbers(weights, parameters)
            .filter(|numbers| numbers.len() == scores.len())
            .ok_or_else(|| invalid_weights(weights))?,
        None => vec![1.0; scores.len()],
    };
    let components =
        scores.iter().zip(weights).map(|(score, weight)| component(score, weight, clause)).collect::<Result<_, _>>()?;
    Ok(RankClause { components, is_weighted })
}

fn is_not_a_score(expr: &Expr) -> bool {
    !matches!(expr.kind, ExprKind::Call { .. })
}

fn component(expr: &Expr, weight: f64, clause: Span) -> Result<Component<'_>, Diagnostic> {
    let ExprKind::Call { function, arguments } = &expr.kind else { return Err(invalid_score(clause)) };
    if function.eq_ignore_ascii_case("RRF") {
        // The service knows RRF only directly after RANK.
        let name = Span { start: expr.span.start, end: expr.span.start + function.len() };
        let message = format!("'{function}' is not a recognized built-in function name.");
        return Err(Diagnostic::coded(name, "SC2005", message));
    }
    let score = match (function.to_ascii_uppercase().as_str(), arguments.as_slice()) {
        ("FULLTEXTSCORE", [_, terms @ ..]) if terms.len() > SCORE_TERMS_MAX => {
            let message = format!("The FULLTEXTSCORE function takes at most {SCORE_TERMS_MAX} search terms.");
            return Err(Diagnostic::plain(expr.span, message));
        }
        ("FULLTEXTSCORE", [property, terms @ ..]) if !terms.is_empty() => Score::Text { property, terms },
        ("FULLTEXTSCORE", _) => {
            let message = "The FULLTEXTSCORE function requires at least 2 argument(s).";
            return Err(Diagnostic::coded(expr.span, "SC2050", message));
        }
        ("VECTORDISTANCE", arguments) => Score::Vector(arguments),
        _ => return Err(invalid_score(clause)),
    };
    Ok(Component { score, weight, expr })
}

/// The property that a path into an object literal selects, as LINQ writes it: `{"t": c.text}["t"]` is `c.text`.
pub fn selected_property(expr: &Expr) -> Cow<'_, Expr> {
    let ExprKind::Access { base, steps } = &expr.kind else { return Cow::Borrowed(expr) };
    let (ExprKind::Object(members), Some((first, rest))) = (&base.kind, steps.split_first()) else {
        return Cow::Borrowed(expr);
    };
    let name = match first {
        AstStep::Property(name) => Some(name.as_str()),
        AstStep::Index(index) => match &index.kind {
            ExprKind::Constant(value) => value.as_str(),
            _ => None,
        },
    };
    match members.iter().find(|(member, _)| Some(member.as_str()) == name) {
        None => Cow::Borrowed(expr),
        Some((_, member)) if rest.is_empty() => selected_property(member),
        Some((_, member)) => {
            let (base, before) = match &member.kind {
                ExprKind::Access { base, steps } => (base.clone(), steps.as_slice()),
                _ => (Box::new(member.clone()), &[][..]),
            };
            let kind = ExprKind::Access { base, steps: [before, rest].concat() };
            Cow::Owned(selected_property(&Expr { kind, span: expr.span }).into_owned())
        }
    }
}

const INVALID_SCORE: &str =
    "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.";

fn invalid_score(clause: Span) -> Diagnostic {
    Diagnostic::coded(clause, "SC2221", INVALID_SCORE).with_hint("Several of them go into RRF(…).")
}

fn invalid_weights(weights: &Expr) -> Diagnostic {
    let message = "The weights of the RRF function must be a literal array of numbers, one for each component score.";
    Diagnostic::coded(weights.span, "SC2229", message)
}

fn numbers(expr: &Expr, parameters: Option<&Parameters>) -> Option<Vec<f64>> {
    let known = |items: &[Value]| items.iter().map(|item| Some(item.as_number()?.as_f64())).collect();
    match &expr.kind {
        ExprKind::Parameter(name) => known(parameters?.get(name)?.as_array()?),
        ExprKind::Array(items) => items.iter().map(number).collect(),
        ExprKind::Constant(Value::Array(items)) => known(items),
        _ => None,
    }
}

fn number(expr: &Expr) -> Option<f64> {
    match &expr.kind {
        ExprKind::Constant(value) => Some(value.as_number()?.as_f64()),
        ExprKind::Unary { op: UnaryOp::Minus, operand } => number(operand).map(|number| -number),
        _ => None,
    }
}

/// Whether a query runs a component of a plan: a client reads only its first page.
pub fn is_component_query(select: &Select) -> bool {
    let is_score = |expr: &Expr| match &expr.kind {
        ExprKind::Call { function, .. } => {
            ["_FULLTEXTSCORE", "_VECTORSCORE"].iter().any(|name| function.eq_ignore_ascii_case(name))
        }
        _ => false,
    };
    let is_column = |name: Option<&str>| matches!(name, Some("orderByItems" | "componentScores"));
    let has_score_columns = select.spec.items().iter().any(|item| is_column(item.name()));
    match &select.order_by {
        Some(OrderBy::Keys(keys)) => has_score_columns && matches!(keys.as_slice(), [key] if is_score(&key.expr)),
        _ => false,
    }
}

/// How a component's scores are ranked and weighted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FusionRule {
    pub ascending: bool,
    pub weight: f64,
}

/// An item with its component scores.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredItem {
    pub rid: String,
    /// One score per component.
    pub scores: Vec<f64>,
    pub payload: Value,
}

/// Fuses the items of all components into one order. The items of a single component keep their order.
pub fn fuse(components: &[FusionRule], rows: Vec<ScoredItem>) -> Vec<ScoredItem> {
    if components.len() < 2 {
        return rows;
    }
    let unique: BTreeMap<String, ScoredItem> = rows.into_iter().map(|row| (row.rid.clone(), row)).collect();
    let mut rows: Vec<(f64, ScoredItem)> = unique.into_values().map(|row| (0.0, row)).collect();
    for (at, component) in components.iter().enumerate() {
        let score = |(_, row): &(f64, ScoredItem)| row.scores.get(at).copied().unwrap_or(f64::MIN);
        let by_score = |a: &(f64, ScoredItem), b: &(f64, ScoredItem)| score(a).total_cmp(&score(b));
        rows.sort_by(|a, b| if component.ascending { by_score(a, b) } else { by_score(b, a) });
        let (mut rank, mut last) = (0.0, None);
        for row in &mut rows {
            let score = score(row);
            if last.replace(score) != Some(score) {
                rank += 1.0;
            }
            row.0 += component.weight / (RRF_CONSTANT + rank);
        }
    }
    rows.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.rid.cmp(&other.rid)));
    rows.into_iter().map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests;
