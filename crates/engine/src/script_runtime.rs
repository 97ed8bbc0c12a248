//! Script runtime: the interpreters of an account, and the errors that failing scripts turn into.
//!
//! Guarantees: user-defined functions run on the blocking threads of their query, all other scripts on threads that can
//! be abandoned; none of them runs on an async worker. If a script fails, its request fails with an error that has the
//! script's message.

use std::sync::Arc;

use pleiad_model::env::Env;
use pleiad_model::{Error, Kind};
use pleiad_script::{Cause, Functions, ScriptError, ScriptLimits, ScriptPool};
use tokio::sync::Semaphore;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Interpreters {
    pub functions: Functions,
    pub procedures: ScriptPool,
    /// One permit per call that may run: it stands for the script, and for the thread that executes the script's
    /// operations.
    pub permits: Arc<Semaphore>,
}

impl Interpreters {
    pub fn new(env: Arc<dyn Env>) -> Self {
        let (limits, threads) = (ScriptLimits::default(), threads());
        let functions = Functions::new(limits.clone(), env.clone());
        let permits = Arc::new(Semaphore::new(threads));
        Interpreters { functions, procedures: ScriptPool::new(limits, env, threads), permits }
    }
}

/// More than there are cores, because scripts wait for the store at times.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).saturating_mul(4).max(8)
}

pub(crate) fn script_error(error: &ScriptError) -> Error {
    let kind = match error.cause {
        Cause::Syntax | Cause::Thrown | Cause::OutOfMemory => Kind::Invalid,
        Cause::TimedOut => Kind::TimedOut,
        Cause::TooLarge => Kind::TooLarge,
        Cause::Busy => Kind::Unavailable,
    };
    Error::new(kind, error.to_string())
}
