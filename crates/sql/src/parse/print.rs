//! The printer: syntax tree to text.
//!
//! Guarantees: `parse(print(tree))` equals the tree, apart from spans, for every tree that the parser can build, and
//! the text nests no deeper than the text that the tree was parsed from. The output is one line, with keywords in upper
//! case, strings in double quotes, and parentheses only where they are necessary.
//!
//! ```text
//! select  *  from c where (c.a+1)*2 = 'x'   →   SELECT * FROM c WHERE (c.a + 1) * 2 = "x"
//! ```

use pleiad_model::{Number, Value, json};

use super::ast::{
    AstStep, BinaryOp, Expr, ExprKind, FromItem, OrderBy, OrderByItem, Select, SelectItem, SelectSpec, SubqueryForm,
    UnaryOp,
};
use super::parser::is_name;

/// One query block.
pub fn print(select: &Select) -> String {
    print_with(Spelling::AsWritten, |out| write_select(select, out))
}

/// One scalar.
pub fn print_expr(expr: &Expr) -> String {
    print_with(Spelling::AsWritten, |out| write_expr(expr, ANY, out))
}

/// One scalar in canonical spelling: `lower(c["a"])` as `LOWER(c.a)`.
pub fn print_canonical(expr: &Expr) -> String {
    print_with(Spelling::Canonical, |out| write_expr(expr, ANY, out))
}

/// The `FROM` clause with a leading space; empty if there is none.
pub fn print_from(from: &[FromItem]) -> String {
    print_with(Spelling::AsWritten, |out| write_sources(from, out))
}

/// Scalars, separated by commas.
pub fn print_list(exprs: &[Expr]) -> String {
    print_with(Spelling::AsWritten, |out| write_scalars(exprs, out))
}

/// A string as a query literal.
pub fn print_str(text: &str) -> String {
    print_with(Spelling::AsWritten, |out| write_str(text, out))
}

/// The output buffer and its spelling.
struct SqlWriter {
    text: String,
    spelling: Spelling,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    AsWritten,
    Canonical,
}

fn print_with(spelling: Spelling, write: impl FnOnce(&mut SqlWriter)) -> String {
    let mut out = SqlWriter { text: String::new(), spelling };
    write(&mut out);
    out.text
}

impl SqlWriter {
    fn push(&mut self, char: char) {
        self.text.push(char);
    }

    fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn is_canonical(&self) -> bool {
        self.spelling == Spelling::Canonical
    }
}

/// The binding strength of an expression; 0 binds tightest and never needs parentheses.
type Level = u8;

const ATOM: Level = 0;
const PREFIX: Level = 1;
const PREDICATE: Level = operator(BinaryOp::LEVEL_LOOSEST) + 1;
const NOT: Level = PREDICATE + 1;
const AND: Level = NOT + 1;
const OR: Level = AND + 1;
const COALESCE: Level = OR + 1;
const CONDITIONAL: Level = COALESCE + 1;
const ANY: Level = CONDITIONAL;

const fn operator(level: u8) -> Level {
    PREFIX + level
}

fn level(expr: &Expr) -> Level {
    match &expr.kind {
        ExprKind::Unary { op: UnaryOp::Not, .. } => NOT,
        ExprKind::Unary { .. } => PREFIX,
        ExprKind::Constant(Value::Number(number)) if number.as_f64().is_sign_negative() => PREFIX,
        ExprKind::Binary { rest, .. } => rest.first().map_or(ATOM, |(op, _)| operator(op.level())),
        ExprKind::In { .. } | ExprKind::Between { .. } | ExprKind::Like { .. } => PREDICATE,
        ExprKind::And(_) => AND,
        ExprKind::Or(_) => OR,
        ExprKind::Coalesce(_) => COALESCE,
        ExprKind::Conditional { .. } => CONDITIONAL,
        _ => ATOM,
    }
}

// Clauses.

