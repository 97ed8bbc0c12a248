//! Global secondary index maintenance: applies the change feed of a source container to its indexes.
//!
//! Guarantees: the index is eventually consistent. Whatever happens in the source, and in whichever order partitions
//! split, merge and restart, the index converges to exactly one item per item of the source: its projection, under
//! the index's own partition key. Writers of the source do not wait for it, and its work is not charged.
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
use pleiad_model::{Error, Kind, Result, Value, json};
use pleiad_partition::change_feed::ChangeQuery;
use pleiad_partition::commit::block_on;
use pleiad_partition::feed::{KeyScope, PageLimit};
use pleiad_partition::partition::Rejected;
use pleiad_partition::ttl::Expiry;
use pleiad_partition::version_row::ItemVersion;
use pleiad_partition::{Draft, ItemKey, Partition, Precondition, Record, Verb};
use pleiad_sql::index_projection::Projection;
use pleiad_storage::Batch;

use super::TaskTracker;
use crate::catalog::{Catalog, Container, SourceCursor, WeakCatalog, put_progress};
use crate::write_retry::{CONTAINER_CHANGES_MAX, home};

/// How often indexes that are up to date poll their sources.
const EVERY: Duration = Duration::from_millis(20);
/// How often the thread polls while there are no indexes.
const EVERY_WITHOUT: Duration = Duration::from_millis(250);
/// How many polls an index is skipped at most after a failure: ten seconds.
const RESTS_MAX: u32 = 512;
/// Changes that are applied per page.
const PAGE: PageLimit = PageLimit { items: 256, bytes: 1 << 20 };

/// The maintenance thread. When dropped, it ends after the current page.
pub(crate) struct GlobalIndexer {
    goes_on: Sender<()>,
    thread: TaskTracker,
}

impl GlobalIndexer {
    pub(crate) fn start(catalog: WeakCatalog) -> GlobalIndexer {
        let (goes_on, ended) = channel();
        let thread = TaskTracker::default();
        thread.run("global indexes", move || {
            let (mut pause, mut setbacks) = (EVERY, Setbacks::default());
            while waits(&ended, pause) {
                let Some(catalog) = catalog.upgrade() else { break };
                let indexes = indexes(&catalog);
                pause = if indexes.is_empty() { EVERY_WITHOUT } else { EVERY };
                setbacks.look_again();
                while block_on(keep_all(&catalog, &indexes, &mut setbacks)) && waits(&ended, Duration::ZERO) {}
            }
            Ok(())
        });
        GlobalIndexer { goes_on, thread }
    }

    /// Stops the thread and waits until it has released the store.
    pub(crate) async fn end(self) {
        drop(self.goes_on);
        self.thread.ended().await;
    }
}

