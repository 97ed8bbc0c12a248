//! High-water marks: after a restore, raises counters above everything that clients have seen.
//!
//! Databases, containers and items are those of the snapshot. Numbers that are assigned once continue from where they
//! were before the restore: `_rid`s, LSNs, docnums, ids of partition key ranges.
//!
//! After a loss that an operator accepted, nothing tells how far the numbers were. They are raised by margins that no
//! lost part of the write-ahead log can exceed: the log holds what is in at most three write buffers, less than 64 MB.
//!
//! Invariant: a session token or a change feed position is never ahead of the account, and an etag or `_rid` that a
//! client holds never names something else.

use std::collections::{HashMap, HashSet};

use pleiad_model::partition_map::ancestry;
use pleiad_storage::Durability;

use super::*;

/// The highest numbers of an account that clients may have seen.
pub struct HighWaterMarks {
    pub counters: Counters,
    /// Per database: the highest LSN of the containers that were deleted from it.
    pub deleted_lsns: HashMap<DatabaseRid, u64>,
    pub containers: HashMap<ContainerRid, ContainerMarks>,
}

/// The same for one container.
pub struct ContainerMarks {
    pub map: PartitionMap,
    pub mark: HighWaterMark,
}

/// The counters of a container, or the maximum over several containers.
#[derive(Clone, Copy, Debug, Default)]
pub struct HighWaterMark {
    pub lsn: u64,
    /// The last docnum counter that was assigned.
    pub last_item: u64,
    /// The first partition key range id that is not assigned.
    pub next_range: u32,
    /// The epoch of the partition map.
    pub epoch: u64,
}

impl HighWaterMark {
    pub fn of(container: &Container) -> HighWaterMark {
        let states = || container.partitions.iter().map(|partition| partition.shard_state());
        HighWaterMark {
            lsn: states().map(|state| state.lsn).max().unwrap_or(0),
            last_item: states().map(|state| state.last_item).max().unwrap_or(0),
            next_range: container.map.next_id(),
            epoch: container.map.epoch,
        }
    }

    pub fn raised_to(self, other: HighWaterMark) -> HighWaterMark {
        HighWaterMark {
            lsn: self.lsn.max(other.lsn),
            last_item: self.last_item.max(other.last_item),
            next_range: self.next_range.max(other.next_range),
            epoch: self.epoch.max(other.epoch),
        }
    }
}

/// Per container: each range as it is now, with its id in the snapshot.
type RenumberedRanges = HashMap<ContainerRid, Vec<(u32, PartitionKeyRange)>>;

pub async fn raise_high_water_marks(store: &AnyStore, seen: &HighWaterMarks) -> Result<()> {
    let mut batch = Batch::default();
    let counters = load_counters(store).await?.ok_or_else(|| Error::corrupt("account without counters"))?;
    let mut counters = counters.raised_to(&seen.counters);
    let stored = scan(store, CONTAINER).await?;
    let restored = stored.iter().map(|(key, _)| container_rid(key)).collect::<Result<HashSet<_>>>()?;
    // Containers that are not in the snapshot are deleted by the restore, but a later restore may bring them back.
    let not_restored = seen.containers.iter().filter(|(rid, _)| !restored.contains(rid));
    counters.deleted = not_restored.fold(counters.deleted, |highest, (_, container)| highest.raised_to(container.mark));
    counters.put(&mut batch);
    raise_databases(store, &mut batch, seen, &restored, counters.deleted).await?;
    let new_ranges = raise_containers(store, &mut batch, seen, &stored, counters.deleted).await?;
    renumber_jobs(store, &mut batch, &new_ranges).await?;
    renumber_offers(store, &mut batch, &new_ranges).await?;
    store.commit(&batch, Durability::Synced).await
}

/// More than the records that fit into the log: a change of an item takes far more than 16 bytes there.
const LOST_CHANGES_MAX: u64 = 1 << 24;
/// A resource takes more than 128 bytes.
const LOST_RESOURCES_MAX: u32 = 1 << 19;
/// A split or merge takes several commits and a sync for each; 20 bits number the ranges of a container.
const LOST_RANGES_MAX: u32 = 1 << 10;

