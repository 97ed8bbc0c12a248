//! The vectors were computed with the client SDKs' code; routing depends on every digit.

use proptest::prelude::*;

use super::*;

fn definition(kind: KeyKind, version: KeyVersion, paths: &[&str]) -> PartitionKeyDefinition {
    let paths = paths.iter().map(|path| PropertyPath::parse(path).expect("a path")).collect();
    PartitionKeyDefinition { paths, kind, version, system_key: false }
}

fn v1() -> PartitionKeyDefinition {
    definition(KeyKind::Hash, KeyVersion::V1, &["/pk"])
}

fn v2() -> PartitionKeyDefinition {
    definition(KeyKind::Hash, KeyVersion::V2, &["/pk"])
}

fn hierarchy() -> PartitionKeyDefinition {
    definition(KeyKind::MultiHash, KeyVersion::V2, &["/a", "/b", "/c"])
}

fn key(header: &str) -> PartitionKey {
    PartitionKey::parse(header).expect("a partition key")
}

fn encoded(key: &PartitionKey, definition: &PartitionKeyDefinition) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode_components(definition, &mut out);
    out
}

#[track_caller]
fn check_effective(value: &str, want_v2: &str, want_v1: &str) {
    let key = key(&format!("[{value}]"));
    assert_eq!(key.effective(&v2()).to_string(), want_v2, "V2 of {value}");
    assert_eq!(key.effective(&v1()).to_string(), want_v1, "V1 of {value}");
}

#[test]
fn s36_effective_keys_of_strings() {
    check_effective("\"\"", "32E9366E637A71B4E710384B2F4970A0", "05C1CF33970FF80800");
    check_effective("\"pk\"", "20FD8FE780DCFA0692905152C35E10D9", "05C1E57B2545AA08716C00");
    check_effective("\"pk1\"", "1EC0C2CBE45DBC919CF2B65D399C2673", "05C1EDBDA5AF1E08716C3200");
    check_effective("\"redmond\"", "22E342F38A486A088463DFF7838A5963", "05C1EFE313830C087366656E706F6500");
    check_effective(
        "\"partitionKey\"",
        "013AEFCF77FA271571CF665A58C933F1",
        "05C1E1B3D9CD2608716273756A756A706F4C667A00",
    );
    check_effective("\"WA\"", "0845FB119899DE50766A2C4CEFC2FA73", "05C1C781CB737008584200");
    check_effective("\"é\"", "007199F104E04116EE25AF912CA4889B", "05C1B3CD91912008C4AA00");
    check_effective("\"日本\"", "2F64A78CFF1F1D412A8B6220090E9767", "05C1DB17971FC408E798A6E79DAD00");
    check_effective("\"😀\"", "28D7FCB721E75FBE0DAC3D71DAB82766", "05C1814D5F9C08F1A0998100");
}

#[test]
fn s17_s18_effective_keys_of_long_strings() {
    let a = |count: usize| format!("\"{}\"", "a".repeat(count));
    let v1 = format!("05C1EB5921F70608{}00", "62".repeat(100));
    check_effective(&a(100), "0DBD7D229437BB665DE6417747994D57", &v1);
    check_effective(&a(101), "08042541D30C8BF90D7092B1519AE0BC", &v1);
    check_effective(&a(1024), "332BDF5512AE49615F32C7D98C2DB86C", &v1);
}

