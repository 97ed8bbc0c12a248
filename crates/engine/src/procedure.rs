//! Scripts in transactions: stored procedures, and triggers around a write.
//!
//! Guarantees: a script reads a snapshot of one logical partition, with its own writes on top; its writes become
//! visible atomically when it succeeds, and not at all otherwise. Other writers do not wait for it (optimistic
//! concurrency). If another writer commits first, the script runs again from the beginning; no reader has seen anything
//! of the failed attempt.
//!
//! ```text
//! request ─ permit ─▶ a blocking thread                     the script's own thread
//!                     begin               ── call ────────▶ runs until it needs operations
//!                     execute, charge     ◀─ operations ───
//!                                         ── results ─────▶ …
//!                     commit, or abort    ◀─ done ─────────
//! ```

mod host; // executes the operations of scripts
mod trigger; // pre- and post-triggers around a write

use std::sync::Arc;
use std::time::Duration;

use pleiad_model::env::Env;
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::{Error, Fact, Result};
use pleiad_partition::key::LogicalKey;
use pleiad_partition::{Partition, Rejected, WriteError};
use pleiad_script::{EntryPoint, ScriptError};
use tokio::runtime::Handle;

use crate::item::key_of_request;
use crate::meter::Meter;
use crate::query::{Parallelism, QueryCursor};
use crate::script_runtime::Interpreters;
use crate::write_retry::WriteOutcome;
use crate::{Action, Admitted, Container, Engine, EngineResponse, Script};
use host::Host;
pub use trigger::{ItemWrite, Triggered, Triggers};

#[cfg(test)]
mod tests;

/// How often a script runs if other writers always commit first, and for how long.
const TRIES_MAX: usize = 64;
const RETRY_MS_MAX: u64 = 5_000;
/// The pause between two attempts, doubled each time: the writer that committed first may still be writing.
const PAUSE_MIN: Duration = Duration::from_micros(25);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// What a script gets besides its arguments.
#[derive(Clone)]
pub struct ScriptContext {
    pub cursors: Arc<dyn CursorCodec>,
    /// The message of an error, in the protocol's words: a script gets the same as a client.
    pub message: fn(&Error) -> String,
    /// The quotas of the container and their usage, in the protocol's format.
    pub quota_max: String,
    pub quota_used: String,
    /// Whether the output of `console.log` is collected.
    pub is_logging: bool,
}

/// The protocol's text form of a query cursor, the continuation: scripts pass it around and return it to their callers.
pub trait CursorCodec: Send + Sync {
    fn write(&self, cursor: &QueryCursor) -> String;
    fn read(&self, text: &str) -> Result<QueryCursor>;
}

/// The outcome of a stored procedure.
#[derive(Debug)]
pub struct Executed {
    /// Its response body, as JSON text. If it failed, nothing was written.
    pub result: Result<Option<String>, ScriptError>,
    pub log: String,
}

impl Engine {
    pub async fn execute_procedure(
        &self,
        at: &Admitted,
        key: Option<&PartitionKey>,
        script: &Arc<Script>,
        arguments: Vec<String>,
        context: ScriptContext,
    ) -> EngineResponse<Executed> {
        if let Err(error) = at.check(Action::ExecuteStoredProcedure) {
            return EngineResponse::failed(error);
        }
        let key = match key_of_request(at, key) {
            Ok(key) => key,
            Err(error) => return EngineResponse::failed(error),
        };
        let script = script.clone();
        self.in_transaction(at, key, context, move |host| {
            let outcome = host.run(&script, EntryPoint::Procedure { arguments: arguments.clone() });
            let log = outcome.log;
            Ok(match outcome.error {
                None => TransactionEnd::Commit(Executed { result: Ok(outcome.response_body), log }),
                Some(error) => TransactionEnd::Abort(Executed { result: Err(error), log }),
            })
        })
        .await
    }

