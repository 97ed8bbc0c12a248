use super::*;

/// Results carry an error in every call on the item path.
#[test]
fn errors_are_small() {
    assert!(size_of::<Fact>() <= 24, "{}", size_of::<Fact>());
    assert!(size_of::<Error>() <= 56, "{}", size_of::<Error>());
}

#[test]
fn a_fact_determines_the_kind_of_its_error() {
    let error = Error::from(Fact::RangeGone { range: 3, epoch: 7 });
    assert_eq!(error.kind, Kind::Moved { epoch: 7 });
    assert_eq!(error.fact(), Some(&Fact::RangeGone { range: 3, epoch: 7 }));
    assert_eq!(error.to_string(), "partition 3 does not exist at epoch 7");
}

#[test]
fn a_text_is_shown_as_it_is() {
    let error = Error::invalid("The offer names no throughput.");
    assert_eq!((error.kind, error.fact()), (Kind::Invalid, None));
    assert_eq!(error.to_string(), "The offer names no throughput.");
}

#[test]
fn the_start_of_a_name_ends_between_characters() {
    let start = |name: &str| NameStart::of(name).to_string();
    assert_eq!(start(""), "");
    assert_eq!(start(&"é".repeat(32)), "é".repeat(32));
    assert_eq!(start(&"é".repeat(33)), format!("{}…", "é".repeat(32)));
}
