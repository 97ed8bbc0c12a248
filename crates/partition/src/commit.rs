//! Group commit: the committer writes many transactions as one durable batch.
//!
//! Guarantees: batches become durable in the order in which they were enqueued, and no writer is acknowledged before
//! its batch is durable. If a commit fails, everything queued after it fails and nothing is accepted afterwards: there
//! is one log, so no later success may hide an earlier loss. When the disk works again, a new committer on a copy of the
//! store takes over, with the state that is in the log (`engine::AccountHost::recover`).
//!
//! ```text
//!  writers ── enqueue ──▶ │ t1 t2 t3 t4 │ ── one batch ──▶ store.commit ──▶ publish LSNs, wake t1…t4
//!                         └── waiting ──┘    meanwhile t5 t6 queue up for the next batch
//! ```
//!
//! One thread per store. It blocks in the store, never on the runtime's workers, and sleeps without a timer while there
//! is nothing to do.

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex, MutexGuard};
use pleiad_model::{Error, Fact, Result};
use pleiad_storage::{AnyStore, Batch, Durability, Store};
use tokio::sync::oneshot;

/// When an acknowledged write is safe from a power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before it is acknowledged.
    Synced,
    /// It survives a crash of the process when acknowledged, and a power loss after at most this long.
    SyncedWithin(Duration),
}

/// Called in commit order when the transactions of an owner are durable.
pub trait Publish: Send + Sync {
    fn published(&self, lsn: u64);
}

/// A transaction, ready to be written.
pub struct CommitEntry {
    pub batch: Batch,
    /// Written once per group, with the value of the group's last entry: the shard's state row.
    pub state: Option<(Bytes, Bytes)>,
    pub owner: Option<(Arc<dyn Publish>, u64)>,
    pub done: oneshot::Sender<Result<()>>,
}

/// Entries that do not fit into a group wait for the next batch, so that one commit stays short and small.
const GROUP_ENTRIES_MAX: usize = 1024;
/// Upper bound of the commit delay, however slow the disk is.
const COMMIT_DELAY_MAX: Duration = Duration::from_millis(2);
const GROUP_BYTES_MAX: usize = 8 << 20;

#[derive(Clone)]
pub struct Committer {
    handle: Arc<CommitterHandle>,
}

/// A weak reference: the committer may have stopped because no owner is left.
pub struct WeakCommitter {
    handle: Weak<CommitterHandle>,
}

impl WeakCommitter {
    pub fn upgrade(&self) -> Option<Committer> {
        self.handle.upgrade().map(|handle| Committer { handle })
    }
}

/// When the last clone is dropped, the thread commits what is queued and closes the store.
struct CommitterHandle {
    shared: Arc<CommitterShared>,
}

struct CommitterShared {
    store: Arc<AnyStore>,
    policy: SyncPolicy,
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<CommitEntry>,
    closed: bool,
    /// The thread has ended.
    ended: bool,
    failed: Option<Error>,
    /// How many transactions the committer is waiting for; the writer that completes the number wakes it.
    awaited: usize,
    stopped: Vec<oneshot::Sender<()>>,
}

impl Committer {
    pub fn start(store: Arc<AnyStore>, policy: SyncPolicy) -> Result<Self> {
        let shared = Arc::new(CommitterShared { store, policy, queue: Mutex::default(), wake: Condvar::new() });
        let thread_shared = shared.clone();
        let thread = std::thread::Builder::new().name("committer".into()).spawn(move || serve(thread_shared));
        thread.map_err(|e| Error::unavailable(format!("cannot start the committer thread: {e}")))?;
        Ok(Committer { handle: Arc::new(CommitterHandle { shared }) })
    }

    /// A reference that does not keep the committer running.
    pub fn downgrade(&self) -> WeakCommitter {
        WeakCommitter { handle: Arc::downgrade(&self.handle) }
    }

    /// Queues a transaction, or rejects it without side effects. Callers that need an order among their own
    /// transactions call this under a lock of their own.
    pub fn enqueue(&self, entry: CommitEntry) -> Result<()> {
        let shared = &self.handle.shared;
        let mut queue = shared.queue.lock();
        if let Some(error) = queue.write_error() {
            return Err(error);
        }
        queue.waiting.push(entry);
        if queue.waiting.len() == 1 || queue.waiting.len() == queue.awaited {
            shared.wake.notify_one();
        }
        Ok(())
    }

    /// Commits one batch that belongs to no partition, such as a catalog change.
    pub async fn commit(&self, batch: Batch) -> Result<()> {
        let (done, committed) = oneshot::channel();
        self.enqueue(CommitEntry { batch, state: None, owner: None, done })?;
        committed.await.unwrap_or_else(|_| Err(Fact::Unacknowledged.into()))
    }

    /// The error with which transactions would be rejected now, if they would.
    pub fn write_error(&self) -> Option<Error> {
        self.handle.shared.queue.lock().write_error()
    }

    /// Whether a commit or a sync has failed, so that nothing is accepted.
    pub fn has_failed(&self) -> bool {
        let queue = self.handle.shared.queue.lock();
        queue.failed.is_some() && !queue.closed
    }

    /// Accepts nothing more, commits what is queued, makes it durable, and releases the store.
    pub async fn stop(&self) {
        let (sender, stopped) = oneshot::channel();
        {
            let mut queue = self.handle.shared.queue.lock();
            if queue.ended {
                return;
            }
            queue.stopped.push(sender);
        }
        self.handle.shared.close();
        let _ = stopped.await; // the thread drops the sender when it ends
    }
}

