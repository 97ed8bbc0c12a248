//! Bodies of requests in every form they may have: any bytes are operations or an error. Rows are also put into a stream whose
//! checksums are right, which chance would not find.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_wire::nosql::batch::{Format, parse};
use pleiad_wire::nosql::binary_json;
use pleiad_wire::nosql::hybrid_row::Stream;

fuzz_target!(|bytes: (&[u8], Vec<&[u8]>)| {
    let (body, rows) = bytes;
    let _ = parse(Format::of(body), body);
    let _ = binary_json::decode(body);
    let mut stream = Stream::new();
    rows.iter().for_each(|row| stream.push(row));
    let _ = parse(Format::HybridRow, &stream.finish());
});