#[test]
fn s36_effective_keys_of_numbers() {
    check_effective("0", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58", "05C1BF6DA11560058000");
    check_effective("1", "20CD98B339BA78A5D0CF6953B87070B0", "05C1ED172B6B2605BFF0");
    check_effective("5", "19C08621B135968252FB34B4CF66F811", "05C1D9C1C5517C05C014");
    check_effective("1.5", "35C5DDEB6C795D16A9963C73C54E97BC", "05C1E9694167A805BFF8");
    check_effective("-1.0", "19938E7A936C1C5B9E3AE842BBC16839", "05C1D1A5BDDF9C054010");
    check_effective("-3.25", "33484D63D7B8FD0C36A21C31A54232B2", "05C1B3733DA330053FF6");
    check_effective("-0.0", "3D018BB1DF3DB27235766E81FD10406E", "05C1E703ED99A0058000");
    check_effective("5.12312419050912359123", "0EF2E2D82460884AF0F6440BE4F726A8", "05C1CD6757FB7805C0153F858949735550");
    check_effective("2147483647", "2D9349D64712AEB5EB1406E2F0BE2725", "05C1E1F503DFB205C1DFFFFFFFFC");
    check_effective("4294967296.0", "0C746AE2C07859994662C1770E77CCFB", "05C1ED5B039B6005C1F0");
    check_effective("1e308", "1E0D61F83E0EBE180144F756FA5C918A", "05C145CFAE05FFE1E73D715F5F2340");
}

#[test]
fn s36_effective_keys_of_booleans_null_and_undefined() {
    check_effective("true", "0E711127C5B5A8E4726AC6DD306A3E59", "05C1D7C5A903D803");
    check_effective("false", "2FE1BE91E90A3439635E0E9E37361EF2", "05C1DB857D857C02");
    check_effective("null", "378867E4430E67857ACE5C908374FE16", "05C1ED45D7475601");
    check_effective("{}", "11622DAA78F835834610ABE56EFF5CB5", "05C1D529E345DC00");
}

#[track_caller]
fn check_hierarchical(header: &str, want: &[&str]) {
    assert_eq!(key(header).effective(&hierarchy()).to_string(), want.concat());
}

#[test]
fn s36_effective_keys_of_hierarchical_keys() {
    let redmond = "22E342F38A486A088463DFF7838A5963";
    let wa = "0993BF58F91772DCE970FC68F36E9F40";
    check_hierarchical(r#"["redmond"]"#, &[redmond]);
    check_hierarchical(r#"["redmond","wa"]"#, &[redmond, wa]);
    check_hierarchical(r#"["redmond","wa",98052]"#, &[redmond, wa, "1D1F568F5F4D6CD873CB6DB08777EDCF"]);
    check_hierarchical(
        r#"["CA","Oxnard","93033"]"#,
        &["2F442D3F30B24D244283F3B36B4CB88B", "3BCEFBDDC93E6B92BBF05E9CF2116729", "3F3866B6199C2C6C89F7F0BAB7CCCA72"],
    );
    check_hierarchical(r#"[null,"x"]"#, &["378867E4430E67857ACE5C908374FE16", "11E3F358618BE9AA5BAFF4C7C74F0716"]);
    check_hierarchical("[{},1]", &["11622DAA78F835834610ABE56EFF5CB5", "20CD98B339BA78A5D0CF6953B87070B0"]);
    check_hierarchical("[true,false]", &["0E711127C5B5A8E4726AC6DD306A3E59", "2FE1BE91E90A3439635E0E9E37361EF2"]);
    check_hierarchical(
        "[1,2,3]",
        &["20CD98B339BA78A5D0CF6953B87070B0", "11BEC098BB8A08943F0A144281ACC26C", "192FBBAA0435B36FED85610B205D4DC0"],
    );
}

#[test]
fn the_empty_key_sorts_first() {
    let range = EpkRange::of_point(key("[]").effective(&v1()));
    assert_eq!((range.min.to_string(), range.max.to_string()), (String::new(), "00".to_owned()));
}

#[test]
fn a_prefix_range_contains_its_keys() {
    let range = EpkRange::of_prefix(key(r#"["redmond"]"#).effective(&hierarchy()));
    assert_eq!(range.max.to_string(), "22E342F38A486A088463DFF7838A5963FF");
    assert!(range.contains(&key(r#"["redmond","wa",98052]"#).effective(&hierarchy())));
    assert!(!range.contains(&key(r#"["CA","Oxnard","93033"]"#).effective(&hierarchy())));
    assert_eq!(EpkRange::of_prefix(key("[]").effective(&hierarchy())), EpkRange::FULL);
}

#[track_caller]
fn check_bounds(definition: &PartitionKeyDefinition, bounds: &[&str]) {
    let ranges = initial_ranges(definition, bounds.len() as u32 + 1);
    let found: Vec<_> = ranges[1..].iter().map(|range| range.min.to_string()).collect();
    assert_eq!(found, bounds);
    assert_eq!(ranges.first().map(|range| &range.min), Some(&EffectiveKey::MIN));
    assert_eq!(ranges.last().map(|range| &range.max), Some(&EffectiveKey::MAX));
    assert!(ranges.windows(2).all(|pair| pair[0].max == pair[1].min));
}

#[test]
fn s37_initial_ranges_of_version_2_and_hierarchical_keys() {
    for definition in [v2(), hierarchy()] {
        check_bounds(&definition, &[]);
        check_bounds(&definition, &["1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"]);
        check_bounds(&definition, &["15555555555555555555555555555555", "2AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]);
        check_bounds(
            &definition,
            &[
                "0CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC",
                "19999999999999999999999999999999",
                "26666666666666666666666666666665",
                "33333333333333333333333333333332",
            ],
        );
    }
}

#[test]
fn s37_initial_ranges_of_version_1_keys() {
    check_bounds(&v1(), &[]);
    check_bounds(&v1(), &["05C1DFFFFFFFFC"]);
    check_bounds(&v1(), &["05C1D5AB55AB54", "05C1E5AB55AB54"]);
    check_bounds(&v1(), &["05C1CFFFFFFFF8", "05C1DFFFFFFFFC", "05C1E7FFFFFFFE"]);
    check_bounds(&v1(), &["05C1C9CD673398", "05C1D9CD673398", "05C1E399CD6732", "05C1E9CD673398"]);
}

#[test]
fn headers_round_trip() {
    for header in
        [r#"["a"]"#, "[]", "[{}]", "[null]", "[12]", "[1.5,true,false]", "[-0.0]", r#"["a","b",{}]"#, r#"["\"\\\n"]"#]
    {
        assert_eq!(key(header).to_json(), header);
    }
    assert_eq!(key(r#" [ "\u00e9" , 7.0 ] "#).to_json(), r#"["é",7]"#);
}

#[test]
fn s10_invalid_keys_are_rejected() {
    for header in
        [r#"[{"a":1}]"#, "[[]]", "[[1]]", "{}", "\"a\"", "", "a", "[\"a]", "[\"\t\"]", "[1", "[1e400]", "null"]
    {
        let error = PartitionKey::parse(header).expect_err(header);
        assert_eq!(error.kind, crate::Kind::Invalid, "{header}");
    }
}

#[track_caller]
fn check_extract(definition: &PartitionKeyDefinition, item: &str, want: &str) {
    let item = json::parse(item.as_bytes()).expect("valid JSON");
    assert_eq!(PartitionKey::extract(definition, &item).to_json(), want);
}

#[test]
fn s4_s10_the_key_is_extracted_from_the_item() {
    check_extract(&v2(), r#"{"pk":"Sales"}"#, r#"["Sales"]"#);
    check_extract(&v2(), r#"{"pk":7}"#, "[7]");
    check_extract(&v2(), r#"{"pk":null}"#, "[null]");
    check_extract(&v2(), "{}", "[{}]");
    check_extract(&v2(), r#"{"pk":{"a":1}}"#, "[{}]");
    check_extract(&v2(), r#"{"pk":[1]}"#, "[{}]");
    check_extract(&hierarchy(), r#"{"a":"x","c":true}"#, r#"["x",{},true]"#);
    let quoted = definition(KeyKind::Hash, KeyVersion::V2, &["/p/\"department name\""]);
    check_extract(&quoted, r#"{"p":{"department name":"HR"}}"#, r#"["HR"]"#);
}

#[test]
fn a_system_key_may_be_missing() {
    let system = PartitionKeyDefinition { system_key: true, ..v1() };
    check_extract(&system, "{}", "[]");
    check_extract(&system, r#"{"pk":"a"}"#, r#"["a"]"#);
    assert!(key("[]").matches_shape(&system));
    assert!(!key("[]").matches_shape(&v1()));
}

#[test]
fn a_point_operation_needs_every_level() {
    assert!(key(r#"["a","b","c"]"#).matches_shape(&hierarchy()));
    assert!(!key(r#"["a","b"]"#).matches_shape(&hierarchy()));
    assert!(!key(r#"["a","b"]"#).matches_shape(&v2()));
    assert!(key("[{}]").matches_shape(&v2()));
}

#[test]
fn s17_large_keys_have_2048_bytes_at_most() {
    let of_len = |len: usize| key(&format!("[\"{}\"]", "x".repeat(len)));
    assert!(of_len(2048).check_size(&v2()).is_ok());
    assert_eq!(of_len(2049).check_size(&v2()).map_err(|e| e.kind), Err(crate::Kind::Invalid));
    assert!(of_len(2049).check_size(&hierarchy()).is_err());
    assert!(of_len(2049).check_size(&v1()).is_ok());
    let (a, b) = (key(&format!("[\"{}a\"]", "x".repeat(101))), key(&format!("[\"{}b\"]", "x".repeat(101))));
    assert_ne!(a.effective(&v2()), b.effective(&v2()));
}

#[test]
fn s18_only_the_first_100_characters_of_a_version_1_key_count() {
    let long = |tail: &str| key(&format!("[\"{}{tail}\"]", "é".repeat(100)));
    assert_eq!(encoded(&long("a"), &v1()), encoded(&long("b"), &v1()));
    assert_eq!(long("a").effective(&v1()), long("b").effective(&v1()));
    assert_ne!(encoded(&long("a"), &v2()), encoded(&long("b"), &v2()));
    let short = |tail: &str| key(&format!("[\"{}{tail}\"]", "é".repeat(99)));
    assert_ne!(encoded(&short("a"), &v1()), encoded(&short("b"), &v1()));
}

#[test]
fn s18_truncation_never_splits_a_character() {
    assert_eq!(v1::truncated(&"😀".repeat(60)), "😀".repeat(50));
    assert_eq!(v1::truncated(&format!("{}😀", "a".repeat(99))), "a".repeat(99));
    assert_eq!(v1::truncated(&"é".repeat(100)), "é".repeat(100));
}

#[test]
fn s18_long_texts_append_101_bytes_without_terminator() {
    let effective = key(&format!("[\"{}\"]", "é".repeat(100))).effective(&v1());
    let text = effective.as_bytes().iter().position(|&byte| byte == 0x08).map(|at| &effective.as_bytes()[at + 1..]);
    assert_eq!(text.map(<[u8]>::len), Some(101));
    assert_eq!(text.and_then(<[u8]>::last), Some(&0xC4));
}

#[test]
fn s19_numbers_are_doubles_and_never_strings() {
    assert_eq!(key("[9007199254740993]"), key("[9007199254740992]"));
    assert_eq!(key("[1]"), key("[1.0]"));
    assert_ne!(key(r#"["9007199254740993"]"#), key(r#"["9007199254740992"]"#));
    assert_ne!(key("[7]"), key(r#"["7"]"#));
    assert_ne!(key("[0]"), key("[-0.0]"));
    assert_ne!(key("[null]"), key("[{}]"));
}

#[test]
fn component_bytes_are_stable() {
    assert_eq!(encoded(&key(r#"["pk"]"#), &v2()), [0x08, 0x70, 0x6B, 0xFF]);
    assert_eq!(encoded(&key("[1,null]"), &v2()), [0x05, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F, 0x01]);
    assert_eq!(encoded(&key("[]"), &v2()), [0xFF]);
}

#[track_caller]
fn effective(hex: &str) -> EffectiveKey {
    EffectiveKey::parse(hex).expect("hex")
}

#[test]
fn effective_keys_are_parsed_and_printed_as_hex() {
    assert_eq!(effective(""), EffectiveKey::MIN);
    assert_eq!(effective("ff"), EffectiveKey::MAX);
    assert_eq!(effective("05c1Ed").to_string(), "05C1ED");
    for bad in ["F", "0G", "é", "+1", " 1"] {
        assert!(EffectiveKey::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_point_range_contains_one_key() {
    let end = |hex: &str| EpkRange::of_point(effective(hex)).max.to_string();
    assert_eq!(end("49B7"), "49B8");
    assert_eq!(end("49FF"), "4A00");
    assert_eq!(end("FFFF"), "FFFF00");
}

#[test]
fn version_1_null_is_in_the_range_that_the_python_sdk_requests() {
    let requested = EpkRange { min: effective("05C1ED45D74756"), max: effective("05C1ED45D74757") };
    assert!(requested.contains(&key("[null]").effective(&v1())));
}

#[test]
fn intersect_returns_the_overlap() {
    let range = |min: &str, max: &str| EpkRange { min: effective(min), max: effective(max) };
    assert_eq!(range("", "20").intersect(&range("10", "FF")), Some(range("10", "20")));
    assert_eq!(range("", "10").intersect(&range("10", "FF")), None);
    assert!(range("10", "10").is_empty());
    assert!(EpkRange::FULL.contains(&EffectiveKey::MIN) && !EpkRange::FULL.contains(&EffectiveKey::MAX));
}

fn components() -> impl Strategy<Value = KeyComponent> {
    prop_oneof![
        Just(KeyComponent::Undefined),
        Just(KeyComponent::Null),
        any::<bool>().prop_map(KeyComponent::Bool),
        any::<f64>().prop_filter("JSON is finite", |n| n.is_finite()).prop_map(KeyComponent::Number),
        (-3_i32..3).prop_map(|n| KeyComponent::Number(n.into())),
        "[ab\u{1}é]{0,3}".prop_map(KeyComponent::String),
        any::<String>().prop_map(KeyComponent::String),
        "x{90,110}".prop_map(KeyComponent::String),
    ]
}

fn keys(levels: usize) -> impl Strategy<Value = PartitionKey> {
    prop::collection::vec(components(), levels).prop_map(PartitionKey::new)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn keys_round_trip_through_headers(key in keys(3)) {
        prop_assert_eq!(PartitionKey::parse(&key.to_json()).expect("a header that `to_json` wrote is valid"), key);
    }

    #[test]
    fn component_bytes_are_injective_and_prefix_free(a in keys(2), b in keys(2)) {
        let (x, y) = (encoded(&a, &hierarchy()), encoded(&b, &hierarchy()));
        prop_assert_eq!(a == b, x == y);
        prop_assert!(x == y || !y.starts_with(&x));
        prop_assert_eq!(PartitionKey::decode_components(&x).expect("bytes that `encode_components` wrote decode"), a);
    }

    #[test]
    fn equal_component_bytes_have_equal_effective_keys(a in keys(1), b in keys(1)) {
        for definition in [v1(), v2()] {
            if encoded(&a, &definition) == encoded(&b, &definition) {
                prop_assert_eq!(a.effective(&definition), b.effective(&definition));
            }
        }
    }

    #[test]
    fn s36_every_key_lies_in_exactly_one_initial_range(key in keys(1), count in 1_u32..40) {
        for definition in [v1(), v2()] {
            let position = key.effective(&definition);
            let holders = initial_ranges(&definition, count).iter().filter(|range| range.contains(&position)).count();
            prop_assert_eq!(holders, 1);
        }
    }

    #[test]
    fn effective_keys_sort_as_their_hex_text(a in prop::collection::vec(any::<u8>(), 0..60), b in prop::collection::vec(any::<u8>(), 0..60)) {
        let (a, b) = (EffectiveKey::from_bytes(&a), EffectiveKey::from_bytes(&b));
        prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        prop_assert_eq!(effective(&a.to_string()), a);
    }

    #[test]
    fn s37_version_2_ranges_are_equally_wide(count in 1_u32..2000) {
        let bounds: Vec<u128> = (0..=count).map(|at| mul_div(v2::POSITIONS - 1, at, count)).collect();
        let widths: Vec<u128> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (least, most) = (widths.iter().min(), widths.iter().max());
        prop_assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1));
    }

    #[test]
    fn arbitrary_headers_never_panic(header in "[\\[\\]\"{}a1,\\\\]{0,10}") {
        let _ = PartitionKey::parse(&header);
    }
}

#[test]
fn s37_the_midpoint_of_the_space_is_the_bound_between_two_initial_ranges() {
    for definition in [v1(), v2(), hierarchy()] {
        let halves = initial_ranges(&definition, 2);
        let middle = midpoint(&definition, &EpkRange::FULL);
        assert_eq!(middle.as_ref(), Some(&halves[1].min));
        // Continue until a range has no position inside.
        let (mut range, mut cuts) = (EpkRange::FULL, 0);
        while let Some(middle) = midpoint(&definition, &range) {
            assert!(range.min < middle && middle < range.max);
            range = if cuts % 2 == 0 { EpkRange { max: middle, ..range } } else { EpkRange { min: middle, ..range } };
            cuts += 1;
        }
        assert!(cuts >= 31, "{cuts}");
    }
}
