//! RecordIO: a stream of HybridRow records. The .NET SDK sends batches and expects their results in this format.
//!
//! Guarantees: any bytes decode to records or to `Kind::Invalid`, never to a panic, and no record is larger than the
//! body. The checksum of each record is verified. `batch` interprets the records; `row` describes the layout of a row.
//!
//! A stream has a segment, which contains only its own length, then records, each after a header of its own. All three
//! are rows of well-known schemas; integers are little endian:
//!
//! ```text
//! segment   81 │ f0 d8 ff 7f │ 01      │ 0a 00 00 00
//!           V1   2147473648    present   its length: 10 bytes, this header
//! record    81 │ f1 d8 ff 7f │ 27 00 00 00 │ 8a 1f 3c 5e │ a row of 39 bytes
//!           V1   2147473649    row's length  its CRC-32
//! ```

mod crc32;
pub mod row; // one row: fixed, variable and sparse columns

use pleiad_model::{Error, Result};
use row::{HybridRowReader, V1};

const SEGMENT_SCHEMA: u32 = 2_147_473_648;
const RECORD_SCHEMA: u32 = 2_147_473_649;
const SEGMENT_BYTES_MIN: usize = 10;
const LENGTH_PRESENT: u8 = 0x01;

/// Text never starts with this byte: no UTF-8 sequence begins with it.
pub fn is_hybrid_row(body: &[u8]) -> bool {
    body.first() == Some(&V1)
}

/// The rows of a stream, in order.
pub fn records(body: &[u8]) -> Result<Vec<&[u8]>> {
    let mut rest = after_segment(body)?;
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let mut reader = HybridRowReader::new(rest);
        match reader.header()? {
            SEGMENT_SCHEMA => rest = after_segment(rest)?,
            RECORD_SCHEMA => {
                let (length, checksum) = (reader.u32()?, reader.u32()?);
                let row = reader.take(length as usize)?;
                if crc32::of(row) != checksum {
                    return Err(Error::invalid(
                        "The batch does not arrive as it was sent: a record's checksum is wrong.",
                    ));
                }
                rows.push(row);
                rest = reader.rest();
            }
            _ => return Err(row::invalid("a record begins with a schema that is none of a record")),
        }
    }
    Ok(rows)
}

fn after_segment(bytes: &[u8]) -> Result<&[u8]> {
    let mut reader = HybridRowReader::new(bytes);
    if reader.header()? != SEGMENT_SCHEMA || reader.u8()? & LENGTH_PRESENT == 0 {
        return Err(row::invalid("it does not begin with a segment"));
    }
    let length = reader.u32()? as usize;
    let after = bytes.get(length..).filter(|_| length >= SEGMENT_BYTES_MIN);
    after.ok_or_else(|| row::invalid("a segment is longer than the body"))
}

/// A stream under construction.
pub struct RecordIoWriter {
    bytes: Vec<u8>,
}

impl RecordIoWriter {
    pub fn new() -> RecordIoWriter {
        let mut bytes = Vec::with_capacity(1024);
        row::put_header(SEGMENT_SCHEMA, &mut bytes);
        bytes.push(LENGTH_PRESENT);
        bytes.extend_from_slice(&(SEGMENT_BYTES_MIN as u32).to_le_bytes());
        RecordIoWriter { bytes }
    }

    pub fn push(&mut self, row: &[u8]) {
        row::put_header(RECORD_SCHEMA, &mut self.bytes);
        self.bytes.extend_from_slice(&(row.len() as u32).to_le_bytes()); // rows are a few MB at most
        self.bytes.extend_from_slice(&crc32::of(row).to_le_bytes());
        self.bytes.extend_from_slice(row);
    }

    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

impl Default for RecordIoWriter {
    fn default() -> Self {
        RecordIoWriter::new()
    }
}

#[cfg(test)]
mod tests;
