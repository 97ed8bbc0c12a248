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

use std::borrow::Cow;
use std::collections::VecDeque;

use pleiad_model::partition_key::{EffectiveKey, EpkRange, PartitionKey};
use pleiad_model::{Error, Fact, Result};
use pleiad_partition::feed::{KeyScope, PageLimit, RecordPage};
use pleiad_partition::{Record, price};

use crate::meter::Meter;
use crate::query::{RangeCursor, WHOLE_ITEM, is_within, next_slice, overlaps, remaining, unfinished};
use crate::response::{EngineResponse, FeedCharge, partition_lsn};
use crate::session::SessionToken;
use crate::{Action, Admission, Admitted, Engine};

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

impl FeedRange {
    pub(crate) fn key(&self) -> Option<&PartitionKey> {
        match self {
            FeedRange::PartitionKey(key) => Some(key),
            _ => None,
        }
    }
}

/// Where the next page starts: in these ranges, then after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedCursor {
    pub ranges: Vec<RangeCursor>,
    /// The requested stretch of the hash space, for parts of which the cursor is valid, too. Cursors of older versions
    /// and of other servers have none.
    pub stretch: Option<EpkRange>,
}

impl FeedCursor {
    /// In one range, after one item.
    pub fn after(keys: EpkRange, docnum: u64) -> FeedCursor {
        FeedCursor { ranges: vec![RangeCursor { keys, docnum, rows: WHOLE_ITEM }], stretch: None }
    }
}

#[derive(Debug)]
pub struct ItemPage {
    pub records: Vec<Record>,
    pub next: Option<FeedCursor>,
}

/// Enough to see whether there is an item.
const PROBE: PageLimit = PageLimit { items: 1, bytes: 1 };

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
        limit: PageLimit,
        session: Option<&SessionToken>,
    ) -> EngineResponse<ItemPage> {
        if let Err(error) = at.check(Action::ReadChangeFeed) {
            return EngineResponse::failed(error);
        }
        let resumed = resolve(at, scope).and_then(|resolved| Ok((resume(scope, &resolved, from)?, resolved)));
        let (cursors, reach) = match resumed {
            Ok(resumed) => resumed,
            Err(error) => return EngineResponse::failed(error),
        };
        let mut served = FeedCharge::default();
        let result = fill_page(&self.meter, at, &reach, cursors, limit, session, &mut served).await;
        served.into_response(result)
    }
}

async fn fill_page(
    meter: &Meter,
    at: &Admitted,
    resolved: &ResolvedRange,
    start: Vec<RangeCursor>,
    limit: PageLimit,
    session: Option<&SessionToken>,
    served: &mut FeedCharge,
) -> Result<ItemPage> {
    let mut cursors = VecDeque::from(start);
    let mut records: Vec<Record> = Vec::new();
    let mut bytes = 0;
    while let Some((slice, cursor)) = next_slice(at.container(), &[], &mut cursors) {
        let (partition, scope) = (&slice.partition, key_scope(resolved, &cursor.keys));
        let page_left = PageLimit { items: limit.items - records.len(), bytes: limit.bytes.saturating_sub(bytes) };
        // The page is full exactly at a boundary: it has a cursor only if an item follows.
        let is_full = page_left.items == 0 || (page_left.bytes == 0 && bytes > 0);
        let mut admission = match meter.admit(at, Cow::Borrowed(partition), None).await {
            Ok(admission) => admission,
            // Return the items found so far; the next page tries this partition again.
            Err(_) if !records.is_empty() => return Ok(page_ending_at(records, resolved, cursor, cursors)),
            Err(error) => {
                served.served_by.get_or_insert(partition_lsn(partition));
                return Err(error);
            }
        };
        if !is_full {
            // Before the read: the session token must not cover more than was read.
            served.served_by = Some(partition_lsn(partition));
        }
        let wanted = if is_full { PROBE } else { page_left };
        let page = read_admitted(at, &mut admission, &scope, cursor.after(), wanted, session).await;
        let page_bytes = page.as_ref().map_or(0, |page| sizes(page).sum::<usize>());
        // A partition returns at least one item however large it is; unless it is the page's first, it has to fit.
        let is_taken = !is_full && (records.is_empty() || page_bytes <= page_left.bytes);
        if let Ok(page) = &page
            && is_taken
        {
            admission.charge_at_least(at.read_ru(price::page(sizes(page))));
        }
        served.charge_ru += admission.settle();
        let page = match page {
            Ok(page) if is_full && page.records.is_empty() => continue,
            Ok(page) if is_taken => page,
            Err(error) if !is_full => return Err(error),
            // The items are left to the next page, which also reports why they cannot be read.
            Ok(_) | Err(_) => return Ok(page_ending_at(records, resolved, cursor, cursors)),
        };
        bytes += page_bytes;
        records.extend(page.records);
        if let Some(docnum) = page.next {
            return Ok(page_ending_at(records, resolved, RangeCursor { docnum, rows: WHOLE_ITEM, ..cursor }, cursors));
        }
    }
    Ok(ItemPage { records, next: None })
}

