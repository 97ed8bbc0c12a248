//! Consistency check: every row that should exist exists, and no other.
//!
//! Guarantees: compares the keyspaces of one snapshot of a shard with each other and reports what disagrees; repairs
//! and writes nothing. Memory is bounded by a few of the largest items, however many there are.
//!
//! The check is complete although it keeps no list of rows: no two items can share a row, because every row has the
//! docnum of its item in its key or its value.
//!
//! ```text
//! item ──▶ its id, member, feed, unique, index and vector rows exist   so there are at least the rows that items need
//! rows counted = rows that items need                                  so there are no others
//! ```
//!
//! A key that is longer than `KEY_BYTES_MAX` is reported as well: another store could not hold it.
//!
//! Only if a count differs are the rows scanned a second time, to report the orphans. During an index transformation
//! the count may differ: then an item has at least the rows that both policies produce, and none that neither produces.
//! Rows that a new version of Pleiad is about to drop (`Schema::obsolete_paths`) belong to their items.

use std::fmt::Display;

use bytes::Bytes;
use pleiad_model::Result;
use pleiad_storage::store::Pair;
use pleiad_storage::{AnySnapshot, Blocking, Direction, Limit, Snapshot, Store, keyspace};

use crate::index::{IndexTerm, Keyspace};
use crate::partition::Partition;
use crate::row_changes::docnum_from_value;
use crate::schema::Schema;
use crate::shard_state::{DOCNUM_COUNTER_BITS, RetentionWatermark, ShardState};
use pleiad_model::partition_map::PartitionKeyRange;

mod item; // an item and the rows it needs, computed again from its body
mod keys; // the size of each logical partition
mod cursor; // reads a keyspace in chunks

use cursor::KeyspaceCursor;
pub(crate) use item::CheckedItem;
use keyspace::{KEY_BYTES_MAX, Tag};

/// Further problems are only counted: the first ones show what happened.
const PROBLEMS_REPORTED_MAX: usize = 100;
/// Shard, tag, path hash and the first bytes of the value: enough to find the row.
const LONG_KEY_BYTES_SHOWN: usize = 48;

/// Keyspaces in which every row belongs to one item.
const POINTER_TAGS: [Tag; 6] = [Tag::Id, Tag::Member, Tag::Feed, Tag::Unique, Tag::Index, Tag::Vector];
/// The keyspaces that are compared with the items, the change log of a running copy, ANN graphs, which may lag, and
/// versions, which outlive their items. Rows with other tags are orphans.
const KNOWN_TAGS: [Tag; 13] = [
    Tag::Doc,
    Tag::KeyTombstone,
    Tag::Feed,
    Tag::Graph,
    Tag::Id,
    Tag::Key,
    Tag::Log,
    Tag::Member,
    Tag::State,
    Tag::Unique,
    Tag::Version,
    Tag::Index,
    Tag::Vector,
];

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    pub lsn: u64,
    pub items: u64,
    pub item_bytes: u64,
    /// Logical partitions.
    pub keys: u64,
    pub index_rows: u64,
    pub vector_rows: u64,
    pub problems: Problems,
}

/// Messages about what disagrees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    pub messages: Vec<String>,
    pub count: u64,
}

impl Problems {
    pub fn add(&mut self, problem: impl Display) {
        self.count += 1;
        if self.messages.len() < PROBLEMS_REPORTED_MAX {
            self.messages.push(problem.to_string());
        }
    }
}

impl Partition {
    /// Compares every keyspace of the shard with its items. Fails only when the store cannot be read.
    pub async fn check(&self, schema: &Schema) -> Result<CheckReport> {
        let snapshot = self.store.snapshot(Blocking::Suspend).await?;
        let (max_numbers, report) = Default::default();
        let mut check = Check { range: &self.range, schema, snapshot, max_numbers, report };
        check.items().await?;
        for tag in POINTER_TAGS {
            check.pointers(tag).await?;
        }
        check.keys().await?;
        check.state().await?;
        check.unknown_rows().await?;
        Ok(check.report)
    }
}

struct Check<'a> {
    range: &'a PartitionKeyRange,
    schema: &'a Schema,
    snapshot: AnySnapshot,
    max_numbers: MaxNumbers,
    report: CheckReport,
}

