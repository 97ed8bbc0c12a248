//! Requests that end early: every operation is dropped at every point at which it waits, and meets every read and
//! commit that can fail. However it ends, no reservation is left, and a write that happened is paid for.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use pleiad_model::Error;
use pleiad_model::patch::Patch;
use pleiad_model::resource_id::{ItemRid, ScriptKind};
use pleiad_partition::Partition;
use pleiad_storage::testing::{FaultPlan, FaultPoint, Faulty};
use pleiad_storage::{AnyStore, Memory};

use super::*;

/// Keys with an item `1` each, in several partitions.
const KEYS: usize = 12;
/// The key of the operations that address one.
const KEY: &str = "key0";
/// No operation waits more often.
const POLLS_MAX: usize = 2_000;
const DEADLINE: Duration = Duration::from_secs(20);

struct World {
    engine: Engine,
    at: Admitted,
    faults: FaultPlan,
    /// What had been charged when the world was ready.
    before_ru: f64,
    docnum: u64,
}

/// The charge that a client is told, and whether its request succeeded.
#[derive(Debug)]
struct Told {
    is_ok: bool,
    charge_ru: f64,
}

impl<T> From<EngineResponse<T>> for Told {
    fn from(answer: EngineResponse<T>) -> Self {
        Told { is_ok: answer.result.is_ok(), charge_ru: answer.charge_ru }
    }
}

type Running<'w> = Pin<Box<dyn Future<Output = Told> + Send + 'w>>;

struct Operation {
    name: &'static str,
    start: for<'w> fn(&'w World) -> Running<'w>,
}

macro_rules! operations {
    ($($name:literal => |$world:ident| $run:expr;)*) => {
        [$(Operation { name: $name, start: |$world| Box::pin(async move { Told::from($run.await) }) }),*]
    };
}

