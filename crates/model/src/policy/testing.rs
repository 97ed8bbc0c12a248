//! Helpers for the tests of policies.

use super::ContainerDefinition;
use crate::{Kind, Value, json};

#[track_caller]
pub(super) fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).expect("the test's JSON is valid")
}

/// A container partitioned by `/pk` with these additional members.
#[track_caller]
pub(super) fn body(members: &str) -> Value {
    let comma = if members.is_empty() { "" } else { "," };
    value(&format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}{comma}{members}}}"#))
}

#[track_caller]
pub(super) fn create(members: &str) -> ContainerDefinition {
    ContainerDefinition::create(&body(members)).expect("the definition is accepted")
}

/// Checks that the definition is rejected as invalid with this text in its message.
#[track_caller]
pub(super) fn check_rejected(members: &str, message: &str) {
    check_invalid(ContainerDefinition::create(&body(members)), message);
}

#[track_caller]
pub(super) fn check_invalid<T: std::fmt::Debug>(outcome: crate::Result<T>, message: &str) {
    let error = outcome.expect_err("the definition is rejected");
    assert_eq!(error.kind, Kind::Invalid);
    assert!(error.to_string().contains(message), "{:?} does not contain {message:?}", error.to_string());
}

/// Checks that the member is returned as it was sent and that the definition round-trips.
#[track_caller]
pub(super) fn check_returned(members: &str, name: &str, wanted: &str) {
    let definition = create(members);
    let object = definition.to_object();
    assert_eq!(object.get(name).map(json::to_string), Some(json::to_string(&value(wanted))));
    assert_eq!(ContainerDefinition::create(&object.into()), Ok(definition));
}

/// `[entry(0), entry(1), …]`
pub(super) fn array(count: usize, entry: impl Fn(usize) -> String) -> String {
    format!("[{}]", (0..count).map(entry).collect::<Vec<_>>().join(","))
}