/// Raises all counters above what may have been assigned in lost writes.
pub async fn raise_after_loss(store: &AnyStore, env: &dyn Env) -> Result<()> {
    let counters = match load_counters(store).await? {
        Some(counters) => counters,
        // Even the account's first row is lost.
        None => {
            let (counters, mut batch) = (Counters::new(env), Batch::default());
            counters.put(&mut batch);
            store.commit(&batch, Durability::Synced).await?;
            counters
        }
    };
    let highest = highest_mark(store, counters.deleted).await?;
    let counters = counters.after_loss(HighWaterMark {
        lsn: highest.lsn + LOST_CHANGES_MAX,
        last_item: highest.last_item + LOST_CHANGES_MAX,
        next_range: highest.next_range + LOST_RANGES_MAX,
        epoch: highest.epoch + u64::from(LOST_RANGES_MAX),
    });
    raise_high_water_marks(
        store,
        &HighWaterMarks { counters, deleted_lsns: HashMap::new(), containers: HashMap::new() },
    )
    .await
}

/// The maximum over all containers, present and deleted.
async fn highest_mark(store: &AnyStore, deleted: HighWaterMark) -> Result<HighWaterMark> {
    let mut highest = deleted;
    for (_, row) in scan(store, CONTAINER).await? {
        let row = json::parse(&row)?;
        let map = PartitionMap::from_value(row.get("map").ok_or_else(|| Error::corrupt("container row"))?)?;
        let ids = HighWaterMark { next_range: map.next_id(), epoch: map.epoch, ..HighWaterMark::default() };
        highest = highest.raised_to(ids);
        for range in map.ranges() {
            let row = store.get(&keyspace::state(range.shard)).await?;
            let state = row.as_deref().map(ShardState::decode).transpose()?.unwrap_or_default();
            highest = highest.raised_to(HighWaterMark { lsn: state.lsn, last_item: state.last_item, ..ids });
        }
    }
    Ok(highest)
}

impl Counters {
    fn after_loss(&self, deleted: HighWaterMark) -> Counters {
        let more = u64::from(LOST_RESOURCES_MAX);
        Counters {
            version: self.version + LOST_CHANGES_MAX,
            database: self.database.saturating_add(LOST_RESOURCES_MAX),
            container: self.container.saturating_add(LOST_RESOURCES_MAX),
            encryption_key: self.encryption_key + more,
            offer: self.offer.saturating_add(LOST_RESOURCES_MAX),
            shard: self.shard + more,
            user: self.user.saturating_add(LOST_RESOURCES_MAX),
            permission: self.permission + more,
            deleted,
            secret: self.secret,
        }
    }
}

/// `deleted` bounds what clients have seen of a container that was deleted and comes back with the restore, or of another
/// one that had its name meanwhile.
async fn raise_containers(
    store: &AnyStore,
    batch: &mut Batch,
    seen: &HighWaterMarks,
    stored: &[(Bytes, Bytes)],
    deleted: HighWaterMark,
) -> Result<RenumberedRanges> {
    let mut new_ranges = RenumberedRanges::new();
    for (key, row) in stored {
        let rid = container_rid(key)?;
        let Value::Object(mut row) = json::parse(row)? else { return Err(Error::corrupt("container row")) };
        let map = PartitionMap::from_value(row.get("map").ok_or_else(|| Error::corrupt("container row"))?)?;
        let (raised, mark) = match seen.containers.get(&rid) {
            Some(known) => (map.restored_over(&known.map), known.mark),
            None => (map.restored_after_drop(deleted.epoch, deleted.next_range), deleted),
        };
        for range in map.ranges() {
            raise_shard_state(store, batch, range.shard, mark).await?;
        }
        row.set("map", raised.to_value());
        put(batch, CONTAINER, &pair(rid.database.0, rid.number), row);
        let old_ids = map.ranges().iter().map(|range| range.id);
        new_ranges.insert(rid, old_ids.zip(raised.ranges().iter().cloned()).collect());
    }
    Ok(new_ranges)
}

