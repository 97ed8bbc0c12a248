//! Global secondary index maintenance: applies the change feed of a source container to its indexes.
//!
//! Guarantees: the index is eventually consistent. Whatever happens in the source, and in whichever order partitions
//! split, merge and restart, the index converges to exactly one item per item of the source: its projection, under
//! the index's own partition key. Left out, and logged, are items whose key in the index is too long or whose partition
//! there is full. Writers of the source do not wait for the index, and its work is not charged.
//!
//! ```text
//! build     latest versions, up to the LSN from which the source retains all versions for this index
//! follow    all versions: delete the previous image if its key in the index differs; upsert the current image
//!
//!           version 812  previous {"id":"7","city":"Rome"}  current {"id":"7","city":"Oslo"}   the index's key: /city
//!           delete ["Rome"] 0000100000000007      upsert ["Oslo"] {"id":"0000100000000007","_id":"7","city":"Oslo"}
//! ```
//!
//! The item's docnum in the source is its id in the index, so that the id is the same however often a change is
//! applied, and in a copy of the database. A cursor is saved after the changes it covers; changes after the saved
//! cursor are applied again after a crash, which is idempotent.

use std::collections::{BTreeMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::task::Poll;
use std::time::Duration;

use pleiad_model::partition_key::{EpkRange, PartitionKey};
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Fact, Kind, Result, Value, json};
use pleiad_partition::change_feed::ChangeQuery;
use pleiad_partition::commit::block_on;
use pleiad_partition::feed::{KeyScope, PageLimit};
use pleiad_partition::ttl::Expiry;
use pleiad_partition::version_row::ItemVersion;
use pleiad_partition::{Draft, ItemKey, MaintenanceError, Partition, Precondition, Record, Verb, WriteError};
use pleiad_sql::index_projection::Projection;
use pleiad_storage::Batch;

use super::{TaskTracker, unexpected};
use crate::catalog::{CONTAINER_CHANGES_MAX, Catalog, Container, SourceCursor, WeakCatalog, put_progress};

/// How often indexes that are up to date poll their sources.
const INTERVAL: Duration = Duration::from_millis(20);
/// How often the thread polls while there are no indexes.
const IDLE_INTERVAL: Duration = Duration::from_millis(250);
/// How many polls an index is skipped at most after a failure: ten seconds.
const SKIPPED_POLLS_MAX: u32 = 512;
/// Changes that are applied per page.
const PAGE: PageLimit = PageLimit { items: 256, bytes: 1 << 20 };

/// The maintenance thread. When dropped, it ends after the current page.
pub(crate) struct GlobalIndexer {
    stop_on_drop: Sender<()>,
    thread: TaskTracker,
}

impl GlobalIndexer {
    pub(crate) fn start(catalog: WeakCatalog) -> GlobalIndexer {
        let (stop_on_drop, stopped) = channel();
        let thread = TaskTracker::default();
        thread.run("global indexes", move || {
            let (mut pause, mut backoffs) = (INTERVAL, Backoffs::default());
            while wait_unless_stopped(&stopped, pause) {
                let Some(catalog) = catalog.upgrade() else { break };
                let indexes = indexes(&catalog);
                pause = if indexes.is_empty() { IDLE_INTERVAL } else { INTERVAL };
                backoffs.count_poll();
                while block_on(maintain_all(&catalog, &indexes, &mut backoffs))
                    && wait_unless_stopped(&stopped, Duration::ZERO)
                {}
            }
            Ok(())
        });
        GlobalIndexer { stop_on_drop, thread }
    }

    /// Stops the thread and waits until it has released the store.
    pub(crate) async fn end(self) {
        drop(self.stop_on_drop);
        self.thread.wait_idle().await;
    }
}

fn wait_unless_stopped(stopped: &Receiver<()>, time: Duration) -> bool {
    stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}

fn indexes(catalog: &Catalog) -> Vec<ContainerRid> {
    catalog.with_tree(|tree| {
        let containers = tree.databases.values().flat_map(|database| database.containers.values());
        let indexes = containers.filter(|container| container.definition.global_index.is_some());
        indexes.map(|index| index.rid).collect()
    })
}

/// Exponential backoff of indexes that failed.
#[derive(Default)]
struct Backoffs(BTreeMap<ContainerRid, Backoff>);

/// Counted in polls.
#[derive(Default)]
struct Backoff {
    skips: u32,
    skipped: u32,
}

impl Backoffs {
    fn count_poll(&mut self) {
        self.0.values_mut().for_each(|backoff| backoff.skipped += 1);
    }