fn waits(ended: &Receiver<()>, time: Duration) -> bool {
    ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
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
struct Setbacks(BTreeMap<ContainerRid, Setback>);

/// Counted in polls.
#[derive(Default)]
struct Setback {
    rests: u32,
    rested: u32,
}

impl Setbacks {
    fn look_again(&mut self) {
        self.0.values_mut().for_each(|setback| setback.rested += 1);
    }

    fn rests(&self, index: ContainerRid) -> bool {
        self.0.get(&index).is_some_and(|setback| setback.rested < setback.rests)
    }

    fn note(&mut self, index: ContainerRid) {
        let setback = self.0.entry(index).or_default();
        *setback = Setback { rests: (setback.rests * 2).clamp(1, RESTS_MAX), rested: 0 };
    }

    fn forget(&mut self, index: ContainerRid) {
        self.0.remove(&index);
    }
}

/// Applies one page to every index that lags. Returns true if there may be more.
async fn keep_all(catalog: &Catalog, indexes: &[ContainerRid], setbacks: &mut Setbacks) -> bool {
    let mut more = false;
    for rid in indexes.iter().filter(|rid| !setbacks.rests(**rid)).copied().collect::<Vec<_>>() {
        // Looked up every time: a split waits until its partition is released.
        let Some(index) = catalog.with_tree(|tree| tree.container_by_rid(rid).cloned()) else { continue };
        match keep(catalog, &index).await {
            Ok(went_on) => {
                more |= went_on;
                setbacks.forget(rid);
            }
            // A container that changes meanwhile is not worth a log line.
            Err(error) if is_passing(&error) => {}
            Err(error) => {
                tracing::warn!(%error, index = index.definition.id, "a global secondary index lags behind; it is retried");
                setbacks.note(rid);
            }
        }
    }
    more
}

fn is_passing(error: &Error) -> bool {
    matches!(error.kind, Kind::OwnerNotFound | Kind::Unavailable | Kind::Outdated | Kind::NotFound)
}

/// Applies a page per EPK range to one index. Returns true if there may be more. A range that fails does not stop the
/// others.
async fn keep(catalog: &Catalog, index: &Container) -> Result<bool> {
    let Some(source) = source_of(catalog, index) else { return Ok(false) };
    let known = index.progress.stretches();
    if known.is_empty() {
        // Durable before the build: a build that was interrupted and started again with a later end would not see the
        // versions that name the keys under which it has already put items.
        save(catalog, index, begin(&source)).await?;
        return Ok(true);
    }
    let mut pieces = cut(&source, &known);
    let is_behind = pieces.iter().any(SourceSlice::is_behind);
    index.progress.note(is_behind, catalog.now_ms());
    let mut went_on = Ok(is_behind);
    if is_behind {
        let work = IndexApplier { catalog, index: index.rid, projection: projection_of(index)? };
        for piece in pieces.iter_mut().filter(|piece| piece.is_behind()) {
            if let Err(error) = work.go_on(piece).await {
                went_on = Err(error);
            }
        }
    }
    let now: Vec<SourceCursor> = joined(pieces.into_iter().map(|piece| piece.followed).collect());
    if now != known {
        save(catalog, index, now).await?;
    }
    went_on
}

async fn save(catalog: &Catalog, index: &Container, now: Vec<SourceCursor>) -> Result<()> {
    let mut batch = Batch::default();
    put_progress(&mut batch, index.rid, &now);
    catalog.hands().1.commit(batch).await?;
    index.progress.set(now);
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
    followed: SourceCursor,
    partition: Arc<Partition>,
}

impl SourceSlice {
    fn is_behind(&self) -> bool {
        self.followed.build_until.is_some() || self.followed.lsn < self.partition.lsn()
    }
}

/// The cursors of a new index. Every write from now on records a version: the tree that shows the index has that
/// setting in its source.
fn begin(source: &Container) -> Vec<SourceCursor> {
    let stretch = |partition: &Arc<Partition>| {
        let (keys, build_until) = (partition.range.keys.clone(), Some(partition.lsn()));
        SourceCursor { keys, lsn: 0, build_until }
    };
    source.partitions.iter().map(stretch).collect()
}

/// The cursors, cut at the bounds of the source's current partitions.
fn cut(source: &Container, known: &[SourceCursor]) -> Vec<SourceSlice> {
    let pieces = known.iter().flat_map(|stretch| {
        source.partitions.iter().filter_map(move |partition| {
            let keys = partition.range.keys.intersect(&stretch.keys)?;
            Some(SourceSlice { followed: SourceCursor { keys, ..stretch.clone() }, partition: partition.clone() })
        })
    });
    pieces.collect()
}

/// Joins adjacent cursors at the same position: otherwise every split would add cursors.
fn joined(stretches: Vec<SourceCursor>) -> Vec<SourceCursor> {
    let mut out: Vec<SourceCursor> = Vec::with_capacity(stretches.len());
    for next in stretches {
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
    was: HashSet<PartitionKey>,
    /// The item as the index is to have it now.
    is: Option<Value>,
}

struct IndexApplier<'a> {
    catalog: &'a Catalog,
    index: ContainerRid,
    projection: Projection,
}

impl IndexApplier<'_> {
    /// Reads and applies one page of one EPK range.
    async fn go_on(&self, piece: &mut SourceSlice) -> Result<()> {
        let followed = &mut piece.followed;
        let scope = KeyScope::Keys(followed.keys.clone());
        // Expired items are built as well: the purge removes them, and a change of the container's default TTL before
        // that revives them.
        let asked = ChangeQuery { scope, after: followed.lsn, since_s: 0, expiry: Expiry::NEVER };
        match followed.build_until {
            Some(until) => {
                let page = piece.partition.changes(&asked, PAGE).await?;
                self.carry_out(self.built(page.records.iter().filter(|record| record.lsn <= until))?).await?;
                followed.lsn = page.lsn.min(until);
                followed.build_until = (page.lsn < until).then_some(until);
            }
            None => {
                let page = piece.partition.kept_versions(&asked, PAGE).await?;
                self.carry_out(self.changed(&page.versions)?).await?;
                followed.lsn = page.lsn;
            }
        }
        Ok(())
    }

    fn now_s(&self) -> u32 {
        u32::try_from(self.catalog.now_ms() / 1000).unwrap_or(u32::MAX)
    }

    fn built<'r>(&self, records: impl Iterator<Item = &'r Record>) -> Result<BTreeMap<u64, Effect>> {
        let effect =
            |record: &Record| Ok((record.docnum, Effect { was: HashSet::new(), is: Some(self.projected(record)?) }));
        records.map(effect).collect()
    }

    /// Combines the successive versions of an item into one effect.
    fn changed(&self, versions: &[ItemVersion]) -> Result<BTreeMap<u64, Effect>> {
        let key = self.key_of()?;
        let mut effects: BTreeMap<u64, Effect> = BTreeMap::new();
        for version in versions {
            let Some(record) = version.previous.as_ref().or(version.current.as_ref()) else { continue };
            let effect = effects.entry(record.docnum).or_default();
            if let Some(previous) = &version.previous {
                effect.was.insert(key(&self.projected(previous)?));
            }
            effect.is = version.current.as_ref().map(|current| self.projected(current)).transpose()?;
        }
        Ok(effects)
    }

    fn projected(&self, record: &Record) -> Result<Value> {
        let mut item = self.projection.apply(&json::parse(record.body())?);
        item.set("id", id_of(record.docnum));
        Ok(item.into())
    }

    /// Extracts the partition key that an item has in the index.
    fn key_of(&self) -> Result<impl Fn(&Value) -> PartitionKey + use<>> {
        let container = self.container()?;
        let definition = container.schema.key.clone();
        Ok(move |item: &Value| {
            definition.as_ref().map_or_else(PartitionKey::default, |key| PartitionKey::extract(key, item))
        })
    }

    /// The current version of the index container.
    fn container(&self) -> Result<Arc<Container>> {
        let found = self.catalog.with_tree(|tree| tree.container_by_rid(self.index).cloned());
        found.ok_or_else(|| Error::not_found("the index was deleted"))
    }

    /// The items are independent, so all writes are in flight together and share a group commit.
    async fn carry_out(&self, effects: BTreeMap<u64, Effect>) -> Result<()> {
        let key = &self.key_of()?;
        all(effects.into_iter().map(|(docnum, effect)| self.carry_out_one(docnum, effect, key)).collect()).await
    }

    async fn carry_out_one(&self, docnum: u64, effect: Effect, key: impl Fn(&Value) -> PartitionKey) -> Result<()> {
        let id = id_of(docnum);
        let is = effect.is.as_ref().map(&key);
        if let (Some(item), Some(at)) = (effect.is, &is) {
            self.upsert(at, &id, item).await?;
        }
        for was in effect.was.iter().filter(|was| Some(*was) != is.as_ref()) {
            self.delete(was, &id).await?;
        }
        Ok(())
    }

    async fn upsert(&self, key: &PartitionKey, id: &str, body: Value) -> Result<()> {
        let mut text = Vec::with_capacity(512);
        json::write(&body, &mut text);
        let container = self.container()?;
        let left_out =
            |why: &str| tracing::warn!(id, index = container.definition.id, why, "an item is left out of the index");
        let Some(definition) = container.schema.key.as_ref().filter(|definition| key.check_size(definition).is_ok())
        else {
            left_out("its partition key is too long");
            return Ok(());
        };
        let target = ItemKey::new(Some(definition), key, id);
        let draft = Draft { target, id: id.to_owned(), body, text, indexed: container.schema.automatic };
        let (draft, ts_s) = (&draft, self.now_s());
        let written = self.at_home(&draft.target, |container, partition| async move {
            partition.write(&container.schema, Verb::Upsert, draft, &Precondition::None, ts_s).await
        });
        match written.await {
            // Waiting for free space would wait for ever: the change that frees it comes after this one.
            Err(Error { kind: Kind::KeyFull | Kind::QuotaExceeded, .. }) => {
                left_out("its partition is full");
                self.delete(key, id).await
            }
            done => done,
        }
    }

    async fn delete(&self, key: &PartitionKey, id: &str) -> Result<()> {
        let target = &ItemKey::new(self.container()?.schema.key.as_ref(), key, id);
        let ts_s = self.now_s();
        let gone = self.at_home(target, |container, partition| async move {
            partition.delete(&container.schema, target, &Precondition::None, ts_s).await
        });
        match gone.await {
            Err(Error { kind: Kind::NotFound, .. }) => Ok(()),
            done => done,
        }
    }

    /// Retries a write when the index container changes meanwhile, as `write_retry` does for clients.
    async fn at_home<T, F: Future<Output = Result<T, Rejected>>>(
        &self,
        target: &ItemKey,
        write: impl Fn(Arc<Container>, Arc<Partition>) -> F,
    ) -> Result<()> {
        for _ in 0..CONTAINER_CHANGES_MAX {
            let container = self.container()?;
            let partition = home(&container, &target.logical)?.clone();
            match write(container, partition.clone()).await {
                Err(Rejected { error: Error { kind: Kind::Outdated, .. }, .. }) => self.catalog.settled().await,
                Err(Rejected { error, .. }) => return Err(error),
                Ok(_) if partition.hear_growth() => {
                    self.catalog.consider(self.index);
                    return Ok(());
                }
                Ok(_) => return Ok(()),
            }
        }
        Err(Error::new(Kind::Outdated, "the index is changing all the time"))
    }
}

/// The id of a source item in the index. Its `_rid` cannot be used: it changes in a copy of the database, where the
/// items that were built before must be found again.
fn id_of(docnum: u64) -> String {
    format!("{docnum:016x}")
}

/// Runs all futures to completion; returns the first failure.
async fn all<F: Future<Output = Result<()>>>(work: Vec<F>) -> Result<()> {
    let mut under_way: Vec<Pin<Box<F>>> = work.into_iter().map(Box::pin).collect();
    let mut result = Ok(());
    std::future::poll_fn(|cx| {
        under_way.retain_mut(|one| match one.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(done) => {
                if result.is_ok() {
                    result = done;
                }
                false
            }
        });
        if under_way.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    result
}

#[cfg(test)]
mod tests;
