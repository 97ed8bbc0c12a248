//! Read feed: the items of a container page by page, in insertion order within a partition and in the
//! order of the hash space across partitions.
//!
//! Invariant: a cursor names EPK ranges and a docnum in each, never a partition, so that it means
//! the same after the partitions have changed: items keep their docnums, and new partitions assign larger ones.
//!
//! ```text
//! p1 [00 ── 7F) after 12 │ next: the rest of the requested range
//! after p1 was split, half-way through the first child
//! p3 [00 ── 3F) after 20 │ p4 [3F ── 7F) after 12 │ next: the rest
//! ```

use std::collections::VecDeque;

use pleiad_model::partition_key::{EffectiveKey, EpkRange, PartitionKey};
use pleiad_model::{Error, Kind, Result};
use pleiad_partition::feed::{KeyScope, PageLimit};
use pleiad_partition::{Record, price};

use crate::meter::Meter;
use crate::query::{RangeCursor, WHOLE_ITEM, in_progress, is_begun, left, next_slice};
use crate::response::{EngineResponse, PartitionLsn, place};
use crate::session::SessionToken;
use crate::{Admitted, Engine};

/// The part of a container that a request covers.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedRange {
    Container,
    /// One physical partition, by the id that clients know.
    PartitionKeyRange(u32),
    /// A range of effective keys, restricted to one physical partition if its id is given.
    EffectiveKeys(EpkRange, Option<u32>),
    /// One partition key, or all keys with this prefix.
    PartitionKey(PartitionKey),
}

/// Where the next page starts: in these ranges, then after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedCursor(pub Vec<RangeCursor>);

impl FeedCursor {
    /// In one range, after one item.
    pub fn after(keys: EpkRange, docnum: u64) -> FeedCursor {
        FeedCursor(vec![RangeCursor { keys, docnum, rows: WHOLE_ITEM }])
    }
}

#[derive(Debug)]
pub struct ItemPage {
    pub records: Vec<Record>,
    pub next: Option<FeedCursor>,
}

/// Enough to see whether there is an item.
const ONE: PageLimit = PageLimit { items: 1, bytes: 1 };

/// The effective keys that a feed range covers.
pub(crate) struct ResolvedRange {
    pub keys: EpkRange,
    /// Set when all of it is one logical partition.
    pub point: Option<EffectiveKey>,
}

impl Engine {
    pub async fn list_items(
        &self,
        at: &Admitted,
        scope: &FeedRange,
        from: Option<FeedCursor>,
        quota: PageLimit,
        session: Option<&SessionToken>,
    ) -> EngineResponse<ItemPage> {
        let resumed = reach(at, scope).and_then(|reach| Ok((resume(scope, &reach, from)?, reach)));
        let (left, reach) = match resumed {
            Ok(resumed) => resumed,
            Err(error) => return EngineResponse::refused(error),
        };
        let mut served = FeedCharge::default();
        let answer = match fill(&self.meter, at, &reach, left, quota, session, &mut served).await {
            Ok(page) => EngineResponse::priced(Ok(page), served.charge_ru.max(at.read_ru(price::MISS_RU))),
            Err(error) => EngineResponse::refused(error),
        };
        match served.place {
            Some(place) => answer.at(place),
            None => answer,
        }
    }
}

/// The charge of a page, and the partition that was read last.
#[derive(Default)]
struct FeedCharge {
    place: Option<PartitionLsn>,
    charge_ru: f64,
}

async fn fill(
    meter: &Meter,
    at: &Admitted,
    reach: &ResolvedRange,
    left: Vec<RangeCursor>,
    quota: PageLimit,
    session: Option<&SessionToken>,
    served: &mut FeedCharge,
) -> Result<ItemPage> {
    let mut stretches = VecDeque::from(left);
    let mut records: Vec<Record> = Vec::new();
    let mut bytes = 0;
    while let Some((slice, stretch)) = next_slice(&at.container, &mut stretches) {
        let (partition, scope) = (&slice.partition, scope(reach, &stretch.keys));
        let left = PageLimit { items: quota.items - records.len(), bytes: quota.bytes.saturating_sub(bytes) };
        if left.items == 0 || (left.bytes == 0 && bytes > 0) {
            // The page is full exactly at a boundary: return a cursor only if an item follows.
            let probe = partition.page(&scope, stretch.after(), ONE, at.expiry()).await?;
            if probe.records.is_empty() {
                continue;
            }
            return Ok(ended(records, stretch, stretches));
        }
        let visit = match meter.enter(at, &**partition) {
            Ok(visit) => visit,
            // Return the items found so far; the next page tries this partition again.
            Err(_) if !records.is_empty() => return Ok(ended(records, stretch, stretches)),
            Err(error) => {
                served.place.get_or_insert(place(partition));
                return Err(error);
            }
        };
        served.place = Some(place(partition));
        session.map_or(Ok(()), |session| session.check(partition))?;
        let page = partition.page(&scope, stretch.after(), left, at.expiry()).await?;
        let sizes = || page.records.iter().map(|record| record.body().len());
        let page_bytes = sizes().sum::<usize>();
        if page_bytes > left.bytes && !records.is_empty() {
            // A partition returns at least one item however large it is; here it would not be the page's first.
            meter.leave(visit);
            return Ok(ended(records, stretch, stretches));
        }
        let charge_ru = at.read_ru(price::page(sizes()));
        meter.pay(visit, charge_ru, None);
        served.charge_ru += charge_ru;
        bytes += page_bytes;
        records.extend(page.records);
        if let Some(docnum) = page.next {
            return Ok(ended(records, RangeCursor { docnum, rows: WHOLE_ITEM, ..stretch }, stretches));
        }
    }
    Ok(ItemPage { records, next: None })
}

