//! Collectors: gather the rows of a page, as a stream, top-k, or distinct sorted rows.
//!
//! Invariant: the memory of a collector is bounded. A stream and top-k hold no more rows than the page needs; the rows
//! that top-k drops sort after the rows it keeps, so the next page finds them by continuing after the last key.
//! `DistinctSorted` holds every distinct row and fails if they exceed the memory limit.

use std::collections::{BTreeMap, HashMap};

use pleiad_model::{Error, Kind, Result};

use super::Flow;
use super::page::{Finished, PageSize, PageStart, ResumePoint, RowSet};
use super::resume_key::ResumeKey;

/// The memory limit for sorted or distinct rows.
pub const COLLECTOR_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The estimated overhead of a row in the tree.
const ENTRY_BYTES: usize = 96;

/// Writes a row's text; `false` when the row has no value.
pub type RowWriter<'w> = &'w mut dyn FnMut(&mut Vec<u8>) -> Result<bool>;

/// Unordered rows, in scan order.
pub struct StreamCollector {
    start: PageStart,
    size: PageSize,
    rows: RowSet,
    docnum: u64,
    /// Rows of the current item so far, and how many of its rows an earlier page returned.
    in_item: u64,
    returned: u64,
    stopped: Option<ResumePoint>,
    done: bool,
}

impl StreamCollector {
    pub fn new(start: PageStart, size: PageSize) -> Self {
        let done = start.take == Some(0);
        StreamCollector {
            start,
            size,
            rows: RowSet::default(),
            docnum: 0,
            in_item: 0,
            returned: 0,
            stopped: None,
            done,
        }
    }

    /// An earlier page returned this many rows of this item.
    pub fn resume(&mut self, docnum: u64, rows: u64) {
        self.start.at = ResumePoint::Item { docnum, rows };
    }

    pub fn begin_item(&mut self, docnum: u64) {
        self.docnum = docnum;
        self.in_item = 0;
        self.returned = match self.start.at {
            ResumePoint::Item { docnum: resumed, rows } if resumed == docnum => rows,
            _ => 0,
        };
    }

    pub fn add(&mut self, write: RowWriter<'_>) -> Result<Flow> {
        if self.done || !self.rows.append(write)? {
            return Ok(if self.done { Flow::Stop } else { Flow::Continue });
        }
        self.in_item += 1;
        if self.in_item <= self.returned {
            self.rows.pop();
            return Ok(Flow::Continue);
        }
        if self.start.skip > 0 {
            self.start.skip -= 1;
            self.rows.pop();
            return Ok(Flow::Continue);
        }
        if self.rows.len() > self.size.rows || self.rows.len() > 1 && self.rows.bytes() > self.size.bytes {
            self.rows.pop();
            self.stopped = Some(ResumePoint::Item { docnum: self.docnum, rows: self.in_item - 1 });
            return Ok(Flow::Stop);
        }
        if let Some(take) = &mut self.start.take {
            *take -= 1;
            self.done = *take == 0;
        }
        Ok(if self.done { Flow::Stop } else { Flow::Continue })
    }

    pub fn is_done(&self) -> bool {
        self.done
    }

    /// `interrupted` is the position at which the scan stopped before the page was full.
    pub fn finish(self, interrupted: Option<ResumePoint>) -> Finished {
        let at = self.stopped.or(interrupted).filter(|_| !self.done);
        Finished { rows: self.rows, next: at.map(|at| PageStart { at, ..self.start }) }
    }
}

/// Top-k: the rows with the smallest keys.
pub struct TopK {
    start: PageStart,
    size: PageSize,
    /// The input is sorted by key.
    ordered: bool,
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    bytes: usize,
    /// The smallest key that was dropped.
    ceiling: Option<Vec<u8>>,
}

impl TopK {
    pub fn new(start: PageStart, size: PageSize) -> Self {
        TopK { start, size, ordered: false, rows: BTreeMap::new(), bytes: 0, ceiling: None }
    }

    /// One more row than the page returns, to know whether there is another page.
    fn rows_needed(&self) -> usize {
        let rows = self.size.rows as u64;
        let shown = match self.start.take {
            Some(take) if take <= rows => take,
            _ => rows.saturating_add(1),
        };
        usize::try_from(self.start.skip.saturating_add(shown)).unwrap_or(usize::MAX)
    }

    pub fn add(&mut self, key: &[u8], write: RowWriter<'_>) -> Result<Flow> {
        if self.start.at.has_passed(key)? {
            return Ok(Flow::Continue);
        }
        if self.ceiling.as_ref().is_some_and(|ceiling| key >= ceiling.as_slice()) {
            return Ok(if self.ordered { Flow::Stop } else { Flow::Continue });
        }
        let mut text = Vec::new();
        if !self.rows.contains_key(key) && write(&mut text)? {
            self.insert(key.to_vec(), text);
        }
        let beyond = self.is_full() && self.rows.last_key_value().is_none_or(|(last, _)| key >= last.as_slice());
        Ok(if self.ordered && beyond { Flow::Stop } else { Flow::Continue })
    }

    /// Sets whether the following items are sorted by key.
    pub fn expect_order(&mut self, ordered: bool) {
        self.ordered = ordered;
    }

    /// Whether a row whose key has this prefix can be among the smallest.
    pub fn admits(&self, prefix: &[u8]) -> bool {
        let last = self.rows.last_key_value().map(|(last, _)| last).filter(|_| self.is_full());
        last.or(self.ceiling.as_ref()).is_none_or(|last| prefix <= last.get(..prefix.len()).unwrap_or(last))
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.rows_needed()
    }