/// The restore deletes the containers that are not in the snapshot. `deleted` bounds what clients have seen of a database
/// that was deleted and comes back.
async fn raise_databases(
    store: &AnyStore,
    batch: &mut Batch,
    seen: &HighWaterMarks,
    restored: &HashSet<ContainerRid>,
    deleted: HighWaterMark,
) -> Result<()> {
    for (key, row) in scan(store, DATABASE).await? {
        let rid = DatabaseRid(u32::from_be_bytes(*tail(&key)?));
        let row = json::parse(&row)?;
        let known = deleted_lsn(&row)?;
        let dropped = seen.containers.iter().filter(|(of, _)| of.database == rid && !restored.contains(of));
        let dropped = dropped.map(|(_, container)| container.mark.lsn).max().unwrap_or(0);
        let raised = known.max(dropped).max(seen.deleted_lsns.get(&rid).copied().unwrap_or(deleted.lsn));
        let Value::Object(mut row) = row else { return Err(Error::corrupt("database row")) };
        if raised > known {
            row.set(DELETED_LSN, raised);
            put(batch, DATABASE, &rid.0.to_be_bytes(), row);
        }
    }
    Ok(())
}

fn container_rid(key: &[u8]) -> Result<ContainerRid> {
    let both = u64::from_be_bytes(*tail(key)?);
    Ok(ContainerRid { database: DatabaseRid((both >> 32) as u32), number: both as u32 })
}

async fn raise_shard_state(store: &AnyStore, batch: &mut Batch, shard: u64, mark: HighWaterMark) -> Result<()> {
    let row = store.get(&keyspace::state(shard)).await?;
    let state = row.as_deref().map(ShardState::decode).transpose()?.unwrap_or_default();
    let raised =
        ShardState { lsn: state.lsn.max(mark.lsn), last_item: state.last_item.max(mark.last_item), ..state.clone() };
    if raised != state {
        batch.put(keyspace::state(shard), raised.encode());
    }
    Ok(())
}

/// A split or merge that was in progress continues, with the new ids of its partitions.
async fn renumber_jobs(store: &AnyStore, batch: &mut Batch, new_ranges: &RenumberedRanges) -> Result<()> {
    let mut next: HashMap<ContainerRid, u32> = HashMap::new();
    for (key, row) in scan(store, JOB).await? {
        let mut job = RepartitionJob::from_value(u64::from_be_bytes(*tail(&key)?), &json::parse(&row)?)?;
        let Some(ranges) = new_ranges.get(&job.container) else { continue };
        let next =
            next.entry(job.container).or_insert_with(|| ranges.iter().map(|(_, now)| now.id + 1).max().unwrap_or(0));
        if ranges.iter().all(|(id, now)| *id == now.id) {
            continue;
        }
        let parents: Vec<&PartitionKeyRange> = job.parents.iter().filter_map(|id| renumbered(ranges, *id)).collect();
        // A client that holds only predecessors of the restored ranges must find the children, too.
        let ancestors = ancestry(&parents);
        job.parents = parents.iter().map(|range| range.id).collect();
        for child in &mut job.children {
            child.parents.clone_from(&ancestors);
            (child.id, child.prefix, *next) = (*next, *next, *next + 1);
        }
        put_job(batch, &job);
    }
    Ok(())
}

/// Redistributed throughput stays with its partitions.
async fn renumber_offers(store: &AnyStore, batch: &mut Batch, new_ranges: &RenumberedRanges) -> Result<()> {
    for (key, row) in scan(store, OFFER).await? {
        let mut offer = load_offer(OfferRid(u32::from_be_bytes(*tail(&key)?)), &json::parse(&row)?)?;
        let OfferOwner::Container(rid) = offer.owner else { continue };
        let Some(ranges) = new_ranges.get(&rid).filter(|_| !offer.redistribution.0.is_empty()) else { continue };
        let shares =
            offer.redistribution.0.iter().map(|(id, ru)| (renumbered(ranges, *id).map_or(*id, |range| range.id), *ru));
        offer.redistribution = Redistribution(shares.collect());
        put_offer(batch, &offer);
    }
    Ok(())
}

fn renumbered(ranges: &[(u32, PartitionKeyRange)], id: u32) -> Option<&PartitionKeyRange> {
    ranges.iter().find(|(was, _)| *was == id).map(|(_, now)| now)
}
