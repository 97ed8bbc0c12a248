//! Any text and any arguments have an outcome and never cause a panic. Also a measurement, to be run by hand.

use proptest::prelude::*;

use crate::testing::{TestHost, TickingEnv, env, procedure};
use crate::{Functions, Program, ScriptLimits, ScriptRuntime};

/// Fragments of scripts, in random order.
fn fragment() -> impl Strategy<Value = String> {
    let fixed = [
        "function",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "=>",
        "x",
        "__",
        ".",
        "filter",
        "createDocument",
        ",",
        "'a'",
        "`${",
        "`",
        "1",
        "null",
        "async ",
        "await ",
        "throw ",
        "return ",
        "new ",
        "Error",
        "while(1)",
        "for(;;)",
        ";",
        "\n",
        "//",
        "/*",
        "*/",
        "/a+/",
        "=",
        "getContext()",
        "setBody",
        "Object",
        "prototype",
        "eval",
        "class ",
        "yield ",
        "this",
        "typeof ",
        "let ",
        "...",
        "\\",
        "\0",
    ];
    prop_oneof![8 => prop::sample::select(fixed.to_vec()).prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_text_has_an_outcome(pieces in prop::collection::vec(fragment(), 0..25), argument in ".{0,20}") {
        let limits = ScriptLimits { memory_bytes_max: 8 << 20, ..ScriptLimits::default() };
        let mut runtime = ScriptRuntime::new(limits, TickingEnv::every(100));
        let source = pieces.concat();
        let _ = TestHost::default().run(&mut runtime, &source, procedure(&[&argument]));
        let wrapped = format!("function (x) {{ {source} }}");
        let _ = TestHost::default().run(&mut runtime, &wrapped, procedure(&["[1]"]));
        let next = TestHost::default().run(&mut runtime, "function () { __.response.setBody(1) }", procedure(&[]));
        prop_assert_eq!(next.response_body.as_deref(), Some("1"));
    }
}

/// `cargo test --release -p pleiad-script -- --ignored --nocapture cost`
#[test]
#[ignore = "prints what calls cost, and asserts nothing: times are no test"]
fn cost_of_an_empty_call_and_of_a_function() {
    let timed = |name: &str, times: u32, mut work: Box<dyn FnMut()>| {
        work();
        let start = std::time::Instant::now();
        (0..times).for_each(|_| work());
        println!("{name:40} {:>10.2} µs", start.elapsed().as_secs_f64() * 1e6 / f64::from(times));
    };
    let empty = |source: &'static str| -> Box<dyn FnMut()> {
        let (mut runtime, program) = (ScriptRuntime::new(ScriptLimits::default(), env()), Program::new("e", source));
        Box::new(move || drop(TestHost::default().execute(&mut runtime, &program, procedure(&[]))))
    };
    timed("empty procedure", 20_000, empty("function () {}"));
    timed("procedure with a body", 20_000, empty("function () { getContext().getResponse().setBody('x') }"));
    timed("empty procedure, realm of its own", 1_000, empty("function () { [].__proto__ }"));
    timed(
        "one realm",
        300,
        Box::new(|| {
            let host_state = crate::host_state::HostState::new(ScriptLimits::default(), env());
            let js = rquickjs::Runtime::new().unwrap();
            drop(crate::realm::Realm::own(&js, &host_state).unwrap());
        }),
    );
    let function = |source: &str, argument: pleiad_model::Value| -> Box<dyn FnMut()> {
        let udf = Functions::new(ScriptLimits::default(), env()).declare(&Program::new("f", source)).unwrap();
        Box::new(move || drop(udf.call(std::iter::once(&argument))))
    };
    timed("function of a number", 200_000, function("x => x + 1", pleiad_model::Value::from(7i64)));
    timed("function of a string", 200_000, function("s => s.length", pleiad_model::Value::from("hello")));
    let pool = crate::ScriptPool::new(ScriptLimits::default(), std::sync::Arc::new(pleiad_model::env::SystemEnv), 1);
    let program = Program::new("e", "function () {}");
    timed(
        "empty procedure on a pool's thread",
        5_000,
        Box::new(move || drop(pool.run(&program, procedure(&[]), |_| Vec::new()))),
    );
}
