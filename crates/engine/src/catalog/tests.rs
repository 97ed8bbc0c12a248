//! The resource tree: it survives restarts, assigns no `_rid` twice, and stays consistent when clients disconnect.

use super::*;
use crate::testing::*;
use crate::{Engine, ProvisionedThroughput, ThroughputRequest};
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::{Kind, Object};
use pleiad_storage::{Batch, Durability, Memory, Store};
use std::task::{Context, Poll};

/// The content of the tree, as text.
fn dump(engine: &Engine) -> Vec<String> {
    let tree = engine.catalog.tree();
    let mut lines = Vec::new();
    for database in tree.databases.values() {
        assert_eq!(tree.database(&database.id).unwrap().rid, database.rid);
        lines.push(format!("{} {} {:?}", database.id, database.rid, database.version));
        for container in database.containers.values() {
            assert_eq!(database.container(&container.definition.id).unwrap().rid, container.rid);
            assert_eq!(container.partitions.len(), container.map.ranges().len());
            lines.push(format!("{} {:?} {:?}", container.rid, container.version, container.definition));
            lines.push(format!("{:?} {} items", container.map, container.items()));
        }
        lines.extend(
            database.encryption_keys.values().map(|key| format!("{} {} {:?}", key.id, key.rid, key.properties)),
        );
    }
    for offer in tree.offers.values() {
        lines.push(format!("{} {:?} {:?} {:?}", offer.rid, offer.owner, offer.throughput, offer.highest_ru));
    }
    lines
}

fn offer(engine: &Engine, container: &Container) -> Option<Arc<Offer>> {
    engine.catalog.tree().offer(OfferOwner::Container(container.rid)).cloned()
}

/// Polls a request once, then drops it, as if its client had disconnected.
async fn disconnect(request: impl Future) {
    let mut request = Box::pin(request);
    let step = |cx: &mut Context<'_>| Poll::Ready(request.as_mut().poll(cx).is_ready());
    std::future::poll_fn(step).await;
}

#[tokio::test]
async fn s3_everything_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let before = {
        let engine = open(disk(dir.path()), LIMITS).await;
        let shared = ThroughputRequest::Autoscale { max: 4000, increment_percent: Some(10) };
        let other = engine.catalog.create_database("other", shared).await.unwrap();
        engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
        let devices =
            try_container(&engine, "db", "devices", &["/deviceId"], ThroughputRequest::Manual(600)).await.unwrap();
        try_container(&engine, "db", "deep", &["/a", "/b/c", "/d"], ThroughputRequest::Unspecified).await.unwrap();
        try_container(&engine, "other", "shared", &["/pk"], ThroughputRequest::Unspecified).await.unwrap();
        engine.catalog.put_encryption_key(other.rid, "key", Object::new().with("a", 1i64), None).await.unwrap();
        let raised = ThroughputRequest::Manual(50_000);
        engine
            .catalog
            .replace_offer(offer(&engine, &devices).unwrap().rid, crate::OfferChange::To(raised), None)
            .await
            .unwrap();
        load(&engine, "devices", 0, |_| String::new()).await;
        engine.close().await;
        (dump(&engine), engine.catalog.secret().await)
    };
    let engine = open(disk(dir.path()), LIMITS).await;
    assert_eq!((dump(&engine), engine.catalog.secret().await), before);
    let devices = admit(&engine, "devices");
    assert_eq!(devices.container().definition.partition_key.as_ref().unwrap().paths[0].as_str(), "/deviceId");
    assert_eq!(offer(&engine, devices.container()).unwrap().throughput, ProvisionedThroughput::Manual(50_000));
}

#[tokio::test]
async fn items_and_lsns_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    {
        let engine = open(disk(dir.path()), LIMITS).await;
        engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
        container(&engine, "c", &["/pk"], 4).await;
        load(&engine, "c", 100, |n| n.to_string()).await;
        engine.close().await;
    }
    let engine = open(disk(dir.path()), LIMITS).await;
    let at = admit(&engine, "c");
    assert_eq!(at.container().items(), 100);
    for n in 0..100 {
        let key = n.to_string();
        assert_eq!(read(&engine, &at, &key, &key).await.result.unwrap().id(), key);
    }
    let before = at.container().partitions.iter().map(|partition| partition.lsn()).sum::<u64>();
    create(&engine, &at, "new", "new").await.result.unwrap();
    assert_eq!(before, 104, "100 items, and the container in each of its partitions");
    assert_sound(&engine).await;
}

