//! Partition map: the partition that owns each range of the hash space.
//!
//! Invariant: the ranges cover `["", "FF")` without gap or overlap, so that every effective key has exactly one owner,
//! and ids and prefixes are never reused. The keys of a range stay known long after it was split or merged. Arithmetic
//! only; `partition::copy` moves the rows.
//!
//! ```text
//! epoch 4   [00 ───────────────── FF)  p0
//! epoch 5   [00 ──── 7F)[7F ───── FF)  p1 p2     p0 is now a parent
//! ```

use crate::partition_key::{EffectiveKey, EpkRange};
use crate::{Error, Object, Result, Value};

/// One physical partition in the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKeyRange {
    /// The partition key range id that clients see.
    pub id: u32,
    /// The shard with its rows; a range can outlive it.
    pub shard: u64,
    /// Upper bits of the docnums written here; larger for every new shard of a container.
    pub prefix: u32,
    pub keys: EpkRange,
    /// The ids of the latest ancestors, so that a client that missed some splits or merges finds its ranges again.
    pub parents: Vec<u32>,
    /// The map's epoch when this range appeared.
    pub since: u64,
}

/// Former ranges that stay known: as many as a client may have missed since it last read the map.
const FORMER_MAX: usize = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMap {
    pub epoch: u64,
    ranges: Vec<PartitionKeyRange>,
    /// The ids and keys of former ranges, the latest last.
    former: Vec<(u32, EpkRange)>,
}

impl PartitionMap {
    /// Takes ranges in any order; they must cover the hash space.
    pub fn new(epoch: u64, mut ranges: Vec<PartitionKeyRange>) -> Result<Self> {
        ranges.sort_by(|a, b| a.keys.min.cmp(&b.keys.min));
        let starts = ranges.iter().map(|range| &range.keys.min).chain([&EffectiveKey::MAX]);
        let ends = [&EffectiveKey::MIN].into_iter().chain(ranges.iter().map(|range| &range.keys.max));
        if ranges.is_empty() || !starts.eq(ends) {
            return Err(Error::corrupt("partition map with a gap or an overlap"));
        }
        Ok(PartitionMap { epoch, ranges, former: Vec::new() })
    }

    pub fn ranges(&self) -> &[PartitionKeyRange] {
        &self.ranges
    }

    /// The position of the range that owns a key.
    pub fn locate(&self, key: &EffectiveKey) -> usize {
        // The first range starts at the least key, so at least one starts at or before this one.
        self.ranges.partition_point(|range| range.keys.min <= *key).saturating_sub(1)
    }

    /// The positions of all ranges that overlap an EPK range.
    pub fn overlapping(&self, keys: &EpkRange) -> std::ops::Range<usize> {
        let first = self.locate(&keys.min);
        let end = self.ranges.partition_point(|range| range.keys.min < keys.max);
        first..end.max(first)
    }

    pub fn by_id(&self, id: u32) -> Option<usize> {
        self.ranges.iter().position(|range| range.id == id)
    }

    /// The keys of a range, or of a former range before it was split or merged.
    pub fn keys_of(&self, id: u32) -> Option<&EpkRange> {
        let current = self.ranges.iter().map(|range| (range.id, &range.keys));
        let former = self.former.iter().map(|(id, keys)| (*id, keys));
        current.chain(former).find(|(known, _)| *known == id).map(|(_, keys)| keys)
    }

    /// The first id that no range of this map has or had.
    pub fn next_id(&self) -> u32 {
        let known = self.ranges.iter().flat_map(|range| range.parents.iter().chain([&range.id]));
        known.max().map_or(0, |id| id + 1)
    }

    /// Adjacent ranges by their ids, in the order of the hash space.
    pub fn neighbors(&self, ids: &[u32]) -> Result<Vec<&PartitionKeyRange>> {
        let found: Vec<&PartitionKeyRange> = self.ranges.iter().filter(|range| ids.contains(&range.id)).collect();
        let are_neighbors = found.windows(2).all(|pair| pair[0].keys.max == pair[1].keys.min);
        match found.len() == ids.len() && are_neighbors {
            true => Ok(found),
            false => Err(Error::invalid("Only partition key ranges that exist and lie side by side can be merged.")),
        }
    }

    /// The map of the next epoch, with some ranges replaced by others.
    pub fn replaced(&self, removed: &[u32], added: &[PartitionKeyRange]) -> Result<PartitionMap> {
        let epoch = self.epoch + 1;
        let remaining = self.ranges.iter().filter(|range| !removed.contains(&range.id)).cloned();
        let added = added.iter().map(|range| PartitionKeyRange { since: epoch, ..range.clone() });
        let next = PartitionMap::new(epoch, remaining.chain(added).collect())?;
        let removed_ranges = self.ranges.iter().filter(|range| removed.contains(&range.id));
        let mut former = self.former.clone();
        former.extend(removed_ranges.map(|range| (range.id, range.keys.clone())));
        former.drain(..former.len().saturating_sub(FORMER_MAX));
        Ok(PartitionMap { former, ..next })
    }

    /// This map after a restore of the account to an earlier state; `current` is the map before the restore.
    /// Clients recognise a map by its epoch. If they may know another one, the ranges get unused ids and become
    /// children of all current ranges that they overlap, so that clients find them as they find the ranges of a split
    /// or merge.
    pub fn restored_over(&self, current: &PartitionMap) -> PartitionMap {
        if self.epoch == current.epoch {
            return self.clone();
        }
        let parents = |range: &PartitionKeyRange| {
            let replaced = current.ranges.iter().filter(|other| other.keys.intersect(&range.keys).is_some());
            ancestry(&replaced.chain([range]).collect::<Vec<_>>())
        };
        let renumbered = self.renumbered(current.epoch, current.next_id(), parents);
        let newer = current.as_former();
        let mut former = renumbered.former;
        former.retain(|(id, _)| newer.iter().all(|(known, _)| known != id));
        former.extend(newer);
        former.drain(..former.len().saturating_sub(FORMER_MAX));
        PartitionMap { former, ..renumbered }
    }

