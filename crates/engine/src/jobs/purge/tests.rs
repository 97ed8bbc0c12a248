//! Expired items through every read path, before and after they are purged.

use super::*;
use crate::catalog::NewContainer;
use crate::testing::*;
use crate::*;
use pleiad_model::env::ManualEnv;
use pleiad_model::policy::{ChangeFeedPolicy, ContainerDefinition};
use pleiad_model::{Kind, Object, Value};

const START_MS: u64 = 1_700_000_000_000;

struct World {
    engine: Arc<Engine>,
    env: Arc<ManualEnv>,
}

/// An account with a container `c` that has this default TTL.
async fn world(default_ttl: Option<i32>) -> World {
    let env = Arc::new(ManualEnv::at(START_MS, 1));
    let later = SyncPolicy::SyncedWithin(Duration::from_secs(3600));
    let engine = Engine::open(pleiad_storage::Memory::new().into(), later, LIMITS, env.clone()).await.unwrap();
    let database = engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
    let change_feed = Some(ChangeFeedPolicy { retention_minutes: 60 });
    let definition = ContainerDefinition { default_ttl, change_feed, ..definition("c", &["/pk"]) };
    let new = NewContainer { definition, throughput: ThroughputRequest::Manual(400) };
    engine.catalog.create_container(database.rid, new).await.unwrap();
    World { engine: Arc::new(engine), env }
}

impl World {
    fn at(&self) -> Admitted {
        admit(&self.engine, "c")
    }

    fn advance_s(&self, seconds: u64) {
        self.env.advance_ms(seconds * 1000);
    }

    async fn put(&self, verb: Verb, id: &str, ttl: Option<i64>) -> EngineResponse<Written> {
        let body = Object::new().with("id", id).with("pk", "a");
        let body = ttl.into_iter().fold(body, |body, ttl| body.with("ttl", ttl));
        self.engine.create_item(&self.at(), Some(&pk("a")), verb, Value::from(body), &WriteOptions::default()).await
    }

    async fn set_default_ttl(&self, default_ttl: Option<i32>) {
        let replace = |old: &ContainerDefinition| Ok(ContainerDefinition { default_ttl, ..old.clone() });
        self.engine.catalog.replace_container(self.at().container().rid, replace).await.unwrap();
    }

    /// The ids of the live items; checks that every read path returns the same ones.
    async fn ids(&self) -> Vec<String> {
        let (at, quota) = (self.at(), PageLimit { items: 100, bytes: 1 << 20 });
        let page = self.engine.list_items(&at, &FeedRange::Container, None, quota, None).await.result.unwrap();
        let mut listed: Vec<String> = page.records.iter().map(|record| record.id().to_owned()).collect();
        listed.sort();
        let request = ChangeRequest {
            mode: ChangeMode::LatestVersion,
            scope: FeedRange::PartitionKey(pk("a")),
            from: ChangeFrom::Beginning,
            since_s: None,
            filter: None,
            limit: quota,
        };
        let page = self.engine.change_feed(&at, &request, None).await.result.unwrap();
        assert_eq!(page.changes.len(), listed.len(), "the change feed returns the live items");
        for (text, want) in [
            ("SELECT VALUE COUNT(1) FROM c", vec![listed.len().to_string()]),
            ("SELECT VALUE c.id FROM c", quoted(&listed)),
            ("SELECT VALUE c.id FROM c WHERE c.pk = 'a'", quoted(&listed)),
            ("SELECT VALUE c.id FROM c ORDER BY c.id", quoted(&listed)),
        ] {
            assert_eq!(self.query(text).await, want, "{text}");
        }
        for id in ["x", "y", "z"] {
            let found = read(&self.engine, &at, id, "a").await.result.is_ok();
            assert_eq!(found, listed.iter().any(|there| there == id), "{id}");
        }
        listed
    }

    async fn query(&self, text: &str) -> Vec<String> {
        let query = ItemQuery {
            text: text.to_owned(),
            parameters: Parameters::default(),
            scope: FeedRange::Container,
            cross_partition: CrossPartition::ByServer,
            size: PageSize { rows: 100, bytes: 1 << 20 },
            from: None,
            resume: None,
            report: crate::ReportOptions::default(),
            enable_scan: false,
        };
        let page = self.engine.query_items(&self.at(), query, None).await.result.unwrap();
        let mut joined = Vec::new();
        page.rows.join(&mut joined);
        let text = String::from_utf8(joined).unwrap();
        let mut rows: Vec<String> = text.split(',').filter(|row| !row.is_empty()).map(str::to_owned).collect();
        rows.sort();
        rows
    }

    async fn purge(&self, scans: &mut PurgeScans) {
        purge_account(&self.engine.catalog.current().upgrade().unwrap(), scans, self.env.as_ref(), async || true).await;
    }

    /// The number of stored items, expired or not.
    fn stored_items(&self) -> u64 {
        self.at().container().items()
    }
}

