use std::cell::RefCell;

use crate::testing::*;
use crate::*;
use pleiad_model::patch::Patch;
use pleiad_model::{Error, Kind, Result};

fn by_name<'a>(database: &'a str, container: &'a str) -> ContainerName<'a> {
    ContainerName::Named { database, container }
}

fn as_parent(engine: &Engine, name: ContainerName<'_>) -> Result<Admitted> {
    engine.authorize_container(&ServerAuthority, ActionSet::ALL, name, Addressed::Parent)
}

fn refusal<T>(outcome: Result<T>) -> Kind {
    outcome.err().unwrap().kind
}

#[tokio::test]
async fn a_container_is_found_by_name_and_by_rid() {
    let engine = account().await;
    let made = container(&engine, "c", &["/pk"], 4).await;
    assert_eq!(admit(&engine, "c").container().rid, made.rid);
    assert_eq!(as_parent(&engine, ContainerName::Rid(made.rid)).unwrap().container().definition.id, "c");
}

#[tokio::test]
async fn a_missing_container_differs_from_a_missing_owner() {
    let engine = account().await;
    assert_eq!(refusal(as_parent(&engine, by_name("db", "c"))), Kind::OwnerNotFound);
    let asked = |database| refusal(at_container(&engine, by_name(database, "c")));
    assert_eq!((asked("db"), asked("nowhere")), (Kind::NotFound, Kind::OwnerNotFound));
    assert_eq!(refusal(find_database(&engine, "nowhere")), Kind::NotFound);
    let parent =
        engine.authorize_database(&ServerAuthority, ActionSet::ALL, DatabaseName::Named("nowhere"), Addressed::Parent);
    assert_eq!(refusal(parent), Kind::OwnerNotFound);
}

#[tokio::test]
async fn a_recreated_container_is_another_resource() {
    let engine = account().await;
    let old = container(&engine, "c", &["/pk"], 4).await.rid;
    let expecting = |rid: &str| admit(&engine, "c").expecting(Some(rid)).map(drop);
    assert!(expecting(&old.to_string()).is_ok());
    engine.catalog.delete_container(old).await.unwrap();
    container(&engine, "c", &["/pk"], 4).await;
    assert_eq!(refusal(expecting(&old.to_string())), Kind::ContainerChanged);
    assert_eq!(refusal(as_parent(&engine, ContainerName::Rid(old))), Kind::OwnerNotFound);
}

/// Allows nothing, and records what it was asked.
#[derive(Default)]
struct Denying(RefCell<Vec<String>>);

impl Authority for Denying {
    type Denied = Error;

    fn check(&self, _: &Names<'_>, actions: ActionSet, place: Place<'_>) -> Result<()> {
        assert_eq!(actions, ActionSet::from(Action::ReadItem));
        self.0.borrow_mut().push(format!("{place:?}"));
        Err(Error::new(Kind::Forbidden, "no"))
    }

    fn activity(&self) -> ActivityId {
        ActivityId::new("a")
    }
}

#[tokio::test]
async fn the_authority_decides_before_a_missing_resource_is_told() {
    let engine = account().await;
    let denying = Denying::default();
    let read = Action::ReadItem;
    assert_eq!(refusal(engine.authorize(&denying, read)), Kind::Forbidden);
    let nowhere = DatabaseName::Named("nowhere");
    assert_eq!(refusal(engine.authorize_database(&denying, read, nowhere, Addressed::Itself)), Kind::Forbidden);
    let missing = engine.authorize_container(&denying, read, by_name("db", "nowhere"), Addressed::Parent);
    assert_eq!(refusal(missing), Kind::Forbidden);
    assert_eq!(denying.0.borrow().len(), 3);
}

fn allowed(engine: &Engine, actions: ActionSet) -> Admitted {
    engine.authorize_container(&ServerAuthority, actions, by_name("db", "c"), Addressed::Parent).unwrap()
}

/// Every call of the item API fails without its own action, and no call fails with it.
#[tokio::test]
async fn a_call_needs_the_action_that_it_performs() {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    for (name, action) in CALLS {
        for (given, expected) in [(ActionSet::from(action), true), (ActionSet::ALL.without(action.into()), false)] {
            let done = performs(&engine, &allowed(&engine, given), name).await;
            assert_eq!(done, expected, "{name} with {given:?}");
        }
    }
}

const CALLS: [(&str, Action); 14] = [
    ("create", Action::CreateItem),
    ("upsert", Action::UpsertItem),
    ("replace", Action::ReplaceItem),
    ("patch", Action::ReplaceItem),
    ("delete", Action::DeleteItem),
    ("delete by partition key", Action::DeleteItem),
    ("read", Action::ReadItem),
    ("batch", Action::ReadItem),
    ("bulk", Action::DeleteItem),
    ("list", Action::ReadChangeFeed),
    ("change feed", Action::ReadChangeFeed),
    ("query", Action::ExecuteQuery),
    ("query plan", Action::ExecuteQuery),
    ("metadata", Action::ReadMetadata),
];

