//! Scan: executes an access path and feeds the items of a slice into a row pipeline.

mod newest_first; // the items that an index of scores does not find

use std::collections::HashSet;
use std::time::{Duration, Instant};

use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::policy::PathStep;
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Kind, Result, json};
use pleiad_partition::exact_knn::VectorQuery;
use pleiad_partition::index::encoding::{
    Decoded, TermType, decode_component, encode_component, encode_scalar, encode_undefined,
};
use pleiad_partition::snapshot::{IndexEntry, resume_after};
use pleiad_partition::{RecordView, Schema};
use pleiad_sql::computed::ComputedExprs;
use pleiad_sql::document::{PropertyName, SlotValue};
use pleiad_sql::index_predicate::{OrderPath, VectorOrder, path_text};
use pleiad_sql::run::{Flow, PageStart, ResumePoint, RowPipeline};
use pleiad_sql::sort_encoding::{SortValue, encode_key};
use pleiad_storage::{Direction, Limit};
use pleiad_vector::{Neighbor, NeighborList};

use super::document::StoredItem;
use super::index_lookup::PostingList;
use super::index_spec::IndexSpec;
use super::page::PageDeadline;
use super::parallel::Morsel;
use super::planner::{AccessPath, OrderedScan, VectorScanPlan};
use super::reader::PartitionReader;
use super::report::ScanStats;
use super::route::PartitionSlice;
use super::stop::Stop;

pub struct SliceScan<'f> {
    pub reader: &'f PartitionReader,
    pub slice: &'f PartitionSlice,
    pub container: ContainerRid,
    pub computed: &'f ComputedExprs,
    pub schema: &'f Schema,
    pub deadline: &'f PageDeadline,
    /// The paths of the `ORDER BY` keys, for an ordered scan.
    pub order: &'f [KeyPath],
    /// The vector that distances are measured to, and where the page begins in the order of distances.
    pub vector_order: Option<&'f VectorOrder<'f>>,
    pub start: &'f PageStart,
    /// About how many rows the page needs.
    pub rows_needed: usize,
    /// Docnums that the pipeline has already seen, in order.
    pub seen: &'f [u64],
    /// A page of unordered rows can end when its time has elapsed; every other page is complete or fails.
    pub may_end_early: bool,
    /// Timings were requested.
    pub times: bool,
}

/// One key of `ORDER BY`, prepared for reading it from items.
pub struct KeyPath {
    steps: Vec<PropertyName>,
    /// Inverted in the index, whose first component never is.
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

/// How the scan of a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// There are no further items.
    Exhausted,
    /// The pipeline needs no further items.
    Enough,
    /// The page's time has elapsed; this was the last item.
    Interrupted(u64),
    /// The index does not order all of the items: sort instead.
    Unordered,
    /// The partition is throttled.
    Throttled,
}

/// A scan checks the deadline after this many bytes of items.
const CHUNK_BYTES: usize = 1 << 20;
const CHUNK_ROWS_MAX: usize = 16 * 1024;
/// Items fetched by docnum per batch: in an ordered scan, where each may be the last, and from a list.
const FETCHED_FIRST: usize = 32;
const FETCHED_MAX: usize = 256;

/// A query that reads more than this is not short: it is retried on a blocking thread.
const INLINE_BYTES_MAX: u64 = 256 << 10;

