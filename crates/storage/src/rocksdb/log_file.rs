//! The write-ahead log as bytes: which of its records can be read.
//!
//! RocksDB replays its log up to the first record that it cannot read and says nothing about the rest. This module reads
//! the same bytes, so that a start can tell a torn tail from a damaged log before RocksDB rewrites anything, and so that
//! `salvage` can go on behind the damage.
//!
//! ```text
//! log        block of 32,768 bytes │ block │ …            a fragment never crosses the end of a block; fewer than
//!                                                         7 bytes at the end of a block are zeros
//! fragment   crc u32 │ length u16 │ kind u8 │ payload     all numbers are little-endian
//!            crc     CRC-32C of kind and payload, rotated right by 15 bits, plus 0xa282ead8
//!            kind    1 the whole record, 2 its first fragment, 3 a middle one, 4 its last; 0 was never written;
//!                    others hold no rows
//! record     sequence number u64 │ operations u32 │ operations: the payload of one write batch
//! ```
//!
//! The write of `k` = `v` with sequence number 1, as it is in a log:
//!
//! ```text
//! e7 5a 4d 00 │ 11 00 │ 01 │ 01 00 00 00 00 00 00 00 │ 01 00 00 00 │ 01 01 6b 01 76
//! ```

mod crc32c; // the checksum

const BLOCK_BYTES: usize = 32 * 1024;
const HEADER_BYTES: usize = 7;
const CRC_MASK: u32 = 0xa282_ead8;

const KIND_NEVER_WRITTEN: u8 = 0;
const KIND_WHOLE: u8 = 1;
const KIND_FIRST: u8 = 2;
const KIND_MIDDLE: u8 = 3;
const KIND_LAST: u8 = 4;

/// The end of the last record before the first byte that cannot be read.
pub fn readable_bytes(log: &[u8]) -> usize {
    let mut end = 0;
    let mut reader = LogReader::new(log);
    while let LogStep::Record { end: record_end, .. } | LogStep::NoRows { end: record_end } = reader.step() {
        end = record_end;
    }
    end
}

/// All records that can be read, also those behind damage; `skipped_bytes` counts what cannot.
pub fn salvage_records(log: &[u8]) -> SalvagedRecords {
    let (mut salvaged, mut reader) = (SalvagedRecords::default(), LogReader::new(log));
    loop {
        let begin = reader.at;
        match reader.step() {
            LogStep::Record { payload, .. } => salvaged.records.push(payload),
            LogStep::NoRows { .. } => {}
            LogStep::Incomplete => salvaged.skipped_bytes += reader.at - begin,
            LogStep::Unreadable => {
                reader.skip_block();
                salvaged.skipped_bytes += reader.at - begin;
            }
            LogStep::End => return salvaged,
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct SalvagedRecords {
    pub records: Vec<Vec<u8>>,
    pub skipped_bytes: usize,
}

/// A log with these records.
pub fn write_log(records: &[Vec<u8>]) -> Vec<u8> {
    let mut log = Vec::new();
    for record in records {
        let (mut rest, mut is_first) = (record.as_slice(), true);
        loop {
            let left = BLOCK_BYTES - log.len() % BLOCK_BYTES;
            if left < HEADER_BYTES {
                log.resize(log.len() + left, 0);
                continue;
            }
            let (payload, after) = rest.split_at(rest.len().min(left - HEADER_BYTES));
            let kind = match (is_first, after.is_empty()) {
                (true, true) => KIND_WHOLE,
                (true, false) => KIND_FIRST,
                (false, false) => KIND_MIDDLE,
                (false, true) => KIND_LAST,
            };
            log.extend_from_slice(&masked_crc(kind, payload).to_le_bytes());
            log.extend_from_slice(&(payload.len() as u16).to_le_bytes()); // less than a block
            log.push(kind);
            log.extend_from_slice(payload);
            (rest, is_first) = (after, false);
            if rest.is_empty() {
                break;
            }
        }
    }
    log
}

struct LogReader<'a> {
    log: &'a [u8],
    at: usize,
}

enum LogStep {
    Record {
        payload: Vec<u8>,
        end: usize,
    },
    /// A fragment about the log itself.
    NoRows {
        end: usize,
    },
    /// Fragments that can be read, of a record that cannot.
    Incomplete,
    Unreadable,
    End,
}

struct Fragment<'a> {
    kind: u8,
    payload: &'a [u8],
}

impl<'a> LogReader<'a> {
    fn new(log: &'a [u8]) -> Self {
        LogReader { log, at: 0 }
    }

    /// The next record. If it cannot be read, the position is behind its readable fragments.
    fn step(&mut self) -> LogStep {
        self.skip_block_end();
        if self.at >= self.log.len() {
            return LogStep::End;
        }
        match self.fragment() {
            Some(Fragment { kind: KIND_WHOLE, payload }) => LogStep::Record { payload: payload.to_vec(), end: self.at },
            Some(Fragment { kind: KIND_FIRST, payload }) => self.rest_of_record(payload.to_vec()),
            Some(Fragment { kind: KIND_MIDDLE | KIND_LAST, .. }) => LogStep::Incomplete,
            Some(_) => LogStep::NoRows { end: self.at },
            None => LogStep::Unreadable,
        }
    }

    fn rest_of_record(&mut self, mut payload: Vec<u8>) -> LogStep {
        loop {
            self.skip_block_end();
            let before = self.at;
            match self.fragment() {
                Some(Fragment { kind: KIND_MIDDLE, payload: more }) => payload.extend_from_slice(more),
                Some(Fragment { kind: KIND_LAST, payload: more }) => {
                    payload.extend_from_slice(more);
                    return LogStep::Record { payload, end: self.at };
                }
                // The fragment belongs to another record, which begins here.
                Some(_) => {
                    self.at = before;
                    return LogStep::Incomplete;
                }
                None => return LogStep::Unreadable,
            }
        }
    }

    /// The fragment at the position, which moves behind it; `None` if it cannot be read.
    fn fragment(&mut self) -> Option<Fragment<'a>> {
        let (header, rest) = self.log.get(self.at..)?.split_first_chunk::<HEADER_BYTES>()?;
        let [c0, c1, c2, c3, l0, l1, kind] = *header;
        let payload = rest.get(..usize::from(u16::from_le_bytes([l0, l1])))?;
        let is_in_block = self.at % BLOCK_BYTES + HEADER_BYTES + payload.len() <= BLOCK_BYTES;
        let is_sound = is_in_block
            && kind != KIND_NEVER_WRITTEN
            && u32::from_le_bytes([c0, c1, c2, c3]) == masked_crc(kind, payload);
        is_sound.then(|| {
            self.at += HEADER_BYTES + payload.len();
            Fragment { kind, payload }
        })
    }

    /// A header does not fit into the last bytes of a block.
    fn skip_block_end(&mut self) {
        if BLOCK_BYTES - self.at % BLOCK_BYTES < HEADER_BYTES {
            self.skip_block();
        }
    }

    fn skip_block(&mut self) {
        self.at = ((self.at / BLOCK_BYTES + 1) * BLOCK_BYTES).min(self.log.len());
    }
}

fn masked_crc(kind: u8, payload: &[u8]) -> u32 {
    crc32c::extend(crc32c::of(&[kind]), payload).rotate_right(15).wrapping_add(CRC_MASK)
}

/// The checksum, for small files of our own.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::of(bytes)
}

#[cfg(test)]
mod tests;
