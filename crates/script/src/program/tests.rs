//! Which scripts get a realm of their own.

use super::Program;

fn shared(source: &str) {
    assert!(!Program::new("s", source).has_own_realm(), "{source}");
}

fn own(source: &str) {
    assert!(Program::new("s", source).has_own_realm(), "{source}");
}

#[test]
fn a_script_that_only_uses_built_ins_shares_a_realm() {
    shared("function () { getContext().getResponse().setBody('x'); }");
    shared("function (a) { return Math.max(a, 1) + Number.EPSILON === JSON.parse('1') }");
    shared("function (e) { if (e instanceof Error) throw new Error(ErrorCodes.BadRequest, String(e)) }");
    shared("function (x) { return Object.prototype.hasOwnProperty.call(x, 'a') }");
    shared("function () { class A { constructor() { this.a = 1 } } return new A() }");
    shared("function (l) { return l.map(Number).filter(Boolean).length }");
    shared("function (a, b) { return a === Array && Object != b }");
    shared("function (doc) { return doc.Date == { Date: 1 }.Date }");
}

#[test]
fn what_is_said_in_comments_and_strings_is_not_done() {
    shared(
        "/** @param {Object} doc the prototype */\nfunction (doc) { return 'Map \\' Function' + \"eval\" } // globalThis",
    );
    own("function (doc) { return /['\"]/.test(doc) }\nArray.last = 1");
    own("/* x */ Math.x = 1 // y");
}

#[test]
fn a_script_that_changes_one_has_its_own() {
    own("function () { String.prototype.format = function () {} }");
    own("function () { Math.sum = 1 }");
    own("function () { Math.max++ }");
    own("function () { var m = Math; m.sum = 1 }");
    own("function () { Object.defineProperty([], 'x', {}) }");
    own("function () { ({}).__proto__.x = 1 }");
    own("function () { this.constructor.x = 1 }");
    own("function () { extend(Array, {}) }");
}

#[test]
fn a_script_of_several_functions_is_entered_at_the_first() {
    let program = Program::new("s", "function main() { help() } function help() {}");
    let texts: Vec<String> = program.factories().collect();
    assert_eq!(texts.len(), 2);
    assert!(texts[1].ends_with(";return main}"), "{}", texts[1]);
}
