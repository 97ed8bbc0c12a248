use proptest::prelude::*;

use super::super::ast::{Expr, SelectSpec};
use super::super::parse;
use super::super::parser::tests::token_soup;
use super::{print, print_expr};

#[track_caller]
fn check(text: &str, want: &str) {
    let select = parse(text).unwrap_or_else(|diagnostic| panic!("{text}: {diagnostic:?}"));
    assert_eq!(print(&select), want, "{text}");
}

#[track_caller]
fn check_scalar(text: &str, want: &str) {
    assert_eq!(print_expr(&scalar(text)), want, "{text}");
}

#[track_caller]
fn scalar(text: &str) -> Expr {
    match parse(&format!("SELECT VALUE {text}")).unwrap_or_else(|diagnostic| panic!("{text}: {diagnostic:?}")).spec {
        SelectSpec::Value(item) => item.expr,
        other => panic!("{other:?}"),
    }
}

#[test]
fn clauses() {
    check("select  *  from c", "SELECT * FROM c");
    check("SELECT distinct top 5 value c.n FROM c", "SELECT DISTINCT TOP 5 VALUE c.n FROM c");
    check(
        "SELECT c.a x, c.b FROM root c JOIN t in c.tags join c.o",
        "SELECT c.a AS x, c.b FROM root AS c JOIN t IN c.tags JOIN c.o",
    );
    check("SELECT 1 WHERE c.x group by c.t, f(1)", "SELECT 1 WHERE c.x GROUP BY c.t, f(1)");
    check(
        "SELECT * FROM c ORDER BY c.a asc, c.b desc offset 0 limit @l",
        "SELECT * FROM c ORDER BY c.a, c.b DESC OFFSET 0 LIMIT @l",
    );
    check("SELECT * FROM c order by rank RRF(f(c.t), g(c.v))", "SELECT * FROM c ORDER BY RANK RRF(f(c.t), g(c.v))");
    check("SELECT exists(SELECT 1), (SELECT VALUE 2) v", "SELECT EXISTS(SELECT 1), (SELECT VALUE 2) AS v");
}

#[test]
fn parentheses_only_where_the_meaning_needs_them() {
    check_scalar("((a)) + (b * c)", "a + b * c");
    check_scalar("(a + b) * c", "(a + b) * c");
    check_scalar("a - (b - c)", "a - (b - c)");
    check_scalar("(a OR b) AND (c AND d)", "(a OR b) AND (c AND d)");
    check_scalar("NOT (a = 1)", "NOT a = 1");
    check_scalar("(NOT a) = 1", "(NOT a) = 1");
    check_scalar("(a IN (1)) = true", "(a IN (1)) = true");
    check_scalar("(a ? b : c) ? d : (e ? f : g)", "(a ? b : c) ? d : (e ? f : g)");
    check_scalar("a not between (1 + 2) and (b and c)", "a NOT BETWEEN 1 + 2 AND (b AND c)");
    check_scalar("- - 1", "- -1");
    check_scalar("-(a + b)", "-(a + b)");
    check_scalar("~-a", "~-a");
}

#[test]
fn names_strings_and_numbers() {
    check_scalar("c[\"a b\"].d['e']", r#"c["a b"].d["e"]"#);
    check_scalar("(c.a).b", "c.a.b");
    check_scalar("c['order'][0][@p]", r#"c["order"][0][@p]"#);
    check_scalar(r#"'it\'s "so"' || "\n\u00e9""#, r#""it's \"so\"" || "\né""#);
    check_scalar("{a: 1, 'b c': [undefined, null, TRUE]}", r#"{"a": 1, "b c": [undefined, null, TRUE]}"#);
    check_scalar(
        "[1.0, 0x10, 1e300, 1.5, 1e999, NaN, 18446744073709551615]",
        "[1.0, 16, 1e300, 1.5, Infinity, NaN, 18446744073709551615]",
    );
    check_scalar("a LIKE 'x^%' escape '^'", r#"a LIKE "x^%" ESCAPE "^""#);
}

/// The tree without spans. `Debug` distinguishes values that `==` does not (`NaN`, `-0.0`).
fn tree_without_spans(text: &str) -> Option<String> {
    let tree = format!("{:?}", parse(text).ok()?);
    let mut parts = tree.split("Span {");
    let first = parts.next()?.to_owned();
    Some(parts.filter_map(|part| part.split_once('}')).fold(first, |tree, (_, rest)| tree + rest))
}

fn scalar_text() -> impl Strategy<Value = String> {
    #[rustfmt::skip]
    const LEAVES: &[&str] = &[
        "a", "c.a", "c['a b'].d[0]", "@p", "1", "2.50", "0x1F", "1e400", "NaN", "'x%\\u00e9\\n'", "\"y'\"", "null",
        "true", "undefined", "[]", "{}", "udf.f(1, c)", "EXISTS(SELECT 1 FROM c)", "(SELECT VALUE c.x)",
    ];
    #[rustfmt::skip]
    const OPERATORS: &[&str] = &[
        "*", "/", "%", "+", "-", "<<", ">>", ">>>", "<", ">=", "=", "!=", "<>", "&", "^", "|", "||", "AND", "OR", "??",
    ];
    let wrap = |text: String, wrapped: bool| if wrapped { format!("({text})") } else { text };
    prop::sample::select(LEAVES).prop_map(str::to_owned).prop_recursive(5, 40, 4, move |inner| {
        let operand = (inner, any::<bool>()).prop_map(move |(text, wrapped)| wrap(text, wrapped));
        let operator = prop::sample::select(OPERATORS);
        prop_oneof![
            4 => prop::collection::vec((operand.clone(), operator), 1..4)
                .prop_map(|terms| terms.into_iter().map(|(term, op)| format!("{term} {op} ")).collect::<String>() + "z"),
            1 => (operand.clone(), prop::sample::select(&["- ", "+", "~", "NOT "][..])).prop_map(|(a, op)| format!("{op}{a}")),
            1 => [operand.clone(), operand.clone(), operand.clone()].prop_map(|[a, b, c]| format!("{a} ? {b} : {c}")),
            1 => [operand.clone(), operand.clone(), operand.clone()].prop_map(|[a, b, c]| format!("({a}) NOT BETWEEN ({b}) AND ({c})")),
            1 => [operand.clone(), operand.clone()].prop_map(|[a, b]| format!("({a}) IN ({b}, 1)")),
            1 => operand.clone().prop_map(|a| format!("({a}) LIKE 'x^%' ESCAPE '^'")),
            1 => [operand.clone(), operand.clone()].prop_map(|[a, b]| format!("({a})[{b}].q")),
            1 => [operand.clone(), operand.clone()].prop_map(|[a, b]| format!("{{k: {a}, 'l m': [{b}, f({a})]}}")),
            1 => operand.prop_map(|a| format!("ARRAY(SELECT DISTINCT VALUE {a} FROM t IN c.x WHERE {a})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn parsing_printed_text_gives_the_same_tree(text in prop_oneof![
        3 => scalar_text().prop_map(|scalar| format!("SELECT TOP 1 {scalar} AS x FROM c WHERE {scalar} ORDER BY c.x DESC")),
        1 => token_soup(),
    ]) {
        if let Ok(select) = parse(&text) {
            let printed = print(&select);
            prop_assert_eq!(tree_without_spans(&printed), tree_without_spans(&text), "{}", printed);
        }
    }
}
