//! Script text and arguments: every call ends with a value or an error within its time limit, and does not affect the
//! next call.

#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use pleiad_model::env::SystemEnv;
use pleiad_model::{Error, json};
use pleiad_script::{
    Collection, EntryPoint, Functions, OperationReply, OperationResult, Program, ScriptCall, ScriptLimits, ScriptPool,
};

static LIMITS: LazyLock<ScriptLimits> =
    LazyLock::new(|| ScriptLimits { soft_ms: 80, hard_ms: 100, memory_bytes_max: 8 << 20, ..ScriptLimits::default() });
static POOL: LazyLock<ScriptPool> = LazyLock::new(|| ScriptPool::new(LIMITS.clone(), Arc::new(SystemEnv), 2));
static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| Functions::new(LIMITS.clone(), Arc::new(SystemEnv)));

fuzz_target!(|input: (&str, Vec<&str>)| {
    let (source, arguments) = input;
    let program = Program::new("fuzzed", source);
    let call = |arguments: Vec<String>| {
        let collection = Collection { self_link: "dbs/a/colls/b/".into(), ..Collection::default() };
        ScriptCall { entry: EntryPoint::Procedure { arguments }, collection, is_logging: true }
    };
    let texts = arguments.iter().map(|&text| text.to_owned()).collect();
    POOL.run(&program, call(texts), |operations| {
        let reject = |id| OperationReply { id, result: OperationResult::Failed(Error::not_found("no such document")) };
        operations.into_iter().map(|operation| reject(operation.id)).collect()
    });
    if let Ok(function) = FUNCTIONS.declare(&program) {
        let values: Vec<_> = arguments.iter().filter_map(|text| json::parse(text.as_bytes()).ok()).collect();
        let _ = function.call(values.iter());
    }
    let probe = Program::new("probe", "function (x) { __.response.setBody([x, typeof leaked, [].concat(1)]) }");
    let outcome = POOL.run(&probe, call(vec!["7".to_owned()]), |_| Vec::new());
    assert_eq!(outcome.response_body.as_deref(), Some(r#"[7,"undefined",[1]]"#), "{:?}", outcome.error);
});
