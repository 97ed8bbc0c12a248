//! The partition map: who owns which range of the hash space.
//!
//! Promise: the ranges cover `["", "FF")` without gap or overlap, so that every effective key has
//! exactly one owner, and ids and prefixes are given once. What a range covered is known for long after it has gone.
//! Arithmetic only; rows are moved by `copy`.
//!
//! ```text
//! epoch 4   [00 ───────────────── FF)  p0
//! epoch 5   [00 ──── 7F)[7F ───── FF)  p1 p2     p0 is now a parent
//! ```

use crate::partition_key::{EffectiveKey, EpkRange};
use crate::{Error, Object, Result, Value};

/// One physical partition as the map knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKeyRange {
    /// The partition key range id that clients see.
    pub id: u32,
    /// Where its rows are; a range can outlive it.
    pub shard: u64,
    /// Upper bits of the item numbers written here; larger for every new shard of a container.
    pub prefix: u32,
    pub keys: EpkRange,
    /// The latest ancestors, so that a client that missed some steps finds itself again.
    pub parents: Vec<u32>,
    /// The map's epoch when this range appeared.
    pub since: u64,
}

/// Ranges that are gone and still known: as many as a client may have missed since it last looked.
const FORMER_MAX: usize = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMap {
    pub epoch: u64,
    ranges: Vec<PartitionKeyRange>,
    /// What ranges covered that are gone, the latest last.
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

    /// The positions of all ranges that a stretch of the hash space touches.
    pub fn overlapping(&self, keys: &EpkRange) -> std::ops::Range<usize> {
        let first = self.locate(&keys.min);
        let end = self.ranges.partition_point(|range| range.keys.min < keys.max);
        first..end.max(first)
    }

    pub fn by_id(&self, id: u32) -> Option<usize> {
        self.ranges.iter().position(|range| range.id == id)
    }

    /// What a range covers, or covered before it was split or merged.
    pub fn keys_of(&self, id: u32) -> Option<&EpkRange> {
        let now = self.ranges.iter().map(|range| (range.id, &range.keys));
        let former = self.former.iter().map(|(id, keys)| (*id, keys));
        now.chain(former).find(|(known, _)| *known == id).map(|(_, keys)| keys)
    }

    /// The first id that no range of this map has or had.
    pub fn next_id(&self) -> u32 {
        let known = self.ranges.iter().flat_map(|range| range.parents.iter().chain([&range.id]));
        known.max().map_or(0, |id| id + 1)
    }

    /// Some neighbours, by their ids, in the order of the hash space.
    pub fn neighbours(&self, ids: &[u32]) -> Result<Vec<&PartitionKeyRange>> {
        let found: Vec<&PartitionKeyRange> = self.ranges.iter().filter(|range| ids.contains(&range.id)).collect();
        let are_neighbours = found.windows(2).all(|pair| pair[0].keys.max == pair[1].keys.min);
        match found.len() == ids.len() && are_neighbours {
            true => Ok(found),
            false => Err(Error::invalid("Only partition key ranges that exist and lie side by side can be merged.")),
        }
    }

    /// The next epoch: some ranges gone, others in their place.
    pub fn replaced(&self, gone: &[u32], come: &[PartitionKeyRange]) -> Result<PartitionMap> {
        let epoch = self.epoch + 1;
        let stay = self.ranges.iter().filter(|range| !gone.contains(&range.id)).cloned();
        let come = come.iter().map(|range| PartitionKeyRange { since: epoch, ..range.clone() });
        let next = PartitionMap::new(epoch, stay.chain(come).collect())?;
        let went = self.ranges.iter().filter(|range| gone.contains(&range.id));
        let mut former = self.former.clone();
        former.extend(went.map(|range| (range.id, range.keys.clone())));
        former.drain(..former.len().saturating_sub(FORMER_MAX));
        Ok(PartitionMap { former, ..next })
    }

    /// This map in force once more, after `now` of the same container: the account went back to what it was. A map is known by its
    /// epoch. If clients know another one, the ranges come under ids that nobody has seen, as children of all that
    /// was in their place, so that clients find them as they find those of a split or merge.
    pub fn again(&self, now: &PartitionMap) -> PartitionMap {
        if self.epoch == now.epoch {
            return self.clone();
        }
        let parents = |range: &PartitionKeyRange| {
            let replaced = now.ranges.iter().filter(|other| other.keys.intersect(&range.keys).is_some());
            ancestry(&replaced.chain([range]).collect::<Vec<_>>())
        };
        let renewed = self.renewed(now.epoch, now.next_id(), parents);
        let newer = now.gone();
        let mut former = renewed.former;
        former.retain(|(id, _)| newer.iter().all(|(known, _)| known != id));
        former.extend(newer);
        former.drain(..former.len().saturating_sub(FORMER_MAX));
        PartitionMap { former, ..renewed }
    }

    /// This map in force once more, after its container was gone. Of the maps that clients may know since then it is only known how far
    /// their epochs came, and their ids. So any id below counts as a parent: whoever holds one finds all of its children.
    pub fn after_all(&self, epoch: u64, next_id: u32) -> PartitionMap {
        if self.epoch >= epoch {
            return self.clone();
        }
        let first = self.next_id().max(next_id);
        self.renewed(epoch, next_id, |_| newest((0..first).collect()))
    }

    /// The same ranges under ids and an epoch that neither this map nor one that came to `epoch` and `next_id` has had.
    fn renewed(&self, epoch: u64, next_id: u32, parents: impl Fn(&PartitionKeyRange) -> Vec<u32>) -> PartitionMap {
        let epoch = self.epoch.max(epoch) + 1;
        let ids = self.next_id().max(next_id)..;
        let renew = |(range, id): (&PartitionKeyRange, u32)| PartitionKeyRange {
            id,
            parents: parents(range),
            since: epoch,
            ..range.clone()
        };
        let ranges = self.ranges.iter().zip(ids).map(renew).collect();
        PartitionMap { epoch, ranges, former: self.gone() }
    }

    /// What ranges covered, if none of this map's is left.
    fn gone(&self) -> Vec<(u32, EpkRange)> {
        let went = self.ranges.iter().map(|range| (range.id, range.keys.clone()));
        self.former.iter().cloned().chain(went).collect()
    }

    /// The same ranges, with their rows elsewhere.
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
        // Maps that were written before anything could split have no such member.
        let former = value.get("former").and_then(Value::as_array).unwrap_or_default();
        let map =
            PartitionMap::new(number(value, "epoch")?, ranges.iter().map(range_from_value).collect::<Result<_>>()?)?;
        let former = former.iter().map(|gone| Ok((small(gone, "id")?, keys_from_value(gone)?)));
        Ok(PartitionMap { former: former.collect::<Result<_>>()?, ..map })
    }
}

/// The ids by which clients may know what these ranges held.
pub fn ancestry(ranges: &[&PartitionKeyRange]) -> Vec<u32> {
    let mut ids: Vec<u32> = ranges.iter().flat_map(|range| range.parents.iter().copied().chain([range.id])).collect();
    ids.sort_unstable();
    ids.dedup();
    newest(ids)
}

/// Of ids in their order: those that a client can still hold, or every answer would carry all that ever was.
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
        id: small(value, "id")?,
        shard: number(value, "shard")?,
        prefix: small(value, "prefix")?,
        keys: keys_from_value(value)?,
        parents: parents.iter().map(parent).collect::<Result<_>>()?,
        since: number(value, "since")?,
    })
}

fn number(value: &Value, name: &str) -> Result<u64> {
    let found = value.get(name).and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok());
    found.ok_or_else(|| Error::corrupt(format_args!("partition map without {name}")))
}

fn small(value: &Value, name: &str) -> Result<u32> {
    u32::try_from(number(value, name)?).map_err(|_| Error::corrupt(format_args!("partition map with a large {name}")))
}

#[cfg(test)]
mod tests;
