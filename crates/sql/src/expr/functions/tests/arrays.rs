//! Array, object and set functions beyond the documented samples.

use super::*;

#[test]
fn array_functions_reject_other_types() {
    for name in ["ARRAY_AVG", "ARRAY_LENGTH", "ARRAY_MAX", "ARRAY_MEDIAN", "ARRAY_MIN", "ARRAY_SUM"] {
        check_wrong_types(name, &["[1]"], &NOT_ARRAYS);
    }
    for name in ["ARRAY_CONCAT", "SETDIFFERENCE", "SETEQUAL", "SETINTERSECT", "SETUNION"] {
        check_wrong_types(name, &["[1]", "[2]"], &NOT_ARRAYS);
    }
    for wrong in NOT_ARRAYS {
        check_undefined(&[
            &format!("ARRAY_CONTAINS({wrong}, 1)"),
            &format!("ARRAY_CONTAINS_ALL({wrong}, 1)"),
            &format!("ARRAY_CONTAINS_ANY({wrong}, 1)"),
            &format!("ARRAY_SLICE({wrong}, 0)"),
        ]);
    }
}

#[test]
fn containment_is_structural() {
    check(&[
        ("ARRAY_CONTAINS([1, 2.0], 2)", "true"),
        ("ARRAY_CONTAINS(['1'], 1)", "false"),
        ("ARRAY_CONTAINS([null], null)", "true"),
        ("ARRAY_CONTAINS([[1, {a: 2}]], [1, {a: 2}])", "true"),
        ("ARRAY_CONTAINS([{a: 1, b: 2}], {b: 2, a: 1})", "true"),
        ("ARRAY_CONTAINS([{a: 1, b: 2}], {a: 1})", "false"),
        ("ARRAY_CONTAINS([{a: 1, b: 2}], {a: 1}, false)", "false"),
        ("ARRAY_CONTAINS([1], undefined)", "undefined"),
        ("ARRAY_CONTAINS([1], 1, undefined)", "false"),
        ("ARRAY_CONTAINS([1], 1, 'true')", "undefined"),
        ("ARRAY_CONTAINS([], 1)", "false"),
    ]);
}

#[test]
fn partial_containment() {
    check(&[
        ("ARRAY_CONTAINS([{b: 2, a: 1}], {a: 1}, true)", "true"),
        ("ARRAY_CONTAINS([{a: 1}, {b: 2}], {a: 1, b: 2}, true)", "false"),
        ("ARRAY_CONTAINS([{a: 1, b: {c: 1, d: 2}}], {b: {d: 2}}, true)", "true"),
        ("ARRAY_CONTAINS([{a: [{c: 1, d: 2}]}], {a: [{c: 1}]}, true)", "false"),
        ("ARRAY_CONTAINS([{a: 1}], {}, true)", "true"),
        ("ARRAY_CONTAINS([1], {}, true)", "false"),
        ("ARRAY_CONTAINS([1], 1, true)", "true"),
        ("ARRAY_CONTAINS([{a: 1, c: 3}], {b: 1}, true)", "false"),
    ]);
}

#[test]
fn all_and_any_are_three_valued() {
    check(&[
        ("ARRAY_CONTAINS_ALL([1, 2, 3, 4], 1, undefined)", "undefined"),
        ("ARRAY_CONTAINS_ALL([1, 2, 3, 4], undefined, 5)", "false"),
        ("ARRAY_CONTAINS_ALL([], 1, 2, 3)", "false"),
        ("ARRAY_CONTAINS_ANY([], 1)", "false"),
        ("ARRAY_CONTAINS_ANY([1], undefined, 1)", "true"),
        // Enough arguments that the array is sorted.
        ("ARRAY_CONTAINS_ALL([1, 'a', [1], {x: 1}, null], 1, 1, 1, 'a', 'a', [1], {x: 1}, null, 1, 1)", "true"),
        ("ARRAY_CONTAINS_ALL([1, 'a'], 1, 1, 1, 1, 1, 1, 1, 1, 1, 'b')", "false"),
        ("ARRAY_CONTAINS_ANY([1, 'a'], 2, 3, 4, 5, 6, 7, 8, 9, undefined, 'a')", "true"),
        ("ARRAY_CONTAINS_ANY([1, 'a'], 2, 3, 4, 5, 6, 7, 8, 9, undefined, 'b')", "undefined"),
    ]);
}

#[test]
fn sums_averages_and_medians() {
    check(&[
        ("ARRAY_SUM([])", "0"),
        ("ARRAY_SUM([1, 2.5])", "3.5"),
        ("ARRAY_SUM([9007199254740993, 1])", "9007199254740994"),
        ("ARRAY_SUM([9223372036854775807, 1])", "9223372036854775808"),
        ("ARRAY_SUM([1, null])", "undefined"),
        ("ARRAY_SUM([1, undefined])", "1"),
        ("ARRAY_AVG([])", "undefined"),
        ("ARRAY_AVG([1, '2'])", "undefined"),
        ("ARRAY_MEDIAN([])", "undefined"),
        ("ARRAY_MEDIAN([3])", "3"),
        ("ARRAY_MEDIAN([1, -2.7, 3, -4])", "-0.8500000000000001"),
        ("ARRAY_MEDIAN([true])", "undefined"),
    ]);
}

