use proptest::prelude::*;

use super::super::ast::{AstStep, BinaryOp, Expr, ExprKind, SelectSpec, UnaryOp};
use super::super::{Diagnostic, NESTING_MAX, PROPERTIES_MAX};
use super::parse;

/// The scalar of `SELECT VALUE …` with parentheses around every operator.
#[track_caller]
fn shape_of(scalar: &str) -> String {
    let select =
        parse(&format!("SELECT VALUE {scalar}")).unwrap_or_else(|diagnostic| panic!("{scalar}: {diagnostic:?}"));
    match select.spec {
        SelectSpec::Value(item) => shape(&item.expr),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check(scalar: &str, want: &str) {
    assert_eq!(shape_of(scalar), want, "{scalar}");
}

fn shape(expr: &Expr) -> String {
    use ExprKind::*;
    let join = |terms: &[Expr], by: &str| terms.iter().map(shape).collect::<Vec<_>>().join(by);
    let not = |not: &bool| if *not { "NOT " } else { "" };
    match &expr.kind {
        Undefined => "undefined".into(),
        Constant(value) => pleiad_model::json::to_string(value),
        Name(name) | Parameter(name) => name.clone(),
        Access { base, steps } => shape(base) + &steps.iter().map(step).collect::<String>(),
        Unary { op: UnaryOp::Minus, operand } => format!("(-{})", shape(operand)),
        Unary { op: UnaryOp::Plus, operand } => format!("(+{})", shape(operand)),
        Unary { op: UnaryOp::BitNot, operand } => format!("(~{})", shape(operand)),
        Unary { op: UnaryOp::Not, operand } => format!("(NOT {})", shape(operand)),
        Binary { first, rest } => {
            rest.iter().fold(shape(first), |left, (op, right)| format!("({left} {} {})", symbol(*op), shape(right)))
        }
        And(terms) => format!("({})", join(terms, " AND ")),
        Or(terms) => format!("({})", join(terms, " OR ")),
        Coalesce(terms) => format!("({})", join(terms, " ?? ")),
        Conditional { arms, otherwise } => {
            let arms: String = arms.iter().map(|(c, v)| format!("{} ? {} : ", shape(c), shape(v))).collect();
            format!("({arms}{})", shape(otherwise))
        }
        In { not: n, operand, list } => format!("({} {}IN ({}))", shape(operand), not(n), join(list, ", ")),
        Between { not: n, operand, low, high } => {
            format!("({} {}BETWEEN {} AND {})", shape(operand), not(n), shape(low), shape(high))
        }
        Like { not: n, operand, pattern, escape } => {
            format!(
                "({} {}LIKE {}{})",
                shape(operand),
                not(n),
                shape(pattern),
                escape.map_or(String::new(), |c| format!(" ESCAPE {c}"))
            )
        }
        Object(properties) => {
            let properties: Vec<_> =
                properties.iter().map(|(name, value)| format!("{name}: {}", shape(value))).collect();
            format!("{{{}}}", properties.join(", "))
        }
        Array(items) => format!("[{}]", join(items, ", ")),
        Call { function, arguments } => format!("{function}({})", join(arguments, ", ")),
        UserCall { function, arguments } => format!("udf.{function}({})", join(arguments, ", ")),
        Subquery { form, .. } => format!("{form:?}(…)"),
    }
}

fn step(step: &AstStep) -> String {
    match step {
        AstStep::Property(name) => format!(".{name}"),
        AstStep::Index(index) => format!("[{}]", shape(index)),
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

#[test]
fn every_level_binds_tighter_than_the_next() {
    check("1 - 2 * 3", "(1 - (2 * 3))");
    check("1 << 2 + 3", "(1 << (2 + 3))");
    check("1 < 2 >> 3", "(1 < (2 >> 3))");
    check("1 = 2 < 3", "(1 = (2 < 3))");
    check("1 & 2 <> 3", "(1 & (2 != 3))");
    check("1 ^ 2 & 3", "(1 ^ (2 & 3))");
    check("1 | 2 ^ 3", "(1 | (2 ^ 3))");
    check("1 || 2 | 3", "(1 || (2 | 3))");
    check("1 || 2 IN (3)", "((1 || 2) IN (3))");
    check("a IN (1) AND b LIKE 'x'", r#"((a IN (1)) AND (b LIKE "x"))"#);
    check("a AND b OR c AND d", "((a AND b) OR (c AND d))");
    check("a OR b ?? c OR d", "((a OR b) ?? (c OR d))");
    check("a ?? b ? c ?? d : e ?? f", "((a ?? b) ? (c ?? d) : (e ?? f))");
    check("1 || 2 | 3 ^ 4 & 5 = 6 < 7 << 8 + 9 * -10", "(1 || (2 | (3 ^ (4 & (5 = (6 < (7 << (8 + (9 * (-10))))))))))");
    check("-1 * 2 + 3 << 4 < 5 = 6 & 7 ^ 8 | 9 || 10", "((((((((((-1) * 2) + 3) << 4) < 5) = 6) & 7) ^ 8) | 9) || 10)");
}

#[test]
fn chains_associate_to_the_left() {
    check("1 - 2 + 3 - 4", "(((1 - 2) + 3) - 4)");
    check("8 / 4 * 2 % 3", "(((8 / 4) * 2) % 3)");
    check("1 - (2 - 3)", "(1 - (2 - 3))");
    check("(1 - 2) - 3", "((1 - 2) - 3)");
    check("1 < 2 < 3", "((1 < 2) < 3)");
}

#[test]
fn conditionals_associate_to_the_right() {
    check("a ? 1 : b ? 2 : 3", "(a ? 1 : b ? 2 : 3)");
    check("a ? b ? 1 : 2 : 3", "(a ? (b ? 1 : 2) : 3)");
    check("(a ? 1 : b) ? 2 : 3", "((a ? 1 : b) ? 2 : 3)");
}

#[test]
fn not_binds_between_comparisons_and_and() {
    check("NOT c.a = 1", "(NOT (c.a = 1))");
    check("NOT a AND b", "((NOT a) AND b)");
    check("NOT a IN (1)", "(NOT (a IN (1)))");
    check("NOT NOT a", "(NOT (NOT a))");
    check("a = NOT b AND c", "((a = (NOT b)) AND c)");
    check("NOT (a) = b", "(NOT (a = b))");
}

#[test]
fn predicates() {
    check("p.c IN (1, 2) AND p.x BETWEEN 10 AND 50 AND q", "((p.c IN (1, 2)) AND (p.x BETWEEN 10 AND 50) AND q)");
    check("a NOT BETWEEN b + 1 AND c || d", "(a NOT BETWEEN (b + 1) AND (c || d))");
    check("a not in ('x')", r#"(a NOT IN ("x"))"#);
    check("a NOT LIKE '%20^%%' ESCAPE '^'", r#"(a NOT LIKE "%20^%%" ESCAPE ^)"#);
}

#[test]
fn paths_constructors_and_calls() {
    check(r#"r["x"]['y'][0][@n].z"#, r#"r["x"]["y"][0][@n].z"#);
    check("-c.a[1 + 1]", "(-c.a[(1 + 1)])");
    check("{grade: c.g, \"a b\": [1, {}, []]}.grade < 3", "({grade: c.g, a b: [1, {}, []]}.grade < 3)");
    check("[1, 2][0]", "[1, 2][0]");
    check("(c).a", "c.a");
    check("left(c.a, 1)", "left(c.a, 1)");
    check("LEFT", "LEFT");
    check("udf.f() + udf.g(1)", "(udf.f() + udf.g(1))");
    check("TRUE", "TRUE");
    check("undefined ?? null", "(undefined ?? null)");
    check("EXISTS(SELECT 1) AND exists", "(Exists(…) AND exists)");
    check("(SELECT VALUE 1).a", "Scalar(…).a");
}

#[test]
fn the_whole_language_is_recognised() {
    for text in [
        "SELECT *",
        "select * from c",
        "SELECT DISTINCT TOP 5 VALUE c.n FROM c",
        "SELECT TOP @n c.a b, c.c AS d FROM c",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT c.t, COUNT(1) AS n FROM c WHERE c.x GROUP BY c.t, UPPER(c.u)",
        "SELECT * FROM c ORDER BY c.a, c.b DESC, c.c ASC OFFSET 1 LIMIT @l",
        "SELECT TOP 10 * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), VectorDistance(c.v, [1, 2]))",
        "SELECT * FROM c ORDER BY RANK.a",
        "SELECT VALUE x FROM c JOIN x IN c.items JOIN (SELECT VALUE y FROM y IN x.z) q JOIN t IN (SELECT VALUE [1])",
        "SELECT kv FROM c JOIN kv IN OBJECTTOARRAY(c.o, 'key', 'value')",
        "SELECT * FROM products.sizes[0]['x'] s",
        "SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.tags WHERE ALL(SELECT 1)) FROM ROOT AS c",
        "SELECT VALUE root FROM root WHERE (((root[\"a\"] >= \"x\") AND (true ? 1 : 2) = 1))",
        "SELECT c._rid, [{\"item\": c.k}] AS orderByItems, c AS payload FROM c WHERE ((c.p) AND (true)) ORDER BY c.k",
    ] {
        if let Err(diagnostic) = parse(text) {
            panic!("{text}: {diagnostic:?}");
        }
    }
}

#[track_caller]
fn check_syntax_error(text: &str, near: &str, start: usize, end: usize) {
    let Err(Diagnostic { span, code, message, .. }) = parse(text) else { panic!("{text} parsed") };
    assert_eq!(message, format!("Syntax error, incorrect syntax near '{near}'."), "{text}");
    assert_eq!((code, span.start, span.end), (Some("SC1001"), start, end), "{text}");
}

#[test]
fn syntax_errors_have_positions() {
    check_syntax_error("", "", 0, 0);
    check_syntax_error("SELEC * FROM c", "SELEC", 0, 5);
    check_syntax_error("SELECT", "SELECT", 0, 6);
    check_syntax_error("SELECT * FROM", "FROM", 9, 13);
    check_syntax_error("SELECT * FROM c WHERE", "WHERE", 16, 21);
    check_syntax_error("SELECT * FROM c WHERE -", "-", 22, 23);
    check_syntax_error("SELECT * FROM c WHERE c.a = 'x", "'x", 28, 30);
    check_syntax_error("SELECT *, c.a FROM c", ",", 8, 9);
    check_syntax_error("SELECT VALUE * FROM c", "*", 13, 14);
    check_syntax_error("SELECT c.order FROM c", "order", 9, 14);
    check_syntax_error("SELECT c.a AS value FROM c", "value", 14, 19);
    check_syntax_error("SELECT c.null FROM c", "null", 9, 13);
    check_syntax_error("SELECT 1 WHERE a NOT = 1", "=", 21, 22);
    check_syntax_error("SELECT 1 WHERE a IN ()", ")", 21, 22);
    check_syntax_error("SELECT 1 WHERE a IN (1) IN (2)", "IN", 24, 26);
    check_syntax_error("SELECT a ! b", "!", 9, 10);
    check_syntax_error("SELECT a == b", "=", 10, 11);
    check_syntax_error("SELECT 1; SELECT 2", ";", 8, 9);
    check_syntax_error("SELECT /* no */ 1", "/", 7, 8);
    check_syntax_error("SELECT TOP -1 * FROM c", "-", 11, 12);
    check_syntax_error("SELECT * FROM c OFFSET 1", "1", 23, 24);
    check_syntax_error("SELECT * FROM 'c'", "'c'", 14, 17);
    check_syntax_error("SELECT * FROM c[c.x]", "c", 14, 15);
    check_syntax_error("SELECT 1 WHERE a LIKE 'b' ESCAPE 'cd'", "'cd'", 33, 37);
    check_syntax_error("SELECT 1 WHERE FROM c", "FROM", 15, 19);
    check_syntax_error("SELECT * WHERE true FROM c", "FROM", 20, 24);
    check_syntax_error("SELECT udf FROM c", "FROM", 11, 15);
    check_syntax_error("SELECT f(1 FROM c", "FROM", 11, 15);
}

#[test]
fn long_tokens_are_truncated_in_messages() {
    let diagnostic = parse(&format!("SELECT '{}", "x".repeat(100_000))).unwrap_err();
    assert!(diagnostic.message.len() < 150, "{}", diagnostic.message.len());
}

/// Runs on a stack of half the size that server threads have.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(1024 * 1024).spawn(test).unwrap().join().unwrap();
}

fn nested_in(open: &str, close: &str, levels: usize) -> String {
    format!("SELECT VALUE {}1{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn nesting_limit_is_exact() {
    on_a_small_stack(|| {
        // The scalar itself is the first level.
        for (open, close) in [("(", ")"), ("[", "]"), ("{a:", "}"), ("- ", ""), ("NOT ", ""), ("f(", ")"), ("c[", "]")]
        {
            assert!(parse(&nested_in(open, close, NESTING_MAX - 1)).is_ok(), "{open}");
            let diagnostic = parse(&nested_in(open, close, NESTING_MAX)).unwrap_err();
            assert!(diagnostic.message.contains("nests deeper than 256 levels"), "{open}: {}", diagnostic.message);
        }
    });
}

#[test]
fn no_text_exhausts_the_stack() {
    on_a_small_stack(|| {
        let openings =
            ["(", "[", "{a:", "- ", "~", "NOT ", "f(", "c[", "(SELECT ", "EXISTS(SELECT VALUE ", "a ? ", "a IN ("];
        let climb = "1 || 1 | 1 ^ 1 & 1 = 1 < 1 << 1 + 1 * - (";
        let sides = "a ?? a OR a AND NOT a || a IN (";
        for open in openings.into_iter().chain([climb, sides]) {
            assert!(parse(&nested_in(open, "", 500_000 / open.len())).is_err(), "{open}");
        }
        let mut whole = climb.repeat(20);
        whole.push('1');
        whole.push_str(&")".repeat(20));
        assert!(parse(&format!("SELECT {whole}")).is_ok());
    });
}

#[test]
fn chains_are_flat() {
    on_a_small_stack(|| {
        for link in [" AND a", " OR a", " + a", " || a", " = a", ".a", "[0]", " ?? a", " ? a : a"] {
            let text = format!("SELECT VALUE a{}", link.repeat(500_000 / link.len()));
            assert!(parse(&text).is_ok(), "{link}");
        }
    });
}

#[test]
fn constructor_and_list_limits_are_exact() {
    let items = |n: usize| (0..n).map(|i| format!("a{i}")).collect::<Vec<_>>().join(",");
    assert!(parse(&format!("SELECT {}", items(PROPERTIES_MAX))).is_ok());
    assert!(parse(&format!("SELECT {}", items(PROPERTIES_MAX + 1))).is_err());
    let properties = |n: usize| (0..n).map(|i| format!("a{i}:1")).collect::<Vec<_>>().join(",");
    assert!(parse(&format!("SELECT {{{}}}", properties(PROPERTIES_MAX))).is_ok());
    assert!(parse(&format!("SELECT {{{}}}", properties(PROPERTIES_MAX + 1))).is_err());
}

/// Random token sequences that reach far into the grammar.
pub(crate) fn token_soup() -> impl Strategy<Value = String> {
    #[rustfmt::skip]
    const WORDS: &[&str] = &[
        "SELECT", "VALUE", "*", "FROM", "c", "r", "WHERE", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ESCAPE",
        "'^'", "(", ")", "[", "]", "{", "}", ",", ".", ":", "?", "??", "||", "|", "&", "^", "~", "<<", ">>>", "<",
        ">=", "=", "!=", "+", "-", "/", "%", "1", "0.5", "0x1F", "'x%'", "\"y\"", "@p", "null", "true",
        "undefined", "NaN", "TOP", "DISTINCT", "GROUP", "BY", "ORDER", "JOIN", "AS", "udf", "f", "EXISTS",
        "OFFSET", "LIMIT", "a", "é", "--", "\n", "#",
    ];
    prop::collection::vec(prop::sample::select(WORDS), 0..40).prop_map(|words| format!("SELECT {}", words.join(" ")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_parses_or_has_an_error_inside_it(text in prop_oneof![any::<String>(), token_soup()]) {
        if let Err(diagnostic) = parse(&text) {
            prop_assert!(text.get(diagnostic.span.start..diagnostic.span.end).is_some());
        }
    }

    /// The full parenthesisation of a scalar means the same as the scalar.
    #[test]
    fn parentheses_that_follow_precedence_change_nothing(
        parts in prop::collection::vec((prop::sample::select(&["a", "1", "-b", "c.d"][..]),
            prop::sample::select(&["*", "/", "+", "-", "<<", "<", ">=", "=", "!=", "&", "^", "|", "||", "AND", "OR", "??"][..])), 1..12)
    ) {
        let mut text: String = parts.iter().map(|(operand, op)| format!("{operand} {op} ")).collect();
        text.push('z');
        let shape = shape_of(&text);
        prop_assert_eq!(shape_of(&shape), shape);
    }
}
