//! The account while it is served: one engine at a time, and snapshots to go back to.
//!
//! Promise: a snapshot holds every write that was acknowledged before it was asked for, and is taken without stopping anybody. A
//! restore leaves, whenever the program ends, either the account as it was or the one of the snapshot; if it fails, the
//! account goes on as it was. Whoever asked an engine that has had its time gets one answer: the next engine's, or, when the restore
//! failed, what the old one has said, unless it turned the request away.
//!
//! ```text
//! snapshot's store opened ── old engine takes no more writes ── rows carried over ── LIVE ── new engine ── old one closed
//!                            └─────────── writers wait, for milliseconds ───────────────┘
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use pleiad_model::item::check_resource_name;
use pleiad_model::{Error, Result};
use pleiad_storage::{AnyStore, CheckpointInfo, Checkpoints};
use tokio::sync::{Mutex, watch};

use crate::Engine;
use crate::catalog::carry_over;
use crate::jobs::TaskTracker;

pub struct AccountHost {
    current: ArcSwap<Engine>,
    /// Held while a snapshot is taken, restored or deleted.
    turn: Mutex<()>,
    /// Whether one engine is being exchanged for another.
    exchanging: watch::Sender<bool>,
    /// Former engines that are being closed.
    closing: TaskTracker,
}

/// What was restored, and how long it took.
#[derive(Clone, Debug)]
pub struct Restored {
    pub snapshot: CheckpointInfo,
    pub took: Duration,
}

impl AccountHost {
    pub fn new(engine: Engine) -> Arc<AccountHost> {
        let current = ArcSwap::from_pointee(engine);
        let (turn, exchanging, closing) = Default::default();
        Arc::new(AccountHost { current, turn, exchanging, closing })
    }

    pub fn engine(&self) -> Arc<Engine> {
        self.current.load_full()
    }

    /// Who has to be asked in place of an engine that has answered: nobody, if its answer counts. `turned_away` says that it would not
    /// do what it was asked.
    pub async fn instead_of(&self, asked: &Engine, turned_away: bool) -> Result<Option<Arc<Engine>>> {
        if !asked.is_retired() {
            return Ok(None);
        }
        self.exchanged().await;
        if turned_away || asked.superseded.load(Ordering::Acquire) {
            return self.successor().await.map(Some);
        }
        // The account stayed as it was, with what was asked done: to ask again would do it twice.
        Ok(None)
    }

    async fn exchanged(&self) {
        let _ = self.exchanging.subscribe().wait_for(|exchanging| !exchanging).await; // the sender is ours
    }

    /// The engine that answers, once none is being exchanged.
    pub async fn successor(&self) -> Result<Arc<Engine>> {
        self.exchanged().await;
        let engine = self.engine();
        match engine.is_retired() {
            false => Ok(engine),
            true => Err(Error::unavailable("the account could not be opened again after a restore; restart Pleiad")),
        }
    }

    /// Keeps the account as it is now. One of the same name gives way only if `replace` says so.
    pub async fn take_snapshot(&self, name: &str, replace: bool) -> Result<CheckpointInfo> {
        check_resource_name(name)?;
        let _turn = self.turn.lock().await;
        let engine = self.engine();
        let (store, _) = engine.catalog.hands();
        if !replace && store.kept().await?.iter().any(|kept| kept.name == name) {
            return Err(Error::conflict(format!(
                "There is a snapshot named \"{name}\" already. Delete it, or say that it is to be replaced."
            )));
        }
        store.keep(name, engine.now_ms()).await
    }

    /// In the order of their names.
    pub async fn snapshots(&self) -> Result<Vec<CheckpointInfo>> {
        self.engine().catalog.hands().0.kept().await
    }

    pub async fn snapshot(&self, name: &str) -> Result<CheckpointInfo> {
        self.snapshots().await?.into_iter().find(|kept| kept.name == name).ok_or_else(|| unknown(name))
    }

