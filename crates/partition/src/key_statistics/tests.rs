//! Which keys are reported.

use super::*;
use crate::testing::{draft, item, memory, open, schema};
use crate::{Precondition, Schema, Verb};

async fn create(partition: &Partition, schema: &Schema, pk: &str, id: &str) {
    let draft = draft(schema, id, item(pk, id, 0));
    partition.write(schema, Verb::Create, &draft, &Precondition::None, 7).await.unwrap();
}

fn names(keys: &[LargeKey]) -> Vec<String> {
    let name = |large: &LargeKey| pleiad_model::partition_key::PartitionKey::decode_components(&large.components);
    keys.iter().map(|large| name(large).unwrap().to_json()).collect()
}

#[tokio::test]
async fn s26_s34_the_largest_keys_are_reported_with_their_size() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    for (pk, items) in [("a", 1), ("b", 4), ("c", 2), ("d", 3), ("e", 1)] {
        for n in 0..items {
            create(&partition, &schema, pk, &n.to_string()).await;
        }
    }
    let found = partition.key_statistics(KEYS_REPORTED).await.unwrap();
    assert_eq!((found.keys, names(&found.largest)), (5, ["b", "d", "c"].map(|key| format!("[\"{key}\"]")).to_vec()));
    assert_eq!(found.largest[0].stats.items, 4);
    partition.refresh_key_statistics().await.unwrap();
    assert_eq!(partition.large_keys.largest(), found.largest);
}

#[tokio::test]
async fn s34_a_key_is_reported_once_when_it_exceeds_seven_tenths_of_its_cap() {
    let partition = open(&memory()).await;
    let one = draft(&schema(&["/pk"]), "0", item("a", "0", 0)).text.len() as u64;
    let schema = Schema {
        size_limits: crate::SizeLimits { key_bytes_max: one * 10, ..crate::SizeLimits::UNLIMITED },
        ..schema(&["/pk"])
    };
    for n in 0..7 {
        create(&partition, &schema, "a", &n.to_string()).await;
    }
    assert!(partition.large_keys.take_nearly_full().is_empty(), "seven tenths are not more than seven tenths");
    create(&partition, &schema, "a", "7").await;
    create(&partition, &schema, "a", "8").await;
    assert_eq!(names(&partition.large_keys.take_nearly_full()), [r#"["a"]"#]);
    assert!(partition.large_keys.take_nearly_full().is_empty());
}
