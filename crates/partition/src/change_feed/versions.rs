//! Change feed, all versions: every change after an LSN with its images, and the trimming of old versions.
//!
//! Guarantees: a reader gets every version after its position, or an error if some of them were removed; never an
//! incomplete list. The retention watermark in the shard's state is the LSN after which versions are complete.

use bytes::Bytes;
use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::{Fact, Result};
use pleiad_storage::{Batch, Blocking, Limit, keyspace};

use super::{ChangeQuery, check_reached};
use crate::feed::PageLimit;
use crate::partition::{MaintenanceError, Partition};
use crate::shard_state::ShardState;
use crate::snapshot::PartitionSnapshot;
use crate::version_row::{ItemVersion, epk_of, ts_s_of};

/// Versions per read, or per removal.
const CHUNK: Limit = Limit { rows: 1_024, bytes: 4 << 20 };

#[derive(Debug, Default)]
pub struct VersionPage {
    pub versions: Vec<ItemVersion>,
    /// The page is complete up to this LSN: the next one starts after it.
    pub lsn: u64,
}

impl Partition {
    /// The versions after an LSN: at least those of one transaction, if there is one.
    pub async fn versions(&self, query: &ChangeQuery, limit: PageLimit) -> Result<VersionPage> {
        let view = self.snapshot(Blocking::Suspend).await?;
        check_reached(&view, query)?;
        check_retained(&view, query)?;
        self.read_versions(&view, query, limit).await
    }

    /// The same for a caller that itself prevents the removal of versions after its position. It does not check the
    /// retention watermark, which can be later after a merge with a partition that began to retain versions later.
    pub async fn retained_versions(&self, query: &ChangeQuery, limit: PageLimit) -> Result<VersionPage> {
        self.read_versions(&self.snapshot(Blocking::Suspend).await?, query, limit).await
    }

    async fn read_versions(
        &self,
        view: &PartitionSnapshot,
        query: &ChangeQuery,
        limit: PageLimit,
    ) -> Result<VersionPage> {
        let (mut page, mut bytes) = (VersionPage::default(), 0);
        let mut from = keyspace::versions_from(self.range.shard, query.after.saturating_add(1)).0;
        loop {
            let (rows, more) = view.version_rows(&from, CHUNK).await?;
            for (row, value) in &rows {
                let (lsn, ..) = keyspace::decode_version(row)?;
                let full = page.versions.len() >= limit.items || bytes >= limit.bytes;
                if full && page.versions.last().is_some_and(|last| last.lsn != lsn) {
                    page.lsn = lsn - 1;
                    return Ok(page);
                }
                if query.scope.contains(&EffectiveKey::from_bytes(epk_of(value)?)) {
                    page.versions.push(ItemVersion::decode(lsn, value)?);
                    bytes += page.versions.last().map_or(0, ItemVersion::bytes);
                }
            }
            match rows.last() {
                Some((last, _)) if more => from = keyspace::after(last),
                _ => break,
            }
        }
        page.lsn = view.lsn().max(query.after);
        Ok(page)
    }

    /// Clears the retention watermark. All versions have been removed, and no more are written.
    pub async fn clear_retention_watermark(&self) -> Result<(), MaintenanceError> {
        self.commit_state(|shard, _| shard.versions_from = None).await
    }

    /// Removes a chunk of the versions before this time, up to an LSN. Returns true if there may be more of them.
    pub async fn trim_versions(&self, before_s: u32, up_to: u64) -> Result<bool, MaintenanceError> {
        let from = keyspace::versions_from(self.range.shard, 0).0;
        let (rows, more) = self.snapshot(Blocking::Suspend).await?.version_rows(&from, CHUNK).await?;
        let mut old = 0;
        for (row, value) in &rows {
            if ts_s_of(value)? >= before_s || keyspace::decode_version(row)?.0 > up_to {
                break;
            }
            old += 1;
        }
        let Some(end) = trim_end(&rows, old, more)? else { return Ok(false) };
        let to = keyspace::versions_from(self.range.shard, end.saturating_add(1)).0;
        let trim = |shard: &mut ShardState, batch: &mut Batch| {
            batch.delete_range(from, to);
            shard.versions_from.iter_mut().for_each(|watermark| watermark.raise(end));
        };
        self.commit_state(trim).await?;
        Ok(more && old == rows.len())
    }
}

/// The last LSN all of whose versions are among the first `old` rows. A transaction with more versions than a chunk is
/// the exception: all of its versions are removed together.
fn trim_end(rows: &[(Bytes, Bytes)], old: usize, more: bool) -> Result<Option<u64>> {
    let lsn_at =
        |at: usize| rows.get(at).map(|(row, _)| keyspace::decode_version(row).map(|(lsn, ..)| lsn)).transpose();
    let (Some(first), Some(last)) = (lsn_at(0)?, lsn_at(old.wrapping_sub(1))?) else { return Ok(None) };
    let continues = lsn_at(old)? == Some(last) || (old == rows.len() && more);
    Ok(match continues {
        true if last == first && old == rows.len() => Some(last),
        true => Some(last - 1).filter(|end| *end >= first),
        false => Some(last),
    })
}

fn check_retained(view: &PartitionSnapshot, query: &ChangeQuery) -> Result<()> {
    let retained_from_lsn = view.versions_from(&query.scope);
    match query.after >= retained_from_lsn {
        true => Ok(()),
        false => Err(Fact::VersionsTrimmed { after_lsn: query.after, retained_from_lsn }.into()),
    }
}

#[cfg(test)]
mod tests;
