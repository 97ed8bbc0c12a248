//! Index lookup: the posting list for an index predicate, by intersecting and uniting the lists of its parts.
//!
//! Invariant: no matching item is missing from a posting list, except the items that their writers excluded from
//! indexing, which callers add (`unindexed`); items that do not match may be in it. Costs are estimates in microseconds
//! of one core; they decide the access path and never the result.

use std::cell::RefCell;
use std::ops::Bound;

use pleiad_model::{Result, Value};
use pleiad_partition::index::encoding::{Decoded, TermType, decode};
use pleiad_partition::index::full_text::word_range;
use pleiad_partition::index::{PathHash, TermRange, UNINDEXED, UsableIndex, composite_id, full_text_id, spatial_id};
use pleiad_partition::snapshot::{IndexEntry, resume_after};
use pleiad_spatial::{Geometry, cells};
use pleiad_sql::expr::Context;
use pleiad_sql::index_predicate::{
    IndexPredicate, PathPredicate, SpatialPredicate, StringTest, TermPredicate, ValuePredicate, ValueType,
};
use pleiad_storage::Direction;

use super::composite_seek::{CompositeSeek, seeks};
use super::index_spec::IndexSpec;
use super::page::PageDeadline;
use super::reader::{PartitionReader, Probe};
use super::stop::Stop;

pub struct IndexSearcher<'a> {
    reader: &'a PartitionReader,
    index: UsableIndex<'a>,
    cx: &'a Context<'a>,
    deadline: &'a PageDeadline,
    /// Small ranges whose probe has read all of their rows.
    probed: RefCell<Vec<ProbedRange>>,
}

struct ProbedRange {
    path: u64,
    range: TermRange,
    rows: Vec<IndexEntry>,
}

/// The estimated work of an index lookup.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Index rows to read.
    pub rows: f64,
    /// Items that the lookup returns.
    pub items: f64,
}

const INDEX_ROW_US: f64 = 0.3;
/// A probe of a range.
pub const PROBE_US: f64 = 15.0;
/// How many probed ranges are retained.
const PROBED_MAX: usize = 256;
/// An item fetched by docnum, and filtered.
pub const ITEM_US: f64 = 4.0;
/// An item read in a full scan, and filtered.
pub const SCANNED_ITEM_US: f64 = 0.7;
/// Estimated share of the strings that pass a string test.
const TEST_SELECTIVITY: f64 = 0.05;
/// A longer posting list is not held in memory: a full scan needs none.
const POSTINGS_MAX: usize = 4 << 20;

impl Cost {
    pub fn us(self) -> f64 {
        self.rows * INDEX_ROW_US + self.items * ITEM_US
    }
}

/// Docnums in ascending order, without duplicates.
pub type DocnumList = Vec<u64>;

/// The docnums that may match, and the indexes that found them.
#[derive(Debug, Default)]
pub struct PostingList {
    pub docnums: DocnumList,
    pub indexes: Vec<IndexSpec>,
}

impl PostingList {
    fn from_index(index: IndexSpec, docnums: DocnumList) -> PostingList {
        PostingList { docnums, indexes: vec![index] }
    }

    fn add_indexes(&mut self, indexes: Vec<IndexSpec>) {
        for index in indexes {
            if !self.indexes.contains(&index) {
                self.indexes.push(index);
            }
        }
    }
}

/// A lookup for a conjunction: one of its predicates, or several of them by a composite index.
enum LookupCandidate<'c, 'b, 'i> {
    Single(usize, &'c IndexPredicate<'b>),
    Composite(CompositeSeek<'i>),
}

impl<'a> IndexSearcher<'a> {
    pub fn new(
        reader: &'a PartitionReader,
        index: UsableIndex<'a>,
        cx: &'a Context<'a>,
        deadline: &'a PageDeadline,
    ) -> Self {
        IndexSearcher { reader, index, cx, deadline, probed: RefCell::default() }
    }

