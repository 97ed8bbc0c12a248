use super::*;

#[test]
fn as_i64_accepts_integral_doubles() {
    assert_eq!(Number::from(400_i64).as_i64(), Some(400));
    assert_eq!(Number::from(400.0).as_i64(), Some(400));
    assert_eq!(Number::from(-0.0).as_i64(), Some(0));
    assert_eq!(Number::from(0.5).as_i64(), None);
}

#[test]
fn as_i64_is_none_out_of_range() {
    assert_eq!(Number::from(i64::MIN as f64).as_i64(), Some(i64::MIN));
    assert_eq!(Number::from(i64::MAX as f64).as_i64(), None, "rounded up to 2^63");
    assert_eq!(Number::from(u64::MAX).as_i64(), None);
    assert_eq!(Number::from(1e300).as_i64(), None);
    assert_eq!(Number::from(f64::NAN).as_i64(), None);
}

#[test]
fn unsigned_numbers_that_fit_i64_become_int() {
    assert_eq!(Number::from(i64::MAX as u64), Number::Int(i64::MAX));
    assert_eq!(Number::from(i64::MAX as u64 + 1), Number::UInt(1 << 63));
}

#[test]
fn s19_integers_beyond_2_to_the_53_share_a_double() {
    let (a, b) = (Number::from(9_007_199_254_740_993_i64), Number::from(9_007_199_254_740_992_i64));
    assert_ne!(a, b);
    assert_eq!(a.as_f64(), b.as_f64());
}