    fn is_skipped(&self, index: ContainerRid) -> bool {
        self.0.get(&index).is_some_and(|backoff| backoff.skipped < backoff.skips)
    }

    fn note_failure(&mut self, index: ContainerRid) {
        let backoff = self.0.entry(index).or_default();
        *backoff = Backoff { skips: (backoff.skips * 2).clamp(1, SKIPPED_POLLS_MAX), skipped: 0 };
    }

    fn clear(&mut self, index: ContainerRid) {
        self.0.remove(&index);
    }
}

/// Applies one page to every index that lags. Returns true if there may be more.
async fn maintain_all(catalog: &Catalog, indexes: &[ContainerRid], backoffs: &mut Backoffs) -> bool {
    let mut more = false;
    for rid in indexes.iter().filter(|rid| !backoffs.is_skipped(**rid)).copied().collect::<Vec<_>>() {
        // Looked up every time: a split waits until its partition is released.
        let Some(index) = catalog.with_tree(|tree| tree.container_by_rid(rid).cloned()) else { continue };
        match maintain_index(catalog, &index).await {
            Ok(more_here) => {
                more |= more_here;
                backoffs.clear(rid);
            }
            // A container that changes meanwhile is not worth a log line.
            Err(error) => {
                if let Some(error) = unexpected(&error) {
                    tracing::warn!(%error, index = index.definition.id, "a global secondary index lags behind; it is retried");
                    backoffs.note_failure(rid);
                }
            }
        }
    }
    more
}

/// Applies a page per EPK range to one index. Returns true if there may be more. A range that fails does not stop the
/// others.
async fn maintain_index(catalog: &Catalog, index: &Container) -> Result<bool, MaintenanceError> {
    let Some(source) = source_of(catalog, index) else { return Ok(false) };
    let known = index.progress.cursors();
    if known.is_empty() {
        // Durable before the build: a build that was interrupted and started again with a later end would not see the
        // versions that name the keys under which it has already put items.
        save_progress(catalog, index, initial_cursors(&source)).await?;
        return Ok(true);
    }
    let mut slices = slice_by_partition(&source, &known);
    let is_behind = slices.iter().any(SourceSlice::is_behind);
    index.progress.set_behind(is_behind, catalog.now_ms());
    let mut result = Ok(is_behind);
    if is_behind {
        let applier = IndexApplier { catalog, index: index.rid, projection: projection_of(index)? };
        for slice in slices.iter_mut().filter(|slice| slice.is_behind()) {
            if let Err(error) = applier.apply_page(slice).await {
                result = Err(error);
            }
        }
    }
    let cursors: Vec<SourceCursor> = join_neighbors(slices.into_iter().map(|slice| slice.cursor).collect());
    if cursors != known {
        save_progress(catalog, index, cursors).await?;
    }
    result
}

async fn save_progress(catalog: &Catalog, index: &Container, cursors: Vec<SourceCursor>) -> Result<()> {
    let mut batch = Batch::default();
    put_progress(&mut batch, index.rid, &cursors);
    catalog.store_and_committer().1.commit(batch).await?;
    index.progress.set(cursors);
    Ok(())
}

fn source_of(catalog: &Catalog, index: &Container) -> Option<Arc<Container>> {
    let rid = index.definition.global_index.as_ref()?.source_rid?;
    catalog.with_tree(|tree| tree.container_by_rid(rid).cloned())
}

fn projection_of(index: &Container) -> Result<Projection> {
    let definition = index.definition.global_index.as_ref().map(|index| index.definition.as_str());
    Projection::parse(definition.unwrap_or_default())
}

/// A cursor and the partition of the source that owns its range now.
struct SourceSlice {
    cursor: SourceCursor,
    partition: Arc<Partition>,
}

impl SourceSlice {
    fn is_behind(&self) -> bool {
        self.cursor.build_until.is_some() || self.cursor.lsn < self.partition.lsn()
    }
}

/// The cursors of a new index. Every write from now on records a version: the tree that contains the index also has
/// its source with that setting.
fn initial_cursors(source: &Container) -> Vec<SourceCursor> {
    let cursor = |partition: &Arc<Partition>| {
        let (keys, build_until) = (partition.range.keys.clone(), Some(partition.lsn()));
        SourceCursor { keys, lsn: 0, build_until }
    };
    source.partitions.iter().map(cursor).collect()
}

