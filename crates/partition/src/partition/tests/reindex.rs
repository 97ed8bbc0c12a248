//! Index transformation: its effect on existing items and on concurrent writers.

use super::*;

const ALL: &str = "{}";
const NONE: &str = r#"{"indexingMode":"none","automatic":false}"#;
const NAMED: &str = r#"{"includedPaths":[{"path":"/n/?"},{"path":"/missing/?"}],"excludedPaths":[{"path":"/*"}],
                        "compositeIndexes":[[{"path":"/n"},{"path":"/pk","order":"descending"}]]}"#;

async fn filled(store: &Arc<AnyStore>, policy: &str) -> Partition {
    let (partition, schema) = (open(store).await, schema_with(&["/pk"], 1, policy, &[]));
    for n in 0..300 {
        create(&partition, &schema, &format!("k{}", n % 7), &n.to_string(), n).await.unwrap();
    }
    let unindexed = Draft { indexed: false, ..draft(&schema, "u", item("k0", "u", 0)) };
    partition.write(&schema, Verb::Create, &unindexed, &Precondition::None, 7).await.unwrap();
    partition
}

fn without_index(rows: std::collections::BTreeMap<Bytes, Bytes>) -> Vec<(Bytes, Bytes)> {
    rows.into_iter().filter(|(row, _)| row[8] != keyspace::Tag::Index as u8).collect()
}

#[tokio::test]
async fn every_item_gets_the_rows_of_the_new_policy_and_keeps_everything_else() {
    for (old, new) in [(ALL, NAMED), (NAMED, ALL), (ALL, NONE), (NONE, ALL), (NONE, NAMED), (ALL, ALL)] {
        let store = memory();
        let partition = filled(&store, old).await;
        let before = (without_index(rows(&store, 7).await), partition.shard_state());
        let transition = schema_with(&["/pk"], 2, new, &[old]);
        audit(&partition, &transition).await;
        let mut seen = 0;
        partition.reindex(&transition, |items| seen += items).await.unwrap();
        assert_eq!(seen, 301);
        audit(&partition, &schema_with(&["/pk"], 2, new, &[])).await;
        assert_eq!((without_index(rows(&store, 7).await), partition.shard_state()), before);
        let after = rows(&store, 7).await;
        partition.reindex(&transition, |_| ()).await.unwrap();
        assert_eq!(rows(&store, 7).await, after, "repeating it changes nothing");
    }
}

#[tokio::test]
async fn consecutive_policy_changes_end_at_the_last_policy() {
    let store = memory();
    let partition = filled(&store, ALL).await;
    let second = schema_with(&["/pk"], 2, NAMED, &[ALL]);
    create(&partition, &second, "k1", "between", 5).await.unwrap();
    let third = schema_with(&["/pk"], 3, NONE, &[ALL, NAMED]);
    write(&partition, &third, Verb::Upsert, "between", item("k1", "between", 6), Precondition::None).await.unwrap();
    audit(&partition, &third).await;
    partition.reindex(&third, |_| ()).await.unwrap();
    audit(&partition, &schema_with(&["/pk"], 3, NONE, &[])).await;
}

#[tokio::test]
async fn writes_under_an_older_schema_are_rejected() {
    let partition = open(&memory()).await;
    let (old, new) = (schema(&["/pk"]), schema_with(&["/pk"], 2, NONE, &[ALL]));
    create(&partition, &old, "a", "1", 1).await.unwrap();
    assert!(partition.check_schema(&old).is_ok());
    create(&partition, &new, "a", "2", 2).await.unwrap();
    let create_under = async |schema: &Schema, id: &str| {
        partition.write(schema, Verb::Create, &draft(schema, id, item("a", id, 3)), &Precondition::None, 7).await
    };
    assert!(create_under(&old, "3").await.unwrap_err().is_outdated());
    let deleted = partition.delete(&old, &key(&old, "a", "1"), &Precondition::None, 7).await;
    assert!(deleted.unwrap_err().is_outdated());
    assert_eq!(partition.check_schema(&old), Err(Outdated));
    partition.require_schema(3);
    assert!(create_under(&new, "4").await.unwrap_err().is_outdated());
    assert!(partition.reindex(&new, |_| ()).await.unwrap_err().is_outdated());
}

#[tokio::test]
async fn an_item_rewritten_during_reindexing_is_skipped() {
    let store = memory();
    let partition = filled(&store, ALL).await;
    let transition = schema_with(&["/pk"], 2, NAMED, &[ALL]);
    // Each chunk is followed by writes to items that were processed and to items that were not.
    let mut n = 0;
    let rewrite = |_| {
        for id in [1, 100, 299] {
            n += 1;
            let draft = draft(&transition, &id.to_string(), item(&format!("k{}", id % 7), &id.to_string(), n));
            let write = partition.write(&transition, Verb::Replace, &draft, &Precondition::None, 8);
            crate::commit::block_on(write).unwrap();
        }
    };
    partition.reindex(&transition, rewrite).await.unwrap();
    audit(&partition, &schema_with(&["/pk"], 2, NAMED, &[])).await;
}
