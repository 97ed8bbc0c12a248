//! User-defined functions, as a query calls them.

use pleiad_model::Value;

use super::{Functions, Udf};
use crate::testing::{TickingEnv, env, parse};
use crate::{Cause, Program, ScriptLimits};

fn udf(source: &str) -> Udf {
    Functions::new(ScriptLimits::default(), env()).declare(&Program::new("f", source)).unwrap()
}

#[track_caller]
fn check_result(source: &str, arguments: &str, want: &str) {
    let arguments = parse(arguments).as_array().unwrap().to_vec();
    assert_eq!(udf(source).call(arguments.iter()), Ok(Some(parse(want))), "{source}");
}

#[test]
fn values_convert_to_javascript_and_back() {
    check_result("function (x) { return x * 2 }", "[21]", "42");
    check_result(
        "x => x",
        r#"[{"a":[1,2.5,"ü",null,true,{}],"__proto__":{"b":1}}]"#,
        r#"{"a":[1,2.5,"ü",null,true,{}],"__proto__":{"b":1}}"#,
    );
    check_result("(a, b) => a + b", r#"["x", 1]"#, r#""x1""#);
    check_result("function tax(n) { if (n < 1000) return n * 0.1; return n * 0.2 }", "[100]", "10");
    check_result(
        "() => ({ when: new Date(0), no: undefined, bad: NaN })",
        "[]",
        r#"{"when":"1970-01-01T00:00:00.000Z","bad":null}"#,
    );
    check_result("() => Infinity", "[]", "null");
    check_result("function (s) { return s.match(/^(.)/)[1] }", r#"["abc"]"#, r#""a""#);
    check_result("function () { String.prototype.x = 1; return 'a'.x }", "[]", "1");
}

#[test]
fn undefined_is_none() {
    assert_eq!(udf("function () {}").call([].iter()), Ok(None));
    assert_eq!(udf("() => () => 1").call([].iter()), Ok(None));
    assert_eq!(udf("x => x.missing").call([parse("{}")].iter()), Ok(None));
}

#[test]
fn there_is_no_context() {
    check_result("() => [typeof getContext, typeof __]", "[]", r#"["undefined","undefined"]"#);
}

#[test]
fn exceptions_become_errors() {
    let error = udf("function () { throw new Error('no') }").call([].iter()).unwrap_err();
    assert_eq!((error.cause, error.message.as_str()), (Cause::Thrown, "Error: no"));
    let functions = Functions::new(ScriptLimits::default(), env());
    assert_eq!(functions.declare(&Program::new("f", "function (")).err().unwrap().cause, Cause::Syntax);
    assert!(udf("7").call([].iter()).is_err());
    assert!(udf("() => 1n").call([].iter()).is_err());
    assert!(udf("() => { let o = {}; o.o = o; return o }").call([].iter()).is_err());
}

#[test]
fn limits_apply_and_the_next_row_is_served() {
    let functions =
        Functions::new(ScriptLimits { memory_bytes_max: 8 << 20, ..ScriptLimits::default() }, TickingEnv::every(20));
    let loops = functions.declare(&Program::new("loops", "function () { while (true) {} }")).unwrap();
    let eats = functions
        .declare(&Program::new("eats", "function () { let a = []; for (;;) a.push(new Array(1000).fill(1)) }"))
        .unwrap();
    let fine = functions.declare(&Program::new("fine", "x => x + 1")).unwrap();
    for _ in 0..2 {
        assert_eq!(loops.call([].iter()).unwrap_err().cause, Cause::TimedOut);
        assert_eq!(eats.call([].iter()).unwrap_err().cause, Cause::OutOfMemory);
        assert_eq!(fine.call([parse("1")].iter()), Ok(Some(parse("2"))));
    }
}

#[test]
fn rows_share_no_state() {
    let counts = udf("function f() { n = typeof n === 'undefined' ? 1 : n + 1; f.n = (f.n || 0) + 1; return n + f.n }");
    let late = udf("async function () { leak = 1; await null; leak = 2; }");
    for _ in 0..3 {
        assert_eq!(counts.call([].iter()), Ok(Some(parse("2"))));
        assert_eq!(late.call([].iter()), Ok(Some(parse("{}"))));
    }
}

#[test]
fn one_function_serves_every_thread() {
    let double = udf("x => x * 2");
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4i64)
            .map(|n| {
                scope.spawn({
                    let double = double.clone();
                    move || double.call([Value::from(n)].iter())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(results, [0i64, 2, 4, 6].map(|n| Ok(Some(Value::from(n)))));
}