fn write_select(select: &Select, out: &mut SqlWriter) {
    out.push_str("SELECT ");
    if select.distinct {
        out.push_str("DISTINCT ");
    }
    if let Some(top) = &select.top {
        out.push_str("TOP ");
        write_expr(top, ATOM, out);
        out.push(' ');
    }
    write_spec(&select.spec, out);
    write_sources(&select.from, out);
    if let Some(filter) = &select.filter {
        out.push_str(" WHERE ");
        write_expr(filter, ANY, out);
    }
    write_group_by(&select.group_by, out);
    write_order_by(select.order_by.as_ref(), out);
    if let Some((offset, limit)) = &select.offset_limit {
        out.push_str(" OFFSET ");
        write_expr(offset, ATOM, out);
        out.push_str(" LIMIT ");
        write_expr(limit, ATOM, out);
    }
}

fn write_spec(spec: &SelectSpec, out: &mut SqlWriter) {
    match spec {
        SelectSpec::Star(_) => out.push('*'),
        SelectSpec::Value(item) => {
            out.push_str("VALUE ");
            write_item(item, out);
        }
        SelectSpec::List(items) => write_list(items, out, write_item),
    }
}

fn write_item(item: &SelectItem, out: &mut SqlWriter) {
    write_expr(&item.expr, ANY, out);
    if let Some(alias) = &item.alias {
        out.push_str(" AS ");
        out.push_str(&alias.text);
    }
}

fn write_sources(from: &[FromItem], out: &mut SqlWriter) {
    for (at, source) in from.iter().enumerate() {
        out.push_str(if at == 0 { " FROM " } else { " JOIN " });
        write_source(source, out);
    }
}

fn write_source(source: &FromItem, out: &mut SqlWriter) {
    match &source.alias {
        Some(alias) if source.unnest => {
            out.push_str(&alias.text);
            out.push_str(" IN ");
            write_expr(&source.expr, ATOM, out);
        }
        Some(alias) => {
            write_expr(&source.expr, ATOM, out);
            out.push_str(" AS ");
            out.push_str(&alias.text);
        }
        None => write_expr(&source.expr, ATOM, out),
    }
}

fn write_group_by(keys: &[Expr], out: &mut SqlWriter) {
    if !keys.is_empty() {
        out.push_str(" GROUP BY ");
        write_scalars(keys, out);
    }
}

fn write_order_by(order_by: Option<&OrderBy>, out: &mut SqlWriter) {
    match order_by {
        None => {}
        Some(OrderBy::Rank(score)) => {
            out.push_str(" ORDER BY RANK ");
            write_expr(score, ANY, out);
        }
        Some(OrderBy::Keys(keys)) => {
            out.push_str(" ORDER BY ");
            write_list(keys, out, write_order_by_item);
        }
    }
}

fn write_order_by_item(key: &OrderByItem, out: &mut SqlWriter) {
    write_expr(&key.expr, ANY, out);
    if key.descending {
        out.push_str(" DESC");
    }
}

// Scalars.

/// Adds parentheses if the expression binds looser than `loosest`.
fn write_expr(expr: &Expr, loosest: Level, out: &mut SqlWriter) {
    if level(expr) > loosest {
        out.push('(');
        write_kind(&expr.kind, out);
        out.push(')');
    } else {
        write_kind(&expr.kind, out);
    }
}