#[tokio::test]
async fn rids_are_never_reused_across_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let engine = open(disk(dir.path()), LIMITS).await;
        for _ in 0..2 {
            let database = engine.catalog.create_database("db", ThroughputRequest::Manual(400)).await.unwrap();
            let c = try_container(&engine, "db", "c", &["/pk"], ThroughputRequest::Manual(400)).await.unwrap();
            let key = engine.catalog.put_encryption_key(database.rid, "k", Object::new(), None).await.unwrap();
            seen.push(database.rid.to_string());
            seen.push(c.rid.to_string());
            seen.push(key.rid.to_string());
            seen.extend(engine.catalog.tree().offers.values().map(|offer| format!("offer {}", offer.rid)));
            seen.extend(c.map.ranges().iter().map(|range| format!("shard {}", range.shard)));
            engine.catalog.delete_database(database.rid).await.unwrap();
        }
        assert!(dump(&engine).is_empty());
        wait_until_shards_dropped(&engine).await;
        engine.close().await;
    }
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

#[tokio::test]
async fn s15_the_partition_key_cannot_be_changed() {
    let engine = account().await;
    let before = container(&engine, "c", &["/pk"], 4).await;
    for key in [r#"{"paths":["/other"],"kind":"Hash","version":2}"#, r#"{"paths":["/pk"],"kind":"Hash","version":1}"#] {
        let body = parse(&format!(r#"{{"id":"c","partitionKey":{key}}}"#));
        let replaced = engine.catalog.replace_container(before.rid, |old| old.replace(&body)).await;
        assert_eq!(replaced.err().unwrap().kind, Kind::Invalid, "{key}");
    }
    let after = admit(&engine, "c");
    assert_eq!((&after.container().definition, after.container().version), (&before.definition, before.version));
}

#[tokio::test]
async fn a_replaced_container_keeps_its_items() {
    let engine = account().await;
    let old = container(&engine, "c", &["/pk"], 4).await;
    let lazy = parse(
        r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"indexingPolicy":{"indexingMode":"none","automatic":false}}"#,
    );
    create(&engine, &admit(&engine, "c"), "1", "a").await.result.unwrap();
    let replace = async || engine.catalog.replace_container(old.rid, |old| old.replace(&lazy)).await;
    let new = replace().await.unwrap();
    assert!(new.version.number > old.version.number && new.rid == old.rid);
    let terms = create(&engine, &admit(&engine, "c"), "2", "a").await.result.unwrap().record.unwrap().terms;
    assert_eq!(terms, 0);
    assert_eq!(old.items(), 2, "the old container has the same partitions");
    assert_sound(&engine).await;
}

#[tokio::test]
async fn names_are_unique_and_reusable_after_a_delete() {
    let engine = account().await;
    let c = container(&engine, "c", &["/pk"], 4).await;
    let again = async || try_container(&engine, "db", "c", &["/pk"], ThroughputRequest::Unspecified).await;
    assert_eq!(again().await.err().unwrap().kind, Kind::Conflict);
    let database = engine.catalog.create_database("db", ThroughputRequest::Unspecified).await;
    assert_eq!(database.err().unwrap().kind, Kind::Conflict);
    engine.catalog.delete_container(c.rid).await.unwrap();
    assert_eq!(engine.catalog.delete_container(c.rid).await.unwrap_err().kind, Kind::NotFound);
    assert!(offer(&engine, &c).is_none(), "its offer is deleted, too");
    assert_eq!(again().await.unwrap().items(), 0);
}

#[tokio::test]
async fn rejected_changes_leave_no_trace() {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let before = dump(&engine);
    assert!(engine.catalog.create_database("a/b", ThroughputRequest::Unspecified).await.is_err());
    assert!(engine.catalog.create_database("x", ThroughputRequest::Manual(150)).await.is_err());
    assert!(try_container(&engine, "db", "c", &["/pk"], ThroughputRequest::Unspecified).await.is_err());
    assert!(try_container(&engine, "db", "d", &["/pk"], ThroughputRequest::Manual(1)).await.is_err());
    let made = engine.catalog.create_database("y", ThroughputRequest::Unspecified).await.unwrap();
    assert_eq!(made.version.number, 3, "failed changes use no version number");
    engine.catalog.delete_database(made.rid).await.unwrap();
    assert_eq!(dump(&engine), before);
}

#[tokio::test]
async fn s53_equal_throughput_gives_equal_partitions_and_clients_cannot_set_the_count() {
    let engine = account().await;
    let body =
        r#"{"id":"b","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"partitionCount":7,"partitions":9}"#;
    let definition = pleiad_model::policy::ContainerDefinition::create(&parse(body)).unwrap();
    let a = container(&engine, "a", &["/pk"], 12).await;
    let database = a.rid.database;
    let b = engine
        .catalog
        .create_container(database, NewContainer { definition, throughput: ThroughputRequest::Manual(1200) });
    let b = b.await.unwrap();
    let keys =
        |container: &Container| container.map.ranges().iter().map(|range| range.keys.clone()).collect::<Vec<_>>();
    assert_eq!((keys(&a), a.partitions.len()), (keys(&b), 12));
}

#[tokio::test]
async fn s52_s56_five_hundred_ranges_work_like_one() {
    let engine = account().await;
    let c = container(&engine, "c", &["/pk"], 500).await;
    assert_eq!(c.partitions.len(), 500);
    load(&engine, "c", 2000, |n| n.to_string()).await;
    let at = admit(&engine, "c");
    for n in 0..2000 {
        let key = n.to_string();
        assert!(read(&engine, &at, &key, &key).await.result.is_ok());
        delete(&engine, &at, &key, &key).await.result.unwrap();
    }
    assert_eq!(c.items(), 0);
    assert_eq!(
        engine.catalog.limits().partition_bytes_max,
        LIMITS.partition_bytes_max,
        "every range has the same quota"
    );
    assert_sound(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn concurrent_changes_leave_a_consistent_tree() {
    let dir = tempfile::tempdir().unwrap();
    let store = disk(dir.path());
    let engine = open(store.clone(), LIMITS).await;
    let change = |task: usize| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for n in 0..15 {
                let name = format!("d{}", (task + n) % 3);
                // Another task may be first; which one does not matter.
                let _ = engine.catalog.create_database(&name, ThroughputRequest::Unspecified).await;
                let _ = try_container(&engine, &name, &format!("c{}", n % 4), &["/pk"], ThroughputRequest::Unspecified)
                    .await;
                let Ok(database) = find_database(&engine, &name) else { continue };
                if let Some(container) = database.containers.values().next()
                    && n % 3 == 0
                {
                    let _ = engine.catalog.delete_container(container.rid).await;
                }
                if (task + n).is_multiple_of(7) {
                    let _ = engine.catalog.delete_database(database.rid).await;
                }
            }
        })
    };
    for task in (0..8).map(change).collect::<Vec<_>>() {
        task.await.unwrap();
    }
    wait_until_shards_dropped(&engine).await;
    assert_sound(&engine).await;
    engine.close().await;
    let tree = engine.catalog.tree();
    let owners = tree.offers.values().map(|offer| offer.owner);
    assert!(
        owners
            .into_iter()
            .all(|owner| matches!(owner, OfferOwner::Container(rid) if tree.container_by_rid(rid).is_some()))
    );
    assert_eq!(dump(&*open(store, LIMITS).await), dump(&engine), "the tree in memory equals the stored one");
}

