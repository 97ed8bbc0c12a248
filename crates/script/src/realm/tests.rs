//! Isolation: a call does not see any state that an earlier call left.

use crate::testing::{TestHost, procedure, runtime};

/// Runs the first script, then the second on the same runtime, and checks that the second responds "clean".
#[track_caller]
fn check_clean(first: &str, second: &str) {
    let mut runtime = runtime();
    let _ = TestHost::default().run(&mut runtime, first, procedure(&[]));
    let outcome = TestHost::default().run(&mut runtime, second, procedure(&[]));
    assert_eq!((outcome.error, outcome.response_body.as_deref()), (None, Some(r#""clean""#)), "after {first}");
}

const NO_LEAK: &str = "function () { __.response.setBody(typeof leak === 'undefined' ? 'clean' : 'leak') }";

#[test]
fn globals_do_not_leak() {
    check_clean("function () { leak = 1 }", NO_LEAK);
    check_clean("function () { this.leak = 1 }", NO_LEAK);
    check_clean("function () { globalThis.leak = 1 }", NO_LEAK);
    check_clean("function () { (0, eval)('var leak = 1') }", NO_LEAK);
    check_clean("function () { (0, eval)('let leak = 1; const leak2 = 2') }", NO_LEAK);
    check_clean("function () { (0, eval)('function leak() {}') }", NO_LEAK);
    check_clean(
        "function () { var g = this; g[['define', 'Property'].join('')] ; leak = 1; throw new Error() }",
        NO_LEAK,
    );
    check_clean("function () { Object.defineProperty(this, 'leak', { value: 1, configurable: false }) }", NO_LEAK);
    check_clean("1); leak = 1; (2", NO_LEAK);
    check_clean("1); let leak = 1; (2", NO_LEAK);
    check_clean("1); var leak = 1; (2", NO_LEAK);
    check_clean("}; let leak = 1; ()=>{", NO_LEAK);
}

/// Reaches built-ins in a way that the text analysis does not detect, so that the frozen realm has to prevent changes.
fn hidden_access(statement: &str) -> String {
    let names = "var G = this, O = G['Obj' + 'ect'], p = 'proto' + 'type', df = O['define' + 'Property'], sp = O['set' + 'PrototypeOf'];";
    format!("function () {{ {names} try {{ {statement} }} catch (e) {{}} }}")
}

#[test]
fn hidden_access_is_not_detected_and_shares_the_realm() {
    let program = crate::Program::new("t", hidden_access("O[p].leak = 1"));
    assert!(!program.has_own_realm());
}

#[test]
fn prototypes_and_built_ins_do_not_leak() {
    for statement in [
        "O[p].leak = 1",
        "G['Arr' + 'ay'][p].leak = 1",
        "df(O[p], 'leak', { value: 1 })",
        "sp(O[p], { leak: 1 })",
        "sp(G, { leak: 1 })",
        "sp(G['Arr' + 'ay'], { leak: 1 })",
        "O['prevent' + 'Extensions'](G)",
        "O['freeze'](G)",
        "df(G, 'leak', { value: 1, configurable: false })",
        "df(G, Symbol.for('leak'), { value: 1, configurable: false })",
        "G['Ma' + 'th'].leak = 1",
        "G['JS' + 'ON'].parse = () => 'leak'",
        "G['Er' + 'ror']['prepareStack' + 'Trace'] = () => 'leak'",
        "getContext.leak = 1",
        "console.log.leak = 1; console.leak = 1",
        "__.leak = 1; getContext().getCollection().leak = 1; getContext().leak = 1",
        "sp(getContext().getCollection(), { leak: 1 })",
        "O['get' + 'PrototypeOf'](getContext().getCollection()).leak = 1",
        "O['get' + 'PrototypeOf'](__.chain()).leak = 1",
        "getContext().abort.leak = 1",
        "__.response.leak = 1; O['get' + 'PrototypeOf'](__.response).leak = 1; __.response.setBody.leak = 1",
        "O['get' + 'PrototypeOf'](getContext()).leak = 1",
        "ErrorCodes.leak = 1",
    ] {
        let probe = "function () {
            let places = [{}, [], () => 1, Math, JSON, Object, Array, Error, getContext, console, console.log, ErrorCodes, __,
                getContext(), getContext().getCollection(), getContext().abort, __.response, __.response.setBody, __.chain(), Symbol, this];
            let found = places.findIndex(place => place.leak !== undefined || place[Symbol.for('leak')] !== undefined);
            fresh = 1;
            let stack = new Error('x').stack, works = JSON.parse('1') === 1 && stack !== 'leak' && this.fresh === 1;
            __.response.setBody(found < 0 && works ? 'clean' : 'leak at ' + found);
        }";
        check_clean(&hidden_access(statement), probe);
    }
}

#[test]
fn every_reachable_object_is_frozen() {
    let source = "function () {
        var G = this, O = G['Obj' + 'ect'], names = O['getOwn' + 'PropertyNames'], proto = O['get' + 'PrototypeOf'];
        var symbols = O['getOwnProperty' + 'Symbols'], describe = O['getOwnProperty' + 'Descriptor'];
        var seen = new Set(), open = [proto(G), getContext, G['con' + 'sole'], proto(getContext().getCollection()), proto(__.chain()),
            proto(getContext()), proto(__.request), proto(__.response),
            function* () {}, (function* () {})(), async function () {}, async function* () {}, (async function* () {})(),
            [].values(), ''.matchAll(/a/g), new Map().keys(), new Set().keys(), ''[Symbol.iterator](),
            (function () { 'use strict'; return arguments })(), Iterator.from({ next() {} }), [].values().map(x => x)];
        var mine = new Set(open.slice(8));
        // The prototype of what a generator gives belongs to the generator.
        open.slice(8).filter(o => typeof o === 'object' && names(proto(o)).length === 0).forEach(o => mine.add(proto(o)));
        while (open.length) {
            var next = open.pop();
            if (next === null || (typeof next !== 'object' && typeof next !== 'function') || next === G || seen.has(next)) continue;
            seen.add(next);
            open.push(proto(next));
            for (var key of names(next).concat(symbols(next))) {
                if (mine.has(next)) continue;
                var d = describe(next, key);
                open.push(d.value, d.get, d.set);
            }
        }
        var soft = [...seen].filter(o => !mine.has(o) && !O['isFro' + 'zen'](o));
        soft = soft.filter(o => typeof o !== 'function' || o.name !== 'mine');
        __.response.setBody(soft.length ? soft.map(o => typeof o + ' ' + names(o).slice(0, 5).join('/')).join() : seen.size > 500 ? 'clean' : 'only ' + seen.size);
    }";
    check_clean("function () {}", source);
}

#[test]
fn closures_promises_and_registries_do_not_leak() {
    check_clean(
        "function () { var s = Symbol.for('leak'); s.x = 1 }",
        "function () { __.response.setBody(Symbol.for('leak').x === undefined ? 'clean' : 'leak') }",
    );
    check_clean(
        "function () { /(l)eak/.exec('leak') }",
        "function () { __.response.setBody(RegExp.lastMatch === undefined && RegExp.$1 === undefined ? 'clean' : 'leak') }",
    );
    check_clean("function () { Promise.resolve().then(() => { leak = 1 }); throw new Error('x') }", NO_LEAK);
    check_clean("function () { queueMicrotask(() => { leak = 1 }); throw new Error('x') }", NO_LEAK);
    check_clean("async function () { leak = 1; await new Promise(() => {}) }", NO_LEAK);
    check_clean(
        "function f() { f.leak = 1; f.count = 1 }",
        "function f() { __.response.setBody(f.leak === undefined ? 'clean' : 'leak') }",
    );
    check_clean(
        "function () { __.response.setBody('secret'); __.request.x = 1 }",
        "function () { __.response.setBody(__.response.getBody() === undefined && __.request.x === undefined ? 'clean' : 'leak') }",
    );
}

#[test]
fn a_script_has_no_state_from_its_earlier_calls() {
    let mut runtime = runtime();
    for source in [
        "function f() { f.n = (f.n || 0) + 1; n = typeof n === 'undefined' ? 1 : n + 1; __.response.setBody(f.n + n) }",
        "(() => { let n = 1; return () => { __.response.setBody(++n) } })()",
        "(tag => () => { __.response.setBody(tag`x`) })(function (s) { s.raw.n = 1; return s.n === undefined ? 2 : 3 })",
        "function () { Array.prototype.n = (Array.prototype.n || 1) + 1; __.response.setBody([].n) }",
    ] {
        let program = crate::Program::new("again", source);
        for _ in 0..3 {
            let outcome = TestHost::default().execute(&mut runtime, &program, procedure(&[]));
            assert_eq!((outcome.error, outcome.response_body.as_deref()), (None, Some("2")), "{source}");
        }
    }
}

#[test]
fn a_script_may_change_built_ins_for_itself() {
    let mut runtime = runtime();
    let source = "function () {
        String.prototype.shout = function () { return this.toUpperCase() + '!' };
        Array.prototype.map = () => 'mine';
        __.response.setBody(['a'.shout(), [1].map(x => x)]);
    }";
    let outcome = TestHost::default().run(&mut runtime, source, procedure(&[]));
    assert_eq!((outcome.error, outcome.response_body.as_deref()), (None, Some(r#"["A!","mine"]"#)));
}

#[test]
fn ordinary_code_works_in_a_frozen_realm() {
    let mut runtime = runtime();
    let source = "function () {
        let e = new Error('a'); e.name = 'Custom'; e.message = 'b'; e.code = 7;
        let o = {}; o.toString = () => 'mine'; o.valueOf = () => 3; o.hasOwnProperty = 1;
        class Shape { constructor(n) { this.n = n } area() { return this.n } toString() { return 'shape' } }
        class Square extends Shape { area() { return super.area() ** 2 } }
        class Oops extends Error { constructor(m) { super(m); this.name = 'Oops' } }
        let oops = new Oops('x'), a = [3, 1, 2]; a.toString = () => 'list';
        let numbered = new Error(404, 'gone'), typed = new TypeError('t');
        __.response.setBody([String(e), String(o), o + 1, new Square(3).area(), String(new Square(1)), oops instanceof Error,
            String(oops), a.sort().join(''), String(a), [...new Map([[1, 2]]).values()][0], numbered.number, numbered.message,
            typed instanceof Error, typed.message]);
    }";
    let program = crate::Program::new("t", source);
    assert!(!program.has_own_realm());
    let outcome = TestHost::default().execute(&mut runtime, &program, procedure(&[]));
    let want = r#"["Custom: b","mine",4,9,"shape",true,"Oops: x","123","list",2,404,"gone",true,"t"]"#;
    assert_eq!((outcome.error, outcome.response_body.as_deref()), (None, Some(want)));
}
