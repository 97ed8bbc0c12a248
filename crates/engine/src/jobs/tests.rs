//! The space of deleted containers is reclaimed, even with concurrent writers.

use crate::testing::*;
use pleiad_model::Kind;

#[tokio::test]
async fn the_space_of_a_deleted_container_is_reclaimed() {
    let engine = account().await;
    let (gone, kept) = (container(&engine, "gone", &["/pk"], 4).await, container(&engine, "kept", &["/pk"], 4).await);
    load(&engine, "gone", 100, |n| n.to_string()).await;
    load(&engine, "kept", 10, |n| n.to_string()).await;
    let (store, _) = engine.catalog.store_and_committer();
    assert!(shard_bytes(&*store, &gone).await > 0);
    engine.catalog.delete_container(gone.rid).await.unwrap();
    wait_until_shards_dropped(&engine).await;
    assert_space_reclaimed(&*store, &gone).await;
    assert_eq!(kept.items(), 10);
    assert_sound(&engine).await;
}

#[tokio::test]
async fn the_space_of_a_deleted_database_is_reclaimed() {
    let engine = account().await;
    let one = container(&engine, "one", &["/pk"], 4).await;
    let two = container(&engine, "two", &["/pk"], 40).await;
    load(&engine, "one", 50, |n| n.to_string()).await;
    load(&engine, "two", 50, |n| n.to_string()).await;
    engine.catalog.delete_database(one.rid.database).await.unwrap();
    wait_until_shards_dropped(&engine).await;
    let (store, _) = engine.catalog.store_and_committer();
    assert_space_reclaimed(&*store, &one).await;
    assert_space_reclaimed(&*store, &two).await;
    assert_sound(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn no_write_follows_the_drop_of_a_shard() {
    let engine = account().await;
    let gone = container(&engine, "c", &["/pk"], 4).await;
    let writer = |task: usize| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let at = admit(&engine, "c");
            for n in 0.. {
                if let Err(error) = create(&engine, &at, &format!("{task}-{n}"), &n.to_string()).await.result {
                    return error.kind;
                }
            }
            unreachable!("the container is deleted")
        })
    };
    let writers: Vec<_> = (0..4).map(writer).collect();
    while gone.items() < 200 {
        tokio::task::yield_now().await;
    }
    engine.catalog.delete_container(gone.rid).await.unwrap();
    for writer in writers {
        assert_eq!(writer.await.unwrap(), Kind::OwnerNotFound);
    }
    wait_until_shards_dropped(&engine).await;
    let (store, _) = engine.catalog.store_and_committer();
    assert_space_reclaimed(&*store, &gone).await;
    assert_sound(&engine).await;
}
