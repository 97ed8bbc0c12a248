//! Expressions over `{"s": "x", "n": 7, "f": 1.5, "t": true, "z": null, "a": [1, [2]], "o": {"k": {"1": "one"}}}`.

use pleiad_model::env::ManualEnv;
use pleiad_model::{Kind, Value, json};

use crate::{Parameters, parse};

const ROW: &str =
    r#"{"s":"x","n":7,"f":1.5,"t":true,"z":null,"a":[1,[2]],"o":{"k":{"1":"one"}},"big":9007199254740993}"#;

/// The scalar's value as JSON text, or `undefined`.
#[track_caller]
fn value_of(scalar: &str) -> String {
    let row = json::parse(ROW.as_bytes()).unwrap();
    let query = parse(&format!("SELECT VALUE {scalar} FROM c")).unwrap_or_else(|e| panic!("{scalar}: {e}"));
    let rows = query
        .run_over(&parameters(), &ManualEnv::default(), [&row].into_iter())
        .unwrap_or_else(|e| panic!("{scalar}: {e}"));
    rows.iter().next().map_or("undefined".into(), |row| String::from_utf8_lossy(row).into_owned())
}

fn parameters() -> Parameters {
    let list = br#"[{"name":"@s","value":"s"},{"name":"@i","value":1},{"name":"@o","value":{"b":[1,2],"a":1.0}},{"name":"@u"}]"#;
    Parameters::from_value(Some(&json::parse(list).unwrap())).unwrap()
}

#[track_caller]
fn check(table: &[(&str, &str)]) {
    for (scalar, want) in table {
        assert_eq!(value_of(scalar), *want, "{scalar}");
    }
}

const TRUTHS: [&str; 3] = ["true", "false", "undefined"];

/// The documented truth tables; rows and columns are true, false, undefined.
#[test]
fn three_valued_logic() {
    let and = [["true", "false", "undefined"], ["false", "false", "false"], ["undefined", "false", "undefined"]];
    let or = [["true", "true", "true"], ["true", "false", "undefined"], ["true", "undefined", "undefined"]];
    for (i, left) in TRUTHS.iter().enumerate() {
        for (j, right) in TRUTHS.iter().enumerate() {
            check(&[(&format!("{left} AND {right}"), and[i][j]), (&format!("{left} OR {right}"), or[i][j])]);
        }
    }
    check(&[("NOT true", "false"), ("NOT false", "true"), ("NOT undefined", "undefined")]);
}

#[test]
fn a_non_boolean_counts_as_undefined_in_logic() {
    for other in ["1", "0", "'true'", "null", "[]", "{}", "c.missing"] {
        check(&[
            (&format!("NOT {other}"), "undefined"),
            (&format!("{other} AND true"), "undefined"),
            (&format!("{other} AND false"), "false"),
            (&format!("{other} OR true"), "true"),
            (&format!("{other} OR false"), "undefined"),
        ]);
    }
}

