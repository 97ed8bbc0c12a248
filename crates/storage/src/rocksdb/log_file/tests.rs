use proptest::prelude::*;

use super::*;

fn record(sequence: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at as u8).wrapping_mul(31).wrapping_add(sequence)).collect()
}

/// The drawing in the header, as RocksDB writes it.
#[test]
fn the_drawn_record_is_read() {
    let mut payload = vec![1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    payload.extend_from_slice(b"\x01\x01k\x01v");
    let log = write_log(std::slice::from_ref(&payload));
    assert_eq!(log[..7], [0xe7, 0x5a, 0x4d, 0x00, 0x11, 0, 1], "{:02x?}", &log[..7]);
    assert_eq!(salvage_records(&log), SalvagedRecords { records: vec![payload], skipped_bytes: 0 });
    assert_eq!(readable_bytes(&log), log.len());
}

#[test]
fn a_flipped_bit_ends_what_is_readable_and_salvage_goes_on_in_the_next_block() {
    let records: Vec<Vec<u8>> = (0..200).map(|n| record(n, 1_000)).collect();
    let log = write_log(&records);
    assert_eq!(readable_bytes(&log), log.len());
    let mut damaged = log.clone();
    damaged[10 * 1_007 + 500] ^= 4;
    assert_eq!(readable_bytes(&damaged), 10 * 1_007);
    let salvaged = salvage_records(&damaged);
    assert!(salvaged.records.len() > 160, "{}", salvaged.records.len());
    assert_eq!(salvaged.records[..10], records[..10]);
    assert_eq!(salvaged.records.last(), records.last());
    assert!(salvaged.skipped_bytes > 0);
}

#[test]
fn zeros_and_a_cut_end_a_log() {
    let log = write_log(&[record(1, 100), record(2, 100)]);
    for end in 107..214 {
        assert_eq!(readable_bytes(&log[..end]), 107, "{end}");
        let mut zeroed = log.clone();
        zeroed[end..].fill(0);
        assert_eq!(readable_bytes(&zeroed), 107, "{end}");
    }
    assert_eq!(readable_bytes(&[]), 0);
}

proptest! {
    #[test]
    fn records_of_all_sizes_are_read_back(sizes in prop::collection::vec(0usize..100_000, 0..12)) {
        let records: Vec<Vec<u8>> = sizes.iter().map(|bytes| record(*bytes as u8, *bytes)).collect();
        let log = write_log(&records);
        prop_assert_eq!(readable_bytes(&log), log.len());
        prop_assert_eq!(salvage_records(&log), SalvagedRecords { records, skipped_bytes: 0 });
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(log in prop::collection::vec(any::<u8>(), 0..70_000)) {
        prop_assert!(readable_bytes(&log) <= log.len());
        prop_assert!(salvage_records(&log).skipped_bytes <= log.len());
    }
}
