use super::*;
use proptest::prelude::*;

fn contents<'a>(epk: &'a EffectiveKey, id: &'a str, body: &'a [u8]) -> Contents<'a> {
    Contents { docnum: 0x1_05, ts_s: 0x6451_fb4b, terms: 10, epk, id, body }
}

#[test]
fn the_drawing_in_the_header_is_true() {
    let epk = EffectiveKey::from_bytes(&[0xAB, 0xCD]);
    let record = Record::encode(&contents(&epk, "a1", b"{}"), 812, 0).unwrap();
    let hex: String = record.bytes().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, "01000000000000032c00006451fb4b00000000000001050000000a02abcd000261317b7d");
}

#[test]
fn a_record_of_a_later_codec_is_refused() {
    assert!(Record::decode(Bytes::from_static(b"\x09rest")).is_err());
}

proptest! {
    #[test]
    fn records_round_trip(lsn in 0u64..1 << 48, seq: u16, docnum in 0u64..1 << 60, epk in proptest::collection::vec(any::<u8>(), 0..120), id in "\\PC{0,40}", body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let epk = EffectiveKey::from_bytes(&epk);
        let made = Record::encode(&Contents { docnum, ts_s: 7, terms: 3, epk: &epk, id: &id, body: &body }, lsn, seq).unwrap();
        let read = Record::decode(made.bytes().clone()).unwrap();
        prop_assert_eq!(&read, &made);
        prop_assert_eq!((read.id(), read.body(), read.docnum, read.lsn, read.seq), (id.as_str(), body.as_slice(), docnum, lsn, seq));
    }

    #[test]
    fn any_bytes_decode_or_fail_cleanly(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = Record::decode(Bytes::from(bytes));
    }
}