fn quoted(ids: &[String]) -> Vec<String> {
    ids.iter().map(|id| format!("\"{id}\"")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_combination_of_default_ttl_and_item_ttl() {
    // The second at which the items without a ttl, with -1 and with 5 expire.
    for (default_ttl, expires_at) in [
        (None, [None, None, None]),
        (Some(-1), [None, None, Some(6)]),
        (Some(10), [Some(11), None, Some(6)]),
        (Some(i32::MAX), [None, None, Some(6)]),
    ] {
        let world = world(default_ttl).await;
        for (id, ttl) in [("x", None), ("y", Some(-1)), ("z", Some(5))] {
            world.put(Verb::Create, id, ttl).await.result.unwrap();
        }
        for second in 0..13 {
            let there = ["x", "y", "z"]
                .into_iter()
                .zip(expires_at)
                .filter(|(_, expires_at)| expires_at.is_none_or(|at| second < at));
            let want: Vec<&str> = there.map(|(id, _)| id).collect();
            assert_eq!(world.ids().await, want, "default {default_ttl:?} after {second} s");
            world.advance_s(1);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_default_ttl_takes_effect_immediately() {
    let world = world(None).await;
    world.put(Verb::Create, "x", None).await.result.unwrap();
    world.put(Verb::Create, "y", Some(100)).await.result.unwrap();
    world.advance_s(50);
    assert_eq!(world.ids().await, ["x", "y"]);
    world.set_default_ttl(Some(20)).await;
    assert_eq!(world.ids().await, ["y"]);
    world.set_default_ttl(Some(80)).await;
    assert_eq!(world.ids().await, ["x", "y"], "an expired item that was not purged is live again");
    world.advance_s(60);
    assert!(world.ids().await.is_empty());
    world.set_default_ttl(None).await;
    assert_eq!(world.ids().await, ["x", "y"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_items_do_not_block_writes() {
    let world = world(Some(10)).await;
    let first = world.put(Verb::Create, "x", None).await.result.unwrap().record.unwrap();
    world.put(Verb::Create, "y", Some(-1)).await.result.unwrap();
    world.advance_s(11);
    let gone = delete(&world.engine, &world.at(), "x", "a").await;
    assert_eq!(kind(gone), Kind::NotFound);
    let second = world.put(Verb::Create, "x", None).await.result.unwrap();
    assert!(second.created && second.record.unwrap().docnum != first.docnum, "a new item with a new _rid");
    assert_eq!((world.ids().await, world.stored_items()), (vec!["x".to_owned(), "y".to_owned()], 2));

    world.advance_s(11);
    assert!(world.put(Verb::Upsert, "x", None).await.result.unwrap().created);
    world.advance_s(11);
    let body = Object::new().with("id", "x").with("pk", "a");
    let (at, options) = (world.at(), WriteOptions::default());
    let renamed = world.engine.replace_item(&at, Some(&pk("a")), Target::Named("y"), body.into(), &options).await;
    renamed.result.unwrap();
    assert_eq!(
        (world.ids().await, world.stored_items()),
        (vec!["x".to_owned()], 1),
        "the name of an expired item is free"
    );
    assert_sound(&world.engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_restarts_the_time_to_live() {
    let world = world(Some(10)).await;
    world.put(Verb::Create, "x", None).await.result.unwrap();
    world.advance_s(10);
    world.put(Verb::Upsert, "x", None).await.result.unwrap();
    world.advance_s(10);
    assert_eq!(world.ids().await, ["x"]);
    world.advance_s(1);
    assert!(world.ids().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_items_are_purged_and_reported_as_expired() {
    let world = world(Some(10)).await;
    for n in 0..600 {
        world.put(Verb::Create, &n.to_string(), (n % 3 == 0).then_some(-1)).await.result.unwrap();
    }
    let mut scans = PurgeScans::default();
    world.purge(&mut scans).await;
    assert_eq!(world.stored_items(), 600);
    world.advance_s(11);
    world.purge(&mut scans).await;
    assert_eq!(world.stored_items(), 200);
    assert_eq!(world.query("SELECT VALUE COUNT(1) FROM c").await, ["200"]);
    assert_sound(&world.engine).await;

    let request = ChangeRequest {
        mode: ChangeMode::AllVersions,
        scope: FeedRange::PartitionKey(pk("a")),
        from: ChangeFrom::Lsn(601),
        since_s: None,
        filter: None,
        limit: PageLimit { items: 1000, bytes: 1 << 24 },
    };
    let page = world.engine.change_feed(&world.at(), &request, None).await.result.unwrap();
    let ChangedItems::Versions(versions) = page.changes else { panic!("the request was for versions") };
    assert_eq!(versions.len(), 400);
    assert!(versions.iter().all(|version| version.kind == VersionKind::Expire && version.previous.is_some()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_is_scanned_again_only_when_due() {
    let world = world(Some(10)).await;
    world.put(Verb::Create, "x", None).await.result.unwrap();
    let mut scans = PurgeScans::default();
    world.purge(&mut scans).await;
    let at = world.at();
    let partition = &at.container().partitions
        [at.container().map.locate(&pk("a").effective(at.container().schema.key.as_ref().unwrap()))];
    let due = |now_ms| scans.0[&partition.range.shard].is_due(at.container(), partition, now_ms);
    assert!(!due(START_MS + 10_999) && due(START_MS + 11_000), "due when the first item expires");
    world.put(Verb::Create, "y", None).await.result.unwrap();
    assert!(scans.0[&partition.range.shard].is_due(at.container(), partition, START_MS), "due after a write");
}