    /// This map after a restore of a container that had been deleted. Of the maps that clients may know since then,
    /// only the last epoch and the next id are known. So every lower id counts as a parent: a client that knows one
    /// finds all of its children.
    pub fn restored_after_drop(&self, epoch: u64, next_id: u32) -> PartitionMap {
        if self.epoch >= epoch {
            return self.clone();
        }
        let first = self.next_id().max(next_id);
        self.renumbered(epoch, next_id, |_| newest((0..first).collect()))
    }

    /// The same ranges with ids and an epoch that neither this map has used nor one that had reached `epoch` and
    /// `next_id`.
    fn renumbered(&self, epoch: u64, next_id: u32, parents: impl Fn(&PartitionKeyRange) -> Vec<u32>) -> PartitionMap {
        let epoch = self.epoch.max(epoch) + 1;
        let ids = self.next_id().max(next_id)..;
        let renumber = |(range, id): (&PartitionKeyRange, u32)| PartitionKeyRange {
            id,
            parents: parents(range),
            since: epoch,
            ..range.clone()
        };
        let ranges = self.ranges.iter().zip(ids).map(renumber).collect();
        PartitionMap { epoch, ranges, former: self.as_former() }
    }

    /// The former ranges if all ranges of this map are replaced.
    fn as_former(&self) -> Vec<(u32, EpkRange)> {
        let current = self.ranges.iter().map(|range| (range.id, range.keys.clone()));
        self.former.iter().cloned().chain(current).collect()
    }

    /// The same ranges in other shards.
    pub fn in_shards(&self, mut next: impl FnMut() -> u64) -> PartitionMap {
        let ranges = self.ranges.iter().map(|range| PartitionKeyRange { shard: next(), ..range.clone() }).collect();
        PartitionMap { ranges, ..self.clone() }
    }

    pub fn to_value(&self) -> Value {
        let ranges = self.ranges.iter().map(range_to_value).collect::<Vec<_>>();
        let former = self.former.iter().map(|(id, keys)| keys_to_object(*id, keys).into()).collect::<Vec<Value>>();
        Object::new().with("epoch", self.epoch).with("ranges", ranges).with("former", former).into()
    }

    pub fn from_value(value: &Value) -> Result<Self> {
        let ranges = value.get("ranges").and_then(Value::as_array).ok_or_else(|| Error::corrupt("partition map"))?;
        // Maps that were written before splits existed have no such member.
        let former = value.get("former").and_then(Value::as_array).unwrap_or_default();
        let map =
            PartitionMap::new(number(value, "epoch")?, ranges.iter().map(range_from_value).collect::<Result<_>>()?)?;
        let former = former.iter().map(|entry| Ok((number_u32(entry, "id")?, keys_from_value(entry)?)));
        Ok(PartitionMap { former: former.collect::<Result<_>>()?, ..map })
    }
}

/// The ids under which clients may know the contents of these ranges.
pub fn ancestry(ranges: &[&PartitionKeyRange]) -> Vec<u32> {
    let mut ids: Vec<u32> = ranges.iter().flat_map(|range| range.parents.iter().copied().chain([range.id])).collect();
    ids.sort_unstable();
    ids.dedup();
    newest(ids)
}

/// The latest of these ascending ids, which clients can still have; otherwise every response would list all ancestors.
fn newest(mut ids: Vec<u32>) -> Vec<u32> {
    ids.drain(..ids.len().saturating_sub(FORMER_MAX));
    ids
}

pub fn range_to_value(range: &PartitionKeyRange) -> Value {
    let parents = range.parents.iter().map(|&id| Value::from(u64::from(id))).collect::<Vec<_>>();
    keys_to_object(range.id, &range.keys)
        .with("shard", range.shard)
        .with("prefix", u64::from(range.prefix))
        .with("parents", parents)
        .with("since", range.since)
        .into()
}

fn keys_to_object(id: u32, keys: &EpkRange) -> Object {
    Object::new().with("id", u64::from(id)).with("min", keys.min.to_string()).with("max", keys.max.to_string())
}

fn keys_from_value(value: &Value) -> Result<EpkRange> {
    let key = |name| EffectiveKey::parse(value.get(name).and_then(Value::as_str).unwrap_or("?"));
    Ok(EpkRange { min: key("min")?, max: key("max")? })
}

pub fn range_from_value(value: &Value) -> Result<PartitionKeyRange> {
    let parents = value.get("parents").and_then(Value::as_array).unwrap_or_default();
    let parent =
        |id: &Value| id.as_i64().and_then(|id| u32::try_from(id).ok()).ok_or_else(|| Error::corrupt("parents"));
    Ok(PartitionKeyRange {
        id: number_u32(value, "id")?,
        shard: number(value, "shard")?,
        prefix: number_u32(value, "prefix")?,
        keys: keys_from_value(value)?,
        parents: parents.iter().map(parent).collect::<Result<_>>()?,
        since: number(value, "since")?,
    })
}

fn number(value: &Value, name: &str) -> Result<u64> {
    let found = value.get(name).and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok());
    found.ok_or_else(|| Error::corrupt(format_args!("partition map without {name}")))
}

fn number_u32(value: &Value, name: &str) -> Result<u32> {
    u32::try_from(number(value, name)?).map_err(|_| Error::corrupt(format_args!("partition map with a large {name}")))
}

#[cfg(test)]
mod tests;
