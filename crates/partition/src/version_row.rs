//! Version row: one change of one item with its before and after images, for the change feed of all versions.
//!
//! Invariant: while the container's change feed policy retains all versions, a row is written in the same batch as its
//! change, and retained for the policy's duration. The latest version of an item is not read from here.
//!
//! ```text
//! version   epk len u8 │ epk │ kind u8 │ ts_s u32 │ previous len u32 │ previous record │ current record
//!           10         │ …   │ 02      │ 64 51 …  │ 00…00 3f         │ …               │ …
//! ```
//!
//! A create has no previous record, a delete no current one. `ts_s` is the time of the change, also of a delete.

use bytes::Bytes;
use pleiad_model::{Error, Result};

use crate::record::Record;

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum VersionKind {
    Create = 1,
    Replace = 2,
    Delete = 3,
    /// Deleted because its time to live had elapsed.
    Expire = 4,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ItemVersion {
    pub lsn: u64,
    pub kind: VersionKind,
    pub ts_s: u32,
    pub previous: Option<Record>,
    pub current: Option<Record>,
}

impl ItemVersion {
    /// The size of both images, in bytes.
    pub fn bytes(&self) -> usize {
        self.previous.iter().chain(&self.current).map(|record| record.body().len()).sum()
    }

    pub fn decode(lsn: u64, row: &Bytes) -> Result<ItemVersion> {
        let parts = split(row).ok_or_else(corrupt)?;
        let kind = match parts.kind {
            1 => VersionKind::Create,
            2 => VersionKind::Replace,
            3 => VersionKind::Delete,
            4 => VersionKind::Expire,
            _ => return Err(corrupt()),
        };
        let record = |bytes: &[u8]| match bytes {
            [] => Ok(None),
            _ => Record::decode(row.slice_ref(bytes)).map(Some),
        };
        Ok(ItemVersion {
            lsn,
            kind,
            ts_s: parts.ts_s,
            previous: record(parts.previous)?,
            current: record(parts.current)?,
        })
    }
}

/// The value of a row; at least one of the records is given.
pub fn encode(kind: VersionKind, ts_s: u32, previous: Option<&Record>, current: Option<&Record>) -> Vec<u8> {
    let bytes = |record: Option<&Record>| record.map_or(Bytes::new(), |record| record.bytes().clone());
    let epk = previous.or(current).map(|record| record.epk.as_bytes()).unwrap_or_default();
    let (previous, current) = (bytes(previous), bytes(current));
    let mut out = Vec::with_capacity(10 + epk.len() + previous.len() + current.len());
    out.push(epk.len() as u8); // effective keys are at most 115 bytes long
    out.extend_from_slice(epk);
    out.push(kind as u8);
    out.extend_from_slice(&ts_s.to_be_bytes());
    out.extend_from_slice(&(previous.len() as u32).to_be_bytes()); // records are a little over 2 MB at most
    out.extend_from_slice(&previous);
    out.extend_from_slice(&current);
    out
}

/// The effective key of the changed item.
pub fn epk_of(row: &[u8]) -> Result<&[u8]> {
    split(row).map(|parts| parts.epk).ok_or_else(corrupt)
}

/// The time of the change.
pub fn ts_s_of(row: &[u8]) -> Result<u32> {
    split(row).map(|parts| parts.ts_s).ok_or_else(corrupt)
}

struct VersionParts<'a> {
    epk: &'a [u8],
    kind: u8,
    ts_s: u32,
    previous: &'a [u8],
    current: &'a [u8],
}

fn split(row: &[u8]) -> Option<VersionParts<'_>> {
    let (&epk_len, rest) = row.split_first()?;
    let (epk, rest) = rest.split_at_checked(usize::from(epk_len))?;
    let (&kind, rest) = rest.split_first()?;
    let (ts_s, rest) = rest.split_first_chunk::<4>()?;
    let (previous_len, rest) = rest.split_first_chunk::<4>()?;
    let (previous, current) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*previous_len)).ok()?)?;
    Some(VersionParts { epk, kind, ts_s: u32::from_be_bytes(*ts_s), previous, current })
}

fn corrupt() -> Error {
    Error::corrupt("a version")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Contents, FieldOffsets};
    use pleiad_model::partition_key::EffectiveKey;
    use proptest::prelude::*;

    fn record(lsn: u64, epk: &[u8], body: &str) -> Record {
        let (epk, fields) = (EffectiveKey::from_bytes(epk), FieldOffsets::of(body.as_bytes()));
        let (docnum, ts_s, terms, indexed, id) = (9, 7, 0, true, "a");
        let contents = Contents {
            docnum,
            ts_s,
            terms,
            indexed,
            etag_source: None,
            epk: &epk,
            id,
            fields: &fields,
            body: body.as_bytes(),
        };
        Record::encode(&contents, lsn, 0).unwrap()
    }

    proptest! {
        #[test]
        fn versions_round_trip(kind in 1u8..5, ts_s: u32, epk in proptest::collection::vec(any::<u8>(), 0..48), old in "[a-z]{0,40}", new in "[a-z]{0,40}") {
            let kinds = [VersionKind::Create, VersionKind::Replace, VersionKind::Delete, VersionKind::Expire];
            let kind = kinds[usize::from(kind) - 1];
            let body = |text: &str| format!(r#"{{"id":"a","text":"{text}"}}"#);
            let previous = (kind != VersionKind::Create).then(|| record(3, &epk, &body(&old)));
            let current = matches!(kind, VersionKind::Create | VersionKind::Replace).then(|| record(4, &epk, &body(&new)));
            let row = Bytes::from(encode(kind, ts_s, previous.as_ref(), current.as_ref()));
            prop_assert_eq!(epk_of(&row).unwrap(), &epk[..]);
            prop_assert_eq!(ts_s_of(&row).unwrap(), ts_s);
            prop_assert_eq!(ItemVersion::decode(4, &row).unwrap(), ItemVersion { lsn: 4, kind, ts_s, previous, current });
        }

        #[test]
        fn any_bytes_decode_or_are_reported(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (ItemVersion::decode(1, &Bytes::from(bytes.clone())), epk_of(&bytes), ts_s_of(&bytes));
        }
    }
}