    pub async fn delete_snapshot(&self, name: &str) -> Result<()> {
        let _turn = self.turn.lock().await;
        let (store, _) = self.engine().catalog.hands();
        if store.forget(name).await? { Ok(()) } else { Err(unknown(name)) }
    }

    /// The account is again what it was when the snapshot was taken.
    pub async fn restore(self: &Arc<Self>, name: &str) -> Result<Restored> {
        let (live, name) = (self.clone(), name.to_owned());
        // A task of its own: whoever asked may hang up, and half a restore is no account.
        let restored = tokio::spawn(async move { live.exchange(&name).await }).await;
        restored.unwrap_or_else(|_| Err(Error::internal("the restore ended before it was done")))
    }

    async fn exchange(&self, name: &str) -> Result<Restored> {
        let began = Instant::now();
        let _turn = self.turn.lock().await;
        let snapshot = self.snapshot(name).await?;
        let old = self.engine();
        let (store, _) = old.catalog.hands();
        let revived = Arc::new(store.revive(name).await?.ok_or_else(|| unknown(name))?);
        let _exchanging = SwapGuard::begin(&self.exchanging);
        old.retire().await;
        match old.succeeded_by(&revived).await {
            Ok(next) => {
                old.superseded.store(true, Ordering::Release);
                self.current.store(Arc::new(next));
                store.retire();
                drop(store);
                self.close_behind(old);
                let took = began.elapsed();
                tracing::info!(snapshot = name, took_ms = took.as_millis() as u64, "the account is restored");
                Ok(Restored { snapshot, took })
            }
            Err(error) => {
                tracing::warn!(snapshot = name, %error, "a restore failed; the account stays as it was");
                revived.retire();
                drop(revived);
                old.close().await;
                let next = old.on(store).await?;
                next.resume_chores().await?;
                self.current.store(Arc::new(next));
                Err(error)
            }
        }
    }

    /// Its chores end at their next step, its readers when they have read; then its files go.
    fn close_behind(&self, old: Arc<Engine>) {
        let closing = self.closing.enter();
        tokio::spawn(async move {
            old.close().await;
            // Closing a database waits for the disk.
            let _ = tokio::task::spawn_blocking(move || drop((old, closing))).await;
        });
    }

    /// The program is about to end: splits, merges and copies stop where they are, so that nobody waits for one.
    pub fn stop_jobs(&self) {
        self.engine().catalog.jobs().close();
    }

    /// Finishes what is queued and makes it durable.
    pub async fn close(&self) {
        let _turn = self.turn.lock().await;
        self.engine().close().await;
        self.closing.ended().await;
    }
}

impl Engine {
    /// Whether another engine answers for the account from now on.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Takes no more writes; those that were taken are durable and seen.
    async fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.catalog.jobs().close();
        self.committer.stop().await;
    }

    /// An engine on an earlier state of the account's store.
    async fn succeeded_by(&self, store: &Arc<AnyStore>) -> Result<Engine> {
        carry_over(store, &self.catalog).await?;
        let next = self.on(store.clone()).await?;
        let began = next.resume_chores().await;
        match began.and(store.take_over().await) {
            Ok(()) => Ok(next),
            Err(error) => {
                next.close().await;
                Err(error)
            }
        }
    }

    /// The same account on another store: nothing that was learned of items is kept.
    async fn on(&self, store: Arc<AnyStore>) -> Result<Engine> {
        let next = Engine::open_on(store, self.durability, *self.catalog.limits(), self.env.clone()).await?;
        Ok(Engine { query_permits: self.query_permits.clone(), scripts: self.scripts.clone(), ..next })
    }
}

/// Until it is dropped, whoever asks a retired engine waits.
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

fn unknown(name: &str) -> Error {
    Error::not_found(format!("There is no snapshot named \"{name}\"."))
}

#[cfg(test)]
mod tests;
