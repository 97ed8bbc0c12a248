//! Request bodies in every format: arbitrary bytes are operations or an error. The input is also written as rows of a
//! stream with valid checksums, which random input would not reach.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_wire::nosql::batch::{BatchFormat, parse};
use pleiad_wire::nosql::binary_json;
use pleiad_wire::nosql::hybrid_row::RecordIoWriter;

fuzz_target!(|bytes: (&[u8], Vec<&[u8]>)| {
    let (body, rows) = bytes;
    let _ = parse(BatchFormat::of(body), body);
    let _ = binary_json::decode(body);
    let mut stream = RecordIoWriter::new();
    rows.iter().for_each(|row| stream.push(row));
    let _ = parse(BatchFormat::HybridRow, &stream.finish());
});