/// The largest LSN and docnum counter of the items.
#[derive(Default)]
struct MaxNumbers {
    lsn: u64,
    counter: u64,
}

impl Check<'_> {
    async fn items(&mut self) -> Result<()> {
        let mut docs = self.cursor(Tag::Doc);
        while let Some(chunk) = docs.next(&self.snapshot).await? {
            for (row, bytes) in chunk {
                match CheckedItem::read(self.schema, &row, bytes) {
                    Ok(item) => self.item(&item).await?,
                    Err(error) => self.add_problem(format_args!("the item at {}: {error}", hex(&row))),
                }
            }
        }
        Ok(())
    }

    async fn item(&mut self, item: &CheckedItem) -> Result<()> {
        self.report.items += 1;
        self.report.item_bytes += item.record.body().len() as u64;
        let (index_rows, vector_rows) = count_rows(item.terms.certain());
        self.report.index_rows += index_rows;
        self.report.vector_rows += vector_rows;
        self.max_numbers.lsn = self.max_numbers.lsn.max(item.record.lsn);
        self.check_docnum(item);
        for fault in item.faults(self.range) {
            self.add_problem(format_args!("{item} {fault}"));
        }
        self.rows(item).await
    }

    /// Docnums with an older prefix come from a parent, which had its own counter.
    fn check_docnum(&mut self, item: &CheckedItem) {
        let (prefix, counter) = (item.docnum >> DOCNUM_COUNTER_BITS, item.docnum & ((1 << DOCNUM_COUNTER_BITS) - 1));
        match prefix.cmp(&u64::from(self.range.prefix)) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => self.max_numbers.counter = self.max_numbers.counter.max(counter),
            std::cmp::Ordering::Greater => self.add_problem(format_args!("{item} has a number of a later range")),
        }
    }

    async fn rows(&mut self, item: &CheckedItem) -> Result<()> {
        let wanted = item.rows(self.range.shard);
        let keys: Vec<Bytes> = wanted.iter().map(|(row, _)| row.clone()).collect();
        let found = self.snapshot.get_many(&keys).await?;
        for ((row, value), found) in wanted.iter().zip(found) {
            match found {
                None => self.add_problem(format_args!("{item} lacks its {} row {}", name(row), hex(row))),
                Some(found) if found != *value => {
                    self.add_problem(format_args!("the {} row {} of {item} points elsewhere", name(row), hex(row)));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    async fn pointers(&mut self, tag: Tag) -> Result<()> {
        let needed = match tag {
            Tag::Index => self.report.index_rows,
            Tag::Vector => self.report.vector_rows,
            Tag::Unique => self.report.items * self.schema.unique.len() as u64,
            _ => self.report.items,
        };
        if self.count(tag).await? == needed { Ok(()) } else { self.report_orphans(tag).await }
    }

    /// The number of rows. Reports those whose keys are too long.
    async fn count(&mut self, tag: Tag) -> Result<u64> {
        let mut rows = self.cursor(tag);
        let mut count = 0;
        while let Some(chunk) = rows.next(&self.snapshot).await? {
            count += chunk.len() as u64;
            for (row, _) in chunk.iter().filter(|(row, _)| row.len() > KEY_BYTES_MAX) {
                let (name, length) = (name(row), row.len());
                let beginning = hex(row.get(..LONG_KEY_BYTES_SHOWN).unwrap_or(row));
                self.add_problem(format_args!(
                    "the {name} row {beginning}… has a key of {length} bytes, the limit is {KEY_BYTES_MAX}"
                ));
            }
        }
        Ok(count)
    }

    async fn report_orphans(&mut self, tag: Tag) -> Result<()> {
        let mut rows = self.cursor(tag);
        while let Some(chunk) = rows.next(&self.snapshot).await? {
            for row in &chunk {
                if self.is_orphan(tag, row).await? {
                    self.add_problem(format_args!("the {} row {} belongs to no item", name(&row.0), hex(&row.0)));
                }
            }
        }
        Ok(())
    }

    async fn is_orphan(&self, tag: Tag, pair: &Pair) -> Result<bool> {
        if tag == Tag::Index
            && keyspace::decode_index(&pair.0).is_ok_and(|(path, _, _)| self.schema.obsolete_paths.contains(&path))
        {
            return Ok(false);
        }
        let Ok(docnum) = docnum_of_row(tag, pair) else { return Ok(true) };
        let doc = keyspace::doc(self.range.shard, docnum);
        let found = self.snapshot.get_many(std::slice::from_ref(&doc)).await?;
        let Some(bytes) = found.into_iter().flatten().next() else { return Ok(true) };
        // An item that does not decode is reported already.
        Ok(CheckedItem::read(self.schema, &doc, bytes).is_ok_and(|item| !item.may_have(self.range.shard, &pair.0)))
    }

    async fn state(&mut self) -> Result<()> {
        let row = self.snapshot.get_many(&[keyspace::state(self.range.shard)]).await?;
        let state = match row.into_iter().flatten().next().map(|row| ShardState::decode(&row)).transpose() {
            Ok(state) => state.unwrap_or_default(),
            Err(error) => {
                self.add_problem(error);
                return Ok(());
            }
        };
        self.report.lsn = state.lsn;
        let totals = [("items", state.items, self.report.items), ("bytes", state.item_bytes, self.report.item_bytes)];
        for (what, says, is) in totals.into_iter().filter(|(_, says, is)| says != is) {
            self.add_problem(format_args!("the state row counts {says} {what}, there are {is}"));
        }
        if state.versions_from.as_ref().map_or(0, RetentionWatermark::latest).max(state.merged_lsn) > state.lsn {
            self.add_problem("the state row tells of versions or a merge behind its own LSN");
        }
        let bounds =
            [("LSN", state.lsn, self.max_numbers.lsn), ("item number", state.last_item, self.max_numbers.counter)];
        for (what, says, is) in bounds.into_iter().filter(|(_, says, is)| says < is) {
            self.add_problem(format_args!("the state row's {what} is {says}, an item has {is}"));
        }
        Ok(())
    }

    /// Reports rows with unknown tags. Skips from tag to tag, so that a known keyspace costs one read however large it
    /// is.
    async fn unknown_rows(&mut self) -> Result<()> {
        let (mut from, to) = keyspace::shard_range(self.range.shard);
        while let Some((row, _)) = self.snapshot.scan(&from, &to, Direction::Forward, Limit::rows(1)).await?.pairs.pop()
        {
            match KNOWN_TAGS.into_iter().find(|&tag| tag_of(&row) == Some(tag as u8)) {
                Some(tag) => from = keyspace::range(self.range.shard, tag).1,
                None => {
                    self.add_problem(format_args!("the row {} is of a kind that items do not have", hex(&row)));
                    from = keyspace::after(&row);
                }
            }
        }
        Ok(())
    }

    fn cursor(&self, tag: Tag) -> KeyspaceCursor {
        KeyspaceCursor::new(keyspace::range(self.range.shard, tag))
    }

    fn add_problem(&mut self, problem: impl Display) {
        self.report.problems.add(problem);
    }
}

/// The number of rows of these terms in the index keyspace, and in the vector keyspace.
fn count_rows(terms: &[IndexTerm]) -> (u64, u64) {
    let vectors = terms.iter().filter(|term| term.keyspace == Keyspace::Vector).count();
    ((terms.len() - vectors) as u64, vectors as u64)
}

/// The docnum of the item that a row belongs to.
fn docnum_of_row(tag: Tag, (row, value): &Pair) -> Result<u64> {
    match tag {
        Tag::Member => keyspace::decode_member(row).map(|(_, docnum)| docnum),
        Tag::Index => keyspace::decode_index(row).map(|(_, _, docnum)| docnum),
        Tag::Vector => keyspace::decode_vector(row).map(|(_, docnum)| docnum),
        Tag::Feed => keyspace::decode_feed(row).map(|(_, _, docnum)| docnum),
        _ => docnum_from_value(value),
    }
}

fn tag_of(row: &[u8]) -> Option<u8> {
    row.get(8).copied()
}

/// The name of a row's keyspace for messages.
fn name(row: &[u8]) -> &'static str {
    let names = [
        (Tag::Id, "id"),
        (Tag::Member, "member"),
        (Tag::Feed, "feed"),
        (Tag::Unique, "unique"),
        (Tag::Index, "index"),
        (Tag::Vector, "vector"),
    ];
    names.into_iter().find(|&(tag, _)| tag_of(row) == Some(tag as u8)).map_or("unknown", |(_, name)| name)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
