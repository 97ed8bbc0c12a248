//! Rows of an earlier moment, made fit to follow what clients have seen since.
//!
//! Promise: what the rows say of databases, containers and items is as it was. What is only good once goes on from where it
//! was: `_rid`s, LSNs, item numbers, ids of partition key ranges. So a session token or a place in the change feed is
//! never ahead of the account, and an etag or `_rid` that somebody holds never names something else.

use std::collections::HashMap;

use pleiad_partition::state::ShardState;
use pleiad_storage::Durability;

use super::*;

/// What clients may have seen of an account.
pub struct Seen {
    pub counters: Counters,
    pub containers: HashMap<ContainerRid, SeenContainer>,
}

/// And of a container in it.
pub struct SeenContainer {
    pub map: PartitionMap,
    pub lsn: u64,
    pub item: u64,
}

/// The new ids of ranges, where they have some.
type Renamed = HashMap<ContainerRid, Vec<(u32, u32)>>;

pub async fn carry_over(store: &AnyStore, seen: &Seen) -> Result<()> {
    let mut batch = Batch::default();
    let counters = load_counters(store).await?.ok_or_else(|| Error::corrupt("account without counters"))?;
    counters.beyond(&seen.counters).put(&mut batch);
    let mut renamed = Renamed::new();
    for (key, row) in scan(store, CONTAINER).await? {
        let rid = container_rid(&key)?;
        let row = json::parse(&row)?;
        let map = PartitionMap::from_value(row.get("map").ok_or_else(|| Error::corrupt("container row"))?)?;
        let known = seen.containers.get(&rid);
        let (lsn, item) = known.map_or((seen.counters.gone_lsn, seen.counters.gone_item), |at| (at.lsn, at.item));
        for range in map.ranges() {
            carry_state(store, &mut batch, range.shard, lsn, item).await?;
        }
        if let (Some(known), Value::Object(mut row)) = (known, row) {
            let again = map.again(&known.map);
            row.set("map", again.to_value());
            put(&mut batch, CONTAINER, &pair(rid.database.0, rid.number), row);
            renamed.insert(rid, ids(&map).zip(ids(&again)).collect());
        }
    }
    carry_jobs(store, &mut batch, &renamed).await?;
    carry_offers(store, &mut batch, &renamed).await?;
    store.commit(&batch, Durability::Synced).await
}

fn ids(map: &PartitionMap) -> impl Iterator<Item = u32> {
    map.ranges().iter().map(|range| range.id)
}

fn container_rid(key: &[u8]) -> Result<ContainerRid> {
    let both = u64::from_be_bytes(*tail(key)?);
    Ok(ContainerRid { database: DatabaseRid((both >> 32) as u32), number: both as u32 })
}

async fn carry_state(store: &AnyStore, batch: &mut Batch, shard: u64, lsn: u64, item: u64) -> Result<()> {
    let row = store.get(&keyspace::state(shard)).await?;
    let state = row.as_deref().map(ShardState::decode).transpose()?.unwrap_or_default();
    let carried = ShardState { lsn: state.lsn.max(lsn), next_item: state.next_item.max(item), ..state.clone() };
    if carried != state {
        batch.put(keyspace::state(shard), carried.encode());
    }
    Ok(())
}

/// A split or merge that was under way goes on, with the partitions as they are called now.
async fn carry_jobs(store: &AnyStore, batch: &mut Batch, renamed: &Renamed) -> Result<()> {
    let mut next: HashMap<ContainerRid, u32> = HashMap::new();
    for (key, row) in scan(store, JOB).await? {
        let mut job = Job::from_value(u64::from_be_bytes(*tail(&key)?), &json::parse(&row)?)?;
        let Some(names) = renamed.get(&job.container) else { continue };
        let next = next.entry(job.container).or_insert_with(|| names.iter().map(|(_, new)| new + 1).max().unwrap_or(0));
        if names.iter().all(|(old, new)| old == new) {
            continue;
        }
        job.parents = job.parents.iter().map(|id| renewed(names, *id)).collect();
        for child in &mut job.children {
            child.parents.extend(&job.parents);
            (child.id, child.prefix, *next) = (*next, *next, *next + 1);
        }
        put_job(batch, &job);
    }
    Ok(())
}

/// Throughput that was divided by hand stays with its partitions.
async fn carry_offers(store: &AnyStore, batch: &mut Batch, renamed: &Renamed) -> Result<()> {
    for (key, row) in scan(store, OFFER).await? {
        let mut offer = load_offer(OfferRid(u32::from_be_bytes(*tail(&key)?)), &json::parse(&row)?)?;
        let OfferOwner::Container(rid) = offer.owner else { continue };
        let Some(names) = renamed.get(&rid).filter(|_| !offer.redistribution.0.is_empty()) else { continue };
        let shares = offer.redistribution.0.iter().map(|(id, ru)| (renewed(names, *id), *ru));
        offer.redistribution = Redistribution(shares.collect());
        put_offer(batch, &offer);
    }
    Ok(())
}

fn renewed(names: &[(u32, u32)], id: u32) -> u32 {
    names.iter().find(|(old, _)| *old == id).map_or(id, |(_, new)| *new)
}
