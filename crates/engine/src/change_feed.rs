//! Change feed: the changed items of a container by LSN, page by page.
//!
//! Invariant: a position is a list of EPK ranges, each with the LSN up to which it has been read. It
//! names no partition, so that it means the same when partitions have split or merged: children continue the LSNs of
//! their parents. Within one range, changes come in LSN order and each is returned once; between
//! ranges there is no order, and no range waits for another.
//!
//! ```text
//! p0 [00 ── 55) read up to 7     p1 [55 ── AA) 12     p2 [AA ── FF) 3
//!    └ read first. It has changes: they are the page, and p0 moves to the end of the queue.
//! ```

mod filter; // a query over changes

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use pleiad_model::partition_key::EpkRange;
use pleiad_model::{Fact, Result};
use pleiad_partition::change_feed::{ChangeQuery, FeedStart};
use pleiad_partition::feed::{KeyScope, PageLimit};
use pleiad_partition::ttl::Expiry;
use pleiad_partition::version_row::ItemVersion;
use pleiad_partition::{Partition, Record, price};

use crate::feed::{FeedRange, ResolvedRange, resolve};
use crate::meter::Meter;
use crate::response::{EngineResponse, FeedCharge, partition_lsn};
use crate::session::SessionToken;
use crate::{Action, Admission, Admitted, Engine};
pub use filter::{ChangeFilter, write_changed_item};
use filter::{CompiledFilter, Filtered};

/// Which changes of an item are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeMode {
    /// Each item once, as it is now, at the LSN of its latest change.
    LatestVersion,
    /// Every change, deletes included, for as long as the container retains them.
    AllVersions,
}

/// A request for one page of a container's changes.
#[derive(Clone, Debug)]
pub struct ChangeRequest {
    pub mode: ChangeMode,
    pub scope: FeedRange,
    pub from: ChangeFrom,
    /// Older changes are not returned; in seconds since 1970.
    pub since_s: Option<u32>,
    /// Changes that the query drops are not returned.
    pub filter: Option<ChangeFilter>,
    pub limit: PageLimit,
}

/// Where a reader starts or continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeFrom {
    /// With the first change, or with the first that is not older than `since_s`.
    Beginning,
    Now,
    /// After this LSN, in every partition of the scope: the position that a partition key range returns and its
    /// children accept.
    Lsn(u64),
    Cursors(Vec<ChangeCursor>),
}

/// A range of effective keys, and the LSN up to which it has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeCursor {
    pub keys: EpkRange,
    pub lsn: u64,
}

#[derive(Debug)]
pub struct ChangeFeedPage {
    pub changes: ChangedItems,
    /// With a filter: the rows that the query makes of `changes`, one of each, as JSON text.
    pub rows: Option<Vec<Vec<u8>>>,
    /// There were new changes, even if the filter has dropped all of them.
    pub is_modified: bool,
    /// Where the next page starts, in the order in which the ranges will be read. It is never empty.
    pub next: Vec<ChangeCursor>,
}

#[derive(Debug)]
pub enum ChangedItems {
    Latest(Vec<Record>),
    Versions(Vec<ItemVersion>),
}

impl ChangedItems {
    pub fn len(&self) -> usize {
        match self {
            ChangedItems::Latest(records) => records.len(),
            ChangedItems::Versions(versions) => versions.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About the sum of point reads of the returned items.
    fn charge_ru(&self) -> f64 {
        match self {
            ChangedItems::Latest(records) => price::page(records.iter().map(|record| record.body().len())),
            ChangedItems::Versions(versions) => price::page(versions.iter().map(ItemVersion::bytes)),
        }
    }
}

/// A cursor and the one partition that holds its range.
struct ChangeSlice<'a> {
    partition: &'a Arc<Partition>,
    cursor: ChangeCursor,
}

impl ChangeSlice<'_> {
    /// Whether the two are adjacent, have been read up to the same LSN and belong to one partition.
    fn can_merge(&self, other: &ChangeSlice<'_>) -> bool {
        let (own, others) = (&self.cursor.keys, &other.cursor.keys);
        self.partition.range.id == other.partition.range.id
            && self.cursor.lsn == other.cursor.lsn
            && (own.max == others.min || others.max == own.min)
    }
}

