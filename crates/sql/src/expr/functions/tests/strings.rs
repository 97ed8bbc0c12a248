//! String functions beyond the documented samples: code units, case, limits.

use super::*;
use crate::expr::functions::strings::REPLICATE_UNITS_MAX;

#[test]
fn string_functions_reject_other_types() {
    for name in ["LENGTH", "LOWER", "UPPER", "REVERSE", "TRIM", "LTRIM", "RTRIM"] {
        check_wrong_types(name, &["'a'"], &NOT_STRINGS);
    }
    for name in [
        "CONCAT",
        "CONTAINS",
        "ENDSWITH",
        "STARTSWITH",
        "STRINGEQUALS",
        "INDEX_OF",
        "LASTINDEXOF",
        "TRIM",
        "LTRIM",
        "RTRIM",
        "STRINGSPLIT",
        "SUBSTRINGAFTER",
        "SUBSTRINGBEFORE",
        "LASTSUBSTRINGAFTER",
        "LASTSUBSTRINGBEFORE",
    ] {
        check_wrong_types(name, &["'ab'", "'a'"], &NOT_STRINGS);
    }
    check_wrong_types("REPLACE", &["'ab'", "'a'", "'b'"], &NOT_STRINGS);
    check_wrong_types("CONCAT", &["'ab'", "'a'", "'b'"], &NOT_STRINGS);
    for wrong in ["undefined", "null", "1", "'true'"] {
        for name in ["CONTAINS", "ENDSWITH", "STARTSWITH", "STRINGEQUALS"] {
            check_undefined(&[&format!("{name}('a', 'a', {wrong})")]);
        }
    }
    for wrong in ["undefined", "null", "'1'", "NaN", "Infinity"] {
        check_undefined(&[&format!("REPLICATE('abc', {wrong})")]);
    }
    for wrong in ["undefined", "null", "'1'", "1.5", "NaN", "Infinity"] {
        check_undefined(&[
            &format!("LEFT('abc', {wrong})"),
            &format!("RIGHT('abc', {wrong})"),
            &format!("SUBSTRING('abc', {wrong}, 1)"),
            &format!("SUBSTRING('abc', 0, {wrong})"),
            &format!("INDEX_OF('abc', 'b', {wrong})"),
            &format!("LASTINDEXOF('abc', 'b', {wrong})"),
        ]);
    }
}