/// Reads a part of a page. A read that returns nothing, or items that are left to the next page, costs a miss.
async fn read_admitted(
    at: &Admitted,
    admission: &mut Admission<'_>,
    scope: &KeyScope,
    after: u64,
    limit: PageLimit,
    session: Option<&SessionToken>,
) -> Result<RecordPage> {
    admission.begin_read(at, session)?;
    admission.partition().page(scope, after, limit, at.expiry()).await
}

fn sizes(page: &RecordPage) -> impl Iterator<Item = usize> {
    page.records.iter().map(|record| record.body().len())
}

fn key_scope(resolved: &ResolvedRange, keys: &EpkRange) -> KeyScope {
    match &resolved.point {
        Some(epk) => KeyScope::Key(epk.clone()),
        None => KeyScope::Keys(keys.clone()),
    }
}

fn page_ending_at(
    records: Vec<Record>,
    resolved: &ResolvedRange,
    cursor: RangeCursor,
    rest: VecDeque<RangeCursor>,
) -> ItemPage {
    let next = FeedCursor { ranges: unfinished(cursor, rest), stretch: Some(resolved.keys.clone()) };
    ItemPage { records, next: Some(next) }
}

/// A cursor is valid for its stretch of the hash space and parts of it, such as the children of a split. For one
/// partition key it has to be in progress there.
fn resume(scope: &FeedRange, resolved: &ResolvedRange, from: Option<FeedCursor>) -> Result<Vec<RangeCursor>> {
    let Some(FeedCursor { ranges: progress, stretch }) = from else {
        return Ok(vec![RangeCursor::whole(resolved.keys.clone())]);
    };
    let requested = std::slice::from_ref(&resolved.keys);
    let is_outside = stretch.is_some_and(|stretch| !is_within(&resolved.keys, &stretch));
    if is_outside || scope.key().is_some() && !progress.is_empty() && !overlaps(requested, &progress) {
        return Err(Fact::ForeignCursor.into());
    }
    Ok(remaining(requested, &progress))
}

pub(crate) fn resolve(at: &Admitted, scope: &FeedRange) -> Result<ResolvedRange> {
    match scope {
        FeedRange::Container => Ok(ResolvedRange { keys: EpkRange::FULL, point: None }),
        FeedRange::PartitionKeyRange(id) => Ok(ResolvedRange { keys: range_keys(at, *id)?, point: None }),
        FeedRange::EffectiveKeys(keys, None) => Ok(ResolvedRange { keys: keys.clone(), point: None }),
        FeedRange::EffectiveKeys(keys, Some(id)) => {
            let inside = range_keys(at, *id)?.intersect(keys);
            let inside = inside.ok_or_else(|| moved(at, *id))?;
            Ok(ResolvedRange { keys: inside, point: None })
        }
        FeedRange::PartitionKey(key) => resolve_key(at, key),
    }
}

pub(crate) fn resolve_key(at: &Admitted, key: &PartitionKey) -> Result<ResolvedRange> {
    let Some(definition) = &at.container().schema.key else {
        return Ok(ResolvedRange { keys: EpkRange::FULL, point: None });
    };
    let (given, levels_max) = (key.components().len(), definition.paths.len());
    if given > levels_max {
        return Err(Fact::KeyPrefixLevels { given, levels_max }.into());
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
    at.container().map.keys_of(id).cloned().ok_or_else(|| moved(at, id))
}

impl Admitted {
    /// Fails if the scope names a partition that no longer exists.
    pub fn check_current(&self, scope: &FeedRange) -> Result<()> {
        match scope {
            FeedRange::PartitionKeyRange(id) | FeedRange::EffectiveKeys(_, Some(id))
                if self.container().map.by_id(*id).is_none() =>
            {
                Err(moved(self, *id))
            }
            _ => Ok(()),
        }
    }
}

fn moved(at: &Admitted, range: u32) -> Error {
    Fact::RangeGone { range, epoch: at.container().map.epoch }.into()
}

#[cfg(test)]
mod tests;