impl SliceScan<'_> {
    pub fn run(
        &self,
        access_path: &AccessPath,
        after: u64,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        self.timed(work, |work| self.run_path(access_path, after, pipeline, work))
    }

    fn run_path(
        &self,
        access_path: &AccessPath,
        after: u64,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        match access_path {
            AccessPath::FullScan => self.scan(after, u64::MAX, pipeline, work),
            AccessPath::LogicalPartition(key) => self.scan_logical_partition(key, after, pipeline, work),
            AccessPath::KeyRange(docnums) | AccessPath::IndexLookup(PostingList { docnums, .. }) => {
                self.fetch(docnums, pipeline, work)
            }
            AccessPath::OrderedScan(scan) => self.scan_in_order(scan, pipeline, work),
            AccessPath::VectorScan(plan) => self.scan_vectors(plan, pipeline, work),
            AccessPath::TextCounts(figures) => {
                pipeline.add_text_counts(figures);
                Ok(ScanEnd::Exhausted)
            }
            AccessPath::ItemCount(items) => {
                pipeline.count_rows(*items);
                Ok(ScanEnd::Exhausted)
            }
        }
    }

    /// Scans one morsel of a long access path.
    pub fn run_morsel(
        &self,
        access_path: &AccessPath,
        morsel: &Morsel,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        self.timed(work, |work| match (access_path, morsel) {
            (AccessPath::FullScan, Morsel::Docnums { after, upto }) => self.scan(*after, *upto, pipeline, work),
            (choice, Morsel::Postings(positions)) => {
                let docnums = choice.docnums().and_then(|docnums| docnums.get(positions.clone()));
                self.fetch(docnums.unwrap_or_default(), pipeline, work)
            }
            _ => Err(Error::internal("a morsel of another access path").into()),
        })
    }

    /// Time that is not spent on evaluating rows counts as loading items.
    fn timed(
        &self,
        work: &mut ScanStats,
        scan: impl FnOnce(&mut ScanStats) -> Result<ScanEnd, Stop>,
    ) -> Result<ScanEnd, Stop> {
        if !self.times {
            return scan(work);
        }
        let (began, evaluated) = (Instant::now(), work.evaluating);
        let ended = scan(work);
        work.loading += began.elapsed().saturating_sub(work.evaluating.saturating_sub(evaluated));
        ended
    }

    /// Small pages begin with small chunks.
    fn first_rows(&self) -> usize {
        self.rows_needed.clamp(16, CHUNK_ROWS_MAX)
    }

    /// Items are evaluated in place, without a copy. The deadline is checked from time to time.
    fn scan(
        &self,
        after: u64,
        upto: u64,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        let (mut ended, mut progress) = (Ok(ScanEnd::Exhausted), self.progress());
        self.reader.visit(after, upto, &mut |record| {
            note_end(&mut ended, self.accept(record, &mut progress, pipeline, work))
        })?;
        ended
    }

    fn scan_logical_partition(
        &self,
        key: &EffectiveKey,
        mut after: u64,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        loop {
            let (docnums, more) = self.reader.members(key, after, Limit::rows(self.first_rows().max(FETCHED_MAX)))?;
            match self.fetch(&docnums, pipeline, work)? {
                ScanEnd::Exhausted => {}
                ended => return Ok(ended),
            }
            match docnums.last() {
                Some(last) if more => after = *last,
                _ => return Ok(ScanEnd::Exhausted),
            }
        }
    }

    fn fetch(&self, docnums: &[u64], pipeline: &mut RowPipeline<'_>, work: &mut ScanStats) -> Result<ScanEnd, Stop> {
        let (mut ended, mut progress) = (Ok(ScanEnd::Exhausted), self.progress());
        for batch in docnums.chunks(FETCHED_MAX) {
            let stopped = self.reader.visit_many(batch, &mut |record| {
                note_end(&mut ended, self.accept(record, &mut progress, pipeline, work))
            })?;
            if stopped {
                break;
            }
        }
        ended
    }

    fn progress(&self) -> ScanProgress {
        ScanProgress { bytes: 0, whole_partition: self.reader.is_within(&self.slice.keys) }
    }

    /// Evaluates one item if it is in the slice; returns how the scan ends, if it ends here.
    fn accept(
        &self,
        record: Result<RecordView<'_>>,
        progress: &mut ScanProgress,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<Option<ScanEnd>, Stop> {
        let record = record?;
        let is_in_slice = progress.whole_partition || self.is_in_slice(&record);
        if is_in_slice && self.evaluate(record, pipeline, work)? == Flow::Stop {
            return Ok(Some(ScanEnd::Enough));
        }
        progress.bytes += record.body().len();
        if progress.bytes < CHUNK_BYTES && !(self.may_end_early && self.deadline.is_late()) {
            return Ok(None);
        }
        progress.bytes = 0;
        Ok(self.is_time_up()?.then_some(ScanEnd::Interrupted(record.docnum)))
    }

    /// Items in `ORDER BY` order: those without a value to sort by come first, or last if the scan is backward.
    fn scan_in_order(
        &self,
        scan: &OrderedScan,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        let ended = if scan.backward {
            self.scan_index(scan, pipeline, work)?
        } else {
            self.scan_missing(scan, pipeline, work)?
        };
        match ended {
            ScanEnd::Exhausted if scan.backward => self.scan_missing(scan, pipeline, work),
            ScanEnd::Exhausted => self.scan_index(scan, pipeline, work),
            ended => Ok(ended),
        }
    }

    /// The items that have an index row.
    fn scan_index(
        &self,
        scan: &OrderedScan,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        let direction = if scan.backward { Direction::Backward } else { Direction::Forward };
        let mut range = scan.indexed_range();
        if range.is_empty() {
            return Ok(ScanEnd::Exhausted);
        }
        let mut size = self.first_rows();
        loop {
            let (rows, more) = self.reader.index_entries(scan.path, &range, direction, size)?;
            size = size.saturating_mul(4);
            work.index_rows += rows.len() as u64;
            for batch in rows.chunks(FETCHED_FIRST) {
                match self.scan_batch(scan, batch, pipeline, work)? {
                    ScanEnd::Exhausted => self.deadline.check()?,
                    ended => return Ok(ended),
                }
            }
            match rows.last() {
                Some(last) if more && scan.backward => range.to = resume_after(last, direction),
                Some(last) if more => range.from = resume_after(last, direction),
                _ => return Ok(ScanEnd::Exhausted),
            }
        }
    }

    /// The items without an index row.
    fn scan_missing(
        &self,
        scan: &OrderedScan,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        let (false, IndexSpec::Path(path), [key]) = (scan.covers_all_items, &scan.spec, self.order) else {
            return Ok(ScanEnd::Exhausted);
        };
        let Some((mut from, mut upto)) = scan.range.undefined_docnums() else { return Ok(ScanEnd::Exhausted) };
        if !pipeline.admits(&scan.sort_key(&encode_undefined())) {
            return Ok(ScanEnd::Enough);
        }
        let mut bytes_read = 0;
        let candidates = self.reader.missing_values(self.slice, self.schema, path, &mut |record| {
            bytes_read += record.body().len();
            if bytes_read >= CHUNK_BYTES {
                bytes_read = 0;
                self.deadline.check().map_err(|error| missing_scan_timeout(error, path))?;
            }
            Ok(self.is_missing(key, record))
        })?;
        let Some(candidates) = candidates else { return Ok(ScanEnd::Unordered) };
        let whole_partition = self.reader.is_within(&self.slice.keys);
        loop {
            let docnums = candidates.next(from, upto, scan.backward, FETCHED_FIRST);
            let mut ended = Ok(ScanEnd::Exhausted);
            self.reader.visit_existing(&docnums, &mut |record| {
                let mut check = |record: Result<RecordView<'_>>| {
                    let record = record?;
                    let matches = (whole_partition || self.is_in_slice(&record)) && self.is_missing(key, record);
                    Ok((matches && self.evaluate(record, pipeline, work)? == Flow::Stop).then_some(ScanEnd::Enough))
                };
                note_end(&mut ended, check(record))
            })?;
            match (ended?, docnums.last()) {
                (ScanEnd::Exhausted, Some(last)) => match scan.backward {
                    false if *last < upto => from = last + 1,
                    true if *last > from => upto = last - 1,
                    _ => return Ok(ScanEnd::Exhausted),
                },
                (ended, _) => return Ok(ended),
            }
            self.deadline.check()?;
        }
    }

    /// Items in the order of their distance. If a filter drops the candidates of the ANN index, more are requested, and
    /// in the end exact k-NN reads every vector.
    fn scan_vectors(
        &self,
        plan: &VectorScanPlan,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        let Some(nearest) = self.vector_order else { return Ok(ScanEnd::Unordered) };
        let query = VectorQuery { rule: &plan.rule, function: nearest.metric.function, vector: nearest.target };
        let (mut seen, mut list) = (HashSet::new(), plan.list);
        while let Some(candidates) = list {
            let Some(neighbors) = self.reader.ann_search(self.slice, query, candidates)? else { break };
            work.index_rows += neighbors.len() as u64;
            let neighbors = neighbors.into_iter().filter(|near| seen.insert(near.docnum)).collect();
            match self.fetch_neighbors(NeighborList::new(neighbors, query.function), pipeline, work)? {
                ScanEnd::Exhausted => list = candidates.checked_mul(8),
                ended => return Ok(ended),
            }
        }
        let Some(mut neighbors) = self.reader.exact_knn(query)? else { return Ok(ScanEnd::Unordered) };
        work.index_rows += neighbors.len() as u64;
        neighbors.retain(|near| !seen.contains(&near.docnum));
        let mut measured: Vec<u64> = neighbors.iter().map(|near| near.docnum).chain(seen).collect();
        if let ResumePoint::Key(resume_key) = &self.start.at
            && let Some(after) = resume_key.key()
        {
            neighbors.retain(|near| !was_returned(near, after, nearest.metric.is_similarity()));
        }
        match self.fetch_neighbors(NeighborList::new(neighbors, query.function), pipeline, work)? {
            ScanEnd::Exhausted => {}
            ended => return Ok(ended),
        }
        // The items without a distance come last.
        if measured.len() as u64 == self.reader.items() || !pipeline.admits_unscored(u64::MAX) {
            return Ok(ScanEnd::Exhausted);
        }
        measured.sort_unstable();
        let rest = self.slice.point.clone().map_or(AccessPath::FullScan, AccessPath::LogicalPartition);
        SliceScan { seen: &measured, ..*self }.scan_newest_first(&rest, pipeline, work)
    }

    fn fetch_neighbors(
        &self,
        mut neighbors: NeighborList,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        let mut count = self.rows_needed.clamp(FETCHED_FIRST, FETCHED_MAX);
        loop {
            let docnums: Vec<u64> = neighbors.next(count).iter().map(|near| near.docnum).collect();
            if docnums.is_empty() {
                return Ok(ScanEnd::Exhausted);
            }
            match self.fetch(&docnums, pipeline, work)? {
                ScanEnd::Exhausted => self.deadline.check()?,
                ended => return Ok(ended),
            }
            count = count.saturating_mul(4);
        }
    }

    /// Fetches only items that can still change the page. An index row whose value differs from that of its item
    /// belongs to another path with the same hash and is skipped.
    fn scan_batch(
        &self,
        scan: &OrderedScan,
        batch: &[IndexEntry],
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<ScanEnd, Stop> {
        let beyond =
            batch.iter().position(|(value, _)| !self.is_ordered(value) || !pipeline.admits(&scan.sort_key(value)));
        let (near, far) = batch.split_at(beyond.unwrap_or(batch.len()));
        let docnums: Vec<u64> = near.iter().map(|(_, docnum)| *docnum).collect();
        let (mut ended, mut values) = (Ok(ScanEnd::Exhausted), near.iter().map(|(value, _)| value));
        let whole_partition = self.reader.is_within(&self.slice.keys);
        let stopped = self.reader.visit_many(&docnums, &mut |record| {
            let value = values.next();
            let mut check = |record: Result<RecordView<'_>>| {
                let record = record?;
                let matches = (whole_partition || self.is_in_slice(&record))
                    && Some(self.index_key(record)?.as_slice()) == value.map(|value| &**value);
                Ok((matches && self.evaluate(record, pipeline, work)? == Flow::Stop).then_some(ScanEnd::Enough))
            };
            note_end(&mut ended, check(record))
        })?;
        match far.first() {
            Some((value, _)) if !stopped => {
                Ok(if self.is_ordered(value) { ScanEnd::Enough } else { ScanEnd::Unordered })
            }
            _ => ended,
        }
    }

    /// The index distinguishes long strings but does not order them; arrays and objects it does not even distinguish.
    fn is_ordered(&self, value: &[u8]) -> bool {
        let mut rest = value;
        self.order.iter().all(|path| match decode_component(rest, path.inverted) {
            Some((Decoded::Inexact(TermType::String) | Decoded::Array | Decoded::Object, _)) | None => false,
            Some((_, used)) => {
                rest = rest.get(used..).unwrap_or_default();
                true
            }
        })
    }

    fn is_missing(&self, key: &KeyPath, record: RecordView<'_>) -> bool {
        let document = StoredItem { container: self.container, record, computed: self.computed };
        SlotValue::Item(&document).text(&key.steps).is_none()
    }

    /// The value of the item in the index.
    fn index_key(&self, record: RecordView<'_>) -> Result<Vec<u8>> {
        let document = StoredItem { container: self.container, record, computed: self.computed };
        let value_at =
            |path: &KeyPath| SlotValue::Item(&document).text(&path.steps).map(|text| json::parse(&text)).transpose();
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
        Ok(self.deadline.is_elapsed()? && self.may_end_early)
    }

    fn is_in_slice(&self, record: &RecordView<'_>) -> bool {
        self.slice.keys.contains(&EffectiveKey::from_bytes(record.epk))
    }

    fn evaluate(
        &self,
        record: RecordView<'_>,
        pipeline: &mut RowPipeline<'_>,
        work: &mut ScanStats,
    ) -> Result<Flow, Stop> {
        if self.reader.is_dead(&record) || self.seen.binary_search(&record.docnum).is_ok() {
            return Ok(Flow::Continue);
        }
        work.items += 1;
        work.item_bytes += record.body().len() as u64;
        if work.item_bytes > INLINE_BYTES_MAX {
            self.reader.thread().check_may_block()?;
        }
        let document = StoredItem { container: self.container, record, computed: self.computed };
        let (began, matched_before) = (self.times.then(Instant::now), pipeline.matched_items());
        let flow = pipeline.add_item(record.docnum, SlotValue::Item(&document));
        work.items_matched += pipeline.matched_items() - matched_before;
        work.evaluating += began.map_or(Duration::ZERO, |began| began.elapsed());
        Ok(flow?)
    }
}