impl Drop for CommitterHandle {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl CommitterShared {
    fn close(&self) {
        self.queue.lock().closed = true;
        self.wake.notify_one();
    }
}

impl Queue {
    fn write_error(&self) -> Option<Error> {
        if self.closed {
            return Some(Fact::Stopping.into());
        }
        self.failed.clone()
    }

    /// The next group: at least one entry, however large it is.
    fn take_group(&mut self) -> Vec<CommitEntry> {
        let mut bytes = 0;
        let fits = |entry: &&CommitEntry| {
            bytes += entry.batch.bytes();
            bytes <= GROUP_BYTES_MAX
        };
        let take = self.waiting.iter().take(GROUP_ENTRIES_MAX).take_while(fits).count().max(1);
        self.waiting.drain(..take).collect()
    }
}

/// However the thread ends, even by a panic in the store, no caller is left waiting.
fn serve(shared: Arc<CommitterShared>) {
    // The panic was reported where it happened; the queue it left is closed below and not used again.
    let _ = std::panic::catch_unwind(AssertUnwindSafe(|| run(&shared)));
    let mut queue = shared.queue.lock();
    (queue.closed, queue.ended) = (true, true);
    let remaining = (std::mem::take(&mut queue.waiting), std::mem::take(&mut queue.stopped));
    drop(queue);
    drop(shared); // callers of `stop` may open the store again
    drop(remaining);
}

fn run(shared: &CommitterShared) {
    // When the acknowledged writes must be synced; `None` while all of them are.
    let mut sync_due = None;
    let mut last = LastCommit::default();
    while let Some(mut group) = next_group(shared, &mut sync_due, &last) {
        let began = Instant::now();
        let committed = commit_group(shared, &mut group);
        last = LastCommit {
            writers: group.len() + shared.queue.lock().waiting.len(),
            duration: began.elapsed(),
            ended: Some(Instant::now()),
        };
        match committed {
            Ok(()) => {
                sync_due = sync_due.or_else(|| shared.sync_due());
                group.into_iter().for_each(acknowledge);
            }
            Err(error) => {
                sync_due = None; // the store accepts no sync either
                poison(shared, group, error);
            }
        }
    }
    if sync_due.is_some() {
        sync(shared);
    }
}

impl CommitterShared {
    fn sync_due(&self) -> Option<Instant> {
        match self.policy {
            SyncPolicy::Synced => None,
            SyncPolicy::SyncedWithin(delay) => Some(Instant::now() + delay),
        }
    }
}

/// Figures of the last commit, from which the commit delay is derived.
#[derive(Default)]
struct LastCommit {
    /// Writers that it acknowledged, and those queued by then: that many may have a write queued for the next commit.
    writers: usize,
    duration: Duration,
    ended: Option<Instant>,
}

/// Writers that were just acknowledged are likely to send their next write soon. A commit costs about the same however
/// many transactions share it, so the committer waits for them, but never longer than a commit takes; a single writer
/// is not delayed.
fn commit_delay(shared: &CommitterShared, queue: &mut MutexGuard<'_, Queue>, last: &LastCommit) {
    let Some(ended) = last.ended.filter(|_| last.writers > 1) else { return };
    let until = ended + last.duration.min(COMMIT_DELAY_MAX);
    queue.awaited = last.writers.min(GROUP_ENTRIES_MAX);
    while queue.waiting.len() < queue.awaited && !queue.closed {
        if shared.wake.wait_until(queue, until).timed_out() {
            break;
        }
    }
    queue.awaited = 0;
}

/// The next transactions to write together; `None` when there will be no more.
fn next_group(shared: &CommitterShared, sync_due: &mut Option<Instant>, last: &LastCommit) -> Option<Vec<CommitEntry>> {
    let mut queue = shared.queue.lock();
    loop {
        // Before the waiting entries: a store that is always busy must be synced in time as well.
        if sync_due.take_if(|due| *due <= Instant::now()).is_some() {
            MutexGuard::unlocked(&mut queue, || sync(shared));
        }
        if !queue.waiting.is_empty() {
            if shared.policy == SyncPolicy::Synced {
                commit_delay(shared, &mut queue, last);
            }
            return Some(queue.take_group());
        }
        if queue.closed {
            return None;
        }
        match *sync_due {
            Some(due) => drop(shared.wake.wait_until(&mut queue, due)),
            None => shared.wake.wait(&mut queue),
        }
    }
}

/// The other batches are appended to the first entry's, so that a single transaction is not copied at all.
fn commit_group(shared: &CommitterShared, group: &mut [CommitEntry]) -> Result<()> {
    let durability = match shared.policy {
        SyncPolicy::Synced => Durability::Synced,
        SyncPolicy::SyncedWithin(_) => Durability::Written,
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

fn acknowledge(entry: CommitEntry) {
    if let Some((owner, lsn)) = entry.owner {
        owner.published(lsn);
    }
    let _ = entry.done.send(Ok(())); // the caller may have disconnected; the write is committed all the same
}

/// A batch whose guard does not hold ends here, too: a server that has lost its lease must stop writing.
fn poison(shared: &CommitterShared, group: Vec<CommitEntry>, error: Error) {
    tracing::error!(%error, "a commit failed; the store accepts no writes until the disk works again");
    let queued = {
        let mut queue = shared.queue.lock();
        queue.failed = Some(Fact::EarlierCommitFailed(Box::new(error.clone())).into());
        std::mem::take(&mut queue.waiting)
    };
    for entry in group.into_iter().chain(queued) {
        let _ = entry.done.send(Err(error.clone()));
    }
}

fn sync(shared: &CommitterShared) {
    if let Err(error) = block_on(shared.store.sync()) {
        poison(shared, Vec::new(), error);
    }
}

/// Waits for a future on this thread. The futures of the embedded store are ready immediately; those of a remote store
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
