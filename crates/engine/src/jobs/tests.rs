//! The space of deleted containers is reclaimed, even with concurrent writers.

use crate::testing::*;
use pleiad_model::Kind;

#[tokio::test]
async fn a_dropped_container_gives_its_space_back() {
    let engine = account().await;
    let (gone, kept) = (container(&engine, "gone", &["/pk"], 4).await, container(&engine, "kept", &["/pk"], 4).await);
    load(&engine, "gone", 100, |n| n.to_string()).await;
    load(&engine, "kept", 10, |n| n.to_string()).await;
    let (store, _) = engine.catalog.hands();
    assert!(shard_bytes(&*store, &gone).await > 0);
    engine.catalog.delete_container(gone.rid).await.unwrap();
    all_erased(&engine).await;
    assert_given_back(&*store, &gone).await;
    assert_eq!(kept.items(), 10);
    assert_sound(&engine).await;
}

#[tokio::test]
async fn a_dropped_database_gives_all_its_space_back() {
    let engine = account().await;
    let one = container(&engine, "one", &["/pk"], 4).await;
    let two = container(&engine, "two", &["/pk"], 40).await;
    load(&engine, "one", 50, |n| n.to_string()).await;
    load(&engine, "two", 50, |n| n.to_string()).await;
    engine.catalog.delete_database(one.rid.database).await.unwrap();
    all_erased(&engine).await;
    let (store, _) = engine.catalog.hands();
    assert_given_back(&*store, &one).await;
    assert_given_back(&*store, &two).await;
    assert_sound(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn nothing_is_written_behind_the_eraser() {
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
    all_erased(&engine).await;
    let (store, _) = engine.catalog.hands();
    assert_given_back(&*store, &gone).await;
    assert_sound(&engine).await;
}
