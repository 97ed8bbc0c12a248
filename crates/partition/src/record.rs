//! Record format: an item as stored bytes.
//!
//! Invariant: a record contains everything that a point read returns, so that the body is copied and never
//! re-serialised. System properties are not in the body; readers add them from the header. A filter finds one property
//! of the body without reading the rest: `fields` lists the offset of each.
//!
//! ```text
//! codec u8 │ lsn u64 │ seq u16 │ ts_s u32 │ docnum u64 │ terms u32 │ flags u8 │ epk len u8 │ epk │ id len u16 │ id
//!  02      │ 00…03 2c│ 00 00   │ 64 51 …  │ 00…01 05   │ 00…0a     │ 00       │ 10         │ …   │ 00 02      │ "a1"
//!
//! │ fields                   │ body
//! │ 00 02 │ hash, offset │ … │ {"id":"a1",…}
//! ```
//!
//! Integers are big-endian. `terms` is the number of index rows of the item: the charge of its deletion is known
//! without parsing it. Flag 01: the writer excluded it from the index. Flag 02: it was written in a transaction, which
//! returned its etag before it had an LSN; that etag's `lsn u64 │ seq u16` follow the flags.
//!
//! Records of codec 1 have neither flags nor fields. They are still read, but no longer written.

use bytes::Bytes;
use pleiad_model::etag::Etag;
use pleiad_model::json::lazy;
use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::{Error, Result};

mod fields; // offsets of an item's properties in its text

pub use fields::FieldOffsets;
pub use pleiad_model::json::lazy::name_hash;

/// JSON text in UTF-8. Other APIs will add codecs and types of their own.
const CODEC_JSON: u8 = 2;
const CODEC_JSON_UNLISTED: u8 = 1;
const LSN_AT: usize = 1;
const FIXED_BYTES: usize = 1 + 8 + 2 + 4 + 8 + 4;

const FLAG_NOT_INDEXED: u8 = 0x01;
const FLAG_ETAG_SOURCE: u8 = 0x02;

/// LSN and sequence number in an etag, which with the time identify a version of its item. They are the version's own,
/// unless a transaction returned the etag before the version had an LSN.
pub type EtagSource = (u64, u16);

#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub lsn: u64,
    pub seq: u16,
    pub ts_s: u32,
    pub docnum: u64,
    pub terms: u32,
    /// Whether the indexing policy decides what is indexed; otherwise nothing is.
    pub indexed: bool,
    pub epk: EffectiveKey,
    etag_source: EtagSource,
    bytes: Bytes,
    id_at: usize,
    id_len: usize,
    /// Bytes of field entries before the body, if fields are listed.
    fields_len: Option<usize>,
    body_at: usize,
}

/// The contents of a record, before it has an LSN.
pub struct Contents<'a> {
    pub docnum: u64,
    pub ts_s: u32,
    pub terms: u32,
    pub indexed: bool,
    /// Set if the etag was already returned to the client.
    pub etag_source: Option<EtagSource>,
    pub epk: &'a EffectiveKey,
    pub id: &'a str,
    /// The offsets in the body.
    pub fields: &'a FieldOffsets,
    pub body: &'a [u8],
}

impl Record {
    /// Encodes a record with its LSN and sequence number.
    pub fn encode(contents: &Contents<'_>, lsn: u64, seq: u16) -> Result<Record> {
        let (epk, id, fields) = (contents.epk.as_bytes(), contents.id.as_bytes(), contents.fields.as_bytes());
        let too_long = |_| Error::internal("an effective key or id is longer than a record can hold");
        let epk_len = u8::try_from(epk.len()).map_err(too_long)?;
        let id_len = u16::try_from(id.len()).map_err(too_long)?;
        let unindexed = if contents.indexed { 0 } else { FLAG_NOT_INDEXED };
        let tagged = if contents.etag_source.is_some() { FLAG_ETAG_SOURCE } else { 0 };
        let mut out = Vec::with_capacity(FIXED_BYTES + 14 + epk.len() + id.len() + fields.len() + contents.body.len());
        out.push(CODEC_JSON);
        out.extend_from_slice(&lsn.to_be_bytes());
        out.extend_from_slice(&seq.to_be_bytes());
        out.extend_from_slice(&contents.ts_s.to_be_bytes());
        out.extend_from_slice(&contents.docnum.to_be_bytes());
        out.extend_from_slice(&contents.terms.to_be_bytes());
        out.push(unindexed | tagged);
        if let Some((lsn, seq)) = contents.etag_source {
            out.extend_from_slice(&lsn.to_be_bytes());
            out.extend_from_slice(&seq.to_be_bytes());
        }
        out.push(epk_len);
        out.extend_from_slice(epk);
        out.extend_from_slice(&id_len.to_be_bytes());
        out.extend_from_slice(id);
        out.extend_from_slice(fields);
        out.extend_from_slice(contents.body);
        Record::decode(Bytes::from(out))
    }

