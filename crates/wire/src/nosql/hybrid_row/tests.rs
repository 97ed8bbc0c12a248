//! Streams and rows in the documented layout, and malformed ones.

use proptest::prelude::*;

use super::row::{HybridRow, HybridRowSchema, Sparse};
use super::*;

/// Four columns as in a batch result, then two optional ones.
const RESULT: HybridRowSchema = HybridRowSchema { id: 2_145_473_649, fixed: 2, variable: 2, sparse: 2 };

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_checksum_is_crc32_of_iso_3309() {
    assert_eq!(crc32::of(b"123456789"), 0xCBF4_3926);
    assert_eq!(crc32::of(b""), 0);
}

#[test]
fn a_row_has_the_documented_layout() {
    let row = HybridRow {
        fixed: vec![Some(200), None],
        variable: vec![Some(b"\"e\""), None],
        sparse: vec![None, Some(Sparse::F64(5.0))],
    };
    let bytes = row.write(&RESULT);
    assert_eq!(hex(&bytes), "817154e17f05c8000000000000000322652210060000000000001440");
    assert_eq!(HybridRow::read(&RESULT, &bytes).unwrap(), row);
}

#[test]
fn a_stream_has_the_documented_layout() {
    let mut stream = RecordIoWriter::new();
    stream.push(b"row");
    let bytes = stream.finish();
    assert_eq!(
        hex(&bytes),
        format!("81f0d8ff7f010a00000081f1d8ff7f03000000{}726f77", hex(&crc32::of(b"row").to_le_bytes()))
    );
    assert_eq!(records(&bytes).unwrap(), [b"row"]);
    assert!(is_hybrid_row(&bytes) && !is_hybrid_row(b"[]"));
}

#[test]
fn a_damaged_record_is_detected() {
    let mut stream = RecordIoWriter::new();
    stream.push(b"row");
    let mut bytes = stream.finish();
    *bytes.last_mut().unwrap() ^= 1;
    assert!(records(&bytes).unwrap_err().to_string().contains("checksum"));
}

#[test]
fn columns_unknown_to_the_schema_are_skipped() {
    let mut bytes =
        HybridRow { fixed: vec![Some(200), None], variable: vec![None, None], sparse: vec![None, None] }.write(&RESULT);
    bytes.extend_from_slice(&[20, 7 + 2, b'x', b'y', 1, b'!']); // a name of two letters, after the seven known ones
    bytes.extend_from_slice(&[8, 6, 1, 2, 3, 4, 5, 6, 7, 8]); // a known name with an int64, which is skipped
    bytes.extend_from_slice(&[7, 5, 9, 0, 0, 0]);
    assert_eq!(HybridRow::read(&RESULT, &bytes).unwrap().sparse, [Some(Sparse::U32(9)), None]);
}

fn sparse() -> impl Strategy<Value = Option<Sparse<'static>>> {
    let value = prop_oneof![
        any::<bool>().prop_map(Sparse::Bool),
        any::<u32>().prop_map(Sparse::U32),
        any::<i32>().prop_map(|n| Sparse::F64(f64::from(n) / 100.0)),
        Just(Sparse::Bytes(b"include")),
    ];
    prop::option::of(value)
}

proptest! {
    #[test]
    fn rows_round_trip(
        fixed in prop::collection::vec(prop::option::of(any::<u32>()), 2),
        variable in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..300)), 2),
        sparse in prop::collection::vec(sparse(), 2),
    ) {
        let row = HybridRow { fixed, variable: variable.iter().map(Option::as_deref).collect(), sparse };
        let bytes = row.write(&RESULT);
        prop_assert_eq!(HybridRow::read(&RESULT, &bytes).unwrap(), row);
    }

    #[test]
    fn streams_round_trip(rows in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5)) {
        let mut stream = RecordIoWriter::new();
        rows.iter().for_each(|row| stream.push(row));
        let bytes = stream.finish();
        prop_assert_eq!(records(&bytes).unwrap(), rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), cut in 0usize..80) {
        let _ = (records(&bytes), HybridRow::read(&RESULT, &bytes));
        let mut stream = RecordIoWriter::new();
        stream.push(&bytes);
        let whole = stream.finish();
        let _ = records(&whole[..cut.min(whole.len())]);
        let row = [&[0x81, 0x71, 0x54, 0xE1, 0x7F][..], &bytes].concat();
        let _ = HybridRow::read(&RESULT, &row);
    }
}
