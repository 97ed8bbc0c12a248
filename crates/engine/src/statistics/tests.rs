use super::*;
use crate::ContainerName;
use crate::testing::*;

const C: ContainerName<'static> = ContainerName::Named { database: "db", container: "c" };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s26_there_is_one_logical_partition_per_key_value() {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    load(&engine, "c", 1200, |n| (n % 1000).to_string()).await;
    let found = engine.statistics(&at_container(&engine, C).unwrap()).await.unwrap();
    assert_eq!(found.iter().map(|one| one.keys).sum::<u64>(), 1000);
    assert_eq!(found.iter().map(|one| one.items).sum::<u64>(), 1200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s34_the_largest_keys_are_reported_with_their_size() {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    load(&engine, "c", 60, |n| {
        if n < 30 {
            "a".to_owned()
        } else if n < 50 {
            "b".to_owned()
        } else {
            n.to_string()
        }
    })
    .await;
    let top = engine.top_keys(&at_container(&engine, C).unwrap(), KeyOrder::Size, 2).await.unwrap();
    let reported: Vec<(String, u64)> = top.iter().map(|one| (one.key.to_json(), one.items)).collect();
    assert_eq!(reported, [("[\"a\"]".to_owned(), 30), ("[\"b\"]".to_owned(), 20)]);
    assert!(top[0].bytes > top[1].bytes && top[0].ru.is_none());
    assert_eq!(engine.top_keys(&at_container(&engine, C).unwrap(), KeyOrder::Size, 100).await.unwrap().len(), 12);
}

#[tokio::test]
async fn the_busiest_keys_are_reported_with_their_charge() {
    let (engine, _) = governed(Default::default()).await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    create(&engine, &at, "1", "a").await.result.unwrap();
    for _ in 0..20 {
        let _ = read(&engine, &at, "1", "a").await;
    }
    let top = engine.top_keys(&at_container(&engine, C).unwrap(), KeyOrder::RequestUnits, 5).await.unwrap();
    assert_eq!(top[0].key, pk("a"));
    assert!(top[0].ru.is_some_and(|ru| ru > 10.0), "{top:?}");
}