    pub fn decode(bytes: Bytes) -> Result<Record> {
        let RecordView {
            lsn,
            seq,
            ts_s,
            docnum,
            terms,
            indexed,
            epk,
            etag_source,
            id_at,
            id_len,
            fields_len,
            body_at,
            ..
        } = RecordView::read(&bytes)?;
        let epk = EffectiveKey::from_bytes(epk);
        Ok(Record {
            lsn,
            seq,
            ts_s,
            docnum,
            terms,
            indexed,
            epk,
            etag_source,
            bytes,
            id_at,
            id_len,
            fields_len,
            body_at,
        })
    }

    /// The same version with its LSN and sequence number, which it did not have before.
    pub fn with_lsn(&self, lsn: u64, seq: u16) -> Record {
        let mut bytes = self.bytes.to_vec();
        bytes[LSN_AT..LSN_AT + 8].copy_from_slice(&lsn.to_be_bytes());
        bytes[LSN_AT + 8..LSN_AT + 10].copy_from_slice(&seq.to_be_bytes());
        Record { lsn, seq, bytes: bytes.into(), ..self.clone() }
    }

    /// The same record without a copy.
    pub fn view(&self) -> RecordView<'_> {
        RecordView {
            lsn: self.lsn,
            seq: self.seq,
            ts_s: self.ts_s,
            docnum: self.docnum,
            terms: self.terms,
            indexed: self.indexed,
            epk: self.epk.as_bytes(),
            etag_source: self.etag_source,
            bytes: &self.bytes,
            id_at: self.id_at,
            id_len: self.id_len,
            fields_len: self.fields_len,
            body_at: self.body_at,
        }
    }

    pub fn id(&self) -> &str {
        // It was encoded from text. A corrupt id reads as empty and matches nothing.
        std::str::from_utf8(&self.bytes[self.id_at..self.id_at + self.id_len]).unwrap_or_default()
    }

    /// The item's JSON text without system properties.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body_at..]
    }

    pub fn etag(&self) -> Etag {
        self.view().etag()
    }

    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

/// A borrowed record, parsed in place. Queries read every candidate item this way: nothing is copied or validated that
/// need not be.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'a> {
    pub lsn: u64,
    pub seq: u16,
    pub ts_s: u32,
    pub docnum: u64,
    pub terms: u32,
    pub indexed: bool,
    pub epk: &'a [u8],
    etag_source: EtagSource,
    bytes: &'a [u8],
    id_at: usize,
    id_len: usize,
    fields_len: Option<usize>,
    body_at: usize,
}

impl<'a> RecordView<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<RecordView<'a>> {
        let mut at = Cursor { bytes, at: 0 };
        let listed = match at.take::<1>()? {
            [CODEC_JSON] => true,
            [CODEC_JSON_UNLISTED] => false,
            [other] => return Err(Error::corrupt(format_args!("record codec {other}"))),
        };
        let lsn = u64::from_be_bytes(at.take()?);
        let seq = u16::from_be_bytes(at.take()?);
        let ts_s = u32::from_be_bytes(at.take()?);
        let docnum = u64::from_be_bytes(at.take()?);
        let terms = u32::from_be_bytes(at.take()?);
        // Without flags, an item without index rows counts as excluded from the index.
        let flags = if listed { at.take::<1>()?[0] } else { 0 };
        let indexed = if listed { flags & FLAG_NOT_INDEXED == 0 } else { terms > 0 };
        let etag_source = match flags & FLAG_ETAG_SOURCE {
            0 => (lsn, seq),
            _ => (u64::from_be_bytes(at.take()?), u16::from_be_bytes(at.take()?)),
        };
        let [epk_len] = at.take()?;
        let epk = at.slice(usize::from(epk_len))?;
        let id_len = usize::from(u16::from_be_bytes(at.take()?));
        let id_at = at.at;
        at.slice(id_len)?;
        let fields_len = if listed { fields::entries_bytes(u16::from_be_bytes(at.take()?)) } else { None };
        at.slice(fields_len.unwrap_or(0))?;
        let body_at = at.at;
        Ok(RecordView {
            lsn,
            seq,
            ts_s,
            docnum,
            terms,
            indexed,
            epk,
            etag_source,
            bytes,
            id_at,
            id_len,
            fields_len,
            body_at,
        })
    }

    pub fn body(&self) -> &'a [u8] {
        &self.bytes[self.body_at..]
    }

    /// The JSON text of one of the body's properties; `hash` is the name's `name_hash`.
    pub fn property(&self, name: &str, hash: u32) -> Option<&'a [u8]> {
        match self.fields_len {
            Some(len) => fields::find(&self.bytes[self.body_at - len..self.body_at], self.body(), name, hash),
            None => lazy::property(self.body(), name),
        }
    }

    pub fn etag(&self) -> Etag {
        // The docnum's range prefix distinguishes versions that two partitions wrote at one LSN.
        let (lsn, seq) = self.etag_source;
        Etag { lsn, seq, ts_s: self.ts_s, space: (self.docnum >> 40) as u16 }
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let slice = self.slice(N)?;
        slice.try_into().map_err(|_| Error::corrupt("record header"))
    }

    fn slice(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.at + len;
        let slice = self.bytes.get(self.at..end).ok_or_else(|| Error::corrupt("record cut short"))?;
        self.at = end;
        Ok(slice)
    }
}

#[cfg(test)]
mod tests;
