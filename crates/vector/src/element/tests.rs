//! Proves: arrays whose elements fit the type are vectors and round-trip bit for bit; other arrays are not vectors.

use pleiad_model::json;
use proptest::prelude::*;

use super::*;
use VectorDataType::{Float16, Float32, Int8, Uint8};

#[track_caller]
fn check(text: &str, data_type: VectorDataType, want: Option<&[f32]>) {
    let value = json::parse(text.as_bytes()).unwrap();
    assert_eq!(parse(&value, data_type).as_deref(), want, "{text} as {data_type:?}");
}

#[test]
fn arrays_of_numbers_that_fit_are_vectors() {
    check("[1, 2.5, -3]", Float32, Some(&[1.0, 2.5, -3.0]));
    check("[]", Float32, Some(&[]));
    check("[1, \"2\"]", Float32, None);
    check("[[1, 2]]", Float32, None);
    check("[null]", Float32, None);
    check("{\"x\": 1}", Float32, None);
    check("[1e39]", Float32, None);
    check("[65504, -65519]", Float16, Some(&[65504.0, -65504.0]));
    check("[65520]", Float16, None);
    check("[-128, 127, 1.0]", Int8, Some(&[-128.0, 127.0, 1.0]));
    check("[128]", Int8, None);
    check("[-129]", Int8, None);
    check("[0.5]", Int8, None);
    check("[0, 255]", Uint8, Some(&[0.0, 255.0]));
    check("[256]", Uint8, None);
    check("[-1]", Uint8, None);
}

#[test]
fn bytes_match_the_documented_layout() {
    assert_eq!(encode(&[1.0, -2.0], Float16), [0x00, 0x3c, 0x00, 0xc0]);
    assert_eq!(encode(&[1.0], Float32), [0x00, 0x00, 0x80, 0x3f]);
    assert_eq!(encode(&[-1.0, 127.0], Int8), [0xff, 0x7f]);
    assert_eq!(encode(&[255.0], Uint8), [0xff]);
}

#[test]
fn bytes_of_another_length_are_not_a_vector() {
    let mut out = vec![7.0];
    assert!(!decode(&[1, 2, 3], Float32, 1, &mut out));
    assert!(!decode(&[0; 8], Float32, 1, &mut out));
    assert!(out.is_empty());
}

#[test]
fn float16_is_exact_where_representable_and_rounded_elsewhere() {
    for bits in (0..0x7C00u16).chain(0x8000..0xFC00) {
        assert_eq!(half::from_f32(half::to_f32(bits)), bits, "{bits:04x}");
    }
    for (number, want) in [(1.0, 0x3c00), (65504.0, 0x7bff), (5.960_464_5e-8, 0x0001), (0.1, 0x2e66), (1e9, 0x7c00)] {
        assert_eq!(half::from_f32(number), want, "{number}");
    }
}

proptest! {
    #[test]
    fn float16_rounds_to_the_nearest(number in -70_000f32..70_000f32) {
        let bits = half::from_f32(number);
        prop_assume!(bits & 0x7C00 != 0x7C00);
        let near = (half::to_f32(bits) - number).abs();
        for other in [bits.wrapping_sub(1), bits.wrapping_add(1)].map(half::to_f32).into_iter().filter(|o| o.is_finite()) {
            prop_assert!(near <= (other - number).abs(), "{number}: {bits:04x}");
        }
    }

    #[test]
    fn encoding_round_trips(
        numbers in proptest::collection::vec(prop_oneof![-128f64..256.0, -1e38f64..1e38, (-128i32..256).prop_map(f64::from)], 0..20),
        data_type in prop_oneof![Just(Float32), Just(Float16), Just(Int8), Just(Uint8)],
    ) {
        let value = Value::Array(numbers.iter().map(|n| Value::from(*n)).collect());
        if let Some(vector) = parse(&value, data_type) {
            let (bytes, mut back) = (encode(&vector, data_type), Vec::new());
            prop_assert!(decode(&bytes, data_type, vector.len(), &mut back));
            prop_assert_eq!(&back, &vector);
            prop_assert_eq!(parse(&to_value(&vector), data_type), Some(vector));
        }
    }
}