/// The cursors, cut at the bounds of the source's current partitions.
fn slice_by_partition(source: &Container, known: &[SourceCursor]) -> Vec<SourceSlice> {
    let slices = known.iter().flat_map(|cursor| {
        source.partitions.iter().filter_map(move |partition| {
            let keys = partition.range.keys.intersect(&cursor.keys)?;
            Some(SourceSlice { cursor: SourceCursor { keys, ..cursor.clone() }, partition: partition.clone() })
        })
    });
    slices.collect()
}

/// Joins adjacent cursors at the same position: otherwise every split would add cursors.
fn join_neighbors(cursors: Vec<SourceCursor>) -> Vec<SourceCursor> {
    let mut out: Vec<SourceCursor> = Vec::with_capacity(cursors.len());
    for next in cursors {
        match out.last_mut() {
            Some(last)
                if last.keys.max == next.keys.min && (last.lsn, last.build_until) == (next.lsn, next.build_until) =>
            {
                last.keys = EpkRange { min: last.keys.min.clone(), max: next.keys.max };
            }
            _ => out.push(next),
        }
    }
    out
}

/// The effect of a page on one item.
#[derive(Default)]
struct Effect {
    /// Partition keys under which the index may have the item.
    old_keys: HashSet<PartitionKey>,
    /// The item as the index is to have it now.
    item: Option<Value>,
}

struct IndexApplier<'a> {
    catalog: &'a Catalog,
    index: ContainerRid,
    projection: Projection,
}