fn write_kind(kind: &ExprKind, out: &mut SqlWriter) {
    match kind {
        ExprKind::Undefined => out.push_str("undefined"),
        ExprKind::Constant(value) => write_value(value, out),
        ExprKind::Name(name) | ExprKind::Parameter(name) => out.push_str(name),
        ExprKind::Access { base, steps } => write_access(base, steps, out),
        ExprKind::Unary { op, operand } => write_unary(*op, operand, out),
        ExprKind::Binary { first, rest } => write_binary(first, rest, out),
        ExprKind::And(terms) => write_chain(terms, " AND ", AND, out),
        ExprKind::Or(terms) => write_chain(terms, " OR ", OR, out),
        ExprKind::Coalesce(terms) => write_chain(terms, " ?? ", COALESCE, out),
        ExprKind::Conditional { arms, otherwise } => write_conditional(arms, otherwise, out),
        ExprKind::In { .. } | ExprKind::Between { .. } | ExprKind::Like { .. } => write_predicate(kind, out),
        ExprKind::Object(properties) => write_object(properties, out),
        ExprKind::Array(items) => write_bracketed('[', items, ']', out),
        ExprKind::Call { function, arguments } if out.is_canonical() => {
            write_call("", &function.to_ascii_uppercase(), arguments, out);
        }
        ExprKind::Call { function, arguments } => write_call("", function, arguments, out),
        ExprKind::UserCall { function, arguments } => write_call("udf.", function, arguments, out),
        ExprKind::Subquery { form, select } => {
            out.push_str(subquery_word(*form));
            out.push('(');
            write_select(select, out);
            out.push(')');
        }
    }
}

fn write_access(base: &Expr, steps: &[AstStep], out: &mut SqlWriter) {
    // `1.a` would be lexed as an invalid number.
    if matches!(base.kind, ExprKind::Constant(Value::Number(_))) && level(base) == ATOM {
        out.push('(');
        write_kind(&base.kind, out);
        out.push(')');
    } else {
        write_expr(base, ATOM, out);
    }
    steps.iter().for_each(|step| write_step(step, out));
}

fn write_step(step: &AstStep, out: &mut SqlWriter) {
    match (step, step.property()) {
        (AstStep::Property(name), _) => write_property(name, out),
        (AstStep::Index(_), Some(name)) if out.is_canonical() => write_property(name, out),
        (AstStep::Index(index), _) => write_bracketed('[', std::slice::from_ref(index), ']', out),
    }
}

fn write_property(name: &str, out: &mut SqlWriter) {
    if is_name(name) {
        out.push('.');
        out.push_str(name);
    } else {
        out.push('[');
        write_str(name, out);
        out.push(']');
    }
}

fn write_unary(op: UnaryOp, operand: &Expr, out: &mut SqlWriter) {
    match op {
        UnaryOp::Not => {
            out.push_str("NOT ");
            return write_expr(operand, NOT, out);
        }
        UnaryOp::Minus => out.push('-'),
        UnaryOp::Plus => out.push('+'),
        UnaryOp::BitNot => out.push('~'),
    }
    let start = out.text.len();
    write_expr(operand, PREFIX, out);
    // Two minus signs would start a comment.
    if op == UnaryOp::Minus && out.text[start..].starts_with('-') {
        out.text.insert(start, ' ');
    }
}

fn write_binary(first: &Expr, rest: &[(BinaryOp, Expr)], out: &mut SqlWriter) {
    let level = rest.first().map_or(ATOM, |(op, _)| operator(op.level()));
    write_expr(first, level, out);
    for (op, operand) in rest {
        out.push(' ');
        out.push_str(symbol(*op));
        out.push(' ');
        write_expr(operand, level.saturating_sub(1), out);
    }
}

/// Only the first term may have the chain's own level: the parser would merge the others into the chain.
fn write_chain(terms: &[Expr], between: &str, level: Level, out: &mut SqlWriter) {
    for (at, term) in terms.iter().enumerate() {
        if at > 0 {
            out.push_str(between);
        }
        write_expr(term, if at == 0 { level } else { level - 1 }, out);
    }
}

fn write_conditional(arms: &[(Expr, Expr)], otherwise: &Expr, out: &mut SqlWriter) {
    for (condition, value) in arms {
        write_expr(condition, COALESCE, out);
        out.push_str(" ? ");
        write_expr(value, ANY, out);
        out.push_str(" : ");
    }
    write_expr(otherwise, COALESCE, out);
}