/// The progress of a scan.
struct ScanProgress {
    /// Read since the deadline was last checked.
    bytes: usize,
    /// Whether all items of the partition are in the slice.
    whole_partition: bool,
}

/// Whether an earlier page finished the item. The last item is read again: it may have further rows.
///
/// distance │ docnum u64, inverted │ row u32, as `sql::run` sorts them
fn was_returned(neighbor: &Neighbor, after: &[u8], descending: bool) -> bool {
    let mut key = Vec::with_capacity(after.len());
    encode_key(&SortValue::of(Some(&neighbor.distance.into())), descending, &mut key);
    key.extend_from_slice(&(!neighbor.docnum).to_be_bytes());
    key.as_slice() < after.get(..key.len()).unwrap_or(after)
}

fn missing_scan_timeout(error: Error, path: &[PathStep]) -> Error {
    if error.kind != Kind::TimedOut {
        return error;
    }
    let path = path_text(path);
    let message = format!(
        "The query looked for items without {path} for a minute. Ask again, and it goes on where it ended; or \
         include \"{path}/?\" in the container's indexing policy, so that the index knows them."
    );
    Error::new(Kind::TimedOut, message)
}

/// Records the end of the scan, if it was reached; returns true if the scan continues.
fn note_end(ended: &mut Result<ScanEnd, Stop>, outcome: Result<Option<ScanEnd>, Stop>) -> bool {
    match outcome {
        Ok(None) => return true,
        Ok(Some(early)) => *ended = Ok(early),
        Err(stop) => *ended = Err(stop),
    }
    false
}

fn property(step: &PathStep) -> Option<PropertyName> {
    match step {
        PathStep::Property(name) => Some(PropertyName::new(name.as_str())),
        PathStep::Element => None,
    }
}
