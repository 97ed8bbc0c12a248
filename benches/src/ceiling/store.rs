//! The bare store: the rows of creates, built in advance and committed durably in groups, without HTTP and partitions.
//!
//! Guarantees: the rows are those that the partition writes for the same items (its own code builds them); each
//! transaction waits until it is on disk; the ceiling is the faster of two methods of group commit, Pleiad's committer
//! and the storage engine's own grouping of threads that commit at the same time.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use pleiad_model::partition_key::PartitionKey;
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::{Value, json};
use pleiad_partition::commit::{CommitEntry, Committer, SyncPolicy, block_on};
use pleiad_partition::key::KeyStats;
use pleiad_partition::record::{Contents, FieldOffsets};
use pleiad_partition::row_changes::{NewVersion, RowChanges};
use pleiad_partition::shard_state::ShardState;
use pleiad_partition::{ItemKey, Record, Schema, SizeLimits};
use pleiad_storage::{AnyStore, Batch, Durability, RocksOptions, RocksStore, Store, keyspace};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::load::LoadOutcome;
use crate::{Result, item};

const SHARD: u64 = 1;

/// What groups the waiting transactions into commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitGrouping {
    Committer,
    Engine,
}

pub struct BareStore {
    store: Arc<AnyStore>,
    committer: Committer,
    builder: CreateBuilder,
    next: u64,
    _data: TempDir,
}

impl BareStore {
    pub fn open() -> Result<BareStore> {
        let data = tempfile::tempdir().map_err(|e| format!("no directory for the data: {e}"))?;
        // The same options as `pleiad serve`.
        let options = RocksOptions { block_cache_bytes: 512 << 20, ..Default::default() };
        let store = RocksStore::open(data.path(), options).map_err(|e| e.to_string())?;
        let store = Arc::new(AnyStore::Embedded(store));
        let committer = Committer::start(store.clone(), SyncPolicy::Synced).map_err(|e| e.to_string())?;
        Ok(BareStore { store, committer, builder: CreateBuilder::new()?, next: 0, _data: data })
    }

    /// Builds `max_batches` transactions, an equal share for each thread.
    pub fn prepare(&mut self, threads: usize, grouping: CommitGrouping, max_batches: usize) -> Result<StoreRound> {
        let shares = self.shares(threads, max_batches / threads)?;
        let worker = StoreWorker { store: self.store.clone(), committer: self.committer.clone(), grouping };
        Ok(StoreRound { shares, worker })
    }

    fn shares(&mut self, threads: usize, each: usize) -> Result<Vec<Vec<Batch>>> {
        let mut share = || {
            let first = self.next;
            self.next += each as u64;
            (first..self.next).map(|n| self.builder.create(n)).collect::<Result<Vec<_>>>()
        };
        (0..threads).map(|_| share()).collect()
    }
}

/// Transactions that are ready to be committed.
pub struct StoreRound {
    shares: Vec<Vec<Batch>>,
    worker: StoreWorker,
}

impl StoreRound {
    /// Commits each share on its own thread, until `limit` has elapsed or the share is used up.
    pub fn run(self, limit: Duration) -> Result<LoadOutcome> {
        let barrier = Arc::new(Barrier::new(self.shares.len()));
        let start = |share| {
            let (worker, barrier) = (self.worker.clone(), barrier.clone());
            std::thread::spawn(move || {
                barrier.wait();
                let start = Instant::now();
                worker.run_share(share, limit).map(|latencies| (start.elapsed(), latencies))
            })
        };
        join_workers(self.shares.into_iter().map(start).collect())
    }
}

type WorkerHandle = std::thread::JoinHandle<Result<(Duration, Vec<Duration>)>>;

fn join_workers(workers: Vec<WorkerHandle>) -> Result<LoadOutcome> {
    let (mut elapsed, mut latencies) = (Duration::ZERO, Vec::new());
    for worker in workers {
        let (took, worker_latencies) = worker.join().map_err(|_| "a committing thread panicked")??;
        elapsed = elapsed.max(took);
        latencies.extend(worker_latencies);
    }
    latencies.sort_unstable();
    Ok(LoadOutcome { elapsed, latencies })
}

#[derive(Clone)]
struct StoreWorker {
    store: Arc<AnyStore>,
    committer: Committer,
    grouping: CommitGrouping,
}

impl StoreWorker {
    fn run_share(&self, share: Vec<Batch>, limit: Duration) -> Result<Vec<Duration>> {
        let start = Instant::now();
        let mut latencies = Vec::with_capacity(share.len());
        for batch in share {
            if start.elapsed() >= limit {
                break;
            }
            let started = Instant::now();
            self.commit(batch)?;
            latencies.push(started.elapsed());
        }
        Ok(latencies)
    }

    fn commit(&self, mut batch: Batch) -> Result {
        let state = (keyspace::state(SHARD), ShardState::default().encode());
        let committed = match self.grouping {
            CommitGrouping::Committer => {
                let (done, committed) = oneshot::channel();
                self.committer
                    .enqueue(CommitEntry { batch, state: Some(state), owner: None, done })
                    .map_err(|e| e.to_string())?;
                block_on(committed).map_err(|e| e.to_string())?
            }
            CommitGrouping::Engine => {
                batch.put(&state.0, &state.1);
                block_on(self.store.commit(&batch, Durability::Synced))
            }
        };
        committed.map_err(|e| e.to_string())
    }
}

/// Builds the rows that `Partition` writes for a create.
struct CreateBuilder {
    schema: Schema,
}

impl CreateBuilder {
    fn new() -> Result<CreateBuilder> {
        let definition = r#"{"id":"items","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
        let definition = json::parse(definition.as_bytes()).map_err(|e| e.to_string())?;
        let definition = ContainerDefinition::create(&definition).map_err(|e| e.to_string())?;
        Ok(CreateBuilder { schema: Schema::new(1, &definition, &Default::default(), &[], SizeLimits::UNLIMITED) })
    }

    fn create(&self, n: u64) -> Result<Batch> {
        let mut body = String::new();
        item::write_body(n, &mut body);
        let value = json::parse(body.as_bytes()).map_err(|e| e.to_string())?;
        let key = self.key(&value, &item::id(n))?;
        let epk = &key.logical.epk;
        let (ts_s, indexed) = (1, true);
        let terms = self.schema.terms(&value, ts_s, indexed);
        let (fields, body) = (&FieldOffsets::of(body.as_bytes()), body.as_bytes());
        let contents = Contents {
            docnum: n + 1,
            ts_s,
            terms: terms.len() as u32,
            indexed,
            etag_source: None,
            epk,
            id: &key.id,
            fields,
            body,
        };
        let record = Record::encode(&contents, n + 1, 0).map_err(|e| e.to_string())?;
        let mut changes = RowChanges::default();
        changes.insert(SHARD, &NewVersion { key: &key, record: &record, terms: &terms, claims: &[] });
        let row = keyspace::key_stats(SHARD, epk.as_bytes(), &key.logical.hash());
        changes.put_key_stats(row, &KeyStats { items: 1, bytes: body.len() as u64 }, &key);
        Ok(changes.batch)
    }

    fn key(&self, item: &Value, id: &str) -> Result<ItemKey> {
        let definition = self.schema.key.as_ref().ok_or("a container without a key")?;
        Ok(ItemKey::new(Some(definition), &PartitionKey::extract(definition, item), id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_create_writes_five_rows_and_one_per_indexed_property() {
        let batch = CreateBuilder::new().unwrap().create(7).unwrap();
        assert_eq!(batch.op_count(), 5 + 12 + 1, "`_ts` is indexed too");
    }
}