#[tokio::test]
async fn a_change_is_published_even_if_its_client_disconnects() {
    let engine = account().await;
    disconnect(engine.catalog.create_database("late", ThroughputRequest::Manual(400))).await;
    // The catalog lock is fair: the next change sees the outcome.
    let next = engine.catalog.create_database("next", ThroughputRequest::Unspecified).await.unwrap();
    assert!(find_database(&engine, "late").unwrap().rid < next.rid);

    let c = container(&engine, "c", &["/pk"], 4).await;
    create(&engine, &admit(&engine, "c"), "1", "a").await.result.unwrap();
    disconnect(engine.catalog.delete_container(c.rid)).await;
    engine.catalog.create_database("last", ThroughputRequest::Unspecified).await.unwrap();
    assert!(at_container(&engine, crate::ContainerName::Rid(c.rid)).is_err());
    wait_until_shards_dropped(&engine).await;
    let (store, _) = engine.catalog.store_and_committer();
    assert_space_reclaimed(&*store, &c).await;
    assert_sound(&engine).await;
}

#[tokio::test]
async fn shards_of_deleted_containers_are_dropped_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let store = disk(dir.path());
    let dropped = {
        let engine = open(store.clone(), LIMITS).await;
        engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
        let c = container(&engine, "c", &["/pk"], 4).await;
        container(&engine, "kept", &["/pk"], 4).await;
        load(&engine, "c", 200, |n| n.to_string()).await;
        load(&engine, "kept", 20, |n| n.to_string()).await;
        engine.close().await;
        c
    };
    // The delete reached the disk, then the power failed.
    let mut batch = Batch::default();
    rows::delete_container(&mut batch, &dropped);
    store.commit(&batch, Durability::Synced).await.unwrap();

    let engine = open(store.clone(), LIMITS).await;
    assert!(at_container(&engine, crate::ContainerName::Rid(dropped.rid)).is_err());
    wait_until_shards_dropped(&engine).await;
    assert_space_reclaimed(&store, &dropped).await;
    assert_eq!(admit(&engine, "kept").container().items(), 20);
    assert_sound(&engine).await;
}

