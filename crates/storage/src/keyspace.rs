//! Key layout: how shards, tags and fields become store keys, in an order-preserving encoding.
//!
//! Invariant: the byte order of keys is the order of their fields, and no key is longer than `KEY_BYTES_MAX`, so that
//! every store can hold it. This module encodes and decodes keys only; `partition` encodes the values, `engine` those
//! of the catalog.
//!
//! Every key starts with its shard, the storage identity of one version of one partition, so that a shard is one
//! contiguous range and dropping it is one range delete. A tag follows, then the fields, all numbers big-endian:
//!
//! ```text
//! shard u64 │ 'd' │ docnum u64                             doc           an item's record
//! shard u64 │ 'e' │ EPK…                                   key_tombstone LSN up to which a key's items are deleted
//! shard u64 │ 'f' │ LSN u64 │ seq u32 │ docnum u64         feed          the newest change of each item
//! shard u64 │ 'g' │ path hash u64 │ docnum u64             graph         an item's neighbors in a path's ANN graph
//! shard u64 │ 'i' │ EPK… │ hash 16                         id            finds the item of an id
//! shard u64 │ 'k' │ EPK… │ hash 16                         key_stats     statistics of a logical partition
//! shard u64 │ 'l' │ LSN u64 │ seq u32 │ docnum u64         log           every change, for copies to catch up
//! shard u64 │ 'm' │ EPK… │ docnum u64                      member        a key's items, in insertion order
//! shard u64 │ 's' │                                        state         what the shard stores about itself
//! shard u64 │ 't' │ time u32, seconds │ docnum u64         ttl           reserved: no version writes such rows
//! shard u64 │ 'u' │ paths hash u64 │ EPK… │ values hash 16 unique        holder of a unique value
//! shard u64 │ 'v' │ LSN u64 │ seq u32 │ docnum u64         version       changes with images; a policy retains them
//! shard u64 │ 'x' │ path hash u64 │ value… │ docnum u64    index         every indexed path
//! shard u64 │ 'z' │ path hash u64 │ docnum u64             vector        an item's vector at a path
//! 0     u64 │ 'c' │ kind u8 │ rest…                        catalog       databases, containers, maps
//! ```
//!
//! An EPK has any length and is followed by other fields, so it is escaped: a zero byte becomes `00 FF`, and `00 01`
//! ends the EPK. `01` is below `FF`, hence an EPK sorts before its own extensions, and no escaped EPK is a prefix of
//! another.
//!
//! ```text
//! EPK       7F            7F 00            7F 00 01
//! written   7F 00 01  <   7F 00 FF 00 01   < 7F 00 FF 01 00 01
//! ```
//!
//! An index value is written unescaped: the memcomparable encoding in `partition` is prefix-free already.

use bytes::Bytes;
use pleiad_model::{Error, Result};

mod read;
pub use read::{
    decode_feed, decode_feed_v1, decode_graph, decode_id, decode_index, decode_key_stats, decode_key_tombstone,
    decode_log, decode_member, decode_ttl, decode_vector, decode_version, docnum_of_doc, placement, shard_of,
};

/// The longest key that every store can hold. PostgreSQL sets the limit: a row of a B-tree has at most 2,704 bytes,
/// of which the row's header takes 8 and the length of the key 4.
pub const KEY_BYTES_MAX: usize = 2_704 - 8 - 4;
/// The maximum length of the value in an index key.
pub const INDEX_VALUE_BYTES_MAX: usize = KEY_BYTES_MAX - 9 - 8 - 8;
/// The catalog is stored in a shard that no partition gets.
pub const CATALOG_SHARD: u64 = 0;

const EPK_ZERO: [u8; 2] = [0x00, 0xFF];
const EPK_END: [u8; 2] = [0x00, 0x01];

/// The second field of every key. All are ASCII letters; `FF` is above each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Tag {
    Catalog = b'c',
    Doc = b'd',
    KeyTombstone = b'e',
    Feed = b'f',
    Graph = b'g',
    Id = b'i',
    Key = b'k',
    Log = b'l',
    Member = b'm',
    State = b's',
    Ttl = b't',
    Unique = b'u',
    Version = b'v',
    Index = b'x',
    Vector = b'z',
}

impl TryFrom<u8> for Tag {
    type Error = Error;

