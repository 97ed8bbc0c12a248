use super::*;

#[test]
fn set_keeps_the_position_of_a_property() {
    let mut object = Object::new().with("a", true).with("b", "x").with("a", 2_i64);
    assert_eq!(object.iter().collect::<Vec<_>>(), [("a", &Value::from(2_i64)), ("b", &Value::from("x"))]);
    assert_eq!(object.remove("a"), Some(Value::from(2_i64)));
    assert_eq!(object.remove("a"), None);
    object.set("a", 3_i64);
    assert_eq!(object.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["b", "a"]);
}

#[test]
fn only_objects_have_properties() {
    assert_eq!(Value::Null.get("a"), None);
    assert_eq!(Value::from(vec![Value::Null]).get("0"), None);
    assert_eq!(Value::from(Object::new().with("a", Value::Null)).get("a"), Some(&Value::Null));
}