fn operation(action: BatchAction) -> [BatchOperation; 1] {
    let (id, key) = (Some("a".to_owned()), None);
    [BatchOperation { action: Ok(action), id, key, options: WriteOptions::default(), known_etag: None }]
}

/// Whether the call is allowed to do what it does.
async fn performs(engine: &Engine, at: &Admitted, call: &str) -> bool {
    let (key, options) = (pk("k"), WriteOptions::default());
    let (key, target, body) = (Some(&key), Target::Named("a"), item("a", "k"));
    let limit = PageLimit { items: 1, bytes: 1000 };
    let outcome = match call {
        "create" => engine.create_item(at, key, Verb::Create, body, &options).await.result.map(drop),
        "upsert" => engine.create_item(at, key, Verb::Upsert, body, &options).await.result.map(drop),
        "replace" => engine.replace_item(at, key, target, body, &options).await.result.map(drop),
        "patch" => {
            let patch = Patch::parse(&parse(r#"[{"op":"add","path":"/n","value":1}]"#)).unwrap();
            engine.patch_item(at, key, target, &patch, &Precondition::None).await.result.map(drop)
        }
        "delete" => engine.delete_item(at, key, target, &Precondition::None).await.result.map(drop),
        "delete by partition key" => engine.delete_by_partition_key(at, key).await.result,
        "read" => engine.read_item(at, key, target, None, None).await.result.map(drop),
        "batch" => engine.run_batch(at, key, &operation(BatchAction::Read), None).await.result.map(drop),
        "bulk" => engine.run_bulk(at, key, None, &operation(BatchAction::Delete), true, None).await.result.map(drop),
        "list" => engine.list_items(at, &FeedRange::Container, None, limit, None).await.result.map(drop),
        "change feed" => {
            let (mode, scope, from) = (ChangeMode::LatestVersion, FeedRange::Container, ChangeFrom::Beginning);
            let request = ChangeRequest { mode, scope, from, since_s: None, filter: None, limit };
            engine.change_feed(at, &request, None).await.result.map(drop)
        }
        "query" => engine.query_items(at, query(), None).await.result.map(drop),
        "query plan" => engine.query_plan(at, "SELECT * FROM c", &Parameters::default(), None).map(drop),
        "metadata" => engine.largest_keys(at).await.map(drop),
        unknown => panic!("no such call: {unknown}"),
    };
    !matches!(outcome, Err(Error { kind: Kind::Forbidden, .. }))
}

fn query() -> ItemQuery {
    ItemQuery {
        text: "SELECT * FROM c".to_owned(),
        parameters: Parameters::default(),
        scope: FeedRange::Container,
        cross_partition: CrossPartition::ByServer,
        size: PageSize { rows: 1, bytes: 1000 },
        from: None,
        resume: None,
        report: ReportOptions::default(),
        enable_scan: false,
    }
}

#[tokio::test]
async fn a_read_admits_to_no_change_of_metadata() {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let reads = ActionSet::of(&[Action::ReadMetadata, Action::ReadSettings, Action::Monitor]);
    let at = allowed(&engine, reads);
    assert_eq!(refusal(engine.delete_container(&at).await), Kind::Forbidden);
    assert_eq!(refusal(engine.split(at.clone(), None, None).await), Kind::Forbidden);
    assert!(engine.partitions(&at).is_ok() && engine.container_offer(&at).is_ok());
    let whole = engine.authorize(&ServerAuthority, reads).unwrap();
    assert_eq!(refusal(engine.create_database(&whole, "x", ThroughputRequest::Unspecified).await), Kind::Forbidden);
    assert_eq!(engine.databases(&whole).unwrap().len(), 1);
    assert_eq!(refusal(engine.secret(&whole).await), Kind::Forbidden);
    let nothing = engine.authorize(&ServerAuthority, ActionSet::default()).unwrap();
    assert_eq!(refusal(engine.databases(&nothing)), Kind::Forbidden);
    assert_eq!(refusal(engine.offers(&nothing)), Kind::Forbidden);
    assert_eq!(refusal(engine.jobs(&nothing)), Kind::Forbidden);
    assert_eq!(refusal(engine.metrics(&nothing)), Kind::Forbidden);
    assert_eq!(refusal(engine.throttles(&nothing)), Kind::Forbidden);
}

#[test]
fn an_activity_id_keeps_at_most_36_bytes_and_whole_characters() {
    assert_eq!(ActivityId::new("").as_str(), "");
    assert_eq!(ActivityId::new("3F2504E0-4F89-41D3-9A0C-0305E82C3301").as_str().len(), 36);
    let long = format!("{}é", "a".repeat(35));
    assert_eq!(ActivityId::new(&long).as_str(), "a".repeat(35));
}