    pub fn index(&self) -> UsableIndex<'a> {
        self.index
    }

    pub fn reader(&self) -> &'a PartitionReader {
        self.reader
    }

    fn estimate(&self, path: u64, range: &TermRange) -> Result<f64, Stop> {
        self.deadline.check()?;
        match self.reader.probe(path, range)? {
            Probe::Estimate(rows) => Ok(rows as f64),
            Probe::Rows(rows) => {
                let count = rows.len() as f64;
                let mut probed = self.probed.borrow_mut();
                if probed.len() < PROBED_MAX {
                    probed.push(ProbedRange { path, range: range.clone(), rows });
                }
                Ok(count)
            }
        }
    }

    fn was_probed(&self, path: u64, range: &TermRange) -> bool {
        self.probed.borrow().iter().any(|probed| probed.path == path && probed.range == *range)
    }

    fn take_probed(&self, path: u64, range: &TermRange) -> Option<Vec<IndexEntry>> {
        let mut probed = self.probed.borrow_mut();
        let at = probed.iter().position(|probed| probed.path == path && probed.range == *range)?;
        Some(probed.swap_remove(at).rows)
    }

    /// `None` if no index can evaluate the predicate.
    pub fn cost(&self, condition: &IndexPredicate<'_>) -> Result<Option<Cost>, Stop> {
        match condition {
            IndexPredicate::Never => Ok(Some(Cost::default())),
            IndexPredicate::Path(lookup) => self.lookup_cost(lookup),
            IndexPredicate::Spatial(spatial) => match self.spatial_ranges(spatial) {
                Some((path, ranges)) => {
                    let mut rows = 0.0;
                    for range in &ranges {
                        rows += self.estimate(path, range)?;
                    }
                    Ok(Some(Cost { rows, items: rows }))
                }
                None => Ok(None),
            },
            IndexPredicate::Term(term) => match self.term_range(term) {
                Some((path, range)) => {
                    let rows = self.estimate(path, &range)?;
                    Ok(Some(Cost { rows, items: rows }))
                }
                None => Ok(None),
            },
            IndexPredicate::And(all) => Ok(self.candidates(all)?.into_iter().next().map(|(cost, _)| cost)),
            IndexPredicate::Or(any) => {
                let mut sum = Cost::default();
                for condition in any {
                    let Some(cost) = self.cost(condition)? else { return Ok(None) };
                    sum = Cost { rows: sum.rows + cost.rows, items: sum.items + cost.items };
                }
                Ok(Some(sum))
            }
        }
    }

    /// The lookups for a conjunction, the cheapest first; at equal cost, one that covers several predicates first.
    fn candidates<'c, 'b>(
        &self,
        all: &'c [IndexPredicate<'b>],
    ) -> Result<Vec<(Cost, LookupCandidate<'c, 'b, 'a>)>, Stop> {
        let mut candidates = Vec::new();
        for seek in seeks(all, self.index) {
            let rows = self.estimate(composite_id(seek.index), &seek.range)?;
            candidates.push((Cost { rows, items: rows }, LookupCandidate::Composite(seek)));
        }
        for (at, condition) in all.iter().enumerate() {
            if let Some(cost) = self.cost(condition)? {
                candidates.push((cost, LookupCandidate::Single(at, condition)));
            }
        }
        candidates.sort_by(|(a, _), (b, _)| a.us().total_cmp(&b.us()));
        Ok(candidates)
    }

    fn lookup_cost(&self, lookup: &PathPredicate<'_>) -> Result<Option<Cost>, Stop> {
        if !self.index.indexes(&lookup.path) {
            return Ok(None);
        }
        let rows = self.estimate(PathHash::of(&lookup.path).finish(), &value_range(&lookup.value))?;
        let items = if matches!(lookup.value, ValuePredicate::Strings(_)) { rows * TEST_SELECTIVITY } else { rows };
        Ok(Some(Cost { rows, items }))
    }

    /// The items after docnum `after` that may match; `None` if no index can evaluate the predicate, or too many match.
    pub fn find(&self, condition: &IndexPredicate<'_>, after: u64) -> Result<Option<PostingList>, Stop> {
        match condition {
            IndexPredicate::Never => Ok(Some(PostingList::default())),
            IndexPredicate::Path(lookup) => self.find_lookup(lookup, after),
            IndexPredicate::Spatial(spatial) => self.find_spatial(spatial, after),
            IndexPredicate::Term(term) => match self.term_range(term) {
                Some((path, range)) => {
                    let docnums = self.collect(path, &[range], after, None)?;
                    Ok(docnums.map(|docnums| PostingList::from_index(IndexSpec::FullText(term.path.clone()), docnums)))
                }
                None => Ok(None),
            },
            IndexPredicate::And(all) => self.find_all(all, after),
            IndexPredicate::Or(any) => {
                let mut union = PostingList::default();
                for condition in any {
                    let Some(found) = self.find(condition, after)? else { return Ok(None) };
                    union.docnums.extend(found.docnums);
                    union.add_indexes(found.indexes);
                    if union.docnums.len() > POSTINGS_MAX {
                        return Ok(None);
                    }
                }
                Ok(Some(PostingList { docnums: sorted_unique(union.docnums), ..union }))
            }
        }
    }

    /// Starts with the cheapest lookup; intersects with another one if that costs less than fetching the items it
    /// removes.
    fn find_all(&self, all: &[IndexPredicate<'_>], after: u64) -> Result<Option<PostingList>, Stop> {
        let mut candidates = self.candidates(all)?.into_iter();
        let Some((_, first)) = candidates.next() else { return Ok(None) };
        let (found, covered) = match first {
            LookupCandidate::Single(at, condition) => (self.find(condition, after)?, vec![at]),
            LookupCandidate::Composite(seek) => (self.find_seek(&seek, after)?, seek.covers),
        };
        let Some(mut found) = found else { return Ok(None) };
        let items = (self.reader.items() as f64).max(1.0);
        for (cost, candidate) in candidates {
            let LookupCandidate::Single(at, condition) = candidate else { continue };
            let saved = found.docnums.len() as f64 * ITEM_US * (1.0 - (cost.items / items).min(1.0));
            if cost.rows * INDEX_ROW_US < saved
                && !covered.contains(&at)
                && let Some(others) = self.find(condition, after)?
            {
                found.docnums = intersection(found.docnums, others.docnums);
                found.add_indexes(others.indexes);
            }
        }
        Ok(Some(found))
    }

    fn find_seek(&self, seek: &CompositeSeek<'_>, after: u64) -> Result<Option<PostingList>, Stop> {
        let docnums = self.collect(composite_id(seek.index), std::slice::from_ref(&seek.range), after, None)?;
        Ok(docnums.map(|docnums| PostingList::from_index(IndexSpec::Composite(seek.index.clone()), docnums)))
    }

    fn find_lookup(&self, lookup: &PathPredicate<'_>, after: u64) -> Result<Option<PostingList>, Stop> {
        if !self.index.indexes(&lookup.path) {
            return Ok(None);
        }
        let test = match &lookup.value {
            ValuePredicate::Strings(test) => Some(test),
            _ => None,
        };
        let mut range = value_range(&lookup.value);
        let path = PathHash::of(&lookup.path).finish();
        if matches!(lookup.value, ValuePredicate::Equal(_)) && !self.was_probed(path, &range) {
            // Rows with the same value are in docnum order.
            range.from.extend_from_slice(&after.saturating_add(1).to_be_bytes());
        }
        let docnums = self.collect(path, &[range], after, test)?;
        Ok(docnums.map(|docnums| PostingList::from_index(IndexSpec::Path(lookup.path.clone()), docnums)))
    }

    fn collect(
        &self,
        path: u64,
        ranges: &[TermRange],
        after: u64,
        test: Option<&StringTest<'_>>,
    ) -> Result<Option<DocnumList>, Stop> {
        let mut found = Vec::new();
        for range in ranges {
            let mut range = range.clone();
            let mut last: Option<(bytes::Bytes, bool)> = None;
            let mut probed = self.take_probed(path, &range);
            loop {
                self.deadline.check()?;
                let (rows, more) = match probed.take() {
                    Some(rows) => (rows, false),
                    None => self.reader.index_entries(path, &range, Direction::Forward, usize::MAX)?,
                };
                for (value, docnum) in &rows {
                    let passes = match (test, &last) {
                        (None, _) => true,
                        (Some(_), Some((known, passed))) if known == value => *passed,
                        (Some(test), _) => {
                            let passed = self.passes(test, value);
                            last = Some((value.clone(), passed));
                            passed
                        }
                    };
                    if passes && *docnum > after {
                        found.push(*docnum);
                    }
                }
                if found.len() > POSTINGS_MAX {
                    return Ok(None);
                }
                match rows.last() {
                    Some(last) if more => range.from = resume_after(last, Direction::Forward),
                    _ => break,
                }
            }
        }
        Ok(Some(sorted_unique(found)))
    }

    /// A string that the index stores truncated counts as passing.
    fn passes(&self, test: &StringTest<'_>, value: &[u8]) -> bool {
        self.cx.memory.reset();
        match decode(value) {
            Some((Decoded::Exact(Value::String(text)), _)) => test.passes(&text, self.cx),
            Some((Decoded::Exact(_), _)) => false,
            _ => true,
        }
    }

    /// The ranges of a spatial index that may contain matches; none if the region is not a valid geometry.
    fn spatial_ranges(&self, spatial: &SpatialPredicate<'_>) -> Option<(u64, Vec<TermRange>)> {
        let space = self.index.spatial(&spatial.path)?;
        let ranges = match Geometry::parse(spatial.region, self.cx.geospatial) {
            Ok(region) => cells::search_ranges(&region, spatial.distance, &space),
            Err(_) => Vec::new(),
        };
        let ranges = ranges.into_iter().map(|range| TermRange { from: range.from, to: range.to }).collect();
        Some((spatial_id(&spatial.path), ranges))
    }

    /// The range of a full-text index that has the rows of the term.
    fn term_range(&self, term: &TermPredicate<'_>) -> Option<(u64, TermRange)> {
        let language = self.index.full_text(&term.path).filter(|language| *language == term.language)?;
        Some((full_text_id(&term.path, language), word_range(term.word)))
    }

    fn find_spatial(&self, spatial: &SpatialPredicate<'_>, after: u64) -> Result<Option<PostingList>, Stop> {
        match self.spatial_ranges(spatial) {
            Some((path, ranges)) => {
                let docnums = self.collect(path, &ranges, after, None)?;
                Ok(docnums.map(|docnums| PostingList::from_index(IndexSpec::Spatial(spatial.path.clone()), docnums)))
            }
            None => Ok(None),
        }
    }

    /// Items that their writers excluded from indexing: each of them may match any predicate.
    pub fn unindexed(&self, after: u64) -> Result<Option<DocnumList>, Stop> {
        self.collect(UNINDEXED, &[whole_path()], after, None)
    }
}