fn write_predicate(kind: &ExprKind, out: &mut SqlWriter) {
    const BOUND: Level = operator(BinaryOp::LEVEL_LOOSEST);
    let mut head = |operand: &Expr, not: bool, word: &str| {
        write_expr(operand, BOUND, out);
        out.push_str(if not { " NOT " } else { " " });
        out.push_str(word);
    };
    match kind {
        ExprKind::In { not, operand, list } => {
            head(operand, *not, "IN ");
            write_bracketed('(', list, ')', out);
        }
        ExprKind::Between { not, operand, low, high } => {
            head(operand, *not, "BETWEEN ");
            write_expr(low, BOUND, out);
            out.push_str(" AND ");
            write_expr(high, BOUND, out);
        }
        ExprKind::Like { not, operand, pattern, escape } => {
            head(operand, *not, "LIKE ");
            write_expr(pattern, BOUND, out);
            if let Some(escape) = escape {
                out.push_str(" ESCAPE ");
                write_str(escape.encode_utf8(&mut [0; 4]), out);
            }
        }
        _ => {}
    }
}

fn write_object(properties: &[(String, Expr)], out: &mut SqlWriter) {
    out.push('{');
    write_list(properties, out, |(name, value), out| {
        write_str(name, out);
        out.push_str(": ");
        write_expr(value, ANY, out);
    });
    out.push('}');
}

fn write_call(prefix: &str, function: &str, arguments: &[Expr], out: &mut SqlWriter) {
    out.push_str(prefix);
    out.push_str(function);
    write_bracketed('(', arguments, ')', out);
}

fn write_bracketed(open: char, items: &[Expr], close: char, out: &mut SqlWriter) {
    out.push(open);
    write_scalars(items, out);
    out.push(close);
}

fn write_scalars(items: &[Expr], out: &mut SqlWriter) {
    write_list(items, out, |item, out| write_expr(item, ANY, out));
}

fn write_list<T>(items: &[T], out: &mut SqlWriter, write: impl Fn(&T, &mut SqlWriter)) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write(item, out);
    }
}

/// JSON, and the numbers that JSON cannot represent.
fn write_value(value: &Value, out: &mut SqlWriter) {
    match value {
        Value::Number(Number::Float(n)) if n.is_nan() => out.push_str("NaN"),
        Value::Number(Number::Float(n)) if n.is_infinite() => {
            out.push_str(if *n > 0.0 { "Infinity" } else { "-Infinity" });
        }
        // With the fraction, the parser reads a double again.
        Value::Number(Number::Float(n)) => out.push_str(&format!("{n:?}")),
        value => out.push_str(&json::to_string(value)),
    }
}

fn write_str(text: &str, out: &mut SqlWriter) {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    json::write_str(text, &mut bytes);
    out.push_str(&String::from_utf8_lossy(&bytes));
}

fn subquery_word(form: SubqueryForm) -> &'static str {
    match form {
        SubqueryForm::Scalar => "",
        SubqueryForm::Exists => "EXISTS",
        SubqueryForm::Array => "ARRAY",
        SubqueryForm::All => "ALL",
        SubqueryForm::First => "FIRST",
        SubqueryForm::Last => "LAST",
    }
}

#[rustfmt::skip]
fn symbol(op: BinaryOp) -> &'static str {
    use BinaryOp::*;
    match op {
        Multiply => "*", Divide => "/", Remainder => "%", Add => "+", Subtract => "-",
        ShiftLeft => "<<", ShiftRight => ">>", ShiftRightUnsigned => ">>>",
        Less => "<", Greater => ">", LessOrEqual => "<=", GreaterOrEqual => ">=", Equal => "=", NotEqual => "!=",
        BitAnd => "&", BitXor => "^", BitOr => "|", Concat => "||",
    }
}

#[cfg(test)]
mod tests;
