//! Key values: their types (S10, S29), lengths (S17, S18), limits (S19), and their routing (S2, S36, S40).

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::{PartitionKeyDefinition, PartitionKeyVersion, ThroughputProperties};
use azure_data_cosmos::PartitionKey;

use crate::support::*;

both!(
    s10_s29_a_key_may_be_any_scalar,
    s10_null_and_undefined_are_two_keys,
    s17_large_keys,
    s18_small_keys,
    s19_numbers_that_round_to_one_double_are_one_key,
    s36_the_hash_of_the_key_decides_the_range,
);

fn scalars() -> Vec<(PartitionKey, Value)> {
    vec![
        ("".into(), json!("")),
        ("a".into(), json!("a")),
        ("7".into(), json!("7")),
        ("日本 😀".into(), json!("日本 😀")),
        ("q\"uo\\te".into(), json!("q\"uo\\te")),
        (0.into(), json!(0)),
        (7.into(), json!(7)),
        (PartitionKey::try_from(-1.5).unwrap(), json!(-1.5)),
        (PartitionKey::try_from(1e300).unwrap(), json!(1e300)),
        (true.into(), json!(true)),
        (false.into(), json!(false)),
        (PartitionKey::NULL.into(), json!(null)),
    ]
}

async fn s10_s29_a_key_may_be_any_scalar(world: World) {
    let container = world.make("/pk").await;
    for (key, value) in scalars() {
        create(&container, key.clone(), json!({"id": "x", "pk": value})).await.unwrap();
    }
    for (key, value) in scalars() {
        assert_eq!(read(&container, key.clone(), "x").await.unwrap()["pk"], value);
        replace(&container, key.clone(), json!({"id": "x", "pk": value, "n": 1})).await.unwrap();
        delete(&container, key.clone(), "x").await.unwrap();
        refused(read(&container, key, "x").await, 404);
    }
}

async fn s10_null_and_undefined_are_two_keys(world: World) {
    let container = world.make("/pk").await;
    create(&container, PartitionKey::NULL, json!({"id": "x", "pk": null, "n": 1})).await.unwrap();
    create(&container, PartitionKey::UNDEFINED, json!({"id": "x", "n": 2})).await.unwrap();
    assert_eq!(read(&container, PartitionKey::NULL, "x").await.unwrap()["n"], 1);
    assert_eq!(read(&container, PartitionKey::UNDEFINED, "x").await.unwrap()["n"], 2);
}

async fn s17_large_keys(world: World) {
    let container = world.make("/pk").await;
    let longest = "k".repeat(2048);
    create(&container, longest.clone(), json!({"id": "x", "pk": longest})).await.unwrap();
    let longer = "k".repeat(2049);
    refused(create(&container, longer.clone(), json!({"id": "x", "pk": longer})).await, 400);
    for end in ["a", "b"] {
        let key = "k".repeat(101) + end;
        create(&container, key.clone(), json!({"id": "x", "pk": key})).await.unwrap();
    }
}

async fn s18_small_keys(world: World) {
    let container = world.make(PartitionKeyDefinition::from("/pk").with_version(PartitionKeyVersion::V1)).await;
    let (a, b) = ("k".repeat(100) + "a", "k".repeat(100) + "b");
    create(&container, a.clone(), json!({"id": "x", "pk": a})).await.unwrap();
    refused(create(&container, b.clone(), json!({"id": "x", "pk": b})).await, 409);
}

async fn s19_numbers_that_round_to_one_double_are_one_key(world: World) {
    let container = world.make("/pk").await;
    let (near, far) = (9_007_199_254_740_992_i64, 9_007_199_254_740_993_i64);
    create(&container, near, json!({"id": "x", "pk": near})).await.unwrap();
    refused(create(&container, far, json!({"id": "x", "pk": far})).await, 409);
}

/// The responding range is the one that contains the SDK's own hash of the key.
async fn s36_the_hash_of_the_key_decides_the_range(world: World) {
    for version in [PartitionKeyVersion::V1, PartitionKeyVersion::V2] {
        let definition = PartitionKeyDefinition::from("/pk").with_version(version);
        let throughput = ThroughputProperties::manual(30_000);
        let container = world.make_with(definition, Some(throughput)).await.unwrap();
        for (key, value) in scalars() {
            check_range(&container, key, json!({"id": "x", "pk": value})).await;
        }
        for n in 0..40 {
            let name = format!("key {n}");
            check_range(&container, name.clone().into(), json!({"id": "x", "pk": name})).await;
        }
    }
}

async fn check_range(container: &ContainerClient, key: PartitionKey, item: Value) {
    let ranges = container.read_feed_ranges(None).await.unwrap();
    let expected = container.feed_range_from_partition_key(key.clone(), None).await.unwrap();
    let owner = ranges.iter().position(|range| expected.iter().all(|one| one.is_subset_of(range)));
    let response = create(container, key.clone(), item).await.unwrap();
    let served = response.headers().partition_key_range_id().map(|id| id.parse::<usize>().unwrap());
    assert_eq!(served, owner, "{key:?}");
}
