use pleiad_model::resource_id::{ContainerRid, DatabaseRid};
use proptest::prelude::*;

use super::*;

fn tokens() -> TokenSigner {
    TokenSigner::new(&[7; 32])
}

fn owner() -> String {
    ContainerRid { database: DatabaseRid(1), number: 2 }.to_string()
}

fn keys(min: &str, max: &str) -> EpkRange {
    EpkRange { min: EffectiveKey::parse(min).unwrap(), max: EffectiveKey::parse(max).unwrap() }
}

fn redeem(text: &str, place: Option<&EpkRange>) -> Result<FeedCursor> {
    tokens().redeem_items(&owner(), text, place)
}

fn after(keys: EpkRange, docnum: u64) -> FeedCursor {
    FeedCursor::after(keys, docnum)
}

const ITEM_3: &str = "-RID:~AAAAAYAAAAIDAAAAAAAAAA==#RT:1#TRC:10#ISV:2#IEO:65567#QCF:8";

#[test]
fn the_service_s_text_names_an_item_of_this_container() {
    let full = EpkRange::FULL;
    let read = |text: &str| redeem(text, Some(&full));
    assert_eq!(read(ITEM_3).unwrap(), after(EpkRange::FULL, 3));
    assert_eq!(read("+RID:AAAAAYAAAAIDAAAAAAAAAA==#RT:1#TRC:10").unwrap(), after(EpkRange::FULL, 2), "at the item");
    assert_eq!(read("AAAAAYAAAAIDAAAAAAAAAA==").unwrap(), after(EpkRange::FULL, 3), "as in read feeds");
    for unreadable in [
        "-RID:~AAAAAYAAAAMDAAAAAAAAAA==#RT:1#TRC:10", // of another container
        "-RID:~AAAAAYAAAAI=#RT:1#TRC:10",             // not an item
        "+RID:AAAAAYAAAAIDAAAAAAAAAA==#RT:1#TRC:1#RTD:qdTAEA==", // among sorted rows
        "-RID:~AAAAAYAAAAIDAAAAAAAAAA==#RT",
        "-RID:~AAAAAYAAAAIDAAAAAAAAAA==#TRC:many",
        "~",
        "",
    ] {
        assert!(read(unreadable).is_err(), "{unreadable}");
    }
    assert!(redeem(ITEM_3, None).is_err(), "an item alone is no position among several partitions");
}

#[test]
fn json_names_the_range_of_a_position() {
    let first = format!(r#"{{"token":"{ITEM_3}","range":{{"min":"","max":"7F"}}}}"#);
    assert_eq!(redeem(&first, None).unwrap(), after(keys("", "7F"), 3));
    assert_eq!(redeem(&format!("[{first}]"), None).unwrap(), after(keys("", "7F"), 3));
    let two = format!(r#"[{first},{{"token":null,"range":{{"min":"7F","max":"FF"}}}}]"#);
    let ranges = [after(keys("", "7F"), 3).ranges, vec![RangeCursor::whole(keys("7F", "FF"))]].concat();
    assert_eq!(redeem(&two, None).unwrap(), FeedCursor { ranges, stretch: None });
    for unreadable in [
        format!("[{first},{first}]"), // the same range twice
        format!(r#"{{"token":"{ITEM_3}"}}"#),
        format!(r#"{{"token":"{ITEM_3}","range":{{"min":"7F","max":"7F"}}}}"#),
        r#"{"token":7,"range":{"min":"","max":"FF"}}"#.to_owned(),
        "[]".to_owned(),
        "{".to_owned(),
    ] {
        assert!(redeem(&unreadable, None).is_err(), "{unreadable}");
    }
}

#[test]
fn a_signed_token_is_in_the_range_that_its_json_names() {
    let cursor = FeedCursor { stretch: Some(EpkRange::FULL), ..after(keys("3F", "7F"), 3) };
    let token = tokens().issue(&owner(), &cursor);
    let text = wrap(&token, first_range(&cursor.ranges));
    assert_eq!(text, format!(r#"{{"token":"{token}","range":{{"min":"3F","max":"7F"}}}}"#));
    assert_eq!(redeem(&text, None).unwrap(), cursor);
    assert_eq!(redeem(&token, None).unwrap(), cursor);
    assert!(redeem(&wrap(&token, &keys("7F", "FF")), None).is_err());
    assert!(tokens().redeem_items("BBBB", &text, None).is_err());
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,80}") {
        let _ = redeem(&text, Some(&EpkRange::FULL));
        let _ = redeem(&format!("-RID:{text}"), Some(&EpkRange::FULL));
    }
}