fn operations() -> impl IntoIterator<Item = Operation> {
    operations! {
        "read" => |world| read(&world.engine, &world.at, "1", KEY);
        "read by _rid" => |world| world.engine.read_item(&world.at, Some(&pk(KEY)), world.rid(), None, None);
        "read of a missing item" => |world| read(&world.engine, &world.at, "2", KEY);
        "create" => |world| create(&world.engine, &world.at, "2", KEY);
        "create of an existing item" => |world| create(&world.engine, &world.at, "1", KEY);
        "upsert" => |world| world.write(Verb::Upsert);
        "replace" => |world| world.replace(Target::Named("1"));
        "replace by _rid" => |world| world.replace(world.rid());
        "patch" => |world| world.patch(Target::Named("1"));
        "patch by _rid" => |world| world.patch(world.rid());
        "delete" => |world| delete(&world.engine, &world.at, "1", KEY);
        "delete by _rid" =>
            |world| world.engine.delete_item(&world.at, Some(&pk(KEY)), world.rid(), &Precondition::None);
        "delete by partition key" => |world| world.engine.delete_by_partition_key(&world.at, Some(&pk(KEY)));
        "batch" => |world| world.batch();
        "bulk" => |world| world.bulk(true);
        "bulk that stops at a failure" => |world| world.bulk(false);
        "list" => |world| world.list(100);
        "list that ends at a boundary" => |world| world.list(world.first_partition_items());
        "change feed" => |world| world.changes(None);
        "change feed from a time" => |world| world.changes(Some(1));
        "query" => |world| world.query("SELECT * FROM c WHERE c.id = '1'");
        "sorted query" => |world| world.query("SELECT VALUE c.pk FROM c ORDER BY c.pk");
        "stored procedure" => |world| world.procedure();
        "write with triggers" => |world| world.triggered();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_request_leaves_no_reservation_and_pays_for_what_it_wrote() {
    for operation in operations() {
        let (full_ru, lsns) = completed(&operation).await;
        for polls in 0..=POLLS_MAX {
            assert!(polls < POLLS_MAX, "{} does not end", operation.name);
            let world = World::new().await;
            let (name, before) = (operation.name, world.lsns());
            world.faults.suspend_reads();
            let told = poll_and_drop((operation.start)(&world), polls).await;
            let charged_ru = world.settled(&format!("{name}, dropped after {polls} polls")).await;
            let wrote = world.lsns() != before;
            if let Some(told) = told {
                assert!(told.is_ok || name.contains("missing") || name.contains("existing"), "{name}: {told:?}");
                assert!(
                    near(told.charge_ru, charged_ru) && near(charged_ru, full_ru),
                    "{name}: {told:?}, {charged_ru}"
                );
                break;
            }
            assert!(charged_ru <= full_ru + 0.01, "{name}, {polls} polls: {charged_ru} of {full_ru}");
            if wrote && world.lsns() == lsns {
                assert!(near(charged_ru, full_ru), "{name} wrote, {polls} polls: {charged_ru} of {full_ru}");
            }
            if polls == 0 {
                assert!(!wrote && charged_ru == 0.0, "{name} has not begun");
            }
            world.engine.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_request_is_told_what_its_partitions_were_charged() {
    for operation in operations() {
        for point in [FaultPoint::Read, FaultPoint::Commit, FaultPoint::CommitApplied] {
            for after in 0.. {
                assert!(after < POLLS_MAX, "{} does not end", operation.name);
                let world = World::new().await;
                world.faults.fail(point, after);
                let told = (operation.start)(&world).await;
                let context = format!("{}, {point:?} {after} fails", operation.name);
                let charged_ru = world.settled(&context).await;
                assert!(near(told.charge_ru, charged_ru), "{context}: told {told:?}, charged {charged_ru}");
                let is_reached = !world.faults.is_pending();
                world.engine.close().await;
                if !is_reached {
                    break;
                }
            }
        }
    }
}

/// The charge of a whole run, and the LSNs that it leaves.
async fn completed(operation: &Operation) -> (f64, Vec<u64>) {
    let world = World::new().await;
    let told = (operation.start)(&world).await;
    let charged_ru = world.settled(operation.name).await;
    assert!(near(told.charge_ru, charged_ru), "{}: told {told:?}, charged {charged_ru}", operation.name);
    let lsns = world.lsns();
    world.engine.close().await;
    (charged_ru, lsns)
}

/// Polls a future that many times, each time when it was woken, and drops it; `Some` if it has ended by then.
async fn poll_and_drop<T>(mut future: Pin<Box<dyn Future<Output = T> + Send + '_>>, polls: usize) -> Option<T> {
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Charges are settled in hundredths, partition by partition.
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.05
}

/// No script of this test continues a query.
struct NoCursors;

impl CursorCodec for NoCursors {
    fn write(&self, _: &QueryCursor) -> String {
        String::new()
    }

    fn read(&self, _: &str) -> Result<QueryCursor> {
        Err(Error::invalid("no cursor"))
    }
}

const PROCEDURE: &str = r#"{"id":"twice","body":"function () {
    __.createDocument(__.getSelfLink(), {id: 'x', pk: 'key0'}, (e) => { if (e) throw e;
        __.queryDocuments(__.getSelfLink(), 'SELECT * FROM c', (e, docs) => { if (e) throw e;
            __.createDocument(__.getSelfLink(), {id: 'y', pk: 'key0', n: docs.length});
        });
    });
}"}"#;
const TRIGGER: &str = r#"{"id":"log","triggerType":"Post","triggerOperation":"All","body":"function () {
    __.createDocument(__.getSelfLink(), {id: 'log', pk: 'key0'});
}"}"#;

impl World {
    async fn new() -> World {
        let faults = FaultPlan::default();
        let store = Faulty::new(Memory::new(), faults.clone());
        let env = Arc::new(ManualEnv::at(1_700_000_000_000, 1));
        // No background work, which would meet the faults that the operations should meet.
        let engine = Engine::open(AnyStore::Faulty(store), SyncPolicy::Synced, LIMITS, env).await.unwrap();
        engine.catalog.create_database("db", ThroughputRequest::Unspecified).await.unwrap();
        let rid = container(&engine, "c", &["/pk"], 4).await.rid;
        for (kind, text) in [(ScriptKind::StoredProcedure, PROCEDURE), (ScriptKind::Trigger, TRIGGER)] {
            let text = text.replace('\n', " ");
            let definition = ScriptDefinition::parse(kind, &parse(&text)).unwrap();
            engine.catalog.put_script(rid, kind, definition, PutMode::Create).await.unwrap();
        }
        let at = admit(&engine, "c");
        for key in many_keys(KEYS) {
            create(&engine, &at, "1", &key).await.result.unwrap();
        }
        let docnum = read(&engine, &at, "1", KEY).await.result.unwrap().docnum;
        let mut world = World { engine, at, faults, before_ru: 0.0, docnum };
        world.before_ru = world.settled("the world").await;
        world
    }

    fn partitions(&self) -> &[Arc<Partition>] {
        &self.at.container().partitions
    }

    fn lsns(&self) -> Vec<u64> {
        self.partitions().iter().map(|partition| partition.shard_state().lsn).collect()
    }

    /// What the partitions charged, as soon as they hold no reservation and all writes are durable.
    async fn settled(&self, context: &str) -> f64 {
        let (until, now_ms) = (Instant::now() + DEADLINE, self.engine.now_ms());
        let paid_ru = |partition: &Arc<Partition>| partition.governor.usage().total_ru();
        let is_settled = |partition: &Arc<Partition>| near(partition.governor.used_ru(now_ms), paid_ru(partition));
        while !self.partitions().iter().all(is_settled) {
            assert!(Instant::now() < until, "{context}: a reservation is left");
            tokio::task::yield_now().await;
            std::thread::sleep(Duration::from_millis(1));
        }
        self.partitions().iter().map(paid_ru).sum::<f64>() - self.before_ru
    }

    fn rid(&self) -> Target<'static> {
        Target::Rid(ItemRid { container: self.at.container().rid, docnum: self.docnum })
    }

    fn first_partition_items(&self) -> usize {
        keys_by_range(&self.at, many_keys(KEYS)).first_key_value().unwrap().1.len()
    }

    async fn write(&self, verb: Verb) -> EngineResponse<Written> {
        self.engine.create_item(&self.at, Some(&pk(KEY)), verb, item("1", KEY), &WriteOptions::default()).await
    }

    async fn replace(&self, target: Target<'_>) -> EngineResponse<Written> {
        let body = parse(r#"{"id":"1","pk":"key0","n":2}"#);
        self.engine.replace_item(&self.at, Some(&pk(KEY)), target, body, &WriteOptions::default()).await
    }

    async fn patch(&self, target: Target<'_>) -> EngineResponse<Written> {
        let patch = Patch::parse(&parse(r#"{"operations":[{"op":"add","path":"/n","value":1}]}"#)).unwrap();
        self.engine.patch_item(&self.at, Some(&pk(KEY)), target, &patch, &Precondition::None).await
    }

    async fn batch(&self) -> EngineResponse<Vec<BatchOperationResult>> {
        let operations = [
            operation(BatchAction::Create(item("2", KEY)), None, KEY),
            operation(BatchAction::Read, Some("1"), KEY),
            operation(BatchAction::Delete, Some("1"), KEY),
        ];
        self.engine.run_batch(&self.at, Some(&pk(KEY)), &operations, None).await
    }

    async fn bulk(&self, continue_on_error: bool) -> EngineResponse<Vec<BatchOperationResult>> {
        let creates = many_keys(3).map(|key| operation(BatchAction::Create(item("2", &key)), None, &key));
        let operations: Vec<BatchOperation> = creates.collect();
        self.engine.run_bulk(&self.at, None, None, &operations, continue_on_error, None).await
    }

    async fn list(&self, items: usize) -> EngineResponse<ItemPage> {
        let limit = PageLimit { items, bytes: 1 << 20 };
        self.engine.list_items(&self.at, &FeedRange::Container, None, limit, None).await
    }

    async fn changes(&self, since_s: Option<u32>) -> EngineResponse<ChangeFeedPage> {
        let request = ChangeRequest {
            mode: ChangeMode::LatestVersion,
            scope: FeedRange::Container,
            from: ChangeFrom::Beginning,
            since_s,
            filter: None,
            limit: PageLimit { items: 100, bytes: 1 << 20 },
        };
        self.engine.change_feed(&self.at, &request, None).await
    }

    async fn query(&self, text: &str) -> EngineResponse<QueryPage> {
        self.engine.query_items(&self.at, item_query(text, None), None).await
    }

    async fn procedure(&self) -> EngineResponse<Executed> {
        let script = self.at.container().scripts.named(ScriptKind::StoredProcedure, "twice").unwrap();
        self.engine.execute_procedure(&self.at, Some(&pk(KEY)), script, Vec::new(), script_context()).await
    }

    async fn triggered(&self) -> EngineResponse<Triggered> {
        let (write, triggers) =
            (ItemWrite::Create(item("2", KEY)), Triggers { pre: None, post: Some("log".to_owned()) });
        let options = WriteOptions::default();
        self.engine.write_with_triggers(&self.at, Some(&pk(KEY)), write, &options, &triggers, script_context()).await
    }
}

fn operation(action: BatchAction, id: Option<&str>, key: &str) -> BatchOperation {
    let options = WriteOptions::default();
    BatchOperation { action: Ok(action), id: id.map(str::to_owned), key: Some(pk(key)), options, known_etag: None }
}

fn script_context() -> ScriptContext {
    let (quota_max, quota_used) = Default::default();
    ScriptContext { cursors: Arc::new(NoCursors), message: Error::to_string, quota_max, quota_used, is_logging: false }
}