#[test]
fn arithmetic() {
    check(&[
        ("((2 + 11 % 7) - 2) / 2", "2"),
        ("c.n * c.f", "10.5"),
        ("7 / 2", "3.5"),
        ("-7 % 3", "-1"),
        ("7 % -3", "1"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1 + '1'", "undefined"),
        ("1 + null", "undefined"),
        ("1 + true", "undefined"),
        ("1 + c.missing", "undefined"),
        ("[1] + [2]", "undefined"),
        ("-c.n", "-7"),
        ("+c.n", "7"),
        ("- -c.n", "7"),
        ("-'1'", "undefined"),
        ("+null", "undefined"),
        ("c.big", "9007199254740993"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-(-9223372036854775808)", "9223372036854775808"),
        ("0xFF + 0", "255"),
    ]);
}

#[test]
fn bitwise_operators_follow_javascript() {
    check(&[
        ("100 >> 2", "25"),
        ("100 << 2", "400"),
        ("100 >>> 0", "100"),
        ("100 & 1000", "96"),
        ("100 | 1000", "1004"),
        ("100 ^ 1000", "908"),
        ("~5", "-6"),
        ("-1 >>> 0", "4294967295"),
        ("-1 >> 31", "-1"),
        ("1 << 31", "-2147483648"),
        ("1 << 32", "1"),
        ("1 << -1", "-2147483648"),
        ("4294967296 | 0", "0"),
        ("2147483648 | 0", "-2147483648"),
        ("-4294967297.9 | 0", "-1"),
        ("1e300 | 1", "1"),
        ("NaN | 0", "0"),
        ("Infinity & 7", "0"),
        ("~'5'", "undefined"),
        ("1 | true", "undefined"),
    ]);
}

#[test]
fn concatenation_takes_strings_only() {
    check(&[
        ("'a' || c.s || \"b\"", r#""axb""#),
        ("'a' || 1", "undefined"),
        ("1 || 'a'", "undefined"),
        ("'a' || null", "undefined"),
        ("'a' || c.missing", "undefined"),
    ]);
}

#[test]
fn equality() {
    check(&[
        ("1 = 1.0", "true"),
        ("0 = -0.0", "true"),
        ("'a' = 'A'", "false"),
        ("null = null", "true"),
        ("1 = '1'", "false"),
        ("1 != '1'", "true"),
        ("null = false", "false"),
        ("c.missing = 1", "undefined"),
        ("undefined = undefined", "undefined"),
        ("c.missing != 1", "undefined"),
        ("c.z = null", "true"),
        ("[1, [2]] = c.a", "true"),
        ("[1, 2] = [2, 1]", "false"),
        ("[1] = [1, 2]", "false"),
        ("{a: 1, b: [1, 2]} = @o", "true"),
        ("{a: 1, b: [2, 1]} = @o", "false"),
        ("{a: 1} = {b: 1}", "false"),
        ("{a: 1} != {a: 2}", "true"),
        ("{} = []", "false"),
        ("{a: undefined} = {}", "true"),
        ("NaN = NaN", "false"),
        ("NaN != NaN", "true"),
        ("(\"Redmond\" = \"WA\")", "false"),
        ("9007199254740993 = 9007199254740992", "true"),
    ]);
}

#[test]
fn order_comparisons_need_equal_types() {
    check(&[
        ("1 < 2", "true"),
        ("2 <= 2.0", "true"),
        ("'a' < 'b'", "true"),
        ("'B' < 'a'", "true"),
        ("'' < 'a'", "true"),
        ("'\u{ffff}' < '😀'", "true"),
        ("false < true", "true"),
        ("null <= null", "true"),
        ("null < null", "false"),
        ("1 < '2'", "undefined"),
        ("null < 1", "undefined"),
        ("c.missing < 1", "undefined"),
        ("[1] < [2]", "undefined"),
        ("{} >= {}", "undefined"),
        ("NaN < 1", "false"),
        ("NaN >= NaN", "false"),
        ("1 < 2 < 3", "undefined"),
        ("1 < 2 = true", "true"),
    ]);
}

#[test]
fn in_is_an_or_of_equalities() {
    check(&[
        ("c.n IN (1, 7)", "true"),
        ("c.n IN (1, 2)", "false"),
        ("c.n NOT IN (1, 2)", "true"),
        ("c.n IN ('7')", "false"),
        ("c.n IN (c.missing, 7)", "true"),
        ("c.n IN (c.missing, 1)", "undefined"),
        ("c.n NOT IN (c.missing, 1)", "undefined"),
        ("c.missing IN (1)", "undefined"),
        ("c.missing NOT IN (1)", "undefined"),
        ("c.a IN ([1, [2]])", "true"),
    ]);
}

#[test]
fn between_includes_both_ends() {
    check(&[
        ("c.n BETWEEN 7 AND 7", "true"),
        ("c.n BETWEEN 1 AND 6", "false"),
        ("c.n NOT BETWEEN 1 AND 6", "true"),
        ("'m' BETWEEN 'a' AND 'z'", "true"),
        ("c.n BETWEEN 'a' AND 9", "undefined"),
        ("c.n BETWEEN 'a' AND 6", "false"),
        ("c.missing BETWEEN 1 AND 2", "undefined"),
        ("c.n BETWEEN 1 AND 9 AND c.t", "true"),
    ]);
}

#[test]
fn like_takes_strings_only() {
    check(&[
        ("'abc' LIKE 'a%'", "true"),
        ("'abc' NOT LIKE 'a%'", "false"),
        ("'a%c' LIKE 'a!%c' ESCAPE '!'", "true"),
        ("c.n LIKE '7'", "undefined"),
        ("c.n NOT LIKE '7'", "undefined"),
        ("'a' LIKE null", "undefined"),
        ("c.s LIKE c.s || '%'", "true"),
    ]);
}

#[test]
fn conditional_operators() {
    check(&[
        ("c.missing ?? 1", "1"),
        ("c.z ?? 1", "null"),
        ("c.missing ?? undefined ?? 'x'", r#""x""#),
        ("c.missing ?? c.missing", "undefined"),
        ("c.t ? 1 : 2", "1"),
        ("false ? 1 : 2", "2"),
        ("c.missing ? 1 : 2", "2"),
        ("'true' ? 1 : 2", "2"),
        ("1 ? 1 : 2", "2"),
        ("null ? 1 : 2", "2"),
        ("false ? 1 : true ? c.missing : 3", "undefined"),
        ("c.n > 100 ? 'big' : c.n > 5 ? 'middle' : 'small'", r#""middle""#),
    ]);
}

#[test]
fn paths() {
    check(&[
        ("c.o.k['1']", r#""one""#),
        ("c.o.k[1]", "undefined"),
        ("c['o'][\"k\"]", r#"{"1":"one"}"#),
        ("c[@s]", r#""x""#),
        ("c.a[0]", "1"),
        ("c.a[@i][0]", "2"),
        ("c.a[1.0][0.0]", "2"),
        ("c.a[2]", "undefined"),
        ("c.a[-1]", "undefined"),
        ("c.a[0.5]", "undefined"),
        ("c.a['0']", "undefined"),
        ("c.a[1e30]", "undefined"),
        ("c.a.length", "undefined"),
        ("c.s.x", "undefined"),
        ("c.s[0]", "undefined"),
        ("c.missing.deeper[0].still", "undefined"),
        ("c[undefined]", "undefined"),
        ("c[null]", "undefined"),
        ("c.z", "null"),
        ("{grade: c.n}.grade < 8", "true"),
        ("{}.category", "undefined"),
        ("[1, 2, 3][1]", "2"),
        ("[1, 2, 3][3]", "undefined"),
        ("'text'.x", "undefined"),
        ("@o.b[0]", "1"),
        ("@u", "undefined"),
    ]);
}

#[test]
fn constructors_leave_undefined_out() {
    check(&[
        ("[1, c.missing, 3]", "[1,3]"),
        ("[c.missing]", "[]"),
        ("{a: c.missing, 'b c': {d: [c.n]}}", r#"{"b c":{"d":[7]}}"#),
        ("{}", "{}"),
    ]);
}

#[test]
fn nan_and_infinity_are_not_returned() {
    check(&[("1 / 0 > 5", "true"), ("0 / 0 = 0 / 0", "false"), ("1 / (1 / 0)", "0"), ("1e999 = Infinity", "true")]);
    for scalar in ["8.9 / 0.0", "NaN", "-Infinity", "[1, {a: 0 / 0}]", "1e999", "1e308 * 10"] {
        let error = parse(&format!("SELECT VALUE {scalar}"))
            .unwrap()
            .run_over(&parameters(), &ManualEnv::default(), [].iter())
            .unwrap_err();
        assert_eq!(error.kind, Kind::NotFinite, "{scalar}");
        assert!(error.to_string().contains("cannot be represented in JSON"), "{scalar}: {error}");
    }
}

#[test]
fn large_objects_compare_in_reasonable_time() {
    let object = |names: &mut dyn Iterator<Item = u32>| {
        let properties: Vec<String> = names.map(|i| format!(r#""p{i}":{i}"#)).collect();
        json::parse(format!("{{{}}}", properties.join(",")).as_bytes()).unwrap()
    };
    let (forth, back) = (object(&mut (0..100_000)), object(&mut (0..100_000).rev()));
    let list = Value::Array(vec![pleiad_model::Object::new().with("name", "@p").with("value", forth).into()]);
    let query = parse("SELECT VALUE 1 FROM c WHERE c = @p").unwrap();
    let rows = query
        .run_over(&Parameters::from_value(Some(&list)).unwrap(), &ManualEnv::default(), [&back].into_iter())
        .unwrap();
    assert_eq!(rows.iter().collect::<Vec<_>>(), [b"1"]);
}
