//! A hostile script causes one error and nothing else: after each, the same runtime serves the next call.

use crate::testing::{TestHost, TickingEnv, procedure};
use crate::{Cause, Program, ScriptLimits, ScriptOutcome, ScriptRuntime, ScriptStep};

const MIB: usize = 1024 * 1024;

fn limited_runtime() -> ScriptRuntime {
    let limits = ScriptLimits { memory_bytes_max: 8 * MIB, ..ScriptLimits::default() };
    ScriptRuntime::new(limits, TickingEnv::every(20))
}

/// The script's outcome, after a check that the runtime still serves the next call.
#[track_caller]
fn check_survives(source: &str) -> ScriptOutcome {
    let mut runtime = limited_runtime();
    let outcome = TestHost::of(&[r#"{"id":"1"}"#]).run(&mut runtime, source, procedure(&[r#"{"x":1}"#]));
    let next = TestHost::default().run(&mut runtime, "function () { __.response.setBody('fine') }", procedure(&[]));
    assert_eq!((next.error, next.response_body.as_deref()), (None, Some(r#""fine""#)), "after {source}");
    outcome
}

#[track_caller]
fn check_ends(source: &str, cause: Cause) {
    let outcome = check_survives(source);
    assert_eq!(outcome.error.as_ref().map(|error| error.cause), Some(cause), "{source}: {outcome:?}");
    assert_eq!((outcome.response_body, outcome.request_body), (None, None));
}

#[test]
fn endless_loops() {
    check_ends("function () { while (true) {} }", Cause::TimedOut);
    check_ends("function () { for (;;) try { throw 1 } catch (e) {} finally { continue } }", Cause::TimedOut);
    check_ends("function () { (function f() { try { f() } finally { f() } })() }", Cause::TimedOut);
    check_ends("function () { [1].map(() => { while (true) {} }) }", Cause::TimedOut);
    check_ends(
        "function () { __.readDocument(__.getAltLink() + '/docs/1', () => { while (true) {} }) }",
        Cause::TimedOut,
    );
}

#[test]
fn endless_promises() {
    check_ends("async function () { while (true) await null }", Cause::TimedOut);
    check_ends("function () { (function f() { Promise.resolve().then(f) })() }", Cause::TimedOut);
    check_ends("function () { (function f() { queueMicrotask(f) })() }", Cause::TimedOut);
    check_ends("function () { queueMicrotask(() => { throw new Error('x') }) }", Cause::Thrown);
}

#[test]
fn memory_bombs() {
    check_ends("function () { let a = []; for (;;) a.push(new Array(1000).fill(a)) }", Cause::OutOfMemory);
    check_survives("function () { let s = 'x'; for (;;) s += s + 'y'; }");
    check_ends("function () { new ArrayBuffer(1e9) }", Cause::OutOfMemory);
    check_ends("function () { new Array(1e9).fill(0) }", Cause::OutOfMemory);
    check_survives("function () { 'x'.repeat(1e9) }");
    check_survives(
        "function () { let a = []; for (;;) try { a.push(new Array(1e5).fill(0)) } catch (e) { a = a.concat(a) } }",
    );
}

#[test]
fn deep_recursion() {
    check_ends("function () { (function f() { f() })() }", Cause::Thrown);
    check_ends("function () { (function f(n) { return [n].map(f) })(1) }", Cause::Thrown);
    check_survives("function () { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; __.response.setBody(a) }");
    check_ends("function () { JSON.parse('['.repeat(1e5)) }", Cause::Thrown);
    check_ends("function () { let o = {}; o.o = o; __.response.setBody(o) }", Cause::Thrown);
    check_survives("function () { let a = []; for (let i = 0; i < 1e5; i++) a = { a }; a = null }");
    check_survives("function () { new RegExp('('.repeat(1e5)) }");
    check_survives(&format!("function () {{ return {}1{} }}", "(".repeat(20_000), ")".repeat(20_000)));
}

#[test]
fn native_loops_over_huge_sparse_lists() {
    let lists = [
        "{ length: 9007199254740000 }",
        "{ get length() { return this.n = (this.n || 0) + 1e12 } }",
        "new Array(4294967295)",
    ];
    for list in lists {
        for method in [
            "join()",
            "reverse()",
            "shift()",
            "unshift(1)",
            "sort()",
            "splice(0, 1)",
            "concat([1])",
            "copyWithin(1, 0)",
            "flat()",
        ] {
            let (name, arguments) = method.split_once('(').unwrap_or((method, ")"));
            let source =
                format!("function () {{ let a = {list}; [].{name}.apply(a, [{}]) }}", arguments.trim_end_matches(')'));
            check_survives(&source);
        }
    }
    check_survives("function () { [].concat(new Array(4294967295)) }");
    check_survives("function () { [new Array(4294967295)].flat() }");
    check_survives("function () { String(new Array(4294967295)) }");
    check_survives("function () { String.raw({ raw: { length: 9007199254740000 } }) }");
    check_ends("function () { let s = 'a'.repeat(1e6); s.indexOf(s.slice(1) + 'b') }", Cause::Thrown);
    let fine = "function () { __.response.setBody([[3, 1, 2].sort().join('-'), [1, [2, [3]]].flat(), [1, 2].flatMap(x => [x, x]), 'a,b'.split(','),
        [1].concat([2], 3), (function () { return [].shift.call(arguments) })(7), [[1, [2]]].flat(Infinity), String([1, [2]])]) }";
    let want = r#"["1-2-3",[1,2,[3]],[1,1,2,2],["a","b"],[1,2,3],7,[1,2],"1,2"]"#;
    assert_eq!(check_survives(fine).response_body.as_deref(), Some(want));
}

#[test]
fn regular_expressions_that_never_end() {
    check_ends("function () { /^(a+)+$/.test('a'.repeat(40) + 'b') }", Cause::TimedOut);
    check_ends("function () { /(x+x+)+y/.exec('x'.repeat(60)) }", Cause::TimedOut);
}

#[test]
fn predicates_of_any_size_and_count() {
    let text = |body: &str| format!("function () {{ __.filter((0, eval)('d => ' + {body}), () => {{}}) }}");
    check_survives(&text("'d' + '.a'.repeat(1e5)"));
    check_survives(&text("'d.a' + ' && d.a'.repeat(1e5)"));
    check_survives(&text("'!'.repeat(1e5) + 'd'"));
    check_survives(
        "function () { let c = __.chain(); for (let i = 0; i < 200; i++) c = c.map(d => ({ a: d, b: d })); c.value() }",
    );
    check_survives("function () { __.filter({ toString() { return 'd => 1' } }) }");
}

#[test]
fn arguments_with_hostile_accessors() {
    check_ends(
        "function () { __.createDocument(__.getSelfLink(), { id: 'a', get x() { throw new Error('trick') } }) }",
        Cause::Thrown,
    );
    check_ends(
        "function () { __.createDocument(__.getSelfLink(), { id: 'a', toJSON() { while (true) {} } }) }",
        Cause::TimedOut,
    );
    check_ends(
        "function () { __.createDocument(__.getSelfLink(), { id: 'a', toJSON() { return 7 } }) }",
        Cause::Thrown,
    );
    check_ends(
        "function () { __.createDocument(__.getSelfLink(), new Proxy({}, { ownKeys() { throw 1 } })) }",
        Cause::Thrown,
    );
    check_ends("function () { __.createDocument(__.getSelfLink(), { id: 'a', n: 1n }) }", Cause::Thrown);
    check_ends(
        "function () { __.readDocuments(__.getSelfLink(), { get pageSize() { throw new Error('trick') } }) }",
        Cause::Thrown,
    );
    check_ends("function () { __.readDocuments({ toString() { while (true) {} } }) }", Cause::TimedOut);
    check_ends("function () { __.response.setBody({ toJSON() { throw new Error('trick') } }) }", Cause::Thrown);
    let late = "function () { let n = 0; __.response.setBody({ toJSON() { if (n++) while (true) {} return 1 } }) }";
    check_ends(late, Cause::TimedOut);
    let nan = check_survives("function () { __.response.setBody([NaN, Infinity, undefined, () => 1, Symbol()]) }");
    assert_eq!(nan.response_body.as_deref(), Some("[null,null,null,null,null]"));
    let lone = check_survives("function () { __.response.setBody('\\ud800'); console.log('fine') }");
    assert_eq!(lone.response_body.as_deref(), Some(r#""\ud800""#));
    check_survives("function () { console.log('\\ud800') }");
}

#[test]
fn anything_can_be_thrown() {
    let message = |source: &str| check_survives(source).error.map(|error| error.message).unwrap_or_default();
    assert_eq!(message("function () { throw 'text' }"), "text");
    assert_eq!(message("function () { throw 7 }"), "7");
    check_ends("function () { throw null }", Cause::OutOfMemory);
    assert_eq!(message("function () { throw undefined }"), "undefined");
    assert_eq!(message("function () { throw { code: 7 } }"), r#"{"code":7}"#);
    assert_eq!(
        message("function () { throw { get message() { throw 1 }, toJSON() { throw 2 } } }"),
        "an object that is no error"
    );
    assert_eq!(message("function () { throw Symbol('s') }"), "symbol");
    check_ends("function () { throw { get message() { while (true) {} } } }", Cause::TimedOut);
    check_ends("function () { throw new Proxy({}, { get() { throw 1 } }) }", Cause::Thrown);
    check_ends(
        "function () { __.readDocument(__.getAltLink() + '/docs/1', () => { throw new Error('late') }) }",
        Cause::Thrown,
    );
    let long = message("function () { throw new Error('x'.repeat(1e6)) }");
    assert!(long.len() < 10_000, "{}", long.len());
}

#[test]
fn output_limits_are_exact() {
    let limits = ScriptLimits { body_bytes_max: 100, log_bytes_max: 10, ..ScriptLimits::default() };
    let mut runtime = ScriptRuntime::new(limits, crate::testing::env());
    let mut run = |source: &str| TestHost::default().run(&mut runtime, source, procedure(&[]));
    // The two quotes count as well.
    assert_eq!(run("function () { __.response.setBody('x'.repeat(98)) }").error, None);
    let error = run("function () { __.response.setBody('x'.repeat(99)) }").error.unwrap();
    assert_eq!((error.cause, error.number), (Cause::TooLarge, Some(413)));
    let error = run("function () { __.response.setBody('x'.repeat(101)) }").error.unwrap();
    assert_eq!((error.cause, error.number), (Cause::Thrown, Some(413)));
    let growing = "function () { let a = []; __.response.setBody(a); a.push('x'.repeat(200)) }";
    assert_eq!(run(growing).error.unwrap().cause, Cause::TooLarge);
    assert_eq!(run("function () { console.log('x'.repeat(10)) }").log.len(), 10);
    assert_eq!(run("function () { console.log('x'.repeat(11)) }").error.unwrap().number, Some(413));
    let create = |n: usize| format!("function () {{ __.createDocument(__.getSelfLink(), {{ id: 'x'.repeat({n}) }}) }}");
    assert_eq!(run(&create(91)).error, None);
    assert_eq!(run(&create(92)).error.unwrap().number, Some(413));
}

#[test]
fn queued_operations_are_bounded_by_number_and_bytes() {
    let source = "function () {
        let n = 0;
        while (__.createDocument(__.getSelfLink(), { id: 'd' + n, x: 'x'.repeat(1000) })) n++;
        __.response.setBody(n);
    }";
    let with = |limits: ScriptLimits| {
        let mut runtime = ScriptRuntime::new(limits, crate::testing::env());
        TestHost::default().run(&mut runtime, source, procedure(&[])).response_body.unwrap()
    };
    assert_eq!(with(ScriptLimits { queued_operations_max: 5, ..ScriptLimits::default() }), "5");
    assert_eq!(with(ScriptLimits { queued_bytes_max: 3500, ..ScriptLimits::default() }), "3");
}

#[test]
fn past_the_soft_limit_nothing_is_accepted_and_past_the_hard_one_nothing_runs() {
    // Each reading of the clock takes half a second; time spent in the host counts, too.
    let mut runtime = ScriptRuntime::new(ScriptLimits::default(), TickingEnv::every(500));
    let source = "function () {
        let n = 0;
        (function next() {
            if (!__.createDocument(__.getSelfLink(), { id: 'd' + n }, () => { n++; next() })) __.response.setBody('continue');
        })();
    }";
    let outcome = TestHost::default().run(&mut runtime, source, procedure(&[]));
    assert_eq!((outcome.error, outcome.response_body.as_deref()), (None, Some(r#""continue""#)));
    let mut runtime = ScriptRuntime::new(ScriptLimits::default(), TickingEnv::every(100));
    let mut session =
        runtime.start(&Program::new("t", "function () { __.readDocuments(__.getSelfLink()) }"), procedure(&[]));
    let ScriptStep::Execute(operations) = session.step(Vec::new()) else { panic!("no operations requested") };
    assert_eq!(operations.len(), 1);
    let outcome = loop {
        match session.step(Vec::new()) {
            ScriptStep::Execute(none) => assert!(none.is_empty()),
            ScriptStep::Done(outcome) => break outcome,
        }
    };
    assert_eq!(outcome.error.unwrap().cause, Cause::TimedOut);
}

#[test]
fn eval_reaches_no_host_capabilities() {
    let outcome = check_survives(
        "function () { __.response.setBody([eval('1+1'), new Function('a', 'return a')(3), (0, eval)('typeof require')]) }",
    );
    assert_eq!(outcome.response_body.as_deref(), Some(r#"[2,3,"undefined"]"#));
    let nothing = "function () { __.response.setBody(['require', 'process', 'fetch', 'setTimeout', 'std', 'os', 'performance', 'WeakRef', 'Proxy', \
                   'FinalizationRegistry'].filter(name => (0, eval)('typeof ' + name) !== 'undefined')) }";
    assert_eq!(check_survives(nothing).response_body.as_deref(), Some("[]"));
    let import =
        "async function () { try { await import('fs'); __.response.setBody(1) } catch (e) { __.response.setBody(0) } }";
    assert_eq!(check_survives(import).response_body.as_deref(), Some("0"));
}

#[test]
fn an_abandoned_call_leaves_no_state() {
    let mut runtime = limited_runtime();
    let program = Program::new("t", "function () { leak = 1; __.readDocuments(__.getSelfLink(), () => { leak = 2 }) }");
    assert!(matches!(runtime.start(&program, procedure(&[])).step(Vec::new()), ScriptStep::Execute(_)));
    let next =
        TestHost::default().run(&mut runtime, "function () { __.response.setBody(typeof leak) }", procedure(&[]));
    assert_eq!(next.response_body.as_deref(), Some(r#""undefined""#));
}
