//! Script runtime: the interpreters of an account, and the errors that failing scripts turn into.
//!
//! Guarantees: user-defined functions run on the blocking threads of their query, all other scripts on threads that can
//! be abandoned; none of them runs on an async worker. If a script fails, its request fails with an error that has the
//! script's message.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use parking_lot::FairMutex;
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
    retry_queues: Arc<[FairMutex<()>]>,
}

/// Enough that scripts of different logical partitions seldom wait for each other.
const RETRY_QUEUES: usize = 64;

impl Interpreters {
    pub fn new(env: Arc<dyn Env>) -> Self {
        let (limits, threads) = (ScriptLimits::default(), threads());
        let functions = Functions::new(limits.clone(), env.clone());
        let permits = Arc::new(Semaphore::new(threads));
        let retry_queues = (0..RETRY_QUEUES).map(|_| FairMutex::new(())).collect();
        Interpreters { functions, procedures: ScriptPool::new(limits, env, threads), permits, retry_queues }
    }

    /// The lock that a script waits for after its first conflict, chosen by its logical partition: from then on it
    /// competes only with first attempts.
    pub fn retry_queue(&self, logical_partition: &impl Hash) -> &FairMutex<()> {
        let mut hasher = DefaultHasher::new();
        logical_partition.hash(&mut hasher);
        &self.retry_queues[hasher.finish() as usize % RETRY_QUEUES]
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
