//! Scripts in transactions: stored procedures, and triggers around a write.
//!
//! Promise: a script sees the items of one logical partition as they were at one moment, with its own writes; everything it
//! has written becomes visible at once when it ends well, and nothing of it otherwise. It holds nobody up. If somebody
//! else was faster it is run again from the beginning, of which nobody has seen anything.
//!
//! ```text
//! request ─ permit ─▶ a thread that may wait          a script's own thread
//!                     begin                 ─ call ─▶ runs until it wants something
//!                     carry out, charge    ◀─ asks ─
//!                                          ─ tells ─▶ …
//!                     commit, or drop       ◀─ done ─
//! ```

mod host; // what scripts ask for, carried out
mod trigger; // scripts around a write

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::FairMutex;
use pleiad_model::env::Env;
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::{Error, Kind, Result};
use pleiad_partition::key::LogicalKey;
use pleiad_partition::partition::Rejected;
use pleiad_script::{EntryPoint, ScriptError};
use pleiad_storage::waiting_here;
use tokio::runtime::Handle;

use crate::item::key_of_request;
use crate::meter::Meter;
use crate::query::QueryCursor;
use crate::script_runtime::Interpreters;
use crate::write_retry::{WriteOutcome, WriteTarget};
use crate::{Admitted, Engine, EngineResponse, Script};
use host::Host;
pub use trigger::{ItemWrite, Triggered, Triggers};

#[cfg(test)]
mod tests;

/// How often a script is run that others are always faster than, and for how long.
const TRIES_MAX: usize = 64;
const TRYING_MS_MAX: u64 = 5_000;
/// Between two tries, twice as long each time: whoever was faster may still be writing.
const PAUSE_MIN: Duration = Duration::from_micros(25);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// What a script is told besides its arguments.
#[derive(Clone)]
pub struct ScriptContext {
    pub cursors: Arc<dyn CursorCodec>,
    /// What a container may hold and what it holds, as the protocol says it.
    pub quota_max: String,
    pub quota_used: String,
    /// Whether `console.log` is kept.
    pub is_logging: bool,
}

/// How a protocol spells where a query goes on: scripts carry that around, and hand it to their callers.
pub trait CursorCodec: Send + Sync {
    fn write(&self, cursor: &QueryCursor) -> String;
    fn read(&self, text: &str) -> Result<QueryCursor>;
}

/// What a stored procedure has come to.
#[derive(Debug)]
pub struct Executed {
    /// What it answered with, as JSON text. If it failed, nothing has happened.
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
        let key = match key_of_request(at, key) {
            Ok(key) => key,
            Err(error) => return EngineResponse::refused(error),
        };
        let script = script.clone();
        self.in_transaction(at, key, context, move |host| {
            let outcome = host.run(&script, EntryPoint::Procedure { arguments: arguments.clone() });
            let log = outcome.log;
            Ok(match outcome.error {
                None => TransactionEnd::Commit(Executed { result: Ok(outcome.response_body), log }),
                Some(error) => TransactionEnd::GiveUp(Executed { result: Err(error), log }),
            })
        })
        .await
    }

    /// `work` may be done several times; only the last time counts.
    async fn in_transaction<T: Send + 'static>(
        &self,
        at: &Admitted,
        key: PartitionKey,
        context: ScriptContext,
        work: impl Fn(&mut Host<'_>) -> Result<TransactionEnd<T>, Rejected> + Send + Sync + 'static,
    ) -> EngineResponse<T> {
        let logical = LogicalKey::new(at.container.schema.key.as_ref(), &key);
        let task = Arc::new(ScriptTask {
            at: at.clone(),
            key,
            logical: logical.clone(),
            context,
            env: self.env.clone(),
            meter: self.meter.clone(),
            scripts: self.scripts.clone(),
            handle: Handle::current(),
        });
        let work = Arc::new(work);
        let run = |home: WriteTarget| {
            let (task, work) = (task.clone(), work.clone());
            async move {
                // It goes with the work, which a client that leaves does not end. Closed by nobody.
                let permit = task.scripts.permits.clone().acquire_owned().await;
                let done = tokio::task::spawn_blocking(move || {
                    let _permit = permit;
                    waiting_here(|| task.tries(&home, &*work))
                });
                done.await
                    .unwrap_or_else(|_| Err(Error::internal("a script's transaction stopped unexpectedly").into()))
            }
        };
        self.at_home(at, &logical, run).await
    }
}

/// How a transaction ends.
enum TransactionEnd<T> {
    Commit(T),
    /// Nothing of it happens.
    GiveUp(T),
}

/// One request's work, for a thread that may wait.
struct ScriptTask {
    at: Admitted,
    key: PartitionKey,
    logical: LogicalKey,
    context: ScriptContext,
    env: Arc<dyn Env>,
    meter: Meter,
    scripts: Interpreters,
    handle: Handle,
}

impl ScriptTask {
    fn tries<T>(
        &self,
        home: &WriteTarget,
        work: &(impl Fn(&mut Host<'_>) -> Result<TransactionEnd<T>, Rejected> + ?Sized),
    ) -> Result<WriteOutcome<T>, Rejected> {
        let began_ms = self.env.now_ms();
        let (mut tries, mut turn) = (1, None);
        loop {
            let done = self.try_once(home, work);
            let was_slower = matches!(&done, Err(Rejected { error: Error { kind: Kind::RetryWith, .. }, .. }));
            let left_ms = TRYING_MS_MAX.saturating_sub(self.env.now_ms().saturating_sub(began_ms));
            if !was_slower || tries >= TRIES_MAX || left_ms == 0 {
                return done;
            }
            turn = turn.or_else(|| self.turns().try_lock_for(Duration::from_millis(left_ms)));
            std::thread::sleep(PAUSE_MIN.saturating_mul(1 << tries.min(16)).min(PAUSE_MAX));
            tries += 1;
        }
    }

    /// Who was slower waits for its turn, and then meets only those that come for the first time.
    fn turns(&self) -> &'static FairMutex<()> {
        static TURNS: [FairMutex<()>; 64] = [const { FairMutex::new(()) }; 64];
        let mut hasher = DefaultHasher::new();
        (self.at.container.rid.to_string(), &self.key).hash(&mut hasher);
        &TURNS[hasher.finish() as usize % TURNS.len()]
    }

    fn try_once<T>(
        &self,
        home: &WriteTarget,
        work: &(impl Fn(&mut Host<'_>) -> Result<TransactionEnd<T>, Rejected> + ?Sized),
    ) -> Result<WriteOutcome<T>, Rejected> {
        let mut host = Host::begin(self, home)?;
        let ended = work(&mut host);
        let (tx, charge_ru) = host.end()?;
        match ended.map_err(|refusal| Rejected { charge_ru: refusal.charge_ru + charge_ru, ..refusal })? {
            TransactionEnd::Commit(value) => {
                let lsn = self.handle.block_on(tx.commit())?;
                Ok(WriteOutcome { value, lsn, charge_ru })
            }
            TransactionEnd::GiveUp(value) => Ok(WriteOutcome { value, lsn: tx.lsn(), charge_ru }),
        }
    }
}
