//! Items of a slice into a pass, by the chosen way.

use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Result, json};
use pleiad_partition::index::order::{
    Decoded, Type, decode_component, encode_component, encode_scalar, encode_undefined,
};
use pleiad_partition::view::behind;
use pleiad_partition::{Record, RecordView};
use pleiad_query::access::OrderPath;
use pleiad_query::document::{Bound, PropertyName};
use pleiad_query::run::{Flow, Pass};
use pleiad_storage::{Direction, Limit};

use super::choose::{Choice, Walk};
use super::document::Stored;
use super::page::Budget;
use super::reach::Slice;
use super::reader::Reader;
use super::report::Work;

pub struct Feed<'f> {
    pub reader: &'f Reader,
    pub slice: &'f Slice,
    pub container: ContainerRid,
    pub budget: &'f Budget,
    /// Where the keys of `ORDER BY` are, for a walk.
    pub order: &'f [KeyPath],
    /// About how many rows are wanted.
    pub wanted: usize,
    /// Rows in order of arrival can end when the time of a page is over; all else is complete or nothing.
    pub may_end_early: bool,
}

/// One key of `ORDER BY`, ready to be read from an item.
pub struct KeyPath {
    steps: Vec<PropertyName>,
    /// Upside down in the index, whose first component never is.
    inverted: bool,
}

impl KeyPath {
    pub fn of(order: &[OrderPath]) -> Vec<KeyPath> {
        let first = order.first().is_some_and(|first| first.descending);
        let path = |key: &OrderPath| KeyPath {
            steps: key.path.iter().filter_map(property).collect(),
            inverted: key.descending != first,
        };
        order.iter().map(path).collect()
    }
}

/// How feeding a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// There are no further items.
    Exhausted,
    /// The pass wants no further items.
    Enough,
    /// The time of a page is over; this was the last item.
    Interrupted(u64),
    /// The index does not hold the order of what was met: sort instead.
    Unordered,
}

/// After so many bytes of items a scan looks at the clock.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNK_ROWS_MAX: usize = 16 * 1024;
/// Items fetched by number at once: while nothing is known of their sizes, at most, and in bytes.
const FETCHED_FIRST: usize = 32;
const FETCHED_MAX: usize = 256;
const FETCHED_BYTES_MAX: usize = 8 << 20;

