//! Static dispatch over the stores: the one that was chosen at start, as an enum.
//!
//! Guarantees: dispatch costs one `match` and nothing else; no boxed future, no virtual call.

use bytes::Bytes;
use pleiad_model::Result;

use crate::blocking::Blocking;
use crate::memory::{Memory, MemorySnapshot};
#[cfg(feature = "embedded")]
use crate::rocksdb::{RocksSnapshot, RocksStore};
use crate::store::{
    Batch, CheckpointInfo, Checkpoints, Chunk, Direction, Durability, Limit, Snapshot, Store, VisitPair, VisitValue,
};
#[cfg(any(test, feature = "testing"))]
use crate::testing::{Faulty, FaultySnapshot};
#[cfg(all(feature = "embedded", any(test, feature = "testing")))]
use crate::testing::{Mirror, MirrorSnapshot};

pub enum AnyStore {
    Memory(Memory),
    #[cfg(feature = "embedded")]
    Embedded(RocksStore),
    #[cfg(any(test, feature = "testing"))]
    Faulty(Faulty<Memory>),
    #[cfg(all(feature = "embedded", any(test, feature = "testing")))]
    Mirror(Mirror<Memory, RocksStore>),
}

pub enum AnySnapshot {
    Memory(MemorySnapshot),
    #[cfg(feature = "embedded")]
    Embedded(RocksSnapshot),
    #[cfg(any(test, feature = "testing"))]
    Faulty(FaultySnapshot<MemorySnapshot>),
    #[cfg(all(feature = "embedded", any(test, feature = "testing")))]
    Mirror(MirrorSnapshot<MemorySnapshot, RocksSnapshot>),
}

/// Evaluates the expression with the store or snapshot that the variant holds.
macro_rules! each {
    ($any:ident, $which:expr, $inner:ident => $do:expr) => {
        match $which {
            $any::Memory($inner) => $do,
            #[cfg(feature = "embedded")]
            $any::Embedded($inner) => $do,
            #[cfg(any(test, feature = "testing"))]
            $any::Faulty($inner) => $do,
            #[cfg(all(feature = "embedded", any(test, feature = "testing")))]
            $any::Mirror($inner) => $do,
        }
    };
}

impl AnyStore {
    /// Whether the store was opened without writes that were acknowledged, and the numbers that clients may have seen
    /// in them are still to be skipped.
    pub fn has_unsettled_loss(&self) -> bool {
        match self {
            #[cfg(feature = "embedded")]
            AnyStore::Embedded(store) => store.has_unsettled_loss(),
            _ => false,
        }
    }

    /// The numbers were skipped, durably.
    pub fn settle_loss(&self) -> Result<()> {
        match self {
            #[cfg(feature = "embedded")]
            AnyStore::Embedded(store) => store.settle_loss(),
            _ => Ok(()),
        }
    }
}

impl Store for AnyStore {
    type Snapshot = AnySnapshot;

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        each!(AnyStore, self, store => store.get(key).await)
    }

    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        each!(AnyStore, self, store => store.get_many(keys).await)
    }

    async fn snapshot(&self, blocking: Blocking) -> Result<AnySnapshot> {
        Ok(match self {
            AnyStore::Memory(store) => AnySnapshot::Memory(store.snapshot(blocking).await?),
            #[cfg(feature = "embedded")]
            AnyStore::Embedded(store) => AnySnapshot::Embedded(store.snapshot(blocking).await?),
            #[cfg(any(test, feature = "testing"))]
            AnyStore::Faulty(store) => AnySnapshot::Faulty(store.snapshot(blocking).await?),
            #[cfg(all(feature = "embedded", any(test, feature = "testing")))]
            AnyStore::Mirror(store) => AnySnapshot::Mirror(store.snapshot(blocking).await?),
        })
    }

    async fn commit(&self, batch: &Batch, durability: Durability) -> Result<()> {
        each!(AnyStore, self, store => store.commit(batch, durability).await)
    }

    async fn sync(&self) -> Result<()> {
        each!(AnyStore, self, store => store.sync().await)
    }

    async fn ingest(&self, rows: &Batch) -> Result<()> {
        each!(AnyStore, self, store => store.ingest(rows).await)
    }

    async fn drop_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        each!(AnyStore, self, store => store.drop_range(from, to).await)
    }

    async fn size_bytes(&self, from: &[u8], to: &[u8], blocking: Blocking) -> Result<u64> {
        each!(AnyStore, self, store => store.size_bytes(from, to, blocking).await)
    }
}

