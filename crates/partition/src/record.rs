//! An item as bytes.
//!
//! Promise: a record holds everything a point read answers with, so that the body is copied and
//! never re-serialised. System properties are not in the body; readers add them from the header.
//!
//! ```text
//! codec u8 │ lsn u64 │ seq u16 │ ts_s u32 │ docnum u64 │ terms u32 │ epk len u8 │ epk │ id len u16 │ id │ body
//!  01      │ 00…03 2c│ 00 00   │ 64 51 …  │ 00…01 05   │ 00…0a     │ 10         │ …   │ 00 02     │ "a1"│ {"id":"a1",…}
//! ```
//!
//! Integers are big-endian. `terms` is how many rows the item has in the index: what its deletion
//! will cost is known without parsing it.

use bytes::Bytes;
use pleiad_model::etag::Etag;
use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::{Error, Result};

/// JSON text in UTF-8. Other APIs will bring their own codecs, and their own types, with them.
const CODEC_JSON: u8 = 1;
const FIXED_BYTES: usize = 1 + 8 + 2 + 4 + 8 + 4;

#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub lsn: u64,
    pub seq: u16,
    pub ts_s: u32,
    pub docnum: u64,
    pub terms: u32,
    pub epk: EffectiveKey,
    bytes: Bytes,
    id_at: usize,
    body_at: usize,
}

/// What a record is made of, before it has a place in the commit history.
pub struct Contents<'a> {
    pub docnum: u64,
    pub ts_s: u32,
    pub terms: u32,
    pub epk: &'a EffectiveKey,
    pub id: &'a str,
    pub body: &'a [u8],
}

impl Record {
    /// Lays the record out at its place in the commit history.
    pub fn encode(contents: &Contents<'_>, lsn: u64, seq: u16) -> Result<Record> {
        let epk = contents.epk.as_bytes();
        let too_long = |_| Error::internal("an effective key or id is longer than a record can hold");
        let epk_len = u8::try_from(epk.len()).map_err(too_long)?;
        let id_len = u16::try_from(contents.id.len()).map_err(too_long)?;
        let mut out = Vec::with_capacity(FIXED_BYTES + 3 + epk.len() + contents.id.len() + contents.body.len());
        out.push(CODEC_JSON);
        out.extend_from_slice(&lsn.to_be_bytes());
        out.extend_from_slice(&seq.to_be_bytes());
        out.extend_from_slice(&contents.ts_s.to_be_bytes());
        out.extend_from_slice(&contents.docnum.to_be_bytes());
        out.extend_from_slice(&contents.terms.to_be_bytes());
        out.push(epk_len);
        out.extend_from_slice(epk);
        out.extend_from_slice(&id_len.to_be_bytes());
        out.extend_from_slice(contents.id.as_bytes());
        out.extend_from_slice(contents.body);
        Record::decode(Bytes::from(out))
    }

    pub fn decode(bytes: Bytes) -> Result<Record> {
        let mut at = Cursor { bytes: &bytes, at: 0 };
        match at.take::<1>()? {
            [CODEC_JSON] => {}
            [other] => return Err(Error::corrupt(format_args!("record codec {other}"))),
        }
        let lsn = u64::from_be_bytes(at.take()?);
        let seq = u16::from_be_bytes(at.take()?);
        let ts_s = u32::from_be_bytes(at.take()?);
        let docnum = u64::from_be_bytes(at.take()?);
        let terms = u32::from_be_bytes(at.take()?);
        let [epk_len] = at.take()?;
        let epk = EffectiveKey::from_bytes(at.slice(usize::from(epk_len))?);
        let id_len = usize::from(u16::from_be_bytes(at.take()?));
        let id_at = at.at;
        std::str::from_utf8(at.slice(id_len)?).map_err(|_| Error::corrupt("record id is not UTF-8"))?;
        let body_at = at.at;
        Ok(Record { lsn, seq, ts_s, docnum, terms, epk, bytes, id_at, body_at })
    }

    pub fn id(&self) -> &str {
        // Checked when the record was decoded; an empty id matches nothing.
        std::str::from_utf8(&self.bytes[self.id_at..self.body_at]).unwrap_or_default()
    }

    /// The item's JSON text without system properties.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body_at..]
    }

    pub fn etag(&self) -> Etag {
        // The docnum's range prefix tells apart the versions that two partitions wrote at one LSN.
        Etag { lsn: self.lsn, seq: self.seq, ts_s: self.ts_s, space: (self.docnum >> 40) as u16 }
    }

    pub fn bytes(&self) -> &Bytes {
        &self.bytes
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
