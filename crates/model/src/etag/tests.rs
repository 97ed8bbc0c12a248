use proptest::prelude::*;

use super::*;
use crate::{Value, json};

const ETAG: Etag = Etag { lsn: 0x0100_2683, seq: 0, ts_s: 0x6451_FB4B, space: 0x0800 };

#[test]
fn the_documented_vector() {
    assert_eq!(ETAG.to_string(), "\"01002683-0000-0800-0000-6451fb4b0000\"");
    assert_eq!(Etag { lsn: 0xABCD_0000_0001, seq: 2, ..ETAG }.to_string(), "\"00000001-abcd-0800-0002-6451fb4b0000\"");
}

#[test]
fn only_the_exact_text_is_accepted() {
    assert_eq!(Etag::parse("\"01002683-0000-0800-0000-6451fb4b0000\""), Some(ETAG));
    for other in [
        "",
        "*",
        "01002683-0000-0800-0000-6451fb4b0000",
        "\"01002683-0000-0800-0000-6451FB4B0000\"",
        "\"01002683-0000-0800-0000-6451fb4b0001\"",
        "\"01002683+0000-0800-0000-6451fb4b0000\"",
        "\"01002683-0000-0800-0000-6451fb4b000é",
        "\"0100268g-0000-0800-0000-6451fb4b0000\"",
    ] {
        assert_eq!(Etag::parse(other), None, "{other}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn etags_round_trip_through_text_and_json(lsn in 0..=LSN_MAX, seq: u16, ts_s: u32, space: u16) {
        let etag = Etag { lsn, seq, ts_s, space };
        prop_assert_eq!(Etag::parse(&etag.to_string()), Some(etag));
        let mut out = Vec::new();
        etag.write_json(&mut out);
        prop_assert_eq!(json::parse(&out).expect("a JSON string"), Value::from(etag.to_string()));
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\"?[0-9a-fé-]{30,40}\"?") {
        let _ = Etag::parse(&text);
    }
}
