//! Account host: serves one engine at a time, takes account snapshots, and swaps the engine on restore and when a disk
//! that has failed works again.
//!
//! Guarantees: a snapshot holds every write that was acknowledged before it was requested; taking it stops no reader or
//! writer. If the program ends during a restore, the account is either as it was or as in the snapshot; if the restore
//! fails, the account stays as it was. A request that ran on a retired engine gets one response: the next engine's, or,
//! when the restore failed, the retired engine's own, unless that engine declined the request.
//!
//! ```text
//! snapshot's store opens ── old engine rejects writes ── marks raised ── new engine opens ── LIVE ── swap ─ old closes
//!                           └───────────────────── writers wait, for milliseconds ──────────────────────┘
//! ```
//!
//! After a failed write the store accepts no more; the next engine opens on a copy of it, with what the log holds. Reads
//! continue all the time.
//!
//! "Marks" are the high-water marks. `LIVE` is the file that names the current store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use pleiad_model::item::check_resource_name;
use pleiad_model::{Error, Result};
use pleiad_storage::{AnyStore, CheckpointInfo, Checkpoints};
use tokio::sync::{Mutex, watch};

use crate::catalog::raise_high_water_marks;
use crate::jobs::TaskTracker;
use crate::{Action, Admitted, Engine, WholeAccount};

pub struct AccountHost {
    current: ArcSwap<Engine>,
    /// Held while a snapshot is taken, restored or deleted.
    snapshot_lock: Mutex<()>,
    /// Whether one engine is being swapped for another.
    swapping: watch::Sender<bool>,
    /// Retired engines that are being closed.
    closing: TaskTracker,
}

/// The restored snapshot, and how long the restore took.
#[derive(Clone, Debug)]
pub struct Restored {
    pub snapshot: CheckpointInfo,
    pub took: Duration,
}

impl AccountHost {
    pub fn new(engine: Engine) -> Arc<AccountHost> {
        let current = ArcSwap::from_pointee(engine);
        let (snapshot_lock, swapping, closing) = Default::default();
        Arc::new(AccountHost { current, snapshot_lock, swapping, closing })
    }

    pub fn engine(&self) -> Arc<Engine> {
        self.current.load_full()
    }

    /// The engine on which a request must run again after `engine` has answered it: none, if that answer counts.
    /// `is_declined` says that `engine` did nothing because it accepts no more writes (`Fact::Stopping`).
    pub async fn replacement_for(&self, engine: &Engine, is_declined: bool) -> Result<Option<Arc<Engine>>> {
        if !engine.is_retired() {
            return Ok(None);
        }
        self.wait_for_swap().await;
        if is_declined || engine.superseded.load(Ordering::Acquire) {
            return self.current_engine().await.map(Some);
        }
        // The restore failed, and `engine` has done what was requested: to run it again would do it twice.
        Ok(None)
    }

    async fn wait_for_swap(&self) {
        let _ = self.swapping.subscribe().wait_for(|swapping| !swapping).await; // `self` holds the sender
    }

    /// The engine that serves the account; waits while a swap is running.
    pub async fn current_engine(&self) -> Result<Arc<Engine>> {
        self.wait_for_swap().await;
        let engine = self.engine();
        match engine.is_retired() {
            false => Ok(engine),
            true => Err(Error::unavailable("the account could not be opened again after a restore; restart Pleiad")),
        }
    }

    /// Takes a snapshot of the account as it is now. A snapshot of the same name is replaced only if `replace` is set.
    pub async fn take_snapshot(
        &self,
        at: &Admitted<WholeAccount>,
        name: &str,
        replace: bool,
    ) -> Result<CheckpointInfo> {
        at.check(Action::Administer)?;
        check_resource_name(name)?;
        let _guard = self.snapshot_lock.lock().await;
        let engine = self.engine();
        let (store, _) = engine.catalog.store_and_committer();
        if !replace && store.list_checkpoints().await?.iter().any(|existing| existing.name == name) {
            return Err(Error::conflict(format!(
                "There is a snapshot named \"{name}\" already. Delete it, or say that it is to be replaced."
            )));
        }
        store.create_checkpoint(name, engine.now_ms()).await
    }

    /// In the order of names.
    pub async fn snapshots(&self, at: &Admitted<WholeAccount>) -> Result<Vec<CheckpointInfo>> {
        at.check(Action::Monitor)?;
        self.list_snapshots().await
    }

    pub async fn snapshot(&self, at: &Admitted<WholeAccount>, name: &str) -> Result<CheckpointInfo> {
        at.check(Action::Monitor)?;
        self.find_snapshot(name).await
    }

    async fn list_snapshots(&self) -> Result<Vec<CheckpointInfo>> {
        self.engine().catalog.store_and_committer().0.list_checkpoints().await
    }

    async fn find_snapshot(&self, name: &str) -> Result<CheckpointInfo> {
        self.list_snapshots().await?.into_iter().find(|info| info.name == name).ok_or_else(|| snapshot_not_found(name))
    }

    pub async fn delete_snapshot(&self, at: &Admitted<WholeAccount>, name: &str) -> Result<()> {
        at.check(Action::Administer)?;
        let _guard = self.snapshot_lock.lock().await;
        let (store, _) = self.engine().catalog.store_and_committer();
        if store.delete_checkpoint(name).await? { Ok(()) } else { Err(snapshot_not_found(name)) }
    }

