//! Mathematical and integer functions beyond the documented samples.

use super::*;

#[test]
fn number_functions_reject_other_types() {
    for name in [
        "ABS",
        "ACOS",
        "ASIN",
        "ATAN",
        "CEILING",
        "COS",
        "COT",
        "DEGREES",
        "EXP",
        "FLOOR",
        "LOG",
        "LOG10",
        "NUMBERBIN",
        "RADIANS",
        "ROUND",
        "SIGN",
        "SIN",
        "SQRT",
        "SQUARE",
        "TAN",
        "TRUNC",
        "INTBITNOT",
    ] {
        check_wrong_types(name, &["1"], &NOT_NUMBERS);
    }
    for name in [
        "ATN2",
        "LOG",
        "NUMBERBIN",
        "POWER",
        "INTADD",
        "INTBITAND",
        "INTBITLEFTSHIFT",
        "INTBITOR",
        "INTBITRIGHTSHIFT",
        "INTBITXOR",
        "INTDIV",
        "INTMOD",
        "INTMUL",
        "INTSUB",
    ] {
        check_wrong_types(name, &["2", "1"], &NOT_NUMBERS);
    }
}

#[test]
fn rounding() {
    check(&[
        ("ROUND(2.5)", "3"),
        ("ROUND(-6.5)", "-7"),
        ("ROUND(-0.5)", "-1"),
        ("ROUND(-0.4)", "0"),
        ("CEILING(-0.9)", "0"),
        ("FLOOR(-145.12)", "-146"),
        ("TRUNC(-2.78)", "-2"),
        ("ROUND(9007199254740993)", "9007199254740993"),
        ("FLOOR(-9223372036854775808)", "-9223372036854775808"),
        ("CEILING(18446744073709551615)", "18446744073709551615"),
        ("ABS(-9223372036854775808)", "9223372036854775808"),
        ("ABS(-1.5)", "1.5"),
        ("SIGN(-0.1)", "-1"),
        ("SIGN(0)", "0"),
        ("SIGN(7)", "1"),
        ("SIGN(NaN)", "undefined"),
    ]);
}

#[test]
fn documented_results_that_are_easy_to_miss() {
    check(&[
        ("ATN2(35.175643, 129.44)", "0.265344532064832"),
        ("LOG(2, 10)", "0.3010299956639812"),
        ("LOG(8, 2)", "3"),
        ("LOG10(2)", "0.3010299956639812"),
        ("TAN(PI() / 2)", "16331239353195370"),
        ("SIN(45.175643)", "0.929607286611012"),
        ("COS(14.78)", "-0.5994654261946543"),
        ("NUMBERBIN(37.752)", "37"),
        ("NUMBERBIN(37.752, 0.1)", "37.7"),
        ("NUMBERBIN(37.752, -100)", "100"),
        ("NUMBERBIN(-37.752, 10)", "-40"),
        ("NUMBERBIN(1, undefined)", "undefined"),
        ("SQUARE(null)", "undefined"),
        ("POWER(2, 0.5)", "1.4142135623730951"),
        ("IS_FINITE_NUMBER(ACOS(2))", "false"),
        ("IS_NUMBER(ACOS(2))", "true"),
    ]);
}

#[test]
fn integers_wrap_and_never_divide_by_zero() {
    check(&[
        ("INTADD(9223372036854775807, 1)", "-9223372036854775808"),
        ("INTSUB(-9223372036854775808, 1)", "9223372036854775807"),
        ("INTMUL(4611686018427387904, 2)", "-9223372036854775808"),
        ("INTDIV(-9223372036854775808, -1)", "-9223372036854775808"),
        ("INTMOD(-9223372036854775808, -1)", "0"),
        ("INTDIV(7, -2)", "-3"),
        ("INTDIV(1, 0)", "undefined"),
        ("INTMOD(1, 0)", "undefined"),
        ("INTMOD(12, -5)", "2"),
        ("INTMOD(-12, -5)", "-2"),
        ("INTADD(1.0, 2.0)", "3"),
        ("INTADD(9223372036854775808, 1)", "undefined"),
        ("INTADD(NaN, 1)", "undefined"),
        ("INTBITNOT(65)", "-66"),
        ("INTBITLEFTSHIFT(16, 4)", "256"),
        ("INTBITLEFTSHIFT(1, 63)", "-9223372036854775808"),
        ("INTBITLEFTSHIFT(1, 64)", "1"),
        ("INTBITRIGHTSHIFT(-16, 4)", "-1"),
        ("INTBITRIGHTSHIFT(1, -1)", "0"),
    ]);
}

#[test]
fn rand_is_below_one_and_varies() {
    with_context(0, |cx| {
        let roll = || (find("RAND").unwrap().call)(&mut [], cx).unwrap().unwrap().as_number().unwrap().as_f64();
        let rolls: Vec<f64> = (0..1000).map(|_| roll()).collect();
        assert!(rolls.iter().all(|roll| (0.0..1.0).contains(roll)));
        assert!(rolls.windows(2).all(|pair| pair[0] != pair[1]));
    });
}
