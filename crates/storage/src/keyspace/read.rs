//! Key decoding: keys back into fields. A store may return damaged bytes: they are reported as an error, never a
//! panic.

use super::{Result, RowPlacement, Tag, malformed_key};

/// The shard of any key.
pub fn shard_of(key: &[u8]) -> Result<u64> {
    KeyReader { rest: key }.u64().ok_or_else(|| malformed_key("shard's"))
}

/// docnum
pub fn docnum_of_doc(key: &[u8]) -> Result<u64> {
    decode(key, Tag::Doc, "doc", |fields| fields.u64())
}

/// EPK, hash of key components and id
pub fn decode_id(key: &[u8]) -> Result<(Vec<u8>, [u8; 16])> {
    decode(key, Tag::Id, "id", |fields| Some((fields.epk()?, fields.array()?)))
}

/// EPK, hash of the key components
pub fn decode_key_stats(key: &[u8]) -> Result<(Vec<u8>, [u8; 16])> {
    decode(key, Tag::Key, "key", |fields| Some((fields.epk()?, fields.array()?)))
}

/// EPK, docnum
pub fn decode_member(key: &[u8]) -> Result<(Vec<u8>, u64)> {
    decode(key, Tag::Member, "member", |fields| Some((fields.epk()?, fields.u64()?)))
}

/// path hash, encoded value, docnum
pub fn decode_index(key: &[u8]) -> Result<(u64, &[u8], u64)> {
    decode(key, Tag::Index, "index", |fields| {
        let path_hash = fields.u64()?;
        let value = fields.take(fields.rest.len().checked_sub(8)?)?;
        Some((path_hash, value, fields.u64()?))
    })
}

/// path hash, docnum
pub fn decode_vector(key: &[u8]) -> Result<(u64, u64)> {
    decode(key, Tag::Vector, "vector", |fields| Some((fields.u64()?, fields.u64()?)))
}

/// path hash, docnum
pub fn decode_graph(key: &[u8]) -> Result<(u64, u64)> {
    decode(key, Tag::Graph, "graph", |fields| Some((fields.u64()?, fields.u64()?)))
}

/// time in seconds, docnum
pub fn decode_ttl(key: &[u8]) -> Result<(u32, u64)> {
    decode(key, Tag::Ttl, "ttl", |fields| Some((fields.u32()?, fields.u64()?)))
}

/// LSN, seq, docnum
pub fn decode_feed(key: &[u8]) -> Result<(u64, u32, u64)> {
    decode(key, Tag::Feed, "feed", |fields| Some((fields.u64()?, fields.u32()?, fields.u64()?)))
}

/// LSN and seq, from the old layout of feed keys without a docnum.
pub fn decode_feed_v1(key: &[u8]) -> Result<(u64, u32)> {
    decode(key, Tag::Feed, "former feed", |fields| Some((fields.u64()?, fields.u32()?)))
}

/// LSN, seq, docnum
pub fn decode_log(key: &[u8]) -> Result<(u64, u32, u64)> {
    decode(key, Tag::Log, "log", |fields| Some((fields.u64()?, fields.u32()?, fields.u64()?)))
}

/// Which part of a row of a copied keyspace determines its position in the hash space.
pub fn placement(tag: Tag, key: &[u8]) -> Result<RowPlacement> {
    match tag {
        Tag::Doc | Tag::Feed | Tag::Version => Ok(RowPlacement::InValue),
        Tag::Id | Tag::Key => decode(key, tag, "id or key", |fields| {
            let epk = fields.epk()?;
            fields.array::<16>().map(|_| RowPlacement::AtEpk(epk))
        }),
        Tag::KeyTombstone => decode_key_tombstone(key).map(RowPlacement::AtEpk),
        Tag::Member => decode_member(key).map(|(epk, _)| RowPlacement::AtEpk(epk)),
        Tag::Unique => decode(key, tag, "unique", |fields| {
            fields.u64()?;
            let epk = fields.epk()?;
            fields.array::<16>().map(|_| RowPlacement::AtEpk(epk))
        }),
        Tag::Ttl => decode_ttl(key).map(|(_, docnum)| RowPlacement::WithItem(docnum)),
        Tag::Index => decode_index(key).map(|(_, _, docnum)| RowPlacement::WithItem(docnum)),
        Tag::Vector => decode_vector(key).map(|(_, docnum)| RowPlacement::WithItem(docnum)),
        Tag::Catalog | Tag::Graph | Tag::Log | Tag::State => Err(malformed_key("copied")),
    }
}

/// EPK
pub fn decode_key_tombstone(key: &[u8]) -> Result<Vec<u8>> {
    decode(key, Tag::KeyTombstone, "erased", |fields| fields.epk())
}

/// LSN, seq, docnum
pub fn decode_version(key: &[u8]) -> Result<(u64, u32, u64)> {
    decode(key, Tag::Version, "version", |fields| Some((fields.u64()?, fields.u32()?, fields.u64()?)))
}

/// Reads shard and tag, then the fields, and requires that no bytes are left.
fn decode<'a, T>(key: &'a [u8], tag: Tag, what: &str, read: impl FnOnce(&mut KeyReader<'a>) -> Option<T>) -> Result<T> {
    let mut fields = KeyReader { rest: key };
    let all = || {
        fields.u64()?;
        let [found] = fields.array()?;
        let value = if found == tag as u8 { read(&mut fields)? } else { return None };
        fields.rest.is_empty().then_some(value)
    };
    all().ok_or_else(|| malformed_key(what))
}

struct KeyReader<'a> {
    rest: &'a [u8],
}

impl<'a> KeyReader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(bytes)?;
        self.rest = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.rest.split_first_chunk()?;
        self.rest = tail;
        Some(*head)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn epk(&mut self) -> Option<Vec<u8>> {
        let mut epk = Vec::with_capacity(16);
        loop {
            match self.array()? {
                [0] => match self.array()? {
                    [0xFF] => epk.push(0),
                    [0x01] => return Some(epk),
                    _ => return None,
                },
                [byte] => epk.push(byte),
            }
        }
    }
}