impl Engine {
    pub async fn change_feed(
        &self,
        at: &Admitted,
        request: &ChangeRequest,
        session: Option<&SessionToken>,
    ) -> EngineResponse<ChangeFeedPage> {
        if let Err(error) = at.check(Action::ReadChangeFeed) {
            return EngineResponse::failed(error);
        }
        let mut served = FeedCharge::default();
        let result = self.filtered_page(at, request, session, &mut served).await;
        served.into_response(result)
    }

    async fn filtered_page(
        &self,
        at: &Admitted,
        request: &ChangeRequest,
        session: Option<&SessionToken>,
        served: &mut FeedCharge,
    ) -> Result<ChangeFeedPage> {
        let filter = request.filter.as_ref().map(|filter| CompiledFilter::compile(self, at, filter)).transpose()?;
        let (changes, next) = read_page(&self.meter, at, request, session, served).await?;
        let is_modified = !changes.is_empty();
        Ok(match filter {
            Some(filter) => {
                let Filtered { changes, rows } = filter.apply(changes).await?;
                ChangeFeedPage { changes, rows: Some(rows), is_modified, next }
            }
            None => ChangeFeedPage { changes, rows: None, is_modified, next },
        })
    }
}

/// Reads one range after the other until one has changes. Returns them, and where the next page starts.
async fn read_page(
    meter: &Meter,
    at: &Admitted,
    request: &ChangeRequest,
    session: Option<&SessionToken>,
    served: &mut FeedCharge,
) -> Result<(ChangedItems, Vec<ChangeCursor>)> {
    check_mode(at, request)?;
    // Change feed processors hold a lease for each range, and split the lease when they learn that the range was split
    // or merged.
    at.check_current(&request.scope)?;
    let resolved = resolve(at, &request.scope)?;
    let mut queue = slices(meter, at, &resolved, request, session, served).await?;
    let mut changes = ChangedItems::Latest(Vec::new());
    for _ in 0..queue.len() {
        let Some(mut slice) = queue.pop_front() else { break };
        // Before the read: the session token must not cover more than was read.
        served.served_by = Some(partition_lsn(slice.partition));
        let mut admission = meter.admit(at, Cow::Borrowed(slice.partition), None).await?;
        let query = change_query(&resolved, request, &slice.cursor, at.expiry());
        let page = read_admitted(at, &mut admission, request, &query, session).await;
        served.charge_ru += admission.settle();
        (changes, slice.cursor.lsn) = page?;
        queue.push_back(slice);
        if !changes.is_empty() {
            break;
        }
    }
    Ok((changes, merge_adjacent(queue)))
}

/// The changes of one partition, and the LSN up to which they are complete.
async fn read_admitted(
    at: &Admitted,
    admission: &mut Admission<'_>,
    request: &ChangeRequest,
    query: &ChangeQuery,
    session: Option<&SessionToken>,
) -> Result<(ChangedItems, u64)> {
    admission.begin_read(at, session)?;
    let partition = admission.partition();
    let (changes, lsn) = match request.mode {
        ChangeMode::LatestVersion => {
            let page = partition.changes(query, request.limit).await?;
            (ChangedItems::Latest(page.records), page.lsn)
        }
        ChangeMode::AllVersions => {
            let page = partition.versions(query, request.limit).await?;
            (ChangedItems::Versions(page.versions), page.lsn)
        }
    };
    admission.charge_at_least(at.read_ru(changes.charge_ru()));
    Ok((changes, lsn))
}

/// Versions are stored only if the container's policy says so, and only from then on.
fn check_mode(at: &Admitted, request: &ChangeRequest) -> Result<()> {
    if request.mode == ChangeMode::LatestVersion {
        return Ok(());
    }
    if !at.container().definition.has_all_versions_feed() {
        return Err(Fact::AllVersionsDisabled.into());
    }
    if request.from == ChangeFrom::Beginning {
        return Err(Fact::AllVersionsFromStart.into());
    }
    Ok(())
}

