//! What is charged, in which order the checks come, and that clients are told what their partitions were charged.

use pleiad_model::resource_id::{ContainerRid, ItemRid};
use pleiad_model::{Consistency, Object, Value};
use pleiad_partition::key::LogicalKey;
use pleiad_partition::{Partition, WriteError};
use pleiad_storage::testing::{FaultPlan, FaultPoint, Faulty};
use pleiad_storage::{AnyStore, Memory};

use super::*;
use crate::write_retry::WriteOutcome;

const C: ContainerName<'static> = ContainerName::Named { database: "db", container: "c" };

fn paid_ru(at: &Admitted) -> f64 {
    at.container().partitions.iter().map(|partition| partition.governor.usage().total_ru()).sum()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.02
}

/// An item that is more expensive to read than a missing one.
fn large_item(id: &str, key: &str) -> Value {
    Object::new().with("id", id).with("pk", key).with("text", "x".repeat(100 << 10)).into()
}

async fn create_large(engine: &Engine, at: &Admitted, id: &str, key: &str) -> Record {
    let (body, options) = (large_item(id, key), WriteOptions::default());
    let written = engine.create_item(at, Some(&pk(key)), Verb::Create, body, &options).await;
    written.result.unwrap().record.unwrap()
}

/// Every request at a partition is throttled from now on.
fn throttle(engine: &Engine, partition: &Partition) {
    let (kind, delay_ms) = (FaultKind::Throttled, 1);
    let fault = InjectedFault { kind, delay_ms, requests_left: None, until_ms: None };
    engine.set_fault(&at_container(engine, C).unwrap(), partition.range.id, fault).unwrap();
}

fn partition_of(at: &Admitted, key: &str) -> Arc<Partition> {
    let epk = pk(key).effective(at.container().schema.key.as_ref().unwrap());
    at.container().partition(at.container().map.locate(&epk)).unwrap().clone()
}

#[tokio::test]
async fn a_known_version_is_charged_as_a_miss_and_told_so() {
    let engine = crate::testing::account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c").reading_at(Consistency::Strong);
    let etag = create_large(&engine, &at, "1", "a").await.etag().to_string();
    for (known, is_unchanged) in [(None, false), (Some("other"), false), (Some(etag.as_str()), true)] {
        let before_ru = paid_ru(&at);
        let answer = engine.read_item(&at, Some(&pk("a")), Target::Named("1"), known, None).await;
        assert_eq!(answer.result.unwrap().is_unchanged, is_unchanged);
        assert!(near(paid_ru(&at) - before_ru, answer.charge_ru), "{known:?}: {}", answer.charge_ru);
        assert_eq!(answer.charge_ru == 2.0, is_unchanged, "{known:?}: {}", answer.charge_ru);
    }
}

#[tokio::test]
async fn a_retried_query_keeps_its_consistency_level() {
    let engine = crate::testing::account().await;
    let c = container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c").reading_at(Consistency::Strong);
    create(&engine, &at, "1", "a").await.result.unwrap();
    let query = || item_query("SELECT VALUE c.id FROM c WHERE c.id = '1'", None);
    let strong_ru = engine.query_items(&at, query(), None).await.charge_ru;
    let session_ru = engine.query_items(&admit(&engine, "c"), query(), None).await.charge_ru;
    assert!(near(strong_ru, 2.0 * session_ru), "{strong_ru} and {session_ru}");
    let policy = parse(
        r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
            "indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/other/?"}]}}"#,
    );
    engine.catalog.replace_container(c.rid, |old| old.replace(&policy)).await.unwrap();
    create(&engine, &admit(&engine, "c"), "2", "a").await.result.unwrap();
    // Planned with the former policy, and again with the current one.
    let before_ru = paid_ru(&at);
    let retried = engine.query_items(&at, query(), None).await;
    assert_eq!(retried.result.unwrap().rows.len(), 1);
    assert!(near(paid_ru(&at) - before_ru, retried.charge_ru));
    // The second item costs a little; a session read would cost half.
    assert!((retried.charge_ru - strong_ru).abs() < 0.1, "{} instead of {strong_ru}", retried.charge_ru);
}

#[tokio::test]
async fn a_list_that_fails_is_told_what_it_has_read() {
    let faults = FaultPlan::default();
    let (store, env) = (Faulty::new(Memory::new(), faults.clone()), Arc::new(ManualEnv::at(1_700_000_000_000, 1)));
    // Without background work, which reads as well.
    let engine = Engine::open(AnyStore::Faulty(store), SyncPolicy::Synced, LIMITS, env).await.unwrap();
    engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    let first = keys_by_range(&at, many_keys(40))[&0][0].clone();
    create_large(&engine, &at, "1", &first).await;
    let limit = PageLimit { items: 10, bytes: 1 << 20 };
    let mut failed_ru = Vec::new();
    for after in 0..12 {
        let before_ru = paid_ru(&at);
        faults.fail(FaultPoint::Read, after);
        let answer = engine.list_items(&at, &FeedRange::Container, None, limit, None).await;
        faults.restart();
        assert!(near(paid_ru(&at) - before_ru, answer.charge_ru), "after {after} reads: {}", answer.charge_ru);
        failed_ru.extend(answer.result.is_err().then_some(answer.charge_ru));
    }
    // The large item of the first partition was read before a later partition failed.
    assert!(failed_ru.iter().any(|told_ru| *told_ru > 5.0), "{failed_ru:?}");
}

