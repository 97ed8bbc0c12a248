use pleiad_model::{Kind, Number};
use proptest::prelude::*;

use super::*;

/// `hex` is the body as hexadecimal bytes with spaces; `want` is the value as JSON text.
#[track_caller]
fn check(hex: &str, want: &str) {
    let got = decode(&bytes(hex)).unwrap_or_else(|error| panic!("{hex}: {error}"));
    assert_eq!(json::to_string(&got), want, "{hex}");
}

#[track_caller]
fn check_rejected(hex: &str) {
    let got = decode(&bytes(hex));
    assert_eq!(got.as_ref().map_err(|error| error.kind), Err(Kind::Invalid), "{hex}: {got:?}");
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_ascii_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn the_first_byte_distinguishes_binary_from_text() {
    assert!(is_binary(&[0x80, 0xD0]));
    assert!(!is_binary(b"{}") && !is_binary(b""));
    assert_eq!(decode(b"{}").unwrap_err().kind, Kind::Invalid);
}

#[test]
fn the_documented_example_decodes() {
    check("80 ED 08 02 2C 81 61 83 61 67 65 05", r#"{"id":"a","age":5}"#);
}

#[test]
fn single_values() {
    check("80 D0", "null");
    check("80 D1", "false");
    check("80 D2", "true");
    check("80 00", "0");
    check("80 1F", "31");
}

#[test]
fn numbers_of_every_width() {
    check("80 C8 C8", "200");
    check("80 C9 18 FC", "-1000");
    check("80 CA 70 11 01 00", "70000");
    check("80 CB 00 0E FA D5 FE FF FF FF", "-5000000000");
    check("80 CB FF FF FF FF FF FF FF 7F", "9223372036854775807");
    check("80 C7 FE FF FF FF FF FF FF FF", "18446744073709551614");
    check("80 CC 00 00 00 00 00 00 0C 40", "3.5");
    check("80 CD 00 00 C0 3F", "1.5");
    check("80 CE 00 00 00 00 00 00 02 C0", "-2.25");
    check("80 CF 00 3E", "1.5");
    check("80 CF 01 80", "-5.960464477539063e-8");
    check("80 D7 FF", "255");
    check("80 D8 FB", "-5");
    check("80 D9 18 FC", "-1000");
    check("80 DA 90 EE FE FF", "-70000");
    check("80 DB 00 0E FA D5 FE FF FF FF", "-5000000000");
    check("80 DC FE FF FF FF", "4294967294");
}

#[test]
fn plain_and_system_strings() {
    check("80 2C", r#""id""#);
    check("80 3F", r#""_id""#);
    check("80 80", r#""""#);
    check("80 82 68 69", r#""hi""#);
    check("80 82 C3 A9", r#""é""#);
    check("80 C0 05 68 65 6C 6C 6F", r#""hello""#);
    check("80 C1 02 00 68 69", r#""hi""#);
    check("80 C2 02 00 00 00 68 69", r#""hi""#);
}

#[test]
fn packed_text() {
    check("80 78 04 A1 B2", r#""1a2b""#);
    check("80 78 01 0F", r#""f""#);
    check("80 79 04 A1 B2", r#""1A2B""#);
    check("80 7A 07 13 53 1C 02", r#""2024-01""#);
    check("80 7B 04 30 10 32", r#""0123""#);
    check("80 7C 03 61 20 08", r#""abc""#);
    check("80 7D 04 61 40 20 0C", r#""abcd""#);
    check("80 7E 02 C8 34", r#""Hi""#);
    check("80 7F 02 00 C8 34", r#""Hi""#);
}

#[test]
fn base64_text() {
    check("80 71 01 00 66 6F 6F", r#""Zm9v""#);
    check("80 71 01 01 66 6F", r#""Zm8=""#);
    check("80 71 01 02 41", r#""QQ==""#);
    check("80 71 01 FD 41", r#""QQ""#);
    check("80 72 02 00 00 66 6F 6F 62 61 72", r#""Zm9vYmFy""#);
    check("80 71 01 00 FB FF FE", r#""+//+""#);
    check("80 73 01 00 FB FF FE", r#""-__-""#);
    check("80 74 01 00 FE 66 6F", r#""Zm8""#);
}

#[test]
fn guids_are_digits_in_order_as_text_and_mixed_endian_as_values() {
    let text = "10 32 54 76 98 BA DC FE 10 32 54 76 98 BA DC FE";
    check(&format!("80 75 {text}"), r#""01234567-89ab-cdef-0123-456789abcdef""#);
    check(&format!("80 76 {text}"), r#""01234567-89AB-CDEF-0123-456789ABCDEF""#);
    check(&format!("80 77 {text}"), r#""\"01234567-89ab-cdef-0123-456789abcdef\"""#);
    check("80 D3 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F", r#""03020100-0504-0706-0809-0a0b0c0d0e0f""#);
}

#[test]
fn bytes_are_base64() {
    check("80 DD 04 DE AD BE EF", r#""3q2+7w==""#);
    check("80 DD 00", r#""""#);
    check("80 DE 03 00 01 02 03", r#""AQID""#);
    check("80 DF 01 00 00 00 41", r#""QQ==""#);
}

#[test]
fn arrays_and_objects_with_every_header() {
    check("80 E0", "[]");
    check("80 E1 D2", "[true]");
    check("80 E2 03 00 01 D0", "[0,1,null]");
    check("80 E3 03 00 00 01 D0", "[0,1,null]");
    check("80 E4 03 00 00 00 00 01 D0", "[0,1,null]");
    check("80 E5 03 03 00 01 D0", "[0,1,null]");
    check("80 E6 03 00 03 00 00 01 D0", "[0,1,null]");
    check("80 E7 03 00 00 00 03 00 00 00 00 01 D0", "[0,1,null]");
    check("80 E8", "{}");
    check("80 E9 2C D2", r#"{"id":true}"#);
    check("80 EA 04 2C 00 3B 01", r#"{"id":0,"type":1}"#);
    check("80 EC 04 00 00 00 2C 00 3B 01", r#"{"id":0,"type":1}"#);
    check("80 EE 04 00 02 00 2C 00 3B 01", r#"{"id":0,"type":1}"#);
    check("80 E2 05 E1 00 E9 2C 01", r#"[[0],{"id":1}]"#);
}

#[test]
fn a_repeated_name_keeps_its_first_position_and_last_value() {
    check("80 EA 06 2C 00 3B 01 2C 02", r#"{"id":2,"type":1}"#);
}

#[test]
fn an_object_may_have_very_many_properties() {
    let names = (0..200_000_u32).map(|n| format!("{n:05x}"));
    let mut content: Vec<u8> = names.flat_map(|name| [&[0x85][..], name.as_bytes(), &[0x07]].concat()).collect();
    content.extend(bytes("85 30 30 30 30 30 D2"));
    let length = u32::try_from(content.len()).unwrap().to_le_bytes();
    let value = decode(&[&[PREAMBLE, 0xEC][..], &length, &content].concat()).unwrap();
    assert_eq!(value.as_object().map(pleiad_model::Object::len), Some(200_000));
    assert_eq!(value.as_object().and_then(|object| object.iter().next()), Some(("00000", &Value::Bool(true))));
}

#[test]
fn uniform_arrays_of_numbers() {
    check("80 F0 DA 02 01 00 00 00 02 00 00 00", "[1,2]");
    check("80 F0 D7 03 0A 14 1E", "[10,20,30]");
    check("80 F0 DA 00", "[]");
    check("80 F1 D9 03 00 FF FF 00 00 E8 03", "[-1,0,1000]");
    check("80 F0 CD 02 00 00 C0 3F 00 00 80 BE", "[1.5,-0.25]");
    check("80 F2 F0 D7 02 03 01 02 03 04 05 06", "[[1,2],[3,4],[5,6]]");
    check("80 F3 F1 D8 01 00 02 00 FF 01", "[[-1],[1]]");
    check("80 F2 F0 D7 00 02", "[[],[]]");
}

#[test]
fn text_is_repeated_by_reference() {
    check("80 E2 05 82 68 69 C3 03", r#"["hi","hi"]"#);
    check("80 E2 06 82 68 69 C4 03 00", r#"["hi","hi"]"#);
    check("80 E2 07 82 68 69 C5 03 00 00", r#"["hi","hi"]"#);
    check("80 E2 08 82 68 69 C6 03 00 00 00", r#"["hi","hi"]"#);
    check("80 E2 07 78 01 0F E9 C3 03 00", r#"["f",{"f":0}]"#);
}

#[test]
fn references_must_point_to_earlier_text() {
    check_rejected("80 C3 01"); // itself
    check_rejected("80 C3 00"); // the preamble
    check_rejected("80 C3 09"); // beyond the end
    check_rejected("80 E2 05 C3 05 82 68 69"); // forward
    check_rejected("80 E2 07 82 68 69 C3 03 C3 06"); // to a reference
    check_rejected("80 E2 03 05 C3 03"); // to a number
}

#[test]
fn malformed_bodies_are_rejected() {
    check_rejected("80"); // no value
    check_rejected("80 D0 D0"); // two values
    check_rejected("80 82 68"); // short text
    check_rejected("80 C2 FF FF FF FF 00"); // a length of 4 GB
    check_rejected("80 E7 FF FF FF FF FF FF FF FF"); // likewise
    check_rejected("80 81 FF"); // not UTF-8
    check_rejected("80 E5 01 02 00"); // a wrong count
    check_rejected("80 E2 01 C8 05"); // a member that extends beyond its array
    check_rejected("80 E9 05 D0"); // a name that is a number
    check_rejected("80 40"); // a user string
    check_rejected("80 60 00");
    check_rejected("80 7B 02 7F 10"); // beyond ASCII
    check_rejected("80 71 00 02"); // padding without data
    check_rejected("80 71 01 07 41"); // impossible padding
    check_rejected("80 CC 00 00 00 00 00 00 F0 7F"); // infinity
    check_rejected("80 CF 00 7E"); // NaN
    check_rejected("80 F0 D0 01"); // an array of nulls as numbers
    check_rejected("80 F2 E0 D7 01 01 00"); // no inner array
    for marker in ["68", "70", "D4", "D6", "F4", "F8", "FF"] {
        check_rejected(&format!("80 {marker} 00 00"));
    }
}

#[test]
fn nesting_has_the_same_limit_as_text() {
    let nested = |levels: usize| [&[PREAMBLE][..], &vec![0xE1; levels - 1], &[0xE0]].concat();
    assert!(decode(&nested(NESTING_MAX)).is_ok());
    assert_eq!(decode(&nested(NESTING_MAX + 1)).unwrap_err().kind, Kind::Invalid);
    assert_eq!(decode(&nested(1_000_000)).unwrap_err().kind, Kind::Invalid);
}

#[test]
fn a_small_body_cannot_expand_without_limit() {
    // 60 KB of text, then 10,000 references to it: 600 MB.
    let mut content = vec![0xC1, 0x60, 0xEA];
    content.extend(vec![b'x'; 60_000]);
    content.extend([0xC3, 6].repeat(10_000));
    let length = u32::try_from(content.len()).unwrap().to_le_bytes();
    let body = [&[PREAMBLE, 0xE4][..], &length, &content].concat();
    assert_eq!(decode(&body).unwrap_err().kind, Kind::Invalid);
    // 65,535 empty arrays in eight bytes, 1,000 times.
    let content = bytes("F3 F1 D7 00 00 FF FF").repeat(1000);
    let length = u32::try_from(content.len()).unwrap().to_le_bytes();
    let body = [&[PREAMBLE, 0xE4][..], &length, &content].concat();
    assert_eq!(decode(&body).unwrap_err().kind, Kind::Invalid);
}

/// A minimal encoder like that of an SDK: it covers the common case.
fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0xD0),
        Value::Bool(flag) => out.push(0xD1 + u8::from(*flag)),
        Value::Number(Number::Int(n @ 0..=31)) => out.push(*n as u8),
        Value::Number(Number::Int(n)) => out.extend([&[0xCB][..], &n.to_le_bytes()].concat()),
        Value::Number(Number::UInt(n)) => out.extend([&[0xC7][..], &n.to_le_bytes()].concat()),
        Value::Number(Number::Float(n)) => out.extend([&[0xCC][..], &n.to_le_bytes()].concat()),
        Value::String(text) => encode_text(text, out),
        Value::Array(items) => {
            let mut content = Vec::new();
            items.iter().for_each(|item| encode(item, &mut content));
            encode_container(0xE0, items.len(), &content, out);
        }
        Value::Object(object) => {
            let mut content = Vec::new();
            for (name, value) in object.iter() {
                encode_text(name, &mut content);
                encode(value, &mut content);
            }
            encode_container(0xE8, object.len(), &content, out);
        }
    }
}

fn encode_text(text: &str, out: &mut Vec<u8>) {
    match (text::SYSTEM_STRINGS.iter().position(|known| *known == text), text.len()) {
        (Some(known), _) => out.push(0x20 + known as u8),
        (None, length @ ..64) => out.push(0x80 + length as u8),
        (None, length) => out.extend([&[0xC2][..], &(length as u32).to_le_bytes()].concat()),
    }
    if !text::SYSTEM_STRINGS.contains(&text) {
        out.extend(text.as_bytes());
    }
}

fn encode_container(kind: u8, count: usize, content: &[u8], out: &mut Vec<u8>) {
    match (count, content.len()) {
        (0, _) => out.push(kind),
        (1, _) => out.push(kind + 1),
        (_, length @ ..256) => out.extend([kind + 5, length as u8, count as u8]),
        (_, length) => {
            out.push(kind + 7);
            out.extend((length as u32).to_le_bytes());
            out.extend((count as u32).to_le_bytes());
        }
    }
    out.extend(content);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_i64..40).prop_map(Value::from),
        (i64::MAX as u64 + 1..).prop_map(Value::from),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::from),
        "\\PC{0,80}".prop_map(Value::from),
        prop::sample::select(&text::SYSTEM_STRINGS[..]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        let name = prop_oneof!["[a-z_]{0,6}", prop::sample::select(&text::SYSTEM_STRINGS[..]).prop_map(str::to_owned)];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..8).prop_map(|all| Value::Object(json::with_unique_names(all))),
        ]
    })
}

proptest! {
    #[test]
    fn encoded_values_decode_unchanged(value in any_value()) {
        let mut body = vec![PREAMBLE];
        encode(&value, &mut body);
        prop_assert_eq!(decode(&body), Ok(value));
    }

    #[test]
    fn arbitrary_bytes_never_panic(content in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&[&[PREAMBLE][..], &content].concat());
    }

    #[test]
    fn damaged_bodies_never_panic(value in any_value(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut body = vec![PREAMBLE];
        encode(&value, &mut body);
        let at = at.index(body.len());
        body[at] = byte;
        let _ = decode(&body);
    }

    #[test]
    fn packed_ascii_round_trips(text in "[ -~]{0,100}") {
        let bits = text.bytes().enumerate().flat_map(|(i, c)| (0..7).filter(move |b| c >> b & 1 == 1).map(move |b| i * 7 + b));
        let mut packed = vec![0; (text.len() * 7).div_ceil(8)];
        bits.for_each(|bit| packed[bit / 8] |= 1 << (bit % 8));
        let body = [&[PREAMBLE, 0x7E, text.len() as u8][..], &packed].concat();
        prop_assert_eq!(decode(&body), Ok(Value::from(text)));
    }
}