#[tokio::test]
async fn a_failed_commit_publishes_nothing() {
    use pleiad_storage::testing::{FaultPlan, FaultPoint, Faulty};
    let script = FaultPlan::default();
    let engine = open(AnyStore::Faulty(Faulty::new(Memory::new(), script.clone())), LIMITS).await;
    engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    let c = container(&engine, "c", &["/pk"], 4).await;
    let before = dump(&engine);
    script.fail(FaultPoint::Commit, 0);
    let dropped = engine.catalog.delete_container(c.rid).await;
    assert_eq!(dropped.unwrap_err().kind, Kind::Unavailable);
    let created = engine.catalog.create_database("more", ThroughputRequest::Unspecified).await;
    assert_eq!(created.err().unwrap().kind, Kind::Unavailable);
    assert_eq!(dump(&engine), before);
    assert_eq!(kind(read(&engine, &admit(&engine, "c"), "1", "a").await), Kind::NotFound, "reads still work");
}

#[tokio::test]
async fn a_container_needs_existing_encryption_keys() {
    let engine = account().await;
    let database = find_database(&engine, "db").unwrap().rid;
    let encrypted = |key: &str| {
        let body = format!(
            r#"{{"id":"{key}","partitionKey":{{"paths":["/pk"]}},"clientEncryptionPolicy":{{"includedPaths":[{{"path":"/ssn","clientEncryptionKeyId":"{key}","encryptionType":"Randomized","encryptionAlgorithm":"AEAD_AES_256_CBC_HMAC_SHA256"}}]}}}}"#
        );
        let definition = ContainerDefinition::create(&parse(&body)).unwrap();
        engine
            .catalog
            .create_container(database, NewContainer { definition, throughput: ThroughputRequest::Unspecified })
    };
    let refused = encrypted("k1").await.map(drop).unwrap_err();
    assert_eq!(refused.to_string(), "ClientEncryptionKey with id '[k1]' does not exist.");
    engine.catalog.put_encryption_key(database, "k1", Object::new(), None).await.unwrap();
    encrypted("k1").await.unwrap();
    assert!(encrypted("k2").await.is_err());
}

fn lsns(container: &Container) -> Vec<u64> {
    container.partitions.iter().map(|partition| partition.lsn()).collect()
}

/// Clients keep session tokens by the names of containers, which tests delete and create again.
#[tokio::test]
async fn lsns_of_a_new_container_continue_after_those_of_deleted_ones() {
    let dir = tempfile::tempdir().unwrap();
    {
        let engine = open(disk(dir.path()), LIMITS).await;
        engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
        engine.catalog.create_database("other", ThroughputRequest::Unspecified).await.unwrap();
        let c = container(&engine, "c", &["/pk"], 4).await;
        assert_eq!(lsns(&c), [1; 4], "the container itself is one LSN");
        for n in 0..5 {
            create(&engine, &admit(&engine, "c"), &n.to_string(), "one").await.result.unwrap();
        }
        let mut reached = lsns(&c);
        reached.sort_unstable();
        assert_eq!(reached, [1, 1, 1, 6]);
        engine.catalog.delete_container(c.rid).await.unwrap();
        engine.close().await;
    }
    let engine = open(disk(dir.path()), LIMITS).await;
    let again = container(&engine, "c", &["/pk"], 4).await;
    assert_eq!(lsns(&again), [7; 4], "after a restart, too");
    let elsewhere = try_container(&engine, "other", "c", &["/pk"], ThroughputRequest::Unspecified).await.unwrap();
    assert!(lsns(&elsewhere).iter().all(|lsn| *lsn == 1), "only containers of the same database count");
    engine.catalog.delete_container(again.rid).await.unwrap();
    let short_lived = container(&engine, "c", &["/pk"], 4).await;
    assert_eq!(lsns(&short_lived), [8; 4]);
    assert_sound(&engine).await;
}

/// No write is acknowledged with an LSN above the mark that its container leaves behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_of_a_container_stop_when_its_deletion_begins() {
    for _ in 0..20 {
        let engine = account().await;
        let c = container(&engine, "c", &["/pk"], 4).await;
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (engine, at) = (engine.clone(), admit(&engine, "c"));
                tokio::spawn(async move {
                    let mut last = 0;
                    for n in 0.. {
                        match create(&engine, &at, &format!("{writer} {n}"), "one").await.result {
                            Ok(written) => last = written.lsn,
                            Err(error) => {
                                assert_eq!(error.kind, Kind::OwnerNotFound);
                                break;
                            }
                        }
                    }
                    last
                })
            })
            .collect();
        tokio::task::yield_now().await;
        engine.catalog.delete_container(c.rid).await.unwrap();
        let again = container(&engine, "c", &["/pk"], 4).await;
        for writer in writers {
            assert!(lsns(&again)[0] > writer.await.unwrap());
        }
    }
}
