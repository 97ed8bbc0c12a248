//! Result pages: their size limits, their rows, and the position where a page starts and the next one continues.

use pleiad_model::Result;

use super::resume_key::ResumeKey;

/// The size limits of a page.
#[derive(Clone, Copy, Debug)]
pub struct PageSize {
    pub rows: usize,
    pub bytes: usize,
}

/// Where a page starts: the whole state of a query between two pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageStart {
    /// Rows of `OFFSET` still to be skipped.
    pub skip: u64,
    /// Rows of `TOP` or `LIMIT` still to be returned.
    pub take: Option<u64>,
    pub at: ResumePoint,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumePoint {
    Beginning,
    /// After this many rows of the item with this docnum.
    Item {
        docnum: u64,
        rows: u64,
    },
    /// After the row or group with this key.
    Key(ResumeKey),
    /// After this many rows.
    Row(u64),
}

impl ResumePoint {
    /// For sorted rows: the later of this position and that of a whole key.
    pub fn max(self, key: ResumeKey) -> Result<ResumePoint> {
        match self {
            ResumePoint::Key(own) => own.max(key).map(ResumePoint::Key),
            _ => Ok(ResumePoint::Key(key)),
        }
    }

    /// Whether an earlier page returned or skipped the row with this key.
    pub fn has_passed(&self, key: &[u8]) -> Result<bool> {
        match self {
            ResumePoint::Key(resume_key) => resume_key.has_passed(key),
            _ => Ok(false),
        }
    }
}

/// Rows as JSON text, concatenated.
#[derive(Clone, Debug, Default)]
pub struct RowSet {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// A page, and where the next one starts.
#[derive(Debug)]
pub struct Finished {
    pub rows: RowSet,
    pub next: Option<PageStart>,
}

impl RowSet {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    /// Appends the rows, separated by commas.
    pub fn join(&self, out: &mut Vec<u8>) {
        out.reserve(self.bytes.len() + self.len());
        for (at, row) in self.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(row);
        }
    }

    pub fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    /// Writes a row in place; removes it again if `write` returns false or fails.
    pub(super) fn append<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<bool, E>) -> Result<bool, E> {
        let start = self.bytes.len();
        let written = write(&mut self.bytes);
        match written {
            Ok(true) => self.ends.push(self.bytes.len()),
            _ => self.bytes.truncate(start),
        }
        written
    }

    /// Removes the last row.
    pub(super) fn pop(&mut self) {
        self.ends.pop();
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }
}

impl PageStart {
    /// The first page of a query.
    pub fn beginning(offset: u64, take: Option<u64>) -> Self {
        PageStart { skip: offset, take, at: ResumePoint::Beginning }
    }
}