    fn try_from(byte: u8) -> Result<Tag> {
        const ALL: [Tag; 15] = [
            Tag::Catalog,
            Tag::Doc,
            Tag::KeyTombstone,
            Tag::Feed,
            Tag::Graph,
            Tag::Id,
            Tag::Key,
            Tag::Log,
            Tag::Member,
            Tag::State,
            Tag::Ttl,
            Tag::Unique,
            Tag::Version,
            Tag::Index,
            Tag::Vector,
        ];
        ALL.into_iter().find(|tag| *tag as u8 == byte).ok_or_else(|| malformed_key("known"))
    }
}

/// `shard │ 'd' │ docnum`, `00…00 07 │ 64 │ 00…00 2a`
pub fn doc(shard: u64, docnum: u64) -> Bytes {
    KeyBuilder::new(shard, Tag::Doc).u64(docnum).finish()
}

/// The keys of many items' records, which share one allocation.
pub fn docs(shard: u64, docnums: &[u64]) -> Vec<Bytes> {
    let start = doc(shard, 0);
    let start = &start[..start.len() - size_of::<u64>()];
    let mut rows = Vec::with_capacity(docnums.len() * (start.len() + size_of::<u64>()));
    for docnum in docnums {
        rows.extend_from_slice(start);
        rows.extend_from_slice(&docnum.to_be_bytes());
    }
    let mut rows = Bytes::from(rows);
    docnums.iter().map(|_| rows.split_to(start.len() + size_of::<u64>())).collect()
}

/// `shard │ 'i' │ EPK │ hash`: the hash covers key components and id.
pub fn id(shard: u64, epk: &[u8], hash: &[u8; 16]) -> Bytes {
    KeyBuilder::new(shard, Tag::Id).epk(epk).raw(hash).finish()
}

/// `shard │ 'm' │ EPK │ docnum`, `00…00 07 │ 6d │ 7f 00 ff 00 01 │ 00…00 2a` for EPK `7f 00`
pub fn member(shard: u64, epk: &[u8], docnum: u64) -> Bytes {
    KeyBuilder::new(shard, Tag::Member).epk(epk).u64(docnum).finish()
}

/// `shard │ 'k' │ EPK │ hash`: the hash covers the key components.
pub fn key_stats(shard: u64, epk: &[u8], hash: &[u8; 16]) -> Bytes {
    KeyBuilder::new(shard, Tag::Key).epk(epk).raw(hash).finish()
}

/// `shard │ 'e' │ EPK`, `00…00 07 │ 65 │ 7f 00 ff 00 01` for EPK `7f 00`
pub fn key_tombstone(shard: u64, epk: &[u8]) -> Bytes {
    KeyBuilder::new(shard, Tag::KeyTombstone).epk(epk).finish()
}

/// `shard │ 'x' │ path hash │ value │ docnum`
pub fn index(shard: u64, path_hash: u64, value: &[u8], docnum: u64) -> Bytes {
    KeyBuilder::new(shard, Tag::Index).u64(path_hash).raw(value).u64(docnum).finish()
}

/// `index`, into a buffer that the caller reuses: an item has a dozen of these keys.
pub fn index_into(out: &mut Vec<u8>, shard: u64, path_hash: u64, value: &[u8], docnum: u64) {
    out.clear();
    let key = KeyBuilder { bytes: std::mem::take(out) };
    *out = key.shard(shard).tag(Tag::Index).u64(path_hash).raw(value).u64(docnum).check();
}

/// `shard │ 'z' │ path hash │ docnum`, `00…00 07 │ 7a │ 00…00 05 │ 00…00 2a`
pub fn vector(shard: u64, path_hash: u64, docnum: u64) -> Bytes {
    KeyBuilder::new(shard, Tag::Vector).u64(path_hash).u64(docnum).finish()
}

/// `shard │ 'g' │ path hash │ docnum`. No item has docnum 0: its row holds the LSN up to which the graph is complete.
pub fn graph(shard: u64, path_hash: u64, docnum: u64) -> Bytes {
    KeyBuilder::new(shard, Tag::Graph).u64(path_hash).u64(docnum).finish()
}

/// `shard │ 'u' │ paths hash │ EPK │ values hash`
pub fn unique(shard: u64, paths_hash: u64, epk: &[u8], values_hash: &[u8; 16]) -> Bytes {
    KeyBuilder::new(shard, Tag::Unique).u64(paths_hash).epk(epk).raw(values_hash).finish()
}

