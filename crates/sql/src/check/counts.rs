//! `TOP`, `OFFSET` and `LIMIT`: whole numbers of at most 32 bits, as constants or parameters.

use pleiad_model::Value;

use crate::Parameters;
use crate::parse::Diagnostic;
use crate::parse::ast::{Expr, ExprKind, Select};

/// The row limits of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub top: Option<u64>,
    pub offset_limit: Option<(u64, u64)>,
}

#[derive(Clone, Copy, PartialEq)]
enum CountClause {
    Top,
    Offset,
    Limit,
}

/// The counts of the outermost block.
pub fn counts(select: &Select, parameters: &Parameters) -> Result<Counts, Diagnostic> {
    let count = |expr: &Expr, clause| match &expr.kind {
        ExprKind::Parameter(name) => count(parameters.get(name), expr, clause),
        ExprKind::Constant(value) => count(Some(value), expr, clause),
        _ => count(None, expr, clause),
    };
    let top = select.top.as_ref().map(|top| count(top, CountClause::Top)).transpose()?;
    let offset_limit = match &select.offset_limit {
        None => None,
        Some((offset, limit)) => Some((count(offset, CountClause::Offset)?, count(limit, CountClause::Limit)?)),
    };
    Ok(Counts { top, offset_limit })
}

/// Checks the counts that are constants.
pub(super) fn check_constants(select: &Select) -> Result<(), Diagnostic> {
    let paging = select.offset_limit.as_ref();
    let all = [
        (select.top.as_ref(), CountClause::Top),
        (paging.map(|(offset, _)| offset), CountClause::Offset),
        (paging.map(|(_, limit)| limit), CountClause::Limit),
    ];
    for (expr, clause) in all {
        if let Some(expr) = expr
            && let ExprKind::Constant(value) = &expr.kind
        {
            count(Some(value), expr, clause)?;
        }
    }
    Ok(())
}

fn count(value: Option<&Value>, expr: &Expr, clause: CountClause) -> Result<u64, Diagnostic> {
    let number = value.and_then(Value::as_number).map(|number| number.as_f64());
    let whole = number.filter(|n| n.fract() == 0.0 && *n >= 0.0);
    match whole {
        Some(n) if n <= f64::from(u32::MAX) => Ok(n as u64),
        Some(_) => Err(too_large(expr, clause)),
        None => Err(not_a_count(expr, clause)),
    }
}

/// For `TOP` the service has a single message for every invalid count.
fn too_large(expr: &Expr, clause: CountClause) -> Diagnostic {
    match clause {
        CountClause::Top => not_a_count(expr, clause),
        CountClause::Limit => {
            Diagnostic::coded(expr.span, "SC2061", "The LIMIT count value exceeds the maximum allowed value.")
        }
        CountClause::Offset => {
            Diagnostic::coded(expr.span, "SC2062", "The OFFSET count value exceeds the maximum allowed value.")
        }
    }
}

fn not_a_count(expr: &Expr, clause: CountClause) -> Diagnostic {
    let (code, name) = match clause {
        CountClause::Top => ("SC2060", "a TOP"),
        CountClause::Limit => ("SC2061", "a LIMIT"),
        CountClause::Offset => ("SC2062", "an OFFSET"),
    };
    let message = format!("The count value provided for {name} clause must be an integer.");
    Diagnostic::coded(expr.span, code, message).with_hint(format!("It goes from 0 to {}.", u32::MAX))
}