#[test]
fn array_min_and_max() {
    check(&[
        ("ARRAY_MAX([12, 'abc', true, false, null, undefined])", r#""abc""#),
        ("ARRAY_MIN([12, 'abc', true, false, null, undefined])", "null"),
        ("ARRAY_MIN([12, 'abc', true, false])", "false"),
        ("ARRAY_MAX([true, 0])", "0"),
        ("ARRAY_MAX([])", "undefined"),
        ("ARRAY_MIN([])", "undefined"),
        ("ARRAY_MAX([1, [2]])", "undefined"),
        ("ARRAY_MIN([{}])", "undefined"),
    ]);
}

#[test]
fn concatenations_slices_choices_and_conversions() {
    check(&[
        ("ARRAY_CONCAT([1], [], [[2], 'a'])", r#"[1,[2],"a"]"#),
        ("ARRAY_CONCAT([], [])", "[]"),
        ("ARRAY_CONCAT([1], [2], 3)", "undefined"),
        ("ARRAY_SLICE([1, 2, 3], -2)", "[2,3]"),
        ("ARRAY_SLICE([1, 2, 3], -2, 1)", "[2]"),
        ("ARRAY_SLICE([1, 2, 3], -9, 2)", "[1,2]"),
        ("ARRAY_SLICE([1, 2, 3], 3)", "[]"),
        ("ARRAY_SLICE([1, 2, 3], 9, 9)", "[]"),
        ("ARRAY_SLICE([1, 2, 3], 0, -1)", "[]"),
        ("ARRAY_SLICE([1, 2, 3], 0, 0)", "[]"),
        ("ARRAY_SLICE([1, 2, 3], 0.5)", "undefined"),
        ("ARRAY_SLICE([1, 2, 3], 0, undefined)", "undefined"),
        ("ARRAY_SLICE([1, 2, 3], -9223372036854775808, 9223372036854775807)", "[1,2,3]"),
        ("CHOOSE(1, 'a', undefined)", r#""a""#),
        ("CHOOSE(2, 'a', undefined)", "undefined"),
        ("CHOOSE(3, 'a', 'b')", "undefined"),
        ("CHOOSE(-1, 'a')", "undefined"),
        ("CHOOSE(1.5, 'a', 'b')", "undefined"),
        ("CHOOSE('1', 'a')", "undefined"),
        ("CHOOSE(undefined, 'a')", "undefined"),
        ("OBJECTTOARRAY({a: 1, b: [2]})", r#"[{"k":"a","v":1},{"k":"b","v":[2]}]"#),
        ("OBJECTTOARRAY({a: 1}, 'name')", r#"[{"name":"a","v":1}]"#),
        ("OBJECTTOARRAY({a: 1}, 'name', 'value')", r#"[{"name":"a","value":1}]"#),
        ("OBJECTTOARRAY({})", "[]"),
        ("OBJECTTOARRAY([1])", "undefined"),
        ("OBJECTTOARRAY({a: 1}, 1)", "undefined"),
        ("OBJECTTOARRAY({a: 1}, 'k', undefined)", "undefined"),
    ]);
}

#[test]
fn sets() {
    check(&[
        ("SETUNION([1, 2, 2], [3, 1, 3])", "[1,2,3]"),
        ("SETUNION([{a: 1, b: 2}], [{b: 2, a: 1}])", r#"[{"a":1,"b":2}]"#),
        ("SETUNION([], [])", "[]"),
        ("SETINTERSECT([1, 2, 'A', 'B'], ['A', 1, 'A'])", r#"["A",1]"#),
        ("SETINTERSECT([1], ['1'])", "[]"),
        ("SETDIFFERENCE([3, 1, 3, 2], [2])", "[3,1]"),
        ("SETDIFFERENCE([[1], [2]], [[1]])", "[[2]]"),
        ("SETEQUAL([], [])", "true"),
        ("SETEQUAL([1, 2], [1])", "false"),
        ("SETEQUAL([1.0], [1])", "true"),
    ]);
}

/// Each of these calls would take hours if it compared every pair.
#[test]
fn large_arrays_take_reasonable_time() {
    let number = |n: i64| Value::from(n);
    let left = Value::Array((0..200_000).map(number).collect());
    let right = Value::Array((200_000..400_000).map(number).collect());
    for (name, want) in [("SETUNION", 400_000), ("SETDIFFERENCE", 200_000), ("SETINTERSECT", 0)] {
        let mut terms = [&left, &right].map(|v| Some(Cow::Borrowed(v)));
        let answer = with_context(BUDGET_BYTES, |cx| (find(name).unwrap().call)(&mut terms, cx)).unwrap().unwrap();
        assert_eq!(answer.as_array().unwrap().len(), want, "{name}");
    }
    let wanted: Vec<Value> = (0..200_000).map(|n| number(-n - 1)).collect();
    let mut terms: Vec<Datum<'_>> = [&left].into_iter().chain(&wanted).map(|v| Some(Cow::Borrowed(v))).collect();
    let answer = with_context(0, |cx| (find("ARRAY_CONTAINS_ANY").unwrap().call)(&mut terms, cx)).unwrap();
    assert_eq!(answer.as_deref(), Some(&Value::Bool(false)));
}

#[test]
fn results_are_charged_to_the_memory_budget() {
    let list = Value::Array(vec![Value::from("x".repeat(100)); 10]);
    for (name, count) in [("ARRAY_CONCAT", 2), ("SETUNION", 2), ("ARRAY_MAX", 1)] {
        let mut terms: Vec<Datum<'_>> = (0..count).map(|_| Some(Cow::Borrowed(&list))).collect();
        let error = with_context(99, |cx| (find(name).unwrap().call)(&mut terms, cx).map(drop)).unwrap_err();
        assert_eq!(error.kind, Kind::TooLarge, "{name}");
    }
}
