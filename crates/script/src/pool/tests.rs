//! Threads that are reused, and stuck threads that are abandoned.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pleiad_model::env::Env;

use super::ScriptPool;
use crate::testing::{TestHost, env, procedure};
use crate::{Cause, Program, ScriptLimits, ScriptStep};

fn host(mut host: TestHost) -> impl FnMut(Vec<crate::ScriptOperation>) -> Vec<crate::OperationReply> {
    move |operations| operations.into_iter().map(|operation| host.reply_to(operation)).collect()
}

#[test]
fn a_call_runs_on_a_pool_thread_and_its_operations_on_the_callers_thread() {
    let pool = ScriptPool::new(ScriptLimits::default(), env(), 2);
    let source = "function () { __.readDocument(__.getAltLink() + '/docs/1', (e, d) => __.response.setBody(d.id)) }";
    for _ in 0..5 {
        let outcome = pool.run(&Program::new("t", source), procedure(&[]), host(TestHost::of(&[r#"{"id":"1"}"#])));
        assert_eq!((outcome.error, outcome.response_body.as_deref()), (None, Some(r#""1""#)));
    }
    assert_eq!(pool.shared.lock().live, 1, "one thread is enough for one caller");
}

#[test]
fn more_callers_than_threads_take_turns() {
    let pool = ScriptPool::new(ScriptLimits::default(), env(), 2);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let program = Program::new("t", "function () { __.response.setBody(1) }");
                let outcome = pool.run(&program, procedure(&[]), |_| Vec::new());
                assert_eq!(outcome.response_body.as_deref(), Some("1"));
            });
        }
    });
    assert!(pool.shared.lock().live <= 2);
}

#[test]
fn dropping_an_unfinished_call_frees_its_thread() {
    let pool = ScriptPool::new(ScriptLimits::default(), env(), 1);
    let program = Program::new("t", "function () { __.readDocuments(__.getSelfLink()) }");
    for _ in 0..3 {
        let mut call = pool.start(&program, procedure(&[])).unwrap();
        assert!(matches!(call.step(Vec::new()), ScriptStep::Execute(_)));
    }
    assert_eq!(pool.shared.lock().live, 0);
}

/// A clock that stands still, as for a loop that never checks it, until the test moves it.
struct StuckClock(AtomicU64);

impl Env for StuckClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn random_u64(&self) -> u64 {
        4
    }
}

#[test]
fn a_stuck_thread_is_replaced_and_the_pool_stays_bounded() {
    let clock = Arc::new(StuckClock(AtomicU64::new(1)));
    let limits = ScriptLimits { hard_ms: 50, ..ScriptLimits::default() };
    let pool = ScriptPool::new(limits, Arc::<StuckClock>::clone(&clock), 1);
    let (stuck, fine) = (Program::new("s", "function () { while (true) {} }"), Program::new("f", "function () {}"));
    let cause = |program: &Program| pool.run(program, procedure(&[]), |_| Vec::new()).error.map(|error| error.cause);
    assert_eq!(cause(&stuck), Some(Cause::TimedOut));
    assert_eq!(cause(&fine), None, "another thread has replaced the stuck one");
    assert_eq!(cause(&stuck), Some(Cause::TimedOut));
    assert_eq!(cause(&fine), Some(Cause::Busy), "two threads are stuck, and the maximum is twice one");
    clock.0.store(1_000_000, Ordering::Relaxed); // the stuck threads see the time and return
    while pool.shared.lock().abandoned > 0 {
        std::thread::yield_now();
    }
    assert_eq!(cause(&fine), None);
}
