use super::*;

#[test]
fn an_integer_is_one_whatever_its_spelling() {
    assert_eq!(Number::from(400_i64).as_i64(), Some(400));
    assert_eq!(Number::from(400.0).as_i64(), Some(400));
    assert_eq!(Number::from(-0.0).as_i64(), Some(0));
    assert_eq!(Number::from(0.5).as_i64(), None);
}

#[test]
fn an_integer_fits_or_is_none() {
    assert_eq!(Number::from(i64::MIN as f64).as_i64(), Some(i64::MIN));
    assert_eq!(Number::from(i64::MAX as f64).as_i64(), None, "rounded up to 2^63");
    assert_eq!(Number::from(u64::MAX).as_i64(), None);
    assert_eq!(Number::from(1e300).as_i64(), None);
    assert_eq!(Number::from(f64::NAN).as_i64(), None);
}

#[test]
fn unsigned_numbers_that_fit_are_signed() {
    assert_eq!(Number::from(i64::MAX as u64), Number::Int(i64::MAX));
    assert_eq!(Number::from(i64::MAX as u64 + 1), Number::UInt(1 << 63));
}

#[test]
fn s19_neighbours_past_2_to_the_53_are_one_double() {
    let (a, b) = (Number::from(9_007_199_254_740_993_i64), Number::from(9_007_199_254_740_992_i64));
    assert_ne!(a, b);
    assert_eq!(a.as_f64(), b.as_f64());
}