    /// Restores the account to what it was when the snapshot was taken.
    pub async fn restore(self: &Arc<Self>, at: &Admitted<WholeAccount>, name: &str) -> Result<Restored> {
        at.check(Action::Administer)?;
        let (host, name) = (self.clone(), name.to_owned());
        // A task of its own: the client may disconnect, and a restore must not end halfway.
        let restored = tokio::spawn(async move { host.swap_engine(&name).await }).await;
        restored.unwrap_or_else(|_| Err(Error::internal("the restore ended before it was done")))
    }

    async fn swap_engine(&self, name: &str) -> Result<Restored> {
        let began = Instant::now();
        let _guard = self.snapshot_lock.lock().await;
        let snapshot = self.find_snapshot(name).await?;
        let old = self.engine();
        let opened = old.catalog.store_and_committer().0.open_checkpoint(name).await?;
        let snapshot_store = Arc::new(opened.ok_or_else(|| snapshot_not_found(name))?);
        if let Err(error) = self.replace(old, &snapshot_store, Answers::Void).await {
            tracing::warn!(snapshot = name, %error, "restore failed; the account stays as it was");
            return Err(error);
        }
        let took = began.elapsed();
        tracing::info!(snapshot = name, took_ms = took.as_millis() as u64, "account restored");
        Ok(Restored { snapshot, took })
    }

    /// Opens the account again on a copy of its store, if a write to the disk has failed. Returns false if none has.
    /// Fails while the disk does; then the current engine goes on answering reads.
    ///
    /// A write that failed is in the copy completely or not at all, and its client was told that it failed. So it is not
    /// repeated: only what the failed engine declined without trying runs on the new one.
    pub async fn recover(&self) -> Result<bool> {
        let _guard = self.snapshot_lock.lock().await;
        let old = self.engine();
        if !old.committer.has_failed() {
            return Ok(false);
        }
        let copy = Arc::new(old.catalog.store_and_committer().0.open_copy().await?);
        self.replace(old, &copy, Answers::Count).await?;
        tracing::info!("the disk works again: writes are accepted");
        Ok(true)
    }

    /// Replaces the engine by one on another store; if that fails, by one on the same store.
    async fn replace(&self, old: Arc<Engine>, next_store: &Arc<AnyStore>, answers: Answers) -> Result<()> {
        let (store, _) = old.catalog.store_and_committer();
        let _swap = SwapGuard::begin(&self.swapping);
        old.retire().await;
        match old.open_successor(next_store).await {
            Ok(next) => {
                old.superseded.store(answers == Answers::Void, Ordering::Release);
                self.current.store(Arc::new(next));
                store.retire();
                drop(store);
                self.close_in_background(old);
                Ok(())
            }
            Err(error) => {
                next_store.retire();
                old.close().await;
                let next = old.reopen_on(store).await?;
                next.start_background_work().await?;
                self.current.store(Arc::new(next));
                Err(error)
            }
        }
    }

    /// The old engine's jobs end at their next step, and its readers when they have finished; then its files are
    /// deleted.
    fn close_in_background(&self, old: Arc<Engine>) {
        let closing = self.closing.enter();
        tokio::spawn(async move {
            old.close().await;
            // Closing a store blocks on the disk.
            let _ = tokio::task::spawn_blocking(move || drop((old, closing))).await;
        });
    }

    /// Called before the program ends: splits, merges and copies stop where they are, so that no request waits for one.
    pub fn stop_jobs(&self) {
        self.engine().catalog.jobs().close();
    }

    /// Commits the queued writes and makes them durable.
    pub async fn close(&self) {
        let _guard = self.snapshot_lock.lock().await;
        self.engine().close().await;
        self.closing.wait_idle().await;
    }
}

/// What the answers of a replaced engine are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    /// Its data is still there.
    Count,
    /// Its data was replaced: requests run again.
    Void,
}

impl Engine {
    /// Whether this engine accepts no more writes, because another one serves the account or is about to.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Accepts no more writes; those accepted before are durable and visible.
    async fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.catalog.jobs().close();
        self.committer.stop().await;
    }

    /// Opens the engine that replaces this one, on an earlier state of the account's store.
    async fn open_successor(&self, store: &Arc<AnyStore>) -> Result<Engine> {
        raise_high_water_marks(store, &self.catalog).await?;
        let next = self.reopen_on(store.clone()).await?;
        let started = next.start_background_work().await;
        match started.and(store.make_current().await) {
            Ok(()) => Ok(next),
            Err(error) => {
                next.close().await;
                Err(error)
            }
        }
    }

    /// The same account on another store: nothing that this engine derived from items is carried over.
    async fn reopen_on(&self, store: Arc<AnyStore>) -> Result<Engine> {
        let next = Engine::open_on(store, self.durability, *self.catalog.limits(), self.env.clone()).await?;
        Ok(Engine { query_permits: self.query_permits.clone(), scripts: self.scripts.clone(), ..next })
    }
}

/// Until it is dropped, requests that ran on a retired engine wait.
struct SwapGuard<'a>(&'a watch::Sender<bool>);

impl SwapGuard<'_> {
    fn begin(flag: &watch::Sender<bool>) -> SwapGuard<'_> {
        flag.send_replace(true);
        SwapGuard(flag)
    }
}

impl Drop for SwapGuard<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

fn snapshot_not_found(name: &str) -> Error {
    Error::not_found(format!("There is no snapshot named \"{name}\"."))
}

#[cfg(test)]
mod tests;