    fn insert(&mut self, key: Vec<u8>, text: Vec<u8>) {
        self.bytes += ENTRY_BYTES + key.len() + text.len();
        self.rows.insert(key, text);
        let wanted = self.rows_needed();
        while self.rows.len() > wanted || self.bytes > COLLECTOR_BYTES_MAX && self.rows.len() > 1 {
            let Some((key, text)) = self.rows.pop_last() else { break };
            self.bytes -= ENTRY_BYTES + key.len() + text.len();
            self.ceiling = Some(key);
        }
    }

    pub fn merge(&mut self, other: TopK) {
        if let Some(ceiling) = other.ceiling {
            self.lower_ceiling(ceiling);
        }
        for (key, text) in other.rows {
            // For equal keys the first row stays, and its bytes count once.
            let fits = self.ceiling.as_ref().is_none_or(|ceiling| key < *ceiling);
            if fits && !self.rows.contains_key(&key) {
                self.insert(key, text);
            }
        }
    }

    fn lower_ceiling(&mut self, ceiling: Vec<u8>) {
        if self.ceiling.as_ref().is_some_and(|own| *own <= ceiling) {
            return;
        }
        let above = self.rows.split_off(&ceiling);
        self.bytes -= above.iter().map(|(key, text)| ENTRY_BYTES + key.len() + text.len()).sum::<usize>();
        self.ceiling = Some(ceiling);
    }

    pub fn finish(self) -> Finished {
        let more = self.ceiling.is_some();
        page_by_key(self.rows.into_iter(), self.start, self.size, more)
    }
}

/// A page of rows sorted by key; `more` says that further rows follow.
pub fn page_by_key(
    rows: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
    mut start: PageStart,
    size: PageSize,
    more: bool,
) -> Finished {
    let mut page = RowSet::default();
    for (key, text) in rows {
        if start.take == Some(0) {
            return Finished { rows: page, next: None };
        }
        if start.skip > 0 {
            start.skip -= 1;
            start.at = ResumePoint::Key(ResumeKey::whole(key));
            continue;
        }
        if page.len() >= size.rows || !page.is_empty() && page.bytes() + text.len() > size.bytes {
            return Finished { rows: page, next: Some(start) };
        }
        page.push(&text);
        start.at = ResumePoint::Key(ResumeKey::whole(key));
        start.take = start.take.map(|take| take - 1);
    }
    let next = (more && start.take != Some(0)).then_some(start);
    Finished { rows: page, next }
}

/// `DISTINCT` with `ORDER BY`: each row once, at its smallest sort key. Ties are broken by the row itself, not by an
/// item that has it: that item may be deleted before the next page is requested.
pub struct DistinctSorted {
    start: PageStart,
    size: PageSize,
    /// From the encoded row to its sort key and text.
    rows: HashMap<Vec<u8>, (Vec<u8>, Vec<u8>)>,
    bytes: usize,
}

impl DistinctSorted {
    pub fn new(start: PageStart, size: PageSize) -> Self {
        DistinctSorted { start, size, rows: HashMap::new(), bytes: 0 }
    }

    pub fn add(&mut self, row: Vec<u8>, keys: Vec<u8>, text: Vec<u8>) -> Result<()> {
        match self.rows.get_mut(&row) {
            Some((known, _)) if *known <= keys => {}
            Some((known, _)) => {
                self.bytes = self.bytes + keys.len() - known.len();
                *known = keys;
            }
            None => {
                self.bytes += ENTRY_BYTES + row.len() + keys.len() + text.len();
                self.rows.insert(row, (keys, text));
            }
        }
        if self.bytes > COLLECTOR_BYTES_MAX { Err(too_many()) } else { Ok(()) }
    }

    pub fn merge(&mut self, other: DistinctSorted) -> Result<()> {
        other.rows.into_iter().try_for_each(|(row, (keys, text))| self.add(row, keys, text))
    }

    /// The full sort key is keys │ row.
    pub fn finish(self) -> Result<Finished> {
        let keyed = self.rows.into_iter().map(|(row, (mut keys, text))| {
            keys.extend_from_slice(&row);
            (keys, text)
        });
        let mut rows: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(keyed.len());
        for (key, text) in keyed {
            if !self.start.at.has_passed(&key)? {
                rows.push((key, text));
            }
        }
        rows.sort_unstable();
        Ok(page_by_key(rows.into_iter(), self.start, self.size, false))
    }
}

/// A page found by skipping the rows that earlier pages returned.
pub fn page_by_row_number(rows: impl Iterator<Item = Vec<u8>>, start: PageStart, size: PageSize) -> Finished {
    let returned = match start.at {
        ResumePoint::Row(returned) => returned,
        _ => 0,
    };
    let skipped = start.skip.saturating_add(returned);
    let wanted = start.take.map_or(u64::MAX, |take| take.saturating_sub(returned));
    let mut page = RowSet::default();
    for (at, text) in rows.skip(usize::try_from(skipped).unwrap_or(usize::MAX)).enumerate() {
        if at as u64 >= wanted {
            break;
        }
        if page.len() >= size.rows || !page.is_empty() && page.bytes() + text.len() > size.bytes {
            let at = ResumePoint::Row(returned + at as u64);
            return Finished { rows: page, next: Some(PageStart { at, ..start }) };
        }
        page.push(&text);
    }
    Finished { rows: page, next: None }
}

fn too_many() -> Error {
    let message = format!(
        "DISTINCT with ORDER BY has more different rows than fit into {COLLECTOR_BYTES_MAX} bytes. Filter more, or leave out ORDER BY."
    );
    Error::new(Kind::TooLarge, message)
}
