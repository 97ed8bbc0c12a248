//! An item as bytes.
//!
//! Promise: a record holds everything a point read answers with, so that the body is copied and
//! never re-serialised. System properties are not in the body; readers add them from the header.
//! A filter finds one property of the body without reading the rest: `fields` lists where each is.
//!
//! ```text
//! codec u8 │ lsn u64 │ seq u16 │ ts_s u32 │ docnum u64 │ terms u32 │ flags u8 │ epk len u8 │ epk │ id len u16 │ id
//!  02      │ 00…03 2c│ 00 00   │ 64 51 …  │ 00…01 05   │ 00…0a     │ 00       │ 10         │ …   │ 00 02      │ "a1"
//!
//! │ fields                   │ body
//! │ 00 02 │ hash, offset │ … │ {"id":"a1",…}
//! ```
//!
//! Integers are big-endian. `terms` is how many rows the item has in the index: what its deletion
//! will cost is known without parsing it. Flag 01: its writer wanted it out of the index. Flag 02: it was written in a
//! transaction, which told its etag before it had an LSN; that etag's `lsn u64 │ seq u16` follow the flags.
//!
//! Records of codec 1 have neither flags nor fields. They are read, and written no more.

use bytes::Bytes;
use pleiad_model::etag::Etag;
use pleiad_model::json::lazy;
use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::{Error, Result};

mod fields; // where an item's properties are in its text

pub use fields::FieldOffsets;
pub use pleiad_model::json::lazy::name_hash;

/// JSON text in UTF-8. Other APIs will bring their own codecs, and their own types, with them.
const CODEC_JSON: u8 = 2;
const CODEC_JSON_UNLISTED: u8 = 1;
const LSN_AT: usize = 1;
const FIXED_BYTES: usize = 1 + 8 + 2 + 4 + 8 + 4;

const FLAG_NOT_INDEXED: u8 = 0x01;
const FLAG_TAGGED: u8 = 0x02;

/// What tells a version from all others of its item, besides its time: its place in the commit history, unless its etag
/// was told before it had one.
pub type EtagSource = (u64, u16);

#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub lsn: u64,
    pub seq: u16,
    pub ts_s: u32,
    pub docnum: u64,
    pub terms: u32,
    /// Whether the write left it to the policy what is indexed; otherwise nothing is.
    pub indexed: bool,
    pub epk: EffectiveKey,
    tag: EtagSource,
    bytes: Bytes,
    id_at: usize,
    id_len: usize,
    /// How many bytes of field entries lie before the body, if fields are listed.
    fields_len: Option<usize>,
    body_at: usize,
}

/// What a record is made of, before it has a place in the commit history.
pub struct Contents<'a> {
    pub docnum: u64,
    pub ts_s: u32,
    pub terms: u32,
    pub indexed: bool,
    /// Given away already, if it was.
    pub tag: Option<EtagSource>,
    pub epk: &'a EffectiveKey,
    pub id: &'a str,
    /// Of the body.
    pub fields: &'a FieldOffsets,
    pub body: &'a [u8],
}

impl Record {
    /// Lays the record out at its place in the commit history.
    pub fn encode(contents: &Contents<'_>, lsn: u64, seq: u16) -> Result<Record> {
        let (epk, id, fields) = (contents.epk.as_bytes(), contents.id.as_bytes(), contents.fields.as_bytes());
        let too_long = |_| Error::internal("an effective key or id is longer than a record can hold");
        let epk_len = u8::try_from(epk.len()).map_err(too_long)?;
        let id_len = u16::try_from(id.len()).map_err(too_long)?;
        let unindexed = if contents.indexed { 0 } else { FLAG_NOT_INDEXED };
        let tagged = if contents.tag.is_some() { FLAG_TAGGED } else { 0 };
        let mut out = Vec::with_capacity(FIXED_BYTES + 14 + epk.len() + id.len() + fields.len() + contents.body.len());
        out.push(CODEC_JSON);
        out.extend_from_slice(&lsn.to_be_bytes());
        out.extend_from_slice(&seq.to_be_bytes());
        out.extend_from_slice(&contents.ts_s.to_be_bytes());
        out.extend_from_slice(&contents.docnum.to_be_bytes());
        out.extend_from_slice(&contents.terms.to_be_bytes());
        out.push(unindexed | tagged);
        if let Some((lsn, seq)) = contents.tag {
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
        let RecordView { lsn, seq, ts_s, docnum, terms, indexed, epk, tag, id_at, id_len, fields_len, body_at, .. } =
            RecordView::read(&bytes)?;
        let epk = EffectiveKey::from_bytes(epk);
        Ok(Record { lsn, seq, ts_s, docnum, terms, indexed, epk, tag, bytes, id_at, id_len, fields_len, body_at })
    }

    /// The same version at its place in the commit history, which it did not have before.
    pub fn placed(&self, lsn: u64, seq: u16) -> Record {
        let mut bytes = self.bytes.to_vec();
        bytes[LSN_AT..LSN_AT + 8].copy_from_slice(&lsn.to_be_bytes());
        bytes[LSN_AT + 8..LSN_AT + 10].copy_from_slice(&seq.to_be_bytes());
        Record { lsn, seq, bytes: bytes.into(), ..self.clone() }
    }

    /// The same record, where it lies.
    pub fn view(&self) -> RecordView<'_> {
        RecordView {
            lsn: self.lsn,
            seq: self.seq,
            ts_s: self.ts_s,
            docnum: self.docnum,
            terms: self.terms,
            indexed: self.indexed,
            epk: self.epk.as_bytes(),
            tag: self.tag,
            bytes: &self.bytes,
            id_at: self.id_at,
            id_len: self.id_len,
            fields_len: self.fields_len,
            body_at: self.body_at,
        }
    }

    pub fn id(&self) -> &str {
        // We wrote it from text. A damaged one is empty, and matches nothing.
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

/// A record as it lies in the store. Queries read every item they look at: nothing is copied or checked here that need
/// not be.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'a> {
    pub lsn: u64,
    pub seq: u16,
    pub ts_s: u32,
    pub docnum: u64,
    pub terms: u32,
    pub indexed: bool,
    pub epk: &'a [u8],
    tag: EtagSource,
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
        // Without the flag, an item without index rows is as good as one that wanted none.
        let flags = if listed { at.take::<1>()?[0] } else { 0 };
        let indexed = if listed { flags & FLAG_NOT_INDEXED == 0 } else { terms > 0 };
        let tag = match flags & FLAG_TAGGED {
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
        Ok(RecordView { lsn, seq, ts_s, docnum, terms, indexed, epk, tag, bytes, id_at, id_len, fields_len, body_at })
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
        // The docnum's range prefix tells apart the versions that two partitions wrote at one LSN.
        let (lsn, seq) = self.tag;
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
