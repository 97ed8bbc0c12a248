//! The effect of each operation, and the operations that are rejected.

use proptest::prelude::*;

use super::*;
use crate::{Object, json};

fn parse(text: &str) -> Result<Patch> {
    Patch::parse(&json::parse(text.as_bytes()).unwrap())
}

fn patched(item: &str, operations: &str) -> Result<String> {
    let mut item = json::parse(item.as_bytes()).unwrap();
    parse(&format!(r#"{{"operations":[{operations}]}}"#))?.apply(&mut item)?;
    Ok(json::to_string(&item))
}

#[track_caller]
fn check(item: &str, operations: &str, want: &str) {
    assert_eq!(patched(item, operations).unwrap(), want);
}

#[track_caller]
fn check_rejected(item: &str, operations: &str, fault: PatchFault) {
    check_fault(patched(item, operations), Some(1), fault);
}

#[track_caller]
fn check_fault<T: std::fmt::Debug>(result: Result<T>, operation: Option<usize>, fault: PatchFault) {
    let error = result.unwrap_err();
    assert_eq!(error.kind, crate::Kind::Invalid);
    assert_eq!(error.fact(), Some(&Fact::Patch(Box::new(PatchError { operation, fault }))));
}

fn no_parent(verb: PatchVerb, parent: &str) -> PatchFault {
    PatchFault::ParentNotFound { verb, parent: parent.to_owned() }
}

fn no_value(verb: PatchVerb, path: &str) -> PatchFault {
    PatchFault::PathNotFound { verb, path: path.to_owned() }
}

fn past_the_end(path: &str) -> PatchFault {
    PatchFault::IndexOutOfRange { path: path.to_owned() }
}

#[test]
fn add_creates_overwrites_inserts_and_appends() {
    check(r#"{"a":1}"#, r#"{"op":"add","path":"/b","value":2}"#, r#"{"a":1,"b":2}"#);
    check(r#"{"a":1}"#, r#"{"op":"add","path":"/a","value":[]}"#, r#"{"a":[]}"#);
    check(r#"{"a":[1,2]}"#, r#"{"op":"add","path":"/a/1","value":9}"#, r#"{"a":[1,9,2]}"#);
    check(r#"{"a":[1,2]}"#, r#"{"op":"add","path":"/a/2","value":9}"#, r#"{"a":[1,2,9]}"#);
    check(r#"{"a":[1,2]}"#, r#"{"op":"add","path":"/a/-","value":9}"#, r#"{"a":[1,2,9]}"#);
    check_rejected(r#"{"a":[1,2]}"#, r#"{"op":"add","path":"/a/3","value":9}"#, past_the_end("/a/3"));
    check_rejected(r#"{"a":1}"#, r#"{"op":"add","path":"/b/c","value":9}"#, no_parent(PatchVerb::Add, "/b"));
    check_rejected(r#"{"a":1}"#, r#"{"op":"add","path":"/a/c","value":9}"#, no_parent(PatchVerb::Add, "/a"));
    check_rejected(r#"{"a":[1]}"#, r#"{"op":"add","path":"/a/01","value":9}"#, no_parent(PatchVerb::Add, "/a"));
}

#[test]
fn set_is_add_but_overwrites_elements() {
    check(r#"{"a":[1,2]}"#, r#"{"op":"set","path":"/a/1","value":9}"#, r#"{"a":[1,9]}"#);
    check(r#"{"a":[1,2]}"#, r#"{"op":"set","path":"/a/2","value":9}"#, r#"{"a":[1,2,9]}"#);
    check(r#"{}"#, r#"{"op":"set","path":"/a","value":null}"#, r#"{"a":null}"#);
    check_rejected(r#"{"a":[]}"#, r#"{"op":"set","path":"/a/1","value":9}"#, past_the_end("/a/1"));
}

#[test]
fn replace_and_remove_need_an_existing_value() {
    check(r#"{"a":{"b":1}}"#, r#"{"op":"replace","path":"/a/b","value":2}"#, r#"{"a":{"b":2}}"#);
    check(r#"{"a":[1,2,3]}"#, r#"{"op":"remove","path":"/a/1"}"#, r#"{"a":[1,3]}"#);
    check_rejected(r#"{"a":1}"#, r#"{"op":"replace","path":"/b","value":2}"#, no_value(PatchVerb::Replace, "/b"));
    check_rejected(r#"{"a":1}"#, r#"{"op":"remove","path":"/b"}"#, no_value(PatchVerb::Remove, "/b"));
    check_rejected(r#"{"a":[1]}"#, r#"{"op":"remove","path":"/a/1"}"#, no_value(PatchVerb::Remove, "/a/1"));
    check_rejected(r#"{"a":[1]}"#, r#"{"op":"remove","path":"/a/-"}"#, no_value(PatchVerb::Remove, "/a/-"));
}

#[test]
fn increments_are_exact_while_they_fit() {
    check(r#"{"n":7}"#, r#"{"op":"incr","path":"/n","value":-9}"#, r#"{"n":-2}"#);
    check(r#"{"n":9007199254740993}"#, r#"{"op":"incr","path":"/n","value":2}"#, r#"{"n":9007199254740995}"#);
    check(r#"{"n":9223372036854775807}"#, r#"{"op":"incr","path":"/n","value":1}"#, r#"{"n":9223372036854775808}"#);
    check(r#"{"n":18446744073709551615}"#, r#"{"op":"incr","path":"/n","value":-1}"#, r#"{"n":18446744073709551614}"#);
    check(r#"{"n":1.5}"#, r#"{"op":"incr","path":"/n","value":2}"#, r#"{"n":3.5}"#);
    check(r#"{"a":[1]}"#, r#"{"op":"incr","path":"/a/0","value":2}"#, r#"{"a":[3]}"#);
    check(r#"{}"#, r#"{"op":"incr","path":"/n","value":2}"#, r#"{"n":2}"#);
    check_rejected(r#"{"n":"7"}"#, r#"{"op":"incr","path":"/n","value":1}"#, PatchFault::NotNumeric);
    check_rejected(r#"{"n":7}"#, r#"{"op":"incr","path":"/n","value":"1"}"#, PatchFault::NotNumeric);
    check_rejected(r#"{"n":1e308}"#, r#"{"op":"incr","path":"/n","value":1e308}"#, PatchFault::NotFinite);
    check_rejected(r#"{"a":[]}"#, r#"{"op":"incr","path":"/a/0","value":1}"#, past_the_end("/a/0"));
}

#[test]
fn move_removes_the_source_and_adds_the_target() {
    check(r#"{"a":1,"b":2}"#, r#"{"op":"move","from":"/a","path":"/b"}"#, r#"{"b":1}"#);
    check(r#"{"a":1}"#, r#"{"op":"move","from":"/a","path":"/b/c"}"#, r#"{"b":{"c":1}}"#);
    check(r#"{"a":[1,2,3]}"#, r#"{"op":"move","from":"/a/0","path":"/a/2"}"#, r#"{"a":[2,3,1]}"#);
    check(r#"{"a":1}"#, r#"{"op":"move","from":"/a","path":"/a"}"#, r#"{"a":1}"#);
    check_rejected(r#"{"a":1}"#, r#"{"op":"move","from":"/b","path":"/a"}"#, no_value(PatchVerb::Move, "/b"));
    check_rejected(
        r#"{"a":{}}"#,
        r#"{"op":"move","from":"/a","path":"/a/b"}"#,
        PatchFault::MoveIntoItself { from: "/a".into(), to: "/a/b".into() },
    );
    check_rejected(r#"{"a":1}"#, r#"{"op":"move","from":"/a","path":"/b/c/d"}"#, no_parent(PatchVerb::Move, "/b/c"));
}

#[test]
fn operations_apply_in_order_and_errors_name_the_operation() {
    let two = r#"{"op":"add","path":"/a","value":{}},{"op":"add","path":"/a/b","value":1}"#;
    check(r#"{}"#, two, r#"{"a":{"b":1}}"#);
    let second = patched("{}", r#"{"op":"add","path":"/a","value":1},{"op":"remove","path":"/b"}"#);
    check_fault(second, Some(2), no_value(PatchVerb::Remove, "/b"));
}

#[test]
fn names_may_hold_slashes_and_tildes() {
    check(r#"{"a/b":{"~":1}}"#, r#"{"op":"set","path":"/a~1b/~0","value":2}"#, r#"{"a/b":{"~":2}}"#);
    check(r#"{}"#, r#"{"op":"set","path":"/~01","value":2}"#, r#"{"~1":2}"#);
    check_rejected("{}", r#"{"op":"set","path":"/a~2","value":2}"#, PatchFault::PathEscape { path: "/a~2".into() });
}

#[test]
fn invalid_operations_are_rejected_when_parsed() {
    for path in ["/id", "/_rid", "/_etag", "/_ts", "/_self", "/_attachments"] {
        let fault = PatchFault::SystemProperty { path: path.to_owned() };
        check_rejected("{}", &format!(r#"{{"op":"set","path":"{path}","value":1}}"#), fault.clone());
        check_rejected("{}", &format!(r#"{{"op":"move","from":"{path}","path":"/x"}}"#), fault);
    }
    check(r#"{}"#, r#"{"op":"set","path":"/ttl","value":10}"#, r#"{"ttl":10}"#);
    for path in ["", "/", "a"] {
        let fault = PatchFault::PathNotAbsolute { path: path.to_owned() };
        check_rejected("{}", &format!(r#"{{"op":"set","path":"{path}","value":1}}"#), fault);
    }
    check_rejected(
        "{}",
        r#"{"op":"copy","from":"/a","path":"/b"}"#,
        PatchFault::UnknownOperation { name: "copy".into() },
    );
    check_rejected(
        "{}",
        r#"{"op":"test","path":"/b","value":1}"#,
        PatchFault::UnknownOperation { name: "test".into() },
    );
    check_rejected("{}", r#"{"op":"set","path":"/b"}"#, missing("set", "value"));
    check_rejected("{}", r#"{"op":"move","path":"/b"}"#, missing("patch", "from"));
}

#[test]
fn at_most_ten_operations_are_accepted() {
    let operations = |n| vec![r#"{"op":"incr","path":"/n","value":1}"#; n].join(",");
    check("{}", &operations(10), r#"{"n":10}"#);
    check_fault(patched("{}", &operations(11)), None, PatchFault::TooManyOperations { operations_max: 10 });
    check_fault(patched("{}", &operations(0)), None, PatchFault::NoOperations);
}

#[test]
fn a_bare_array_is_a_patch_and_a_condition_is_parsed() {
    let bare = parse(r#"[{"op":"remove","path":"/a"}]"#).unwrap();
    assert_eq!((bare.len(), &bare.condition), (1, &None));
    let conditional = parse(r#"{"condition":"FROM c WHERE c.a=1","operations":[{"op":"remove","path":"/a"}]}"#);
    assert_eq!(conditional.unwrap().condition.as_deref(), Some("FROM c WHERE c.a=1"));
    assert!(parse(r#"{"condition":7,"operations":[{"op":"remove","path":"/a"}]}"#).is_err());
}

#[test]
fn s16_the_partition_key_cannot_be_patched() {
    let key = PropertyPath::parse("/a/b").unwrap();
    let check = |operation: &str| parse(&format!("[{operation}]")).unwrap().check_partition_key(&key);
    assert!(check(r#"{"op":"set","path":"/a/b","value":1}"#).is_err());
    assert!(check(r#"{"op":"move","from":"/a/b","path":"/c"}"#).is_err());
    assert!(check(r#"{"op":"set","path":"/a/c","value":1}"#).is_ok());
}

#[test]
fn a_patched_item_stays_within_the_nesting_limit() {
    let nested = |n| (0..n).fold(Value::Null, |value, _| Value::Array(vec![value]));
    let set = |n| {
        let operations = vec![PatchOperation::Set(Pointer::parse("/a").unwrap(), nested(n))];
        let mut item = Value::Object(Object::new());
        Patch { condition: None, operations }.apply(&mut item).map(|()| json::to_string(&item))
    };
    assert!(json::parse(set(NESTING_MAX - 1).unwrap().as_bytes()).is_ok());
    assert!(set(NESTING_MAX).is_err());
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![Just("a".to_owned()), Just("b".to_owned()), Just("0".to_owned()), Just("x/~".to_owned())]
}

fn items() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![any::<i64>().prop_map(Value::from), Just(Value::Null), Just(Value::from("s"))];
    let node = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((names(), inner), 0..3).prop_map(|properties| object(properties).into()),
        ]
    });
    prop::collection::vec((names(), node), 0..4).prop_map(|properties| object(properties).into())
}

fn object(properties: Vec<(String, Value)>) -> Object {
    properties.into_iter().fold(Object::new(), |object, (name, value)| object.with(name, value))
}

fn pointers() -> impl Strategy<Value = String> {
    let text = |names: Vec<String>| {
        names.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect::<String>()
    };
    prop::collection::vec(prop_oneof![4 => names(), 1 => Just("-".to_owned())], 1..4).prop_map(text)
}

fn single_operation(op: &str, path: &str, value: i64) -> Patch {
    let operation = Object::new().with("op", op).with("path", path).with("from", "/b").with("value", value);
    Patch::parse(&Value::Array(vec![operation.into()])).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn remove_after_add_is_identity(item in items(), path in pointers()) {
        let mut changed = item.clone();
        let pointer = Pointer::parse(&path).unwrap();
        let there = pointer.find(&mut changed).is_some() && matches!(pointer.parent(&mut changed), Some(PointerParent::Object(..)));
        if !there && !path.ends_with('-') && single_operation("add", &path, 1).apply(&mut changed).is_ok() {
            single_operation("remove", &path, 0).apply(&mut changed).unwrap();
            prop_assert_eq!(changed, item);
        }
    }

    #[test]
    fn a_set_value_is_found_at_its_pointer(item in items(), path in pointers(), n: i64) {
        let mut changed = item;
        if !path.ends_with('-') && single_operation("set", &path, n).apply(&mut changed).is_ok() {
            prop_assert_eq!(Pointer::parse(&path).unwrap().find(&mut changed).cloned(), Some(Value::from(n)));
        }
    }

    #[test]
    fn increments_undo_each_other(n in any::<i64>(), by in any::<i64>()) {
        let mut item = Value::Object(Object::new().with("n", n));
        single_operation("incr", "/n", by).apply(&mut item).unwrap();
        let exact = i128::from(n) + i128::from(by) >= i128::from(i64::MIN);
        if exact && by != i64::MIN {
            single_operation("incr", "/n", -by).apply(&mut item).unwrap();
            prop_assert_eq!(item.get("n"), Some(&Value::from(n)));
        }
    }

    #[test]
    fn apply_never_panics(item in items(), path in pointers(), op in prop::sample::select(vec!["add", "set", "replace", "remove", "incr", "move"])) {
        let operation = Object::new().with("op", op).with("path", path.as_str()).with("from", "/b").with("value", true);
        if let Ok(patch) = Patch::parse(&Value::Array(vec![operation.into()])) {
            let mut item = item;
            let _ = patch.apply(&mut item);
        }
    }

    #[test]
    fn pointers_round_trip_through_text(path in pointers()) {
        prop_assert_eq!(Pointer::parse(&path).unwrap().to_string(), path);
    }
}