impl Checkpoints for AnyStore {
    async fn create_checkpoint(&self, name: &str, taken_ms: u64) -> Result<CheckpointInfo> {
        each!(AnyStore, self, store => store.create_checkpoint(name, taken_ms).await)
    }

    async fn list_checkpoints(&self) -> Result<Vec<CheckpointInfo>> {
        each!(AnyStore, self, store => store.list_checkpoints().await)
    }

    async fn delete_checkpoint(&self, name: &str) -> Result<bool> {
        each!(AnyStore, self, store => store.delete_checkpoint(name).await)
    }

    async fn open_checkpoint(&self, name: &str) -> Result<Option<AnyStore>> {
        Ok(match self {
            AnyStore::Memory(store) => store.open_checkpoint(name).await?.map(AnyStore::Memory),
            #[cfg(feature = "embedded")]
            AnyStore::Embedded(store) => store.open_checkpoint(name).await?.map(AnyStore::Embedded),
            #[cfg(any(test, feature = "testing"))]
            AnyStore::Faulty(store) => store.open_checkpoint(name).await?.map(AnyStore::Faulty),
            #[cfg(all(feature = "embedded", any(test, feature = "testing")))]
            AnyStore::Mirror(store) => store.open_checkpoint(name).await?.map(AnyStore::Mirror),
        })
    }

    async fn open_copy(&self) -> Result<AnyStore> {
        Ok(match self {
            AnyStore::Memory(store) => AnyStore::Memory(store.open_copy().await?),
            #[cfg(feature = "embedded")]
            AnyStore::Embedded(store) => AnyStore::Embedded(store.open_copy().await?),
            #[cfg(any(test, feature = "testing"))]
            AnyStore::Faulty(store) => AnyStore::Faulty(store.open_copy().await?),
            #[cfg(all(feature = "embedded", any(test, feature = "testing")))]
            AnyStore::Mirror(store) => AnyStore::Mirror(store.open_copy().await?),
        })
    }

    async fn make_current(&self) -> Result<()> {
        each!(AnyStore, self, store => store.make_current().await)
    }

    fn retire(&self) {
        each!(AnyStore, self, store => store.retire());
    }
}

impl Snapshot for AnySnapshot {
    async fn get_many(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        each!(AnySnapshot, self, snapshot => snapshot.get_many(keys).await)
    }

    async fn visit_many(&self, keys: &[Bytes], visit: VisitValue<'_>) -> Result<bool> {
        each!(AnySnapshot, self, snapshot => snapshot.visit_many(keys, visit).await)
    }

    async fn scan(&self, from: &[u8], to: &[u8], direction: Direction, limit: Limit) -> Result<Chunk> {
        each!(AnySnapshot, self, snapshot => snapshot.scan(from, to, direction, limit).await)
    }

    async fn visit(&self, from: &[u8], to: &[u8], visit: VisitPair<'_>) -> Result<bool> {
        each!(AnySnapshot, self, snapshot => snapshot.visit(from, to, visit).await)
    }
}

impl From<Memory> for AnyStore {
    fn from(store: Memory) -> Self {
        AnyStore::Memory(store)
    }
}

#[cfg(feature = "embedded")]
impl From<RocksStore> for AnyStore {
    fn from(store: RocksStore) -> Self {
        AnyStore::Embedded(store)
    }
}
