use proptest::prelude::*;

use super::*;

const DATABASE: DatabaseRid = DatabaseRid(1);
const CONTAINER: ContainerRid = ContainerRid { database: DATABASE, number: 2 };
const USER: UserRid = UserRid { database: DATABASE, number: 2 };

#[track_caller]
fn check(rid: ResourceId, text: &str) {
    assert_eq!(ResourceId::parse(text), Some(rid));
}

#[test]
fn the_documented_vectors() {
    assert_eq!(OfferRid(1).to_string(), "AQAA");
    assert_eq!(DATABASE.to_string(), "AAAAAQ==");
    assert_eq!(USER.to_string(), "AAAAAQAAAAI=");
    assert_eq!(CONTAINER.to_string(), "AAAAAYAAAAI=");
    assert_eq!(ItemRid { container: CONTAINER, docnum: 3 }.to_string(), "AAAAAYAAAAIDAAAAAAAAAA==");
    assert_eq!(ItemRid { container: CONTAINER, docnum: CHILD_NUMBER_MAX }.to_string(), "AAAAAYAAAAL---------Dw==");
}

#[test]
fn parse_distinguishes_every_kind() {
    let script = |kind| ScriptRid { container: CONTAINER, kind, number: 3 };
    check(ResourceId::Offer(OfferRid(0x0003_0201)), "AQID");
    check(ResourceId::Database(DATABASE), "AAAAAQ==");
    check(ResourceId::User(USER), "AAAAAQAAAAI=");
    check(ResourceId::Container(CONTAINER), "AAAAAYAAAAI=");
    check(ResourceId::Item(ItemRid { container: CONTAINER, docnum: 3 }), "AAAAAYAAAAIDAAAAAAAAAA==");
    check(ResourceId::Range(RangeRid { container: CONTAINER, number: 3 }), "AAAAAYAAAAIDAAAAAAAAUA==");
    check(ResourceId::Script(script(ScriptKind::UserDefinedFunction)), "AAAAAYAAAAIDAAAAAAAAYA==");
    check(ResourceId::Script(script(ScriptKind::Trigger)), "AAAAAYAAAAIDAAAAAAAAcA==");
    check(ResourceId::Script(script(ScriptKind::StoredProcedure)), "AAAAAYAAAAIDAAAAAAAAgA==");
    check(ResourceId::Permission(PermissionRid { user: USER, number: 3 }), "AAAAAQAAAAIDAAAAAAAAAA==");
    check(
        ResourceId::ClientEncryptionKey(ClientEncryptionKeyRid { database: DATABASE, number: 2 }),
        "AAAAAQAAAAAAAAAC",
    );
    assert!(matches!(ResourceId::parse("AAAAAYAAAAIDAAAAAAAAQA=="), Some(ResourceId::Other(_)))); // a conflict
    assert!(matches!(ResourceId::parse("AAAAAYAAAAIDAAAAAAAAAAEAAAA="), Some(ResourceId::Other(_)))); // an attachment
}

#[test]
fn invalid_rids_are_rejected() {
    for text in [
        "",
        "A",
        "AAAAAA==",
        "AAAAAQ",
        "AAAAAR==",
        "AAAA/Q==",
        "AAAAAQ==AAAA",
        "my database",
        "AAAAAQAA",
        &"A".repeat(32),
    ] {
        assert_eq!(ResourceId::parse(text), None, "{text}");
    }
    assert_eq!(ContainerRid::parse("AAAAAQAAAAI="), None, "a user");
    assert_eq!(UserRid::parse("AAAAAYAAAAI="), None, "a container");
    assert_eq!(ItemRid::parse("AAAAAYAAAAIDAAAAAAAAUA=="), None, "a range");
    assert_eq!(DatabaseRid::parse("AAAAAYAAAAI="), None, "a container");
}

#[test]
fn a_slash_is_written_as_a_dash() {
    assert_eq!(DatabaseRid(u32::MAX).to_string(), "-----w==");
    assert_eq!(DatabaseRid::parse("-----w=="), Some(DatabaseRid(u32::MAX)));
}

#[test]
fn a_database_segment_of_eight_characters_that_decode_to_four_bytes_is_a_rid() {
    for rid in ["AAAAAQ==", "-----w==", "AAAAAA==", "abcdef=="] {
        assert!(looks_like_database_rid(rid), "{rid}");
    }
    for name in ["database", "AAAAAQA=", "mydb", "ab def==", "AAAAAQ===", "", "ééé=="] {
        assert!(!looks_like_database_rid(name), "{name}");
    }
}

fn containers() -> impl Strategy<Value = ContainerRid> {
    (1..=u32::MAX, 0..=DATABASE_CHILD_NUMBER_MAX)
        .prop_map(|(database, number)| ContainerRid { database: DatabaseRid(database), number })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn rids_round_trip_through_text(container in containers(), number in 0..=CHILD_NUMBER_MAX, offer in 0..=OFFER_NUMBER_MAX) {
        let item = ItemRid { container, docnum: number };
        let range = RangeRid { container, number };
        let key = ClientEncryptionKeyRid { database: container.database, number };
        prop_assert_eq!(OfferRid::parse(&OfferRid(offer).to_string()), Some(OfferRid(offer)));
        prop_assert_eq!(DatabaseRid::parse(&container.database.to_string()), Some(container.database));
        prop_assert_eq!(ContainerRid::parse(&container.to_string()), Some(container));
        prop_assert_eq!(ItemRid::parse(&item.to_string()), Some(item));
        prop_assert_eq!(RangeRid::parse(&range.to_string()), Some(range));
        prop_assert_eq!(ClientEncryptionKeyRid::parse(&key.to_string()), Some(key));
        prop_assert!(looks_like_database_rid(&container.database.to_string()));
    }

    #[test]
    fn write_appends_the_display_text(container in containers(), docnum in 0..=CHILD_NUMBER_MAX) {
        let rid = ItemRid { container, docnum };
        let mut out = Vec::new();
        rid.write(&mut out);
        prop_assert_eq!(out, rid.to_string().into_bytes());
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[A-Za-z0-9+=é-]{0,30}") {
        let _ = ResourceId::parse(&text);
        let _ = looks_like_database_rid(&text);
    }
}
