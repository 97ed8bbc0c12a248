//! Rows of an earlier moment, made fit to follow what clients have seen since.
//!
//! Promise: what the rows say of databases, containers and items is as it was. What is only good once goes on from where it
//! was: `_rid`s, LSNs, item numbers, ids of partition key ranges. So a session token or a place in the change feed is
//! never ahead of the account, and an etag or `_rid` that somebody holds never names something else.

use std::collections::HashMap;

use pleiad_model::partition_map::{PartitionKeyRange, ancestry};
use pleiad_partition::shard_state::ShardState;
use pleiad_storage::Durability;

use super::*;

/// What clients may have seen of an account.
pub struct HighWaterMarks {
    pub counters: Counters,
    pub containers: HashMap<ContainerRid, ContainerMarks>,
}

/// And of a container in it.
pub struct ContainerMarks {
    pub map: PartitionMap,
    pub came: HighWaterMark,
}

/// How far a container has come, or the furthest of some.
#[derive(Clone, Copy, Debug, Default)]
pub struct HighWaterMark {
    pub lsn: u64,
    pub item: u64,
    /// The first partition key range id that was not given.
    pub range: u32,
    /// Of the partition map.
    pub epoch: u64,
}

impl HighWaterMark {
    pub fn of(container: &Container) -> HighWaterMark {
        let states = || container.partitions.iter().map(|partition| partition.usage());
        HighWaterMark {
            lsn: states().map(|state| state.lsn).max().unwrap_or(0),
            item: states().map(|state| state.next_item).max().unwrap_or(0),
            range: container.map.next_id(),
            epoch: container.map.epoch,
        }
    }

    pub fn or_further(self, other: HighWaterMark) -> HighWaterMark {
        HighWaterMark {
            lsn: self.lsn.max(other.lsn),
            item: self.item.max(other.item),
            range: self.range.max(other.range),
            epoch: self.epoch.max(other.epoch),
        }
    }
}

/// Ranges as they are now, beside the ids they had.
type RaisedMarks = HashMap<ContainerRid, Vec<(u32, PartitionKeyRange)>>;

pub async fn carry_over(store: &AnyStore, seen: &HighWaterMarks) -> Result<()> {
    let mut batch = Batch::default();
    let counters = load_counters(store).await?.ok_or_else(|| Error::corrupt("account without counters"))?;
    let mut counters = counters.beyond(&seen.counters);
    let renewed = carry_containers(store, &mut batch, seen, counters.gone).await?;
    // What the snapshot knows nothing of is gone as well, and may be in the next one that is restored.
    let gone = seen.containers.iter().filter(|(rid, _)| !renewed.contains_key(rid));
    counters.gone = gone.fold(counters.gone, |furthest, (_, container)| furthest.or_further(container.came));
    counters.put(&mut batch);
    carry_jobs(store, &mut batch, &renewed).await?;
    carry_offers(store, &mut batch, &renewed).await?;
    store.commit(&batch, Durability::Synced).await
}

/// `gone` is how far a container may have come that was not there any more.
async fn carry_containers(
    store: &AnyStore,
    batch: &mut Batch,
    seen: &HighWaterMarks,
    gone: HighWaterMark,
) -> Result<RaisedMarks> {
    let mut renewed = RaisedMarks::new();
    for (key, row) in scan(store, CONTAINER).await? {
        let rid = container_rid(&key)?;
        let Value::Object(mut row) = json::parse(&row)? else { return Err(Error::corrupt("container row")) };
        let map = PartitionMap::from_value(row.get("map").ok_or_else(|| Error::corrupt("container row"))?)?;
        let (again, came) = match seen.containers.get(&rid) {
            Some(known) => (map.again(&known.map), known.came),
            None => (map.after_all(gone.epoch, gone.range), gone),
        };
        for range in map.ranges() {
            carry_state(store, batch, range.shard, came).await?;
        }
        row.set("map", again.to_value());
        put(batch, CONTAINER, &pair(rid.database.0, rid.number), row);
        let were = map.ranges().iter().map(|range| range.id);
        renewed.insert(rid, were.zip(again.ranges().iter().cloned()).collect());
    }
    Ok(renewed)
}

fn container_rid(key: &[u8]) -> Result<ContainerRid> {
    let both = u64::from_be_bytes(*tail(key)?);
    Ok(ContainerRid { database: DatabaseRid((both >> 32) as u32), number: both as u32 })
}

async fn carry_state(store: &AnyStore, batch: &mut Batch, shard: u64, came: HighWaterMark) -> Result<()> {
    let row = store.get(&keyspace::state(shard)).await?;
    let state = row.as_deref().map(ShardState::decode).transpose()?.unwrap_or_default();
    let carried =
        ShardState { lsn: state.lsn.max(came.lsn), next_item: state.next_item.max(came.item), ..state.clone() };
    if carried != state {
        batch.put(keyspace::state(shard), carried.encode());
    }
    Ok(())
}

/// A split or merge that was under way goes on, with the partitions as they are called now.
async fn carry_jobs(store: &AnyStore, batch: &mut Batch, renewed: &RaisedMarks) -> Result<()> {
    let mut next: HashMap<ContainerRid, u32> = HashMap::new();
    for (key, row) in scan(store, JOB).await? {
        let mut job = RepartitionJob::from_value(u64::from_be_bytes(*tail(&key)?), &json::parse(&row)?)?;
        let Some(ranges) = renewed.get(&job.container) else { continue };
        let next =
            next.entry(job.container).or_insert_with(|| ranges.iter().map(|(_, now)| now.id + 1).max().unwrap_or(0));
        if ranges.iter().all(|(id, now)| *id == now.id) {
            continue;
        }
        let parents: Vec<&PartitionKeyRange> = job.parents.iter().filter_map(|id| now(ranges, *id)).collect();
        // A client that holds none of the restored ranges, but what they replaced, finds the children too.
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

/// Throughput that was divided by hand stays with its partitions.
async fn carry_offers(store: &AnyStore, batch: &mut Batch, renewed: &RaisedMarks) -> Result<()> {
    for (key, row) in scan(store, OFFER).await? {
        let mut offer = load_offer(OfferRid(u32::from_be_bytes(*tail(&key)?)), &json::parse(&row)?)?;
        let OfferOwner::Container(rid) = offer.owner else { continue };
        let Some(ranges) = renewed.get(&rid).filter(|_| !offer.redistribution.0.is_empty()) else { continue };
        let shares =
            offer.redistribution.0.iter().map(|(id, ru)| (now(ranges, *id).map_or(*id, |range| range.id), *ru));
        offer.redistribution = Redistribution(shares.collect());
        put_offer(batch, &offer);
    }
    Ok(())
}

fn now(ranges: &[(u32, PartitionKeyRange)], id: u32) -> Option<&PartitionKeyRange> {
    ranges.iter().find(|(was, _)| *was == id).map(|(_, now)| now)
}