/// All rows of a path, including rows with an empty value.
fn whole_path() -> TermRange {
    TermRange { from: Vec::new(), to: vec![0xFF] }
}

/// The range of index rows with matching values.
pub fn value_range(predicate: &ValuePredicate<'_>) -> TermRange {
    match predicate {
        ValuePredicate::Equal(value) => TermRange::exact(value),
        ValuePredicate::Range(low, high) => TermRange::range(as_ref(low), as_ref(high)),
        ValuePredicate::Prefix(text) => TermRange::prefix(text),
        ValuePredicate::Strings(_) => TermRange::of_type(TermType::String),
        ValuePredicate::Type(of) => TermRange::of_type(match of {
            ValueType::Bool => TermType::Boolean,
            ValueType::Number => TermType::Number,
            ValueType::String => TermType::String,
            ValueType::Array => TermType::Array,
            ValueType::Object => TermType::Object,
        }),
        ValuePredicate::Defined => TermRange::defined(),
    }
}

/// The same for a component of a composite index, for predicates that are a range there.
pub fn component_range(predicate: &ValuePredicate<'_>, descending: bool) -> Option<TermRange> {
    match predicate {
        ValuePredicate::Range(low, high) => Some(TermRange::component_range(as_ref(low), as_ref(high), descending)),
        ValuePredicate::Prefix(text) => Some(TermRange::component_prefix(text, descending)),
        ValuePredicate::Equal(_) | ValuePredicate::Strings(_) | ValuePredicate::Type(_) | ValuePredicate::Defined => {
            None
        }
    }
}

fn as_ref(bound: &Bound<Value>) -> Bound<&Value> {
    match bound {
        Bound::Included(value) => Bound::Included(value),
        Bound::Excluded(value) => Bound::Excluded(value),
        Bound::Unbounded => Bound::Unbounded,
    }
}

pub fn sorted_unique(mut found: DocnumList) -> DocnumList {
    found.sort_unstable();
    found.dedup();
    found
}

pub fn intersection(left: DocnumList, right: DocnumList) -> DocnumList {
    let mut right = right.into_iter().peekable();
    let mut common = left;
    common.retain(|docnum| {
        while right.next_if(|other| other < docnum).is_some() {}
        right.peek() == Some(docnum)
    });
    common
}