/// `shard │ 't' │ time │ docnum`
pub fn ttl(shard: u64, time_s: u32, docnum: u64) -> Bytes {
    KeyBuilder::new(shard, Tag::Ttl).u32(time_s).u64(docnum).finish()
}

/// `shard │ 'f' │ LSN │ seq │ docnum`, `00…00 07 │ 66 │ 00…00 03 2c │ 00 00 00 01 │ 00…00 2a`
///
/// Partitions count their LSNs independently. After a merge, two changes may both have LSN 812; the docnum
/// distinguishes them.
pub fn feed(shard: u64, lsn: u64, seq: u32, docnum: u64) -> Bytes {
    KeyBuilder::new(shard, Tag::Feed).u64(lsn).u32(seq).u64(docnum).finish()
}

/// The changes of one partition from an LSN onwards.
pub fn feed_from(shard: u64, lsn: u64) -> (Bytes, Bytes) {
    (KeyBuilder::new(shard, Tag::Feed).u64(lsn).finish(), range(shard, Tag::Feed).1)
}

/// `shard │ 'l' │ LSN │ seq │ docnum`
pub fn log(shard: u64, lsn: u64, seq: u32, docnum: u64) -> Bytes {
    KeyBuilder::new(shard, Tag::Log).u64(lsn).u32(seq).u64(docnum).finish()
}

/// The log from an LSN onwards.
pub fn log_from(shard: u64, lsn: u64) -> (Bytes, Bytes) {
    (KeyBuilder::new(shard, Tag::Log).u64(lsn).finish(), range(shard, Tag::Log).1)
}

/// The same key in another shard.
pub fn with_shard(key: &[u8], shard: u64) -> Vec<u8> {
    [&shard.to_be_bytes(), key.get(8..).unwrap_or_default()].concat()
}

/// `shard │ 'v' │ LSN │ seq │ docnum`. Deleted items have versions too, so the value begins with the effective key,
/// which determines the hash range that the row belongs to.
pub fn version(shard: u64, lsn: u64, seq: u32, docnum: u64) -> Bytes {
    KeyBuilder::new(shard, Tag::Version).u64(lsn).u32(seq).u64(docnum).finish()
}

/// The versions of one partition from an LSN onwards.
pub fn versions_from(shard: u64, lsn: u64) -> (Bytes, Bytes) {
    (KeyBuilder::new(shard, Tag::Version).u64(lsn).finish(), range(shard, Tag::Version).1)
}

/// `shard │ 's'`
pub fn state(shard: u64) -> Bytes {
    KeyBuilder::new(shard, Tag::State).finish()
}

/// `0 │ 'c' │ kind │ rest`
pub fn catalog(kind: u8, rest: &[u8]) -> Bytes {
    KeyBuilder::new(CATALOG_SHARD, Tag::Catalog).raw(&[kind]).raw(rest).finish()
}

/// Which part of a row determines its position in the hash space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowPlacement {
    /// The key holds the EPK.
    AtEpk(Vec<u8>),
    /// The row belongs to the item with this docnum.
    WithItem(u64),
    /// The value determines it: a record, a version, or in the feed the bare EPK.
    InValue,
}

/// The keyspaces that a copy of a part of a shard includes, in the order of their tags. The log belongs to one copy
/// only, the counters of the shard state are computed again, and a graph is rebuilt: half of a graph is useless.
pub const COPIED_TAGS: [Tag; 11] = [
    Tag::Doc,
    Tag::KeyTombstone,
    Tag::Feed,
    Tag::Id,
    Tag::Key,
    Tag::Member,
    Tag::Ttl,
    Tag::Unique,
    Tag::Version,
    Tag::Index,
    Tag::Vector,
];

// Ranges, always `[from, to)`.

/// All of one shard.
pub fn shard_range(shard: u64) -> (Bytes, Bytes) {
    let key = || KeyBuilder::empty().shard(shard);
    (key().finish(), key().raw(&[0xFF]).finish())
}

/// All of one tag of a shard.
pub fn range(shard: u64, tag: Tag) -> (Bytes, Bytes) {
    prefix_range(KeyBuilder::new(shard, tag).bytes)
}