    /// `work` may run several times; only the last run counts.
    async fn in_transaction<T: Send + 'static>(
        &self,
        at: &Admitted,
        key: PartitionKey,
        context: ScriptContext,
        work: impl Fn(&mut Host<'_>) -> Result<TransactionEnd<T>, Rejected> + Send + Sync + 'static,
    ) -> EngineResponse<T> {
        let logical = LogicalKey::new(at.container().schema.key.as_ref(), &key);
        let task = Arc::new(ScriptTask {
            at: at.clone(),
            key,
            logical: logical.clone(),
            context,
            env: self.env.clone(),
            meter: self.meter.clone(),
            scripts: self.scripts.clone(),
            parallelism: self.catalog.limits().parallelism,
            handle: Handle::current(),
        });
        let work = Arc::new(work);
        self.with_writable_partition(at, &logical, |mut target| {
            let (task, work) = (task.clone(), work.clone());
            async move {
                // The semaphore is never closed.
                let permit = task.scripts.permits.clone().acquire_owned().await;
                // Permit and admission move into the blocking task, which a disconnecting client does not end.
                let (container, mut admission) = (target.container.into_owned(), target.admission.detach());
                let done = tokio::task::spawn_blocking(move || {
                    let _permit = permit;
                    let outcome = task.run_with_retries(admission.partition(), &container, &*work);
                    admission.set_charge(charge_of(&outcome));
                    (admission, outcome)
                });
                done.await.unwrap_or_else(|_| {
                    let error = Error::internal("a script's transaction stopped unexpectedly");
                    (target.admission, Err(Rejected { error, charge_ru: 0.0 }.into()))
                })
            }
        })
        .await
    }
}

fn charge_of<T>(outcome: &Result<WriteOutcome<T>, WriteError>) -> f64 {
    match outcome {
        Ok(WriteOutcome { charge_ru, .. }) | Err(WriteError::Failed(Rejected { charge_ru, .. })) => *charge_ru,
        Err(WriteError::Outdated) => 0.0, // charged when it runs again
    }
}

fn is_conflict(error: &WriteError) -> bool {
    matches!(error, WriteError::Failed(rejected) if rejected.error.fact() == Some(&Fact::ConflictingWrite))
}

/// How a transaction ends.
enum TransactionEnd<T> {
    Commit(T),
    /// Nothing is written.
    Abort(T),
}

/// The work of one request, for a blocking thread.
struct ScriptTask {
    at: Admitted,
    key: PartitionKey,
    logical: LogicalKey,
    context: ScriptContext,
    env: Arc<dyn Env>,
    meter: Meter,
    scripts: Interpreters,
    parallelism: Parallelism,
    handle: Handle,
}

impl ScriptTask {
    fn run_with_retries<T>(
        &self,
        partition: &Partition,
        container: &Arc<Container>,
        work: &(impl Fn(&mut Host<'_>) -> Result<TransactionEnd<T>, Rejected> + ?Sized),
    ) -> Result<WriteOutcome<T>, WriteError> {
        let began_ms = self.env.now_ms();
        let (mut tries, mut queue_guard) = (1, None);
        loop {
            let done = self.try_once(partition, container, work);
            let has_conflict = done.as_ref().is_err_and(is_conflict);
            let remaining_ms = RETRY_MS_MAX.saturating_sub(self.env.now_ms().saturating_sub(began_ms));
            if !has_conflict || tries >= TRIES_MAX || remaining_ms == 0 {
                return done;
            }
            let queue = || self.scripts.retry_queue(&(self.at.container().rid, &self.key));
            queue_guard = queue_guard.or_else(|| queue().try_lock_for(Duration::from_millis(remaining_ms)));
            std::thread::sleep(PAUSE_MIN.saturating_mul(1 << tries.min(16)).min(PAUSE_MAX));
            tries += 1;
        }
    }

    fn try_once<T>(
        &self,
        partition: &Partition,
        container: &Arc<Container>,
        work: &(impl Fn(&mut Host<'_>) -> Result<TransactionEnd<T>, Rejected> + ?Sized),
    ) -> Result<WriteOutcome<T>, WriteError> {
        let mut host = Host::begin(self, partition, container)?;
        let ended = work(&mut host);
        let (tx, charge_ru) = host.end()?;
        match ended.map_err(|rejected| Rejected { charge_ru: rejected.charge_ru + charge_ru, ..rejected })? {
            TransactionEnd::Commit(value) => {
                let lsn = self.handle.block_on(tx.commit())?;
                Ok(WriteOutcome { value, lsn, charge_ru })
            }
            TransactionEnd::Abort(value) => Ok(WriteOutcome { value, lsn: tx.lsn(), charge_ru }),
        }
    }
}