impl Feed<'_> {
    pub fn run(&self, choice: &Choice, after: u64, pass: &mut Pass<'_>, work: &mut Work) -> Result<Ended> {
        match choice {
            Choice::Scan => self.scan(after, pass, work),
            Choice::Members(key) => self.members(key, after, pass, work),
            Choice::Part(docnums) | Choice::Found(docnums) => self.fetch(docnums, pass, work),
            Choice::Walk(walk) => self.walk(walk, pass, work),
        }
    }

    /// Small pages begin with small chunks.
    fn first_rows(&self) -> usize {
        self.wanted.clamp(16, CHUNK_ROWS_MAX)
    }

    /// Items are looked at where they lie. The clock is asked now and then.
    fn scan(&self, after: u64, pass: &mut Pass<'_>, work: &mut Work) -> Result<Ended> {
        let everywhere = self.reader.is_within(&self.slice.keys);
        let mut ended = Ok(Ended::Exhausted);
        let mut bytes = 0;
        self.reader.visit(after, &mut |record| {
            let look = || {
                let record = record?;
                let wanted = everywhere || self.slice.keys.contains(&EffectiveKey::from_bytes(record.epk));
                if wanted && self.item(record, pass, work)? == Flow::Stop {
                    return Ok(Some(Ended::Enough));
                }
                bytes += record.body().len();
                if bytes < CHUNK_BYTES {
                    return Ok(None);
                }
                bytes = 0;
                Ok(self.is_time_up()?.then_some(Ended::Interrupted(record.docnum)))
            };
            match look() {
                Ok(None) => true,
                Ok(Some(early)) => {
                    ended = Ok(early);
                    false
                }
                Err(error) => {
                    ended = Err(error);
                    false
                }
            }
        })?;
        ended
    }

    fn members(&self, key: &EffectiveKey, mut after: u64, pass: &mut Pass<'_>, work: &mut Work) -> Result<Ended> {
        loop {
            let (docnums, more) = self.reader.members(key, after, Limit::rows(self.first_rows().max(FETCHED_MAX)))?;
            match self.fetch(&docnums, pass, work)? {
                Ended::Exhausted => {}
                ended => return Ok(ended),
            }
            match docnums.last() {
                Some(last) if more => after = *last,
                _ => return Ok(Ended::Exhausted),
            }
        }
    }

    fn fetch(&self, docnums: &[u64], pass: &mut Pass<'_>, work: &mut Work) -> Result<Ended> {
        let mut size = self.first_rows().min(FETCHED_FIRST);
        let mut left = docnums;
        while !left.is_empty() {
            let (now, later) = left.split_at(size.min(left.len()));
            let records = self.reader.get(now)?;
            size = fetched_next(&records);
            for record in records.iter().flatten() {
                if self.wants(record) && self.item(record.view(), pass, work)? == Flow::Stop {
                    return Ok(Ended::Enough);
                }
            }
            left = later;
            if let Some(last) = now.last()
                && !left.is_empty()
                && self.is_time_up()?
            {
                return Ok(Ended::Interrupted(*last));
            }
        }
        Ok(Ended::Exhausted)
    }

    /// Index rows in the order of the query. A row that does not say what its item says is of another path whose
    /// hash is the same: it is passed over.
    fn walk(&self, walk: &Walk, pass: &mut Pass<'_>, work: &mut Work) -> Result<Ended> {
        let direction = if walk.backward { Direction::Backward } else { Direction::Forward };
        let mut range = walk.range.clone();
        let mut size = self.first_rows();
        let mut fetched = size.min(FETCHED_FIRST);
        loop {
            let (rows, more) = self.reader.postings(walk.path, &range, direction, size)?;
            size = size.saturating_mul(4);
            work.index_rows += rows.len() as u64;
            let mut left = rows.as_slice();
            while !left.is_empty() {
                let (batch, later) = left.split_at(fetched.min(left.len()));
                left = later;
                let docnums: Vec<u64> = batch.iter().map(|(_, docnum)| *docnum).collect();
                let records = self.reader.get(&docnums)?;
                fetched = fetched_next(&records);
                for ((value, _), record) in batch.iter().zip(records) {
                    if !self.is_ordered(value) {
                        return Ok(Ended::Unordered);
                    }
                    let record = record.ok_or_else(|| Error::corrupt("an index row without its item"))?;
                    let met = self.wants(&record) && self.key_of(record.view())? == value.as_ref();
                    if met && self.item(record.view(), pass, work)? == Flow::Stop {
                        return Ok(Ended::Enough);
                    }
                }
                self.budget.check()?;
            }
            match rows.last() {
                Some(last) if more && walk.backward => range.to = behind(last, direction),
                Some(last) if more => range.from = behind(last, direction),
                _ => return Ok(Ended::Exhausted),
            }
        }
    }

    /// Long strings are told apart by the index, but not ordered.
    fn is_ordered(&self, value: &[u8]) -> bool {
        let mut rest = value;
        self.order.iter().all(|path| match decode_component(rest, path.inverted) {
            Some((Decoded::Inexact(Type::String), _)) | None => false,
            Some((_, used)) => {
                rest = rest.get(used..).unwrap_or_default();
                true
            }
        })
    }

    /// What the index says of the item.
    fn key_of(&self, record: RecordView<'_>) -> Result<Vec<u8>> {
        let document = Stored { container: self.container, record };
        let value_at =
            |path: &KeyPath| Bound::Item(&document).text(&path.steps).map(|text| json::parse(&text)).transpose();
        if let [path] = self.order {
            return Ok(value_at(path)?.map_or_else(encode_undefined, |value| encode_scalar(&value)));
        }
        let mut key = Vec::new();
        for path in self.order {
            encode_component(value_at(path)?.as_ref(), path.inverted, &mut key);
        }
        Ok(key)
    }

    fn is_time_up(&self) -> Result<bool> {
        Ok(self.budget.is_over()? && self.may_end_early)
    }

    fn wants(&self, record: &Record) -> bool {
        self.slice.keys.contains(&record.epk)
    }

    fn item(&self, record: RecordView<'_>, pass: &mut Pass<'_>, work: &mut Work) -> Result<Flow> {
        work.items += 1;
        work.item_bytes += record.body().len() as u64;
        let document = Stored { container: self.container, record };
        pass.item(record.docnum, Bound::Item(&document))
    }
}

/// How many items to fetch next, if they are like these.
fn fetched_next(records: &[Option<Record>]) -> usize {
    let bytes: usize = records.iter().flatten().map(|record| record.bytes().len()).sum();
    (FETCHED_BYTES_MAX * records.len() / bytes.max(1)).clamp(1, FETCHED_MAX)
}

fn property(step: &pleiad_model::policy::Step) -> Option<PropertyName> {
    match step {
        pleiad_model::policy::Step::Property(name) => Some(PropertyName::new(name.as_str())),
        pleiad_model::policy::Step::Element => None,
    }
}
