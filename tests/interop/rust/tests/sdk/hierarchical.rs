//! Partition keys of two and three levels: complete keys, null levels, missing levels, too few levels.

use azure_data_cosmos::models::{PartitionKeyValue, ThroughputProperties};
use azure_data_cosmos::PartitionKey;

use crate::support::*;

both!(
    item_operations_under_two_levels,
    three_levels_of_any_type,
    a_missing_level_is_not_null,
    a_point_read_needs_every_level,
    levels_that_do_not_match_the_body_are_400_1001,
    several_ranges,
);

const NULL: PartitionKeyValue = PartitionKey::NULL;
const UNDEFINED: PartitionKeyValue = PartitionKey::UNDEFINED;

async fn item_operations_under_two_levels(world: World) {
    let container = world.make(("/tenant", "/user")).await;
    create(&container, ("t", "u"), json!({"id": "x", "tenant": "t", "user": "u", "n": 1})).await.unwrap();
    replace(&container, ("t", "u"), json!({"id": "x", "tenant": "t", "user": "u", "n": 2})).await.unwrap();
    upsert(&container, ("t", "u"), json!({"id": "x", "tenant": "t", "user": "u", "n": 3})).await.unwrap();
    assert_eq!(read(&container, ("t", "u"), "x").await.unwrap()["n"], 3);
    refused(read(&container, ("t", "other"), "x").await, 404);
    delete(&container, ("t", "u"), "x").await.unwrap();
    refused(read(&container, ("t", "u"), "x").await, 404);
}

async fn three_levels_of_any_type(world: World) {
    let container = world.make(("/a", "/b", "/c")).await;
    let keys: Vec<(PartitionKey, Value)> = vec![
        (("t", "u", "s").into(), json!(["t", "u", "s"])),
        (("t", 1, true).into(), json!(["t", 1, true])),
        (("", "", "").into(), json!(["", "", ""])),
        (("日本", "😀", false).into(), json!(["日本", "😀", false])),
        (("t", NULL, "s").into(), json!(["t", null, "s"])),
        ((NULL, NULL, NULL).into(), json!([null, null, null])),
    ];
    let item = |levels: &Value| json!({"id": "x", "a": levels[0], "b": levels[1], "c": levels[2]});
    for (key, levels) in &keys {
        create(&container, key.clone(), item(levels)).await.unwrap();
        refused(create(&container, key.clone(), item(levels)).await, 409);
    }
    for (key, levels) in &keys {
        assert_eq!(plain(read(&container, key.clone(), "x").await.unwrap()), item(levels));
    }
}

async fn a_missing_level_is_not_null(world: World) {
    let container = world.make(("/tenant", "/user")).await;
    create(&container, ("t", UNDEFINED), json!({"id": "x", "tenant": "t"})).await.unwrap();
    assert_eq!(read(&container, ("t", UNDEFINED), "x").await.unwrap()["id"], "x");
    refused(read(&container, ("t", NULL), "x").await, 404);
    refused_with(create(&container, ("t", NULL), json!({"id": "y", "tenant": "t"})).await, (400, 1001));
}

async fn a_point_read_needs_every_level(world: World) {
    let container = world.make(("/a", "/b", "/c")).await;
    create(&container, ("t", "u", "s"), json!({"id": "x", "a": "t", "b": "u", "c": "s"})).await.unwrap();
    refused(read(&container, ("t", "u"), "x").await, 400);
    refused(delete(&container, "t", "x").await, 400);
}

async fn levels_that_do_not_match_the_body_are_400_1001(world: World) {
    let container = world.make(("/a", "/b")).await;
    refused_with(create(&container, ("t", "other"), json!({"id": "x", "a": "t", "b": "u"})).await, (400, 1001));
}

async fn several_ranges(world: World) {
    let throughput = Some(ThroughputProperties::manual(18_000));
    let container = world.make_with(("/tenant", "/user"), throughput).await.unwrap();
    let key = |n: i32| (format!("tenant {}", n % 7), n);
    for n in 0..60 {
        create(&container, key(n), json!({"id": "x", "tenant": key(n).0, "user": n, "n": n})).await.unwrap();
    }
    for n in 0..60 {
        assert_eq!(read(&container, key(n), "x").await.unwrap()["n"], n);
    }
}
