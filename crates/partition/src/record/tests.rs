use super::*;
use proptest::prelude::*;

const BODY: &[u8] = br#"{"id":"a1","n":5}"#;

fn contents<'a>(epk: &'a EffectiveKey, id: &'a str, fields: &'a FieldOffsets, body: &'a [u8]) -> Contents<'a> {
    Contents { docnum: 0x1_05, ts_s: 0x6451_fb4b, terms: 10, indexed: true, etag_source: None, epk, id, fields, body }
}

fn record(indexed: bool) -> Record {
    let epk = EffectiveKey::from_bytes(&[0xAB, 0xCD]);
    let fields = FieldOffsets::of(BODY);
    Record::encode(&Contents { indexed, ..contents(&epk, "a1", &fields, BODY) }, 812, 0).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn encoding_matches_the_documented_layout() {
    let header = "02000000000000032c00006451fb4b00000000000001050000000a0002abcd00026131";
    let fields = "000237386ae000000006eb0c34310000000f";
    assert_eq!(hex(record(true).bytes()), [header, fields, &hex(BODY)].concat());
}

#[test]
fn an_etag_returned_before_the_commit_is_kept() {
    let (epk, fields) = (EffectiveKey::from_bytes(&[0xAB, 0xCD]), FieldOffsets::of(BODY));
    let unsequenced =
        Record::encode(&Contents { etag_source: Some((7, 0x8001)), ..contents(&epk, "a1", &fields, BODY) }, 0, 0)
            .unwrap();
    let sequenced = unsequenced.with_lsn(812, 3);
    assert_eq!((sequenced.lsn, sequenced.seq, sequenced.etag()), (812, 3, unsequenced.etag()));
    assert_eq!(
        hex(&sequenced.bytes()[..51]),
        concat!(
            "02000000000000032c00036451fb4b00000000000001050000000a",
            "02",
            "0000000000000007",
            "8001",
            "02abcd00026131",
            "000237386ae0"
        )
    );
    assert_eq!(Record::decode(sequenced.bytes().clone()).unwrap(), sequenced);
    assert_eq!(sequenced.view().property("n", name_hash("n")), Some(&b"5"[..]));
}

#[test]
fn a_property_is_found_by_its_name_and_hash() {
    let record = record(true);
    assert_eq!(record.view().property("n", name_hash("n")), Some(&b"5"[..]));
    assert_eq!(record.view().property("id", name_hash("id")), Some(&b"\"a1\""[..]));
    assert_eq!(record.view().property("m", name_hash("m")), None);
}

#[test]
fn the_indexed_flag_is_stored() {
    for indexed in [true, false] {
        assert_eq!(Record::decode(record(indexed).bytes().clone()).unwrap().indexed, indexed);
    }
}

/// Data directories contain such records from before fields were listed.
#[test]
fn a_record_of_the_first_codec_is_read() {
    let mut bytes =
        b"\x01\0\0\0\0\0\0\x03\x2c\0\0\x64\x51\xfb\x4b\0\0\0\0\0\0\x01\x05\0\0\0\x0a\x02\xab\xcd\0\x02a1".to_vec();
    bytes.extend_from_slice(BODY);
    let old = Record::decode(bytes.into()).unwrap();
    let new = record(true);
    assert_eq!((old.lsn, old.seq, old.ts_s, old.docnum), (new.lsn, new.seq, new.ts_s, new.docnum));
    assert_eq!((old.terms, old.indexed, &old.epk), (new.terms, true, &new.epk));
    assert_eq!((old.id(), old.body(), old.etag()), (new.id(), new.body(), new.etag()));
    assert_eq!(old.view().property("n", name_hash("n")), Some(&b"5"[..]));
    assert_eq!(old.view().property("m", name_hash("m")), None);
}

#[test]
fn a_record_of_a_later_codec_is_rejected() {
    assert!(Record::decode(Bytes::from_static(b"\x09rest")).is_err());
}

#[test]
fn a_truncated_record_is_rejected() {
    let whole = record(true).bytes().clone();
    for end in 0..whole.len() - BODY.len() {
        assert!(Record::decode(whole.slice(..end)).is_err(), "{end}");
    }
}

proptest! {
    #[test]
    fn records_round_trip(lsn in 0u64..1 << 48, seq: u16, docnum in 0u64..1 << 60, epk in proptest::collection::vec(any::<u8>(), 0..120), id in "\\PC{0,40}", body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let epk = EffectiveKey::from_bytes(&epk);
        let fields = FieldOffsets::of(&body);
        let made = Record::encode(&Contents { docnum, ..contents(&epk, &id, &fields, &body) }, lsn, seq).unwrap();
        let read = Record::decode(made.bytes().clone()).unwrap();
        prop_assert_eq!(&read, &made);
        prop_assert_eq!((read.id(), read.body(), read.docnum, read.lsn, read.seq), (id.as_str(), body.as_slice(), docnum, lsn, seq));
    }

    #[test]
    fn any_bytes_decode_or_fail_cleanly(codec in 0u8..3, bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        if let Ok(record) = Record::decode([&[codec], &bytes[..]].concat().into()) {
            let _ = (record.id(), record.view().property("a", name_hash("a")), record.etag());
        }
    }
}