#[tokio::test]
async fn looking_for_an_item_after_a_full_page_is_admitted_and_charged() {
    let (engine, env) = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    let keys = keys_by_range(&at, many_keys(40));
    for key in [&keys[&0][0], &keys[&1][0]] {
        create(&engine, &at, "1", key).await.result.unwrap();
    }
    env.advance_ms(1000);
    let list = || engine.list_items(&at, &FeedRange::Container, None, PageLimit { items: 1, bytes: 1 << 20 }, None);
    let before_ru = paid_ru(&at);
    let page = list().await;
    assert!(page.result.unwrap().next.is_some());
    assert!(near(page.charge_ru, 2.0) && near(paid_ru(&at) - before_ru, 2.0), "{}", page.charge_ru);
    // A partition that cannot be asked may have an item.
    let probed = at.container().partition(1).unwrap().clone();
    throttle(&engine, &probed);
    let requests = probed.governor.usage().requests();
    assert!(list().await.result.unwrap().next.is_some());
    assert_eq!(probed.governor.usage().requests(), requests);
}

#[tokio::test]
async fn a_truncated_resume_key_is_restored_at_partitions_that_admit_the_query() {
    let engine = crate::testing::account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    let key = keys_by_range(&at, many_keys(40))[&3][0].clone();
    for n in 0..3 {
        create_large(&engine, &at, &n.to_string(), &key).await;
    }
    let page = |from| ItemQuery {
        scope: FeedRange::PartitionKey(pk(&key)),
        size: PageSize { rows: 1, bytes: 1 << 20 },
        ..item_query("SELECT VALUE c.id FROM c ORDER BY c.text", from)
    };
    let first = engine.query_items(&at, page(None), None).await.result.unwrap();
    let cursor = first.next.unwrap().shortened(100);
    let requests = || at.container().partitions.iter().map(|one| one.governor.usage().requests()).collect::<Vec<_>>();
    let (before, before_ru) = (requests(), paid_ru(&at));
    let second = engine.query_items(&at, page(Some(cursor.clone())), None).await;
    assert_eq!(second.result.unwrap().rows.len(), 1);
    assert!(near(paid_ru(&at) - before_ru, second.charge_ru), "{}", second.charge_ru);
    assert!(requests().iter().zip(&before).all(|(now, before)| now > before), "the item is looked for everywhere");
    throttle(&engine, at.container().partition(0).unwrap());
    assert!(is_throttled(&engine.query_items(&at, page(Some(cursor)), None).await));
}

#[tokio::test]
async fn an_item_is_looked_up_by_rid_only_where_the_request_is_admitted() {
    let engine = crate::testing::account().await;
    let c = container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    let docnum = create(&engine, &at, "1", "a").await.result.unwrap().record.unwrap().docnum;
    let (key, options) = (pk("a"), WriteOptions::default());
    let rid = |docnum| Target::Rid(ItemRid { container: c.rid, docnum });
    let before_ru = paid_ru(&at);
    let missing = engine.read_item(&at, Some(&key), rid(docnum + 1), None, None).await;
    assert!(missing.result.is_err() && near(paid_ru(&at) - before_ru, 1.0) && missing.charge_ru == 1.0);
    throttle(&engine, &partition_of(&at, "a"));
    for docnum in [docnum, docnum + 1] {
        assert!(is_throttled(&engine.read_item(&at, Some(&key), rid(docnum), None, None).await));
        assert!(is_throttled(&engine.delete_item(&at, Some(&key), rid(docnum), &Precondition::None).await));
        assert!(is_throttled(&engine.replace_item(&at, Some(&key), rid(docnum), item("1", "a"), &options).await));
    }
}

