//! Query advice: the rules of the service's Query Advisor, and one of our own.
//!
//! Guarantees: advice depends on the query text and the names of its parameters alone. The result is the codes of the
//! matching rules. Clients have the texts of the service's rules, and ignore a code that they do not know.
//!
//! | rule | applies to |
//! |---|---|
//! | `QA1000` | `ARRAY_CONTAINS(…, …, true)` |
//! | `QA1001` | `DISTINCT` with `JOIN` |
//! | `QA1002` | `CONTAINS` |
//! | `QA1003` | `STARTSWITH` or `StringEquals` that ignores case |
//! | `QA1004` | `ENDSWITH` that ignores case |
//! | `QA1005` | `GROUP BY` an expression that could be a computed property |
//! | `QA1006` | a comparison with `UPPER` or `LOWER` of an item's value |
//! | `QA1007` | `GetCurrentDateTime` in `WHERE` |
//! | `QA1008` | `GetCurrentTicks` in `WHERE` |
//! | `QA1009` | `GetCurrentTimestamp` in `WHERE` |
//! | `PL1000` | parameters that the request does not bind; `Params` has their names |

use std::collections::BTreeSet;
use std::convert::Infallible;

use pleiad_model::Value;

use crate::parse::ast::{BinaryOp, Expr, ExprKind, Select};

/// A rule that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    pub rule: &'static str,
    pub parameters: Vec<String>,
}

/// The rule about parameters without a value: the query runs, but a misspelled name matches nothing.
const UNBOUND_PARAMETERS: &str = "PL1000";

/// The rules that match: the service's, sorted, without duplicates, then our own. `unbound` has the names of the
/// parameters that the request does not bind.
pub fn advice(select: &Select, unbound: &[&str]) -> Vec<Advice> {
    let mut rules = BTreeSet::new();
    check_block(select, false, &mut rules);
    let mut advice: Vec<Advice> = rules.into_iter().map(|rule| Advice { rule, parameters: Vec::new() }).collect();
    if !unbound.is_empty() {
        let parameters = unbound.iter().map(|name| (*name).to_owned()).collect();
        advice.push(Advice { rule: UNBOUND_PARAMETERS, parameters });
    }
    advice
}

type AdviceCodes = BTreeSet<&'static str>;

fn check_block(select: &Select, in_filter: bool, rules: &mut AdviceCodes) {
    if select.distinct && select.from.len() > 1 {
        rules.insert("QA1001");
    }
    if select.group_by.iter().any(|key| !is_path(key) && is_deterministic(key)) {
        rules.insert("QA1005");
    }
    let filter = select.filter.as_ref().map(std::ptr::from_ref);
    let visited: Result<(), Infallible> = select.each_scalar(&mut |scalar| {
        check_scalar(scalar, in_filter || filter == Some(std::ptr::from_ref(scalar)), rules);
        Ok(())
    });
    let Ok(()) = visited;
}

fn check_scalar(expr: &Expr, in_filter: bool, rules: &mut AdviceCodes) {
    rules.extend(rule_of(expr, in_filter));
    if let ExprKind::Subquery { select, .. } = &expr.kind {
        return check_block(select, in_filter, rules);
    }
    let visited: Result<(), Infallible> = expr.each_child(&mut |child| {
        check_scalar(child, in_filter, rules);
        Ok(())
    });
    let Ok(()) = visited;
}

fn rule_of(expr: &Expr, in_filter: bool) -> Option<&'static str> {
    match &expr.kind {
        ExprKind::Call { function, arguments } => {
            let has_flag = matches!(arguments.get(2), Some(Expr { kind: ExprKind::Constant(Value::Bool(true)), .. }));
            match function.to_ascii_uppercase().as_str() {
                "ARRAY_CONTAINS" if has_flag => Some("QA1000"),
                "CONTAINS" => Some("QA1002"),
                "STARTSWITH" | "STRINGEQUALS" if has_flag => Some("QA1003"),
                "ENDSWITH" if has_flag => Some("QA1004"),
                "GETCURRENTDATETIME" if in_filter => Some("QA1007"),
                "GETCURRENTTICKS" if in_filter => Some("QA1008"),
                "GETCURRENTTIMESTAMP" if in_filter => Some("QA1009"),
                _ => None,
            }
        }
        ExprKind::Binary { first, rest } => {
            let compares = rest.iter().any(|(op, _)| BinaryOp::is_comparison(*op));
            let mut operands = std::iter::once(&**first).chain(rest.iter().map(|(_, operand)| operand));
            (compares && operands.any(changes_case)).then_some("QA1006")
        }
        ExprKind::In { operand, .. } | ExprKind::Between { operand, .. } | ExprKind::Like { operand, .. } => {
            changes_case(operand).then_some("QA1006")
        }
        _ => None,
    }
}

/// `UPPER` or `LOWER` of anything but a constant or a parameter.
fn changes_case(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Call { function, arguments } => {
            let cases = ["UPPER", "LOWER"].iter().any(|name| function.eq_ignore_ascii_case(name));
            cases
                && !matches!(arguments.as_slice(), [Expr { kind: ExprKind::Constant(_) | ExprKind::Parameter(_), .. }])
        }
        _ => false,
    }
}

fn is_path(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Name(_) => true,
        ExprKind::Access { base, .. } => is_path(base),
        _ => false,
    }
}

/// Whether the expression could be a computed property, which must be deterministic.
fn is_deterministic(expr: &Expr) -> bool {
    fn visit(expr: &Expr) -> Result<(), ()> {
        match &expr.kind {
            ExprKind::UserCall { .. } | ExprKind::Subquery { .. } => Err(()),
            ExprKind::Call { function, .. } if is_nondeterministic(function) => Err(()),
            _ => expr.each_child(&mut visit),
        }
    }
    visit(expr).is_ok()
}

fn is_nondeterministic(function: &str) -> bool {
    let function = function.to_ascii_uppercase();
    function == "RAND" || function.starts_with("GETCURRENT")
}

#[cfg(test)]
mod tests;