#[test]
fn positions_count_utf_16_units() {
    check(&[
        ("LENGTH('😀')", "2"),
        ("LENGTH('äé')", "2"),
        ("INDEX_OF('a😀b', 'b')", "3"),
        ("INDEX_OF('äb', 'b')", "1"),
        ("LASTINDEXOF('b😀b', 'b')", "3"),
        ("LEFT('a😀b', 3)", r#""a😀""#),
        ("RIGHT('a😀b', 3)", r#""😀b""#),
        ("SUBSTRING('a😀b', 1, 2)", r#""😀""#),
        ("SUBSTRING('äöü', 1, 1)", r#""ö""#),
        // Half of a surrogate pair is left out.
        ("LEFT('a😀b', 2)", r#""a""#),
        ("RIGHT('a😀b', 2)", r#""b""#),
        ("SUBSTRING('a😀b', 2, 2)", r#""b""#),
        ("SUBSTRING('a😀b', 2, 1)", r#""""#),
        ("INDEX_OF('😀😀', '😀', 1)", "2"),
        ("REVERSE('a😀b')", r#""b😀a""#),
    ]);
}

#[test]
fn substrings_are_clipped_to_the_text() {
    check(&[
        ("LEFT('abc', 0)", r#""""#),
        ("LEFT('abc', -1)", r#""""#),
        ("LEFT('abc', 9223372036854775807)", r#""abc""#),
        ("RIGHT('abc', -1)", r#""""#),
        ("RIGHT('abc', 4)", r#""abc""#),
        ("SUBSTRING('abc', 1, 100)", r#""bc""#),
        ("SUBSTRING('abc', 3, 1)", r#""""#),
        ("SUBSTRING('abc', -1, 2)", r#""""#),
        ("SUBSTRING('abc', 0, 0)", r#""""#),
        ("SUBSTRING('abc', 9223372036854775807, 9223372036854775807)", r#""""#),
    ]);
}

#[test]
fn searches_from_a_position() {
    check(&[
        ("INDEX_OF('abcabc', 'abc', 1)", "3"),
        ("INDEX_OF('abcabc', 'abc', 3)", "3"),
        ("INDEX_OF('abcabc', 'abc', 4)", "-1"),
        ("INDEX_OF('abc', 'a', -5)", "0"),
        ("INDEX_OF('abc', '')", "0"),
        ("INDEX_OF('abc', '', 3)", "3"),
        ("INDEX_OF('abc', '', 4)", "-1"),
        ("INDEX_OF('abc', 'A')", "-1"),
        ("LASTINDEXOF('abcdeabc', 'abc')", "5"),
        ("LASTINDEXOF('abcdeabc', 'abc', 6)", "0"),
        ("LASTINDEXOF('abcdeabc', 'abc', 7)", "5"),
        ("LASTINDEXOF('abcdeabc', 'abc', 100)", "5"),
        ("LASTINDEXOF('abcdeabc', 'abc', 1)", "-1"),
        ("LASTINDEXOF('abc', 'a', -1)", "-1"),
        ("LASTINDEXOF('abc', '')", "3"),
        ("SUBSTRINGAFTER('a/b/c', '/')", r#""b/c""#),
        ("SUBSTRINGBEFORE('a/b/c', '/')", r#""a""#),
        ("LASTSUBSTRINGAFTER('bike::touring::frame', '::')", r#""frame""#),
        ("LASTSUBSTRINGBEFORE('bike::touring::frame', '::')", r#""bike::touring""#),
        ("SUBSTRINGAFTER('abc', '/')", "undefined"),
        ("LASTSUBSTRINGBEFORE('abc', '/')", "undefined"),
    ]);
}

#[test]
fn case_is_ordinal() {
    check(&[
        ("UPPER('straße äµ')", r#""STRAßE ÄΜ""#),
        ("LOWER('ÄÖÜ İ')", r#""äöü İ""#),
        ("STRINGEQUALS('ÄÖ', 'äö', true)", "true"),
        ("STRINGEQUALS('ß', 'SS', true)", "false"),
        ("STRINGEQUALS('ı', 'I', true)", "false"),
        ("STRINGEQUALS('Σ', 'ς', true)", "true"),
        ("STRINGEQUALS('a', 'ab', true)", "false"),
        ("STARTSWITH('Äpfel', 'äP', true)", "true"),
        ("STARTSWITH('Ä', 'äp', true)", "false"),
        ("ENDSWITH('Äpfel', 'FEL', true)", "true"),
        ("ENDSWITH('el', 'fel', true)", "false"),
        ("CONTAINS('Grüne Äpfel', 'ÄPFEL', true)", "true"),
        ("CONTAINS('Grüne Äpfel', 'PFE', true)", "true"),
        ("CONTAINS('\u{212a}elvin', 'kelvin', true)", "false"),
        ("CONTAINS('abc', '', true)", "true"),
        ("CONTAINS('', '')", "true"),
        ("CONTAINS('', 'a', true)", "false"),
        (
            "CONTAINS('xthe quick brown fox jumps over the lazy dogx', 'THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG', true)",
            "true",
        ),
    ]);
}

#[test]
fn contains_all_and_any_are_three_valued() {
    check(&[
        ("CONTAINS_ALL_CI('Nice day', 'nice', 'DAY')", "true"),
        ("CONTAINS_ALL_CI('Nice day', undefined, 'nice')", "undefined"),
        ("CONTAINS_ALL_CI('Nice day', undefined, 'had')", "false"),
        ("CONTAINS_ALL_CS('Nice day', 'nice')", "false"),
        ("CONTAINS_ANY_CI('Nice day', undefined, 'nice')", "true"),
        ("CONTAINS_ANY_CI('Nice day', 1, 'had')", "undefined"),
        ("CONTAINS_ANY_CS('Nice day', 'had', 'Nice')", "true"),
        ("CONTAINS_ANY_CS(undefined, 'a')", "undefined"),
        ("CONTAINS_ALL_CS(null, 'a')", "undefined"),
    ]);
}

#[test]
fn trimming_takes_a_set() {
    check(&[
        ("TRIM('-_-X-_-', '-_')", r#""X""#),
        ("TRIM('-- X --', '-')", r#"" X ""#),
        ("TRIM('\u{a0}\tX\u{3000}')", r#""X""#),
        ("TRIM('éXé', 'é')", r#""X""#),
        ("TRIM('XéX', 'X😀')", r#""é""#),
        ("TRIM(' X ', '')", r#"" X ""#),
        ("LTRIM('AdventureWorks', 'Adventure')", r#""Works""#),
        ("RTRIM('aXbX', 'Xb')", r#""a""#),
    ]);
}

#[test]
fn joins_and_splits() {
    check(&[
        ("STRINGJOIN([], ',')", r#""""#),
        ("STRINGJOIN(['a', ''], ',')", r#""a,""#),
        ("STRINGJOIN(['a', 1], ',')", "undefined"),
        ("STRINGJOIN(['a', null], ',')", "undefined"),
        ("STRINGJOIN('ab', ',')", "undefined"),
        ("STRINGSPLIT('a,,b,', ',')", r#"["a","","b",""]"#),
        ("STRINGSPLIT('Helmet', '')", r#"["Helmet"]"#),
        ("STRINGSPLIT('', ',')", r#"[""]"#),
        ("CONCAT('a', 'b', 'c')", r#""abc""#),
        ("CONCAT(CONCAT('a', 'b'), 'c')", r#""abc""#),
        ("REPLACE('aaa', 'aa', 'b')", r#""ba""#),
        ("REPLACE('abc', 'b', '')", r#""ac""#),
        ("REPLACE('abc', '', 'x')", "undefined"),
        ("REPLICATE('ab', 0)", r#""""#),
        ("REPLICATE('', 9223372036854775807)", r#""""#),
        ("REPLICATE('ab', -1)", "undefined"),
    ]);
    check(&[
        (&format!("LENGTH(REPLICATE('ab', {}))", REPLICATE_UNITS_MAX / 2), "10000"),
        (&format!("REPLICATE('ab', {})", REPLICATE_UNITS_MAX / 2 + 1), "undefined"),
        (&format!("LENGTH(REPLICATE('😀', {}))", REPLICATE_UNITS_MAX / 2), "10000"),
        (&format!("REPLICATE('😀', {})", REPLICATE_UNITS_MAX / 2 + 1), "undefined"),
    ]);
}

#[test]
fn conversions_read_strict_json() {
    check(&[
        ("STRINGTOARRAY(' [1, \"a\", {}] ')", r#"[1,"a",{}]"#),
        ("STRINGTOARRAY('{}')", "undefined"),
        ("STRINGTOARRAY('[1,]')", "undefined"),
        ("STRINGTOARRAY('[1] 2')", "undefined"),
        ("STRINGTOOBJECT('{\"a\": [null]}')", r#"{"a":[null]}"#),
        ("STRINGTOOBJECT(\"{'a':1}\")", "undefined"),
        ("STRINGTOOBJECT('[]')", "undefined"),
        ("STRINGTOBOOLEAN('TRUE')", "undefined"),
        ("STRINGTOBOOLEAN('\ttrue\n')", "true"),
        ("STRINGTOBOOLEAN('trueish')", "undefined"),
        ("STRINGTONULL('Null')", "undefined"),
        ("STRINGTONULL('')", "undefined"),
        ("STRINGTONUMBER('-1.5e3')", "-1500"),
        ("STRINGTONUMBER('-1.79769e+308')", "-1.79769e+308"),
        ("STRINGTONUMBER('9007199254740993')", "9007199254740993"),
        ("STRINGTONUMBER('1e999')", "undefined"),
        ("STRINGTONUMBER('NaN')", "undefined"),
        ("STRINGTONUMBER('0x10')", "undefined"),
        ("STRINGTONUMBER('+1')", "undefined"),
        ("STRINGTONUMBER('1 2')", "undefined"),
        ("TOSTRING(null)", r#""null""#),
        ("TOSTRING(true)", r#""true""#),
        ("TOSTRING(1.0)", r#""1""#),
        ("TOSTRING(9007199254740993)", r#""9007199254740993""#),
        ("TOSTRING(0 * -1)", r#""0""#),
        ("TOSTRING(-123.456)", r#""-123.456""#),
        ("TOSTRING(123456789012345680000.0)", r#""123456789012345680000""#),
        ("TOSTRING(1e21)", r#""1e+21""#),
        ("TOSTRING(-1.5e300)", r#""-1.5e+300""#),
        ("TOSTRING(0.000001)", r#""0.000001""#),
        ("TOSTRING(1.25e-7)", r#""1.25e-7""#),
        ("TOSTRING(NaN)", r#""NaN""#),
        ("TOSTRING(-Infinity)", r#""-Infinity""#),
        ("TOSTRING({a: ['b']})", r#""{\"a\":[\"b\"]}""#),
    ]);
    for name in ["STRINGTOARRAY", "STRINGTOBOOLEAN", "STRINGTONULL", "STRINGTONUMBER", "STRINGTOOBJECT"] {
        check_wrong_types(name, &["'1'"], &NOT_STRINGS);
    }
}

/// A result that exceeds the memory budget is an error.
#[test]
fn results_are_charged_to_the_memory_budget() {
    let long = "x".repeat(1000);
    for (name, arguments) in [
        ("CONCAT", vec![long.as_str(), &long, &long]),
        ("REPLACE", vec![&long, "x", &long]),
        ("STRINGSPLIT", vec![&long, "x"]),
        ("UPPER", vec![&long]),
        ("REGEXREPLACEALL", vec![&long, "x", &long]),
        ("REGEXEXTRACTALL", vec![&long, "x"]),
    ] {
        let values: Vec<Value> = arguments.into_iter().map(Value::from).collect();
        let mut terms: Vec<Datum<'_>> = values.iter().map(|v| Some(Cow::Borrowed(v))).collect();
        let error = with_context(999, |cx| (find(name).unwrap().call)(&mut terms, cx).map(drop)).unwrap_err();
        assert_eq!(error.kind, Kind::TooLarge, "{name}");
    }
}

#[test]
fn long_needles_in_long_texts() {
    let text = Value::from("ab".repeat(500_000));
    let needle = Value::from(format!("{}é", "AB".repeat(250_000)));
    let yes = Value::Bool(true);
    let mut terms = [&text, &needle, &yes].map(|v| Some(Cow::Borrowed(v)));
    let answer = with_context(0, |cx| (find("CONTAINS").unwrap().call)(&mut terms, cx)).unwrap();
    assert_eq!(answer.as_deref(), Some(&Value::Bool(false)));
}

#[test]
fn many_needles_in_a_long_text_have_a_limit() {
    let (text, needle) = (Value::from("a".repeat(1024 * 1024)), Value::from("b"));
    for (needles, fits) in [(100, true), (511, true), (512, false)] {
        let terms = std::iter::once(&text).chain(std::iter::repeat_n(&needle, needles));
        let mut terms: Vec<Datum<'_>> = terms.map(|v| Some(Cow::Borrowed(v))).collect();
        let answer = with_context(0, |cx| (find("CONTAINS_ANY_CS").unwrap().call)(&mut terms, cx).map(drop));
        assert_eq!(answer.is_ok(), fits, "{needles}");
    }
}
