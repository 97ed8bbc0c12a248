//! Which scripts get their own realm.

use super::Program;

fn check_shared(source: &str) {
    assert!(!Program::new("s", source).has_own_realm(), "{source}");
}

fn check_own(source: &str) {
    assert!(Program::new("s", source).has_own_realm(), "{source}");
}

#[test]
fn a_script_that_only_uses_built_ins_shares_a_realm() {
    check_shared("function () { getContext().getResponse().setBody('x'); }");
    check_shared("function (a) { return Math.max(a, 1) + Number.EPSILON === JSON.parse('1') }");
    check_shared("function (e) { if (e instanceof Error) throw new Error(ErrorCodes.BadRequest, String(e)) }");
    check_shared("function (x) { return Object.prototype.hasOwnProperty.call(x, 'a') }");
    check_shared("function () { class A { constructor() { this.a = 1 } } return new A() }");
    check_shared("function (l) { return l.map(Number).filter(Boolean).length }");
    check_shared("function (a, b) { return a === Array && Object != b }");
    check_shared("function (doc) { return doc.Date == { Date: 1 }.Date }");
}

#[test]
fn comments_and_strings_are_ignored() {
    check_shared(
        "/** @param {Object} doc the prototype */\nfunction (doc) { return 'Map \\' Function' + \"eval\" } // globalThis",
    );
    check_own("function (doc) { return /['\"]/.test(doc) }\nArray.last = 1");
    check_own("/* x */ Math.x = 1 // y");
}

#[test]
fn a_script_that_changes_built_ins_has_its_own_realm() {
    check_own("function () { String.prototype.format = function () {} }");
    check_own("function () { Math.sum = 1 }");
    check_own("function () { Math.max++ }");
    check_own("function () { var m = Math; m.sum = 1 }");
    check_own("function () { Object.defineProperty([], 'x', {}) }");
    check_own("function () { ({}).__proto__.x = 1 }");
    check_own("function () { this.constructor.x = 1 }");
    check_own("function () { extend(Array, {}) }");
}

#[test]
fn the_first_function_is_the_entry_point() {
    let program = Program::new("s", "function main() { help() } function help() {}");
    let texts: Vec<String> = program.factories().collect();
    assert_eq!(texts.len(), 2);
    assert!(texts[1].ends_with(";return main}"), "{}", texts[1]);
}

#[test]
fn possible_writes_to_globals_are_detected_in_the_text() {
    let leaves_globals_unchanged = |source: &str| Program::new("f", source).leaves_globals_unchanged();
    let plain = [
        "function tax(n) { if (n === undefined) throw 'no'; if (n <= 1000) return n * 0.1; else return n >= 5 ? 1 : 2 }",
        "x => x.name == 'a = b'",
        "function (a) { var b = a.c; const d = [b || 1]; return d.map(x => x * 2) }",
    ];
    plain.iter().for_each(|source| assert!(leaves_globals_unchanged(source), "{source}"));
    let not = [
        "function () { n = 1 }",
        "function () { var a = b = 1 }",
        "function () { var a = 1, b = 2 }",
        "function (x) { x += 1 }",
        "function (x) { n ??= 1; m >>= 2; o **= 3 }",
        "function () { return n++ }",
        "function () { this.n }",
        "function () { for (n in {}) {} }",
        "function () { for (n of []) {} }",
        "function () { [n] = [1] }",
        "function () { ({ n } = { n: 1 }) }",
        "function () { return `${n = 1}` }",
        "async function () { }",
        "function () { return Function('n = 1')() }",
        "function () { myvar = 1 }",
        "function () { x.var = 1 }",
        "function (m) { m >>= 2 }",
        "function (m) { m <<= 2 }",
        "function () { return x['constr' + 'uctor']('n = 1')() }",
        "function () { return /'/, n = 1 }",
    ];
    not.iter().for_each(|source| assert!(!leaves_globals_unchanged(source), "{source}"));
}

#[test]
fn a_single_function_without_outer_code_is_stateless() {
    let is_stateless = |source: &str| Program::new("f", source).is_stateless();
    assert!(is_stateless("  function tax(n) { if (n < 1) { return 1 } return 2 } // done"));
    let not = [
        "const seen = [1]; function f(x) { return seen.push(x) }",
        "function (c) { return x => c.push(x) }([1])",
        "function (c) { return x => c.push(x) }([1]) || function () {}",
        "function f() { return Object.assign(f, { n: 1 }) }",
        "x => x",
        "function f() { f.n = 1 }",
    ];
    not.iter().for_each(|source| assert!(!is_stateless(source), "{source}"));
}