/// All of one kind in the catalog whose rest begins with `prefix`.
pub fn catalog_range(kind: u8, prefix: &[u8]) -> (Bytes, Bytes) {
    prefix_range(KeyBuilder::new(CATALOG_SHARD, Tag::Catalog).raw(&[kind]).raw(prefix).bytes)
}

/// The keys of `tag` (id, member or key) whose EPK lies in `[min, max)`; without `max` there is no upper bound.
pub fn epk_range(shard: u64, tag: Tag, min: &[u8], max: Option<&[u8]>) -> (Bytes, Bytes) {
    let from = KeyBuilder::new(shard, tag).epk(min).finish();
    let to = match max {
        Some(max) => KeyBuilder::new(shard, tag).epk(max).finish(),
        None => range(shard, tag).1,
    };
    (from, to)
}

/// The keys of `tag` (id, member or key) with exactly this EPK.
pub fn epk_exact(shard: u64, tag: Tag, epk: &[u8]) -> (Bytes, Bytes) {
    prefix_range(KeyBuilder::new(shard, tag).epk(epk).bytes)
}

/// The index entries of a path whose encoded value begins with `prefix`; empty means all of the path.
pub fn index_range(shard: u64, path_hash: u64, prefix: &[u8]) -> (Bytes, Bytes) {
    prefix_range(KeyBuilder::new(shard, Tag::Index).u64(path_hash).raw(prefix).bytes)
}

/// The vectors of a path.
pub fn vector_range(shard: u64, path_hash: u64) -> (Bytes, Bytes) {
    prefix_range(KeyBuilder::new(shard, Tag::Vector).u64(path_hash).bytes)
}

/// The graph over the vectors of a path.
pub fn graph_range(shard: u64, path_hash: u64) -> (Bytes, Bytes) {
    prefix_range(KeyBuilder::new(shard, Tag::Graph).u64(path_hash).bytes)
}

/// The first key after `key`: where a forward scan continues.
pub fn after(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    Bytes::from(next)
}

/// The keys that begin with `prefix`, which starts with a shard and a tag.
fn prefix_range(prefix: Vec<u8>) -> (Bytes, Bytes) {
    let end = prefix_end(&prefix);
    (Bytes::from(prefix), end)
}

/// The first key after all that begin with `prefix`: the prefix up to its last byte that is not `FF`, incremented.
fn prefix_end(prefix: &[u8]) -> Bytes {
    let length = prefix.iter().rposition(|&byte| byte != 0xFF).map_or(0, |at| at + 1);
    let mut end = prefix[..length].to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    Bytes::from(end)
}

/// A key under construction.
struct KeyBuilder {
    bytes: Vec<u8>,
}

impl KeyBuilder {
    // Most keys fit: shard, tag, an EPK of one level with an escaped byte or two, and a hash.
    const BYTES_USUAL: usize = 48;

    fn empty() -> Self {
        KeyBuilder { bytes: Vec::with_capacity(KeyBuilder::BYTES_USUAL) }
    }

    fn new(shard: u64, tag: Tag) -> Self {
        KeyBuilder::empty().shard(shard).tag(tag)
    }

    fn shard(self, shard: u64) -> Self {
        self.u64(shard)
    }

    fn tag(self, tag: Tag) -> Self {
        self.raw(&[tag as u8])
    }

    fn u64(self, n: u64) -> Self {
        self.raw(&n.to_be_bytes())
    }

    fn u32(self, n: u32) -> Self {
        self.raw(&n.to_be_bytes())
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn epk(mut self, epk: &[u8]) -> Self {
        for &byte in epk {
            match byte {
                0 => self.bytes.extend_from_slice(&EPK_ZERO),
                _ => self.bytes.push(byte),
            }
        }
        self.raw(&EPK_END)
    }

    fn check(self) -> Vec<u8> {
        debug_assert!(self.bytes.len() <= KEY_BYTES_MAX, "a key of {} bytes: shorten its fields", self.bytes.len());
        self.bytes
    }

    fn finish(self) -> Bytes {
        Bytes::from(self.check())
    }
}

/// The key's bytes do not match the layout of its tag.
fn malformed_key(what: &str) -> Error {
    Error::corrupt(format_args!("a key that is not a {what} key"))
}

#[cfg(test)]
mod tests;
