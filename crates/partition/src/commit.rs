//! The committer: many transactions become one durable batch.
//!
//! Promise: batches become durable in the order in which they were enqueued, and nobody is told
//! "done" before that. If a commit fails, everything queued behind it fails and nothing is accepted
//! afterwards: there is one log, so no later success may hide an earlier loss.
//!
//! ```text
//!  writers ── enqueue ──▶ │ t1 t2 t3 t4 │ ── one batch ──▶ store.commit ──▶ publish LSNs, wake t1…t4
//!                         └── waiting ──┘    meanwhile t5 t6 queue up for the next batch
//! ```
//!
//! One thread per store. It blocks in the store, never on the runtime's workers, and sleeps
//! without a timer while there is nothing to do.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use pleiad_model::{Error, Result};
use pleiad_storage::{AnyStore, Batch, Durability, Store};
use tokio::sync::oneshot;

/// How soon an acknowledged write is safe from a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Before it is acknowledged.
    Synced,
    /// It survives the process at once, and the machine after at most this long.
    SyncedWithin(Duration),
}

/// Who wants to hear that its transaction is durable, in order.
pub trait Publish: Send + Sync {
    fn published(&self, lsn: u64);
}

/// A transaction, ready to be written.
pub struct Entry {
    pub batch: Batch,
    /// Written once per group, with the value of the group's last entry: the shard's state row.
    pub state: Option<(Bytes, Bytes)>,
    pub owner: Option<(Arc<dyn Publish>, u64)>,
    pub done: oneshot::Sender<Result<()>>,
}

/// Groups larger than this wait for the next batch, so that one commit stays short.
const GROUP_ENTRIES_MAX: usize = 1024;

#[derive(Clone)]
pub struct Committer {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<AnyStore>,
    policy: Policy,
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Entry>,
    closed: bool,
    failed: Option<Error>,
    stopped: Option<oneshot::Sender<()>>,
}

impl Committer {
    pub fn start(store: Arc<AnyStore>, policy: Policy) -> Result<Self> {
        let shared = Arc::new(Shared { store, policy, queue: Mutex::default(), wake: Condvar::new() });
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("committer".into()).spawn(move || run(&theirs));
        thread.map_err(|e| Error::unavailable(format!("cannot start the committer thread: {e}")))?;
        Ok(Committer { shared })
    }

    /// Takes a transaction. Callers that need an order among their own hold their lock over this.
    pub fn enqueue(&self, entry: Entry) {
        let mut queue = self.shared.queue.lock();
        if let Some(error) = queue.refusal() {
            drop(queue);
            let _ = entry.done.send(Err(error)); // the asker may be gone; then nobody needs to know
            return;
        }
        queue.waiting.push(entry);
        if queue.waiting.len() == 1 {
            self.shared.wake.notify_one();
        }
    }

    /// Commits one batch of nobody's partition, such as a change of the catalog.
    pub async fn commit(&self, batch: Batch) -> Result<()> {
        let (done, committed) = oneshot::channel();
        self.enqueue(Entry { batch, state: None, owner: None, done });
        committed.await.unwrap_or_else(|_| Err(Error::unavailable("the committer has stopped")))
    }

    /// Accepts nothing more, finishes what is queued, and makes it durable.
    pub async fn stop(&self) {
        let (sender, stopped) = oneshot::channel();
        {
            let mut queue = self.shared.queue.lock();
            if queue.closed {
                return;
            }
            queue.closed = true;
            queue.stopped = Some(sender);
            self.shared.wake.notify_one();
        }
        let _ = stopped.await; // an error means that the thread is gone, which is what we wait for
    }
}

impl Queue {
    fn refusal(&self) -> Option<Error> {
        if self.closed {
            return Some(Error::unavailable("the server is stopping"));
        }
        self.failed.clone()
    }
}

fn run(shared: &Shared) {
    let mut unsynced = false;
    while let Some(mut group) = next_group(shared, &mut unsynced) {
        match commit_group(shared, &mut group) {
            Ok(()) => {
                unsynced |= shared.policy != Policy::Synced;
                group.into_iter().for_each(acknowledge);
            }
            Err(error) => poison(shared, group, error),
        }
    }
    if unsynced {
        sync(shared);
    }
    if let Some(stopped) = shared.queue.lock().stopped.take() {
        let _ = stopped.send(());
    }
}

/// The next transactions to write together; `None` when there will be no more.
fn next_group(shared: &Shared, unsynced: &mut bool) -> Option<Vec<Entry>> {
    let mut queue = shared.queue.lock();
    loop {
        if !queue.waiting.is_empty() {
            let take = queue.waiting.len().min(GROUP_ENTRIES_MAX);
            return Some(queue.waiting.drain(..take).collect());
        }
        if queue.closed {
            return None;
        }
        match shared.policy {
            Policy::SyncedWithin(delay) if *unsynced => {
                if shared.wake.wait_for(&mut queue, delay).timed_out() && queue.waiting.is_empty() {
                    drop(queue);
                    sync(shared);
                    *unsynced = false;
                    queue = shared.queue.lock();
                }
            }
            _ => shared.wake.wait(&mut queue),
        }
    }
}

/// The first entry's batch takes up the others, so that a lone transaction is not copied at all.
fn commit_group(shared: &Shared, group: &mut [Entry]) -> Result<()> {
    let durability = match shared.policy {
        Policy::Synced => Durability::Synced,
        Policy::SyncedWithin(_) => Durability::Written,
    };
    let mut merged = Batch::default();
    let mut states: HashMap<&Bytes, &Bytes> = HashMap::new();
    for entry in group.iter_mut() {
        merged.append(&mut entry.batch);
        states.extend(entry.state.iter().map(|(key, value)| (key, value)));
    }
    states.into_iter().for_each(|(key, value)| merged.put(key, value));
    block_on(shared.store.commit(&merged, durability))
}

fn acknowledge(entry: Entry) {
    if let Some((owner, lsn)) = entry.owner {
        owner.published(lsn);
    }
    let _ = entry.done.send(Ok(())); // the asker may have hung up; the write stands all the same
}

/// A guard that does not hold comes here too: whoever lost its lease must stop writing.
fn poison(shared: &Shared, group: Vec<Entry>, error: Error) {
    tracing::error!(%error, "a commit failed; the store accepts no more writes until it is restarted");
    let behind = {
        let mut queue = shared.queue.lock();
        let why = format!("an earlier write could not be made durable: {error}. Restart the server.");
        queue.failed = Some(Error::unavailable(why));
        std::mem::take(&mut queue.waiting)
    };
    for entry in group.into_iter().chain(behind) {
        let _ = entry.done.send(Err(error.clone()));
    }
}

fn sync(shared: &Shared) {
    if let Err(error) = block_on(shared.store.sync()) {
        poison(shared, Vec::new(), error);
    }
}

/// Waits for a future on this thread. The embedded store's are ready at once; a remote store's
/// wake the thread from the runtime that drives them.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests;