impl IndexApplier<'_> {
    /// Reads and applies one page of one EPK range.
    async fn apply_page(&self, slice: &mut SourceSlice) -> Result<(), MaintenanceError> {
        let cursor = &mut slice.cursor;
        let scope = KeyScope::Keys(cursor.keys.clone());
        // Expired items are built as well: the purge removes them, and a change of the container's default TTL before
        // that revives them.
        let query = ChangeQuery { scope, after: cursor.lsn, since_s: 0, expiry: Expiry::NEVER };
        match cursor.build_until {
            Some(until) => {
                let page = slice.partition.changes(&query, PAGE).await?;
                self.apply(self.build_effects(page.records.iter().filter(|record| record.lsn <= until))?).await?;
                cursor.lsn = page.lsn.min(until);
                cursor.build_until = (page.lsn < until).then_some(until);
            }
            None => {
                let page = slice.partition.retained_versions(&query, PAGE).await?;
                self.apply(self.version_effects(&page.versions)?).await?;
                cursor.lsn = page.lsn;
            }
        }
        Ok(())
    }

    fn now_s(&self) -> u32 {
        u32::try_from(self.catalog.now_ms() / 1000).unwrap_or(u32::MAX)
    }

    fn build_effects<'r>(&self, records: impl Iterator<Item = &'r Record>) -> Result<BTreeMap<u64, Effect>> {
        let effect = |record: &Record| {
            Ok((record.docnum, Effect { old_keys: HashSet::new(), item: Some(self.projected(record)?) }))
        };
        records.map(effect).collect()
    }

    /// Combines the successive versions of an item into one effect.
    fn version_effects(&self, versions: &[ItemVersion]) -> Result<BTreeMap<u64, Effect>, MaintenanceError> {
        let key = self.key_extractor()?;
        let mut effects: BTreeMap<u64, Effect> = BTreeMap::new();
        for version in versions {
            let Some(record) = version.previous.as_ref().or(version.current.as_ref()) else { continue };
            let effect = effects.entry(record.docnum).or_default();
            if let Some(previous) = &version.previous {
                effect.old_keys.insert(key(&self.projected(previous)?));
            }
            effect.item = version.current.as_ref().map(|current| self.projected(current)).transpose()?;
        }
        Ok(effects)
    }

    fn projected(&self, record: &Record) -> Result<Value> {
        let mut item = self.projection.apply(&json::parse(record.body())?);
        item.set("id", index_item_id(record.docnum));
        Ok(item.into())
    }

    /// Extracts the partition key that an item has in the index.
    fn key_extractor(&self) -> Result<impl Fn(&Value) -> PartitionKey + use<>, MaintenanceError> {
        let container = self.container()?;
        let definition = container.schema.key.clone();
        Ok(move |item: &Value| {
            definition.as_ref().map_or_else(PartitionKey::default, |key| PartitionKey::extract(key, item))
        })
    }

    /// The current version of the index container; outdated if it was deleted.
    fn container(&self) -> Result<Arc<Container>, MaintenanceError> {
        self.catalog.with_tree(|tree| tree.container_by_rid(self.index).cloned()).ok_or(WriteError::Outdated)
    }

    /// The items are independent, so all writes are in flight together and share a group commit.
    async fn apply(&self, effects: BTreeMap<u64, Effect>) -> Result<(), MaintenanceError> {
        let key = &self.key_extractor()?;
        join_all(effects.into_iter().map(|(docnum, effect)| self.apply_one(docnum, effect, key)).collect()).await
    }

    async fn apply_one(
        &self,
        docnum: u64,
        effect: Effect,
        key: impl Fn(&Value) -> PartitionKey,
    ) -> Result<(), MaintenanceError> {
        let id = index_item_id(docnum);
        let new_key = effect.item.as_ref().map(&key);
        if let (Some(item), Some(at)) = (effect.item, &new_key) {
            self.upsert(at, &id, item).await?;
        }
        for old_key in effect.old_keys.iter().filter(|old_key| Some(*old_key) != new_key.as_ref()) {
            self.delete(old_key, &id).await?;
        }
        Ok(())
    }

    async fn upsert(&self, key: &PartitionKey, id: &str, body: Value) -> Result<(), MaintenanceError> {
        let mut text = Vec::with_capacity(512);
        json::write(&body, &mut text);
        let container = self.container()?;
        let log_left_out =
            |why: &str| tracing::warn!(id, index = container.definition.id, why, "an item is left out of the index");
        let Some(definition) = container.schema.key.as_ref().filter(|definition| key.check_size(definition).is_ok())
        else {
            log_left_out("its partition key is too long");
            return Ok(());
        };
        let target = ItemKey::new(Some(definition), key, id);
        let draft = Draft { target, id: id.to_owned(), body, text, indexed: container.schema.automatic };
        let (draft, ts_s) = (&draft, self.now_s());
        let written = self.with_current_partition(&draft.target, |container, partition| async move {
            partition.write(&container.schema, Verb::Upsert, draft, &Precondition::None, ts_s).await
        });
        match written.await {
            // Waiting for free space would wait for ever: the change that frees it comes after this one.
            Err(WriteError::Failed(Error { kind: Kind::KeyFull | Kind::QuotaExceeded, .. })) => {
                log_left_out("its partition is full");
                self.delete(key, id).await
            }
            done => done,
        }
    }

    async fn delete(&self, key: &PartitionKey, id: &str) -> Result<(), MaintenanceError> {
        let target = &ItemKey::new(self.container()?.schema.key.as_ref(), key, id);
        let ts_s = self.now_s();
        let deleted = self.with_current_partition(target, |container, partition| async move {
            partition.delete(&container.schema, target, &Precondition::None, ts_s).await
        });
        match deleted.await {
            Err(WriteError::Failed(error)) if error.fact() == Some(&Fact::ItemMissing) => Ok(()),
            done => done,
        }
    }

    /// Retries a write when the index container changes meanwhile, as `write_retry` does for clients.
    async fn with_current_partition<T, F: Future<Output = Result<T, WriteError>>>(
        &self,
        target: &ItemKey,
        write: impl Fn(Arc<Container>, Arc<Partition>) -> F,
    ) -> Result<(), MaintenanceError> {
        for _ in 0..CONTAINER_CHANGES_MAX {
            let container = self.container()?;
            let partition = container.owning_partition(&target.logical)?.clone();
            match write(container, partition.clone()).await {
                Err(WriteError::Outdated) => self.catalog.wait_for_changes().await,
                Err(WriteError::Failed(rejected)) => return Err(rejected.into()),
                Ok(_) if partition.take_split_request() => {
                    self.catalog.split_if_needed(self.index);
                    return Ok(());
                }
                Ok(_) => return Ok(()),
            }
        }
        Err(WriteError::Outdated)
    }
}

/// The id of a source item in the index. Its `_rid` cannot be used: it changes in a copy of the database, where the
/// items that were built before must be found again.
fn index_item_id(docnum: u64) -> String {
    format!("{docnum:016x}")
}

/// Runs all futures to completion; returns the first failure.
async fn join_all<F: Future<Output = Result<(), MaintenanceError>>>(work: Vec<F>) -> Result<(), MaintenanceError> {
    let mut pending: Vec<Pin<Box<F>>> = work.into_iter().map(Box::pin).collect();
    let mut result = Ok(());
    std::future::poll_fn(|cx| {
        pending.retain_mut(|one| match one.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(done) => {
                if result.is_ok() {
                    result = done;
                }
                false
            }
        });
        if pending.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    result
}

#[cfg(test)]
mod tests;