fn scope(reach: &ResolvedRange, keys: &EpkRange) -> KeyScope {
    match &reach.point {
        Some(epk) => KeyScope::Key(epk.clone()),
        None => KeyScope::Keys(keys.clone()),
    }
}

fn ended(records: Vec<Record>, stretch: RangeCursor, behind: VecDeque<RangeCursor>) -> ItemPage {
    ItemPage { records, next: Some(FeedCursor(in_progress(stretch, behind))) }
}

/// A cursor of one partition key is rejected for another.
fn resume(scope: &FeedRange, reach: &ResolvedRange, from: Option<FeedCursor>) -> Result<Vec<RangeCursor>> {
    let Some(FeedCursor(progress)) = from else { return Ok(vec![RangeCursor::whole(reach.keys.clone())]) };
    let asked = std::slice::from_ref(&reach.keys);
    if matches!(scope, FeedRange::PartitionKey(_)) && !progress.is_empty() && !is_begun(asked, &progress) {
        return Err(Error::invalid("The continuation token belongs to another request: start again without it."));
    }
    Ok(left(asked, &progress))
}

pub(crate) fn reach(at: &Admitted, scope: &FeedRange) -> Result<ResolvedRange> {
    match scope {
        FeedRange::Container => Ok(ResolvedRange { keys: EpkRange::FULL, point: None }),
        FeedRange::PartitionKeyRange(id) => Ok(ResolvedRange { keys: range_keys(at, *id)?, point: None }),
        FeedRange::EffectiveKeys(keys, None) => Ok(ResolvedRange { keys: keys.clone(), point: None }),
        FeedRange::EffectiveKeys(keys, Some(id)) => {
            let inside = range_keys(at, *id)?.intersect(keys);
            let inside = inside.ok_or_else(|| moved(at, *id))?;
            Ok(ResolvedRange { keys: inside, point: None })
        }
        FeedRange::PartitionKey(key) => key_reach(at, key),
    }
}

pub(crate) fn key_reach(at: &Admitted, key: &PartitionKey) -> Result<ResolvedRange> {
    let Some(definition) = &at.container.schema.key else {
        return Ok(ResolvedRange { keys: EpkRange::FULL, point: None });
    };
    if key.components().len() > definition.paths.len() {
        return Err(Error::new(
            Kind::KeyMismatch,
            "The partition key has more components than the container's definition.",
        ));
    }
    let epk = key.effective(definition);
    if key.matches_shape(definition) {
        return Ok(ResolvedRange { keys: EpkRange::of_point(epk.clone()), point: Some(epk) });
    }
    Ok(ResolvedRange { keys: EpkRange::of_prefix(epk), point: None })
}

/// Also of a range that was split or merged: its items come from the partitions that hold them now. Callers that must
/// report the change instead call [`Admitted::check_current`] first.
fn range_keys(at: &Admitted, id: u32) -> Result<EpkRange> {
    at.container.map.keys_of(id).cloned().ok_or_else(|| moved(at, id))
}

impl Admitted {
    /// Fails if the scope names a partition that no longer exists.
    pub fn check_current(&self, scope: &FeedRange) -> Result<()> {
        match scope {
            FeedRange::PartitionKeyRange(id) | FeedRange::EffectiveKeys(_, Some(id))
                if self.container.map.by_id(*id).is_none() =>
            {
                Err(moved(self, *id))
            }
            _ => Ok(()),
        }
    }
}

fn moved(at: &Admitted, id: u32) -> Error {
    Error::new(
        Kind::Moved { epoch: at.container.map.epoch },
        format!("Partition key range {id} is gone. Read the container's partition key ranges again."),
    )
}

#[cfg(test)]
mod tests;