fn change_query(
    resolved: &ResolvedRange,
    request: &ChangeRequest,
    cursor: &ChangeCursor,
    expiry: Expiry,
) -> ChangeQuery {
    let scope = match &resolved.point {
        Some(epk) => KeyScope::Key(epk.clone()),
        None => KeyScope::Keys(cursor.keys.clone()),
    };
    ChangeQuery { scope, after: cursor.lsn, since_s: request.since_s.unwrap_or(0), expiry }
}

/// The requested ranges, cut at partition boundaries, each with the LSN up to which it has been read.
async fn slices<'a>(
    meter: &Meter,
    at: &'a Admitted,
    resolved: &ResolvedRange,
    request: &ChangeRequest,
    session: Option<&SessionToken>,
    served: &mut FeedCharge,
) -> Result<VecDeque<ChangeSlice<'a>>> {
    let all = |lsn| vec![ChangeCursor { keys: resolved.keys.clone(), lsn }];
    let (cursors, start) = match &request.from {
        ChangeFrom::Lsn(lsn) => (all(*lsn), None),
        ChangeFrom::Cursors(cursors) => (check_within(resolved, cursors)?, None),
        ChangeFrom::Now => (all(0), Some(FeedStart::Now)),
        ChangeFrom::Beginning => (all(0), request.since_s.map(FeedStart::Time)),
    };
    let mut slices = split_by_partition(at, &cursors);
    if let Some(start) = start {
        for ChangeSlice { partition, cursor } in &mut slices {
            cursor.lsn = match start {
                FeedStart::Beginning | FeedStart::Now => partition.lsn_at(start).await?,
                FeedStart::Time(_) => {
                    let mut admission = meter.admit(at, Cow::Borrowed(*partition), None).await?;
                    let searched = search_start(at, &mut admission, start, session).await;
                    served.charge_ru += admission.settle();
                    searched?
                }
            };
        }
    }
    Ok(slices)
}

/// The search for a time reads the partition, and costs a miss.
async fn search_start(
    at: &Admitted,
    admission: &mut Admission<'_>,
    start: FeedStart,
    session: Option<&SessionToken>,
) -> Result<u64> {
    admission.begin_read(at, session)?;
    admission.partition().lsn_at(start).await
}

fn split_by_partition<'a>(at: &'a Admitted, cursors: &[ChangeCursor]) -> VecDeque<ChangeSlice<'a>> {
    let partitions = &at.container().partitions;
    let slices = cursors.iter().flat_map(|cursor| {
        let touched = at.container().map.overlapping(&cursor.keys);
        partitions.get(touched).unwrap_or_default().iter().filter_map(move |partition| {
            let keys = partition.range.keys.intersect(&cursor.keys)?;
            Some(ChangeSlice { partition, cursor: ChangeCursor { keys, lsn: cursor.lsn } })
        })
    });
    slices.collect()
}

/// Merges adjacent ranges of one partition that have been read up to the same LSN. Each split or merge cuts at other
/// keys, and a position that kept all cuts would outgrow its header. Two merged ranges take the later of their
/// positions in the queue.
fn merge_adjacent(slices: VecDeque<ChangeSlice<'_>>) -> Vec<ChangeCursor> {
    let mut out: Vec<ChangeSlice> = Vec::with_capacity(slices.len());
    for mut next in slices {
        while let Some(at) = out.iter().position(|known| known.can_merge(&next)) {
            let EpkRange { min, max } = out.remove(at).cursor.keys;
            let keys = &mut next.cursor.keys;
            *keys = EpkRange { min: Ord::min(&min, &keys.min).clone(), max: Ord::max(&max, &keys.max).clone() };
        }
        out.push(next);
    }
    out.into_iter().map(|slice| slice.cursor).collect()
}

/// A position that the client sends must lie within the requested range.
fn check_within(resolved: &ResolvedRange, cursors: &[ChangeCursor]) -> Result<Vec<ChangeCursor>> {
    let inside = |cursor: &ChangeCursor| cursor.keys.min >= resolved.keys.min && cursor.keys.max <= resolved.keys.max;
    if cursors.is_empty() || !cursors.iter().all(inside) {
        return Err(Fact::ForeignChangeCursor.into());
    }
    Ok(cursors.to_vec())
}

#[cfg(test)]
mod tests;