/// Rejected before any partition is asked, or after attempts that were all waived.
#[tokio::test]
async fn a_request_that_no_partition_is_charged_for_is_told_no_charge() {
    let engine = crate::testing::account().await;
    let c = container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    create(&engine, &at, "1", "a").await.result.unwrap();
    let (key, none, options) = (pk("a"), Precondition::None, WriteOptions::default());
    let elsewhere = Target::Rid(ItemRid { container: ContainerRid { number: c.rid.number + 1, ..c.rid }, docnum: 1 });
    let limit = PageLimit { items: 10, bytes: 1 << 20 };
    let logical = LogicalKey::new(at.container().schema.key.as_ref(), &key);
    let always_outdated = engine.with_current_partition(&at, &logical, |target| async move {
        (target.admission, Err::<WriteOutcome<()>, _>(WriteError::Outdated))
    });
    let before_ru = paid_ru(&at);
    let told_ru = [
        engine.read_item(&at, None, Target::Named("1"), None, None).await.charge_ru,
        engine.read_item(&at, Some(&key), elsewhere, None, None).await.charge_ru,
        engine.create_item(&at, Some(&pk("b")), Verb::Create, item("2", "a"), &options).await.charge_ru,
        engine.create_item(&at, Some(&key), Verb::Create, Value::Null, &options).await.charge_ru,
        engine.delete_item(&at, None, Target::Named("1"), &none).await.charge_ru,
        engine.run_batch(&at, Some(&key), &[], None).await.charge_ru,
        engine.list_items(&at, &FeedRange::PartitionKeyRange(99), None, limit, None).await.charge_ru,
        engine.query_items(&at, item_query("SELECT nonsense FROM", None), None).await.charge_ru,
        engine.delete_by_partition_key(&at, None).await.charge_ru,
        always_outdated.await.charge_ru,
    ];
    assert_eq!((told_ru, paid_ru(&at) - before_ru), ([0.0; 10], 0.0));
    let now_ms = engine.now_ms();
    let is_settled = |one: &Arc<Partition>| near(one.governor.used_ru(now_ms), one.governor.usage().total_ru());
    assert!(at.container().partitions.iter().all(is_settled), "a reservation is left");
}

#[tokio::test]
async fn a_query_that_reads_no_partition_is_charged_at_one() {
    let engine = crate::testing::account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    for text in ["SELECT VALUE 1", "SELECT * FROM c WHERE c.pk = 'a' AND c.pk = 'b'"] {
        let before_ru = paid_ru(&at);
        let answer = engine.query_items(&at, item_query(text, None), None).await;
        answer.result.unwrap();
        assert!(answer.charge_ru > 2.0 && near(paid_ru(&at) - before_ru, answer.charge_ru), "{text}");
    }
    throttle(&engine, at.container().partition(0).unwrap());
    assert!(is_throttled(&engine.query_items(&at, item_query("SELECT VALUE 1", None), None).await));
}

/// Each kind of request that takes a session token: its outcome without the value.
async fn with_session(engine: &Engine, at: &Admitted, session: &SessionToken) -> Vec<(&'static str, Result<()>, f64)> {
    fn told<T>(name: &'static str, answer: EngineResponse<T>) -> (&'static str, Result<()>, f64) {
        (name, answer.result.map(drop), answer.charge_ru)
    }
    let (key, limit, session) = (pk("a"), PageLimit { items: 10, bytes: 1 << 20 }, Some(session));
    let scope = FeedRange::PartitionKey(key.clone());
    let changes = ChangeRequest {
        mode: ChangeMode::LatestVersion,
        scope: scope.clone(),
        from: ChangeFrom::Beginning,
        since_s: None,
        filter: None,
        limit,
    };
    let since = ChangeRequest { since_s: Some(1), ..changes.clone() };
    let query = |text| ItemQuery { scope: scope.clone(), ..item_query(text, None) };
    let operation = BatchOperation {
        action: Ok(BatchAction::Read),
        id: Some("1".to_owned()),
        key: None,
        options: WriteOptions::default(),
        known_etag: None,
    };
    vec![
        told("read", engine.read_item(at, Some(&key), Target::Named("1"), None, session).await),
        told("list", engine.list_items(at, &scope, None, limit, session).await),
        told("changes", engine.change_feed(at, &changes, session).await),
        told("changes from a time", engine.change_feed(at, &since, session).await),
        told("query", engine.query_items(at, query("SELECT * FROM c"), session).await),
        told("sorted query", engine.query_items(at, query("SELECT * FROM c ORDER BY c.id"), session).await),
        told("batch", engine.run_batch(at, Some(&key), std::slice::from_ref(&operation), session).await),
    ]
}

#[tokio::test]
async fn admission_comes_before_the_session_and_a_session_not_available_costs_a_miss() {
    let engine = crate::testing::account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    let served_by = create(&engine, &at, "1", "a").await.served_by.unwrap();
    let ahead = SessionToken(vec![(served_by.range, served_by.lsn + 1)]);
    let before_ru = paid_ru(&at);
    let answers = with_session(&engine, &at, &ahead).await;
    assert!(near(paid_ru(&at) - before_ru, answers.len() as f64), "{}", paid_ru(&at) - before_ru);
    for (name, result, charge_ru) in answers {
        assert_eq!((result.unwrap_err().kind, charge_ru), (Kind::SessionNotAvailable, 1.0), "{name}");
    }
    throttle(&engine, &partition_of(&at, "a"));
    for (name, result, charge_ru) in with_session(&engine, &at, &ahead).await {
        let kind = result.unwrap_err().kind;
        assert!(matches!(kind, Kind::Throttled { .. }) && charge_ru == 0.0, "{name}: {kind:?}, {charge_ru}");
    }
}
