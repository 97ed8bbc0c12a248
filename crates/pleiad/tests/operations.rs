//! Every operation of the NoSQL API, built by hand as the decoder of a second protocol would build it, gets the reply that it gets
//! over HTTP: the same status, body and metadata.
//!
//! Two accounts with the same clock and the same random numbers execute the same steps, one over a connection and one
//! by calls, so that even resource ids, etags and tokens are equal.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "golden/bearer.rs"]
mod bearer;
#[path = "golden/client.rs"]
mod client;

use std::sync::Arc;

use client::{Client, EMULATOR_KEY, Request, Response};
use pleiad_engine::{
    AccountHost, BucketId, ChangeMode, Engine, PartitionLimits, Priority, ReportOptions, SessionToken, SyncPolicy,
    ThroughputRequest, Triggers,
};
use pleiad_model::env::{Env, ManualEnv, SystemEnv};
use pleiad_model::partition_key::{EpkRange, PartitionKey};
use pleiad_model::{Consistency, Value, json};
use pleiad_storage::{AnyStore, Memory};
use pleiad_wire::account::{AccountAccess, AccountKeyring, Caller, TokenSigner};
use pleiad_wire::http::{Http, HttpLimits};
use pleiad_wire::metrics::Metrics;
use pleiad_wire::nosql::address::{self, Address, ResourceType};
use pleiad_wire::nosql::operation::{
    Endpoint, OfferMigration, Operation, OperationKind as Kind, OperationOptions, PageRows, RequestedConsistency,
};
use pleiad_wire::nosql::reply::Reply;
use pleiad_wire::nosql::sdk::Sdk;
use pleiad_wire::nosql::{Account, NosqlApi};
use pleiad_wire::router::Router;
use pleiad_wire::transport::{ConnectionLimits, Drain, Transport};
use tokio::net::TcpListener;

type Result<T = ()> = std::result::Result<T, String>;

/// One step: a request as clients send it, and the operation that it is.
struct Step {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
    kind: Kind,
    options: OperationOptions<'static>,
}

fn step(method: &'static str, path: &str, kind: Kind) -> Step {
    let options = OperationOptions::default();
    Step { method, path: path.to_owned(), headers: Vec::new(), body: String::new(), kind, options }
}

impl Step {
    fn body(self, body: &str) -> Step {
        Step { body: body.to_owned(), ..self }
    }

    /// A header, and the option that it is.
    fn with(mut self, name: &'static str, value: &str, set: impl FnOnce(&mut OperationOptions<'static>)) -> Step {
        self.headers.push((name, value.to_owned()));
        set(&mut self.options);
        self
    }

    /// A header that only tells which operation this is.
    fn marked(self, name: &'static str) -> Step {
        self.with(name, "True", |_| {})
    }

    fn key(self, key: &str) -> Step {
        let parsed = PartitionKey::parse(key).unwrap();
        self.with("x-ms-documentdb-partitionkey", key, |options| options.partition_key = parsed.into())
    }
}

const DOCS: &str = "/dbs/d/colls/c/docs";

fn items() -> Vec<Step> {
    let item = |id: &str, pk: &str| format!(r#"{{"id":"{id}","pk":"{pk}","n":{}}}"#, id.len());
    let query = |text: &str| {
        let body = format!(r#"{{"query":"{text}"}}"#);
        step("POST", DOCS, Kind::Query).marked("x-ms-documentdb-isquery").body(&body)
    };
    let batch = |body: &str| step("POST", DOCS, Kind::Batch).marked("x-ms-cosmos-is-batch-request").body(body);
    let one = "/dbs/d/colls/c/docs/1";
    vec![
        step("POST", DOCS, Kind::Create).key(r#"["a"]"#).body(&item("1", "a")),
        step("POST", DOCS, Kind::Create).key(r#"["a"]"#).body(&item("1", "a")),
        step("POST", DOCS, Kind::Create).key(r#"["b"]"#).body(&item("1", "a")),
        step("POST", DOCS, Kind::Create)
            .key(r#"["a"]"#)
            .with("x-ms-indexing-directive", "Exclude", |options| options.indexed = false.into())
            .with("prefer", "return=minimal", |options| options.minimal_reply = true)
            .body(&item("22", "a")),
        step("POST", DOCS, Kind::Upsert).marked("x-ms-documentdb-is-upsert").key(r#"["b"]"#).body(&item("333", "b")),
        step("GET", one, Kind::Read).key(r#"["a"]"#),
        step("GET", one, Kind::Read)
            .key(r#"["a"]"#)
            .with("x-ms-consistency-level", "Eventual", |options| {
                options.consistency = RequestedConsistency::Level(Consistency::Eventual).into();
            })
            .with("x-ms-cosmos-priority-level", "Low", |options| options.priority = Priority::Low.into())
            .with("x-ms-cosmos-throughput-bucket", "2", |options| {
                options.throughput_bucket = BucketId::new(2).unwrap().into();
            }),
        step("GET", one, Kind::Read).key(r#"["b"]"#),
        step("GET", one, Kind::Read),
        step("GET", one, Kind::Read).key(r#"["a"]"#).with(
            "x-ms-cosmos-intended-collection-rid",
            "AAAAAAAAAAA=",
            |options| {
                options.intended_container = Some("AAAAAAAAAAA=");
            },
        ),
        step("PUT", one, Kind::Replace).key(r#"["a"]"#).body(&item("1", "a")),
        step("PUT", one, Kind::Replace)
            .key(r#"["a"]"#)
            .with("if-match", "\"no\"", |options| options.if_match = Some("\"no\""))
            .body(&item("1", "a")),
        step("PATCH", one, Kind::Patch).key(r#"["a"]"#).body(r#"[{"op":"set","path":"/n","value":7}]"#),
        step("GET", DOCS, Kind::List),
        step("GET", DOCS, Kind::List)
            .with("x-ms-max-item-count", "1", |options| options.page_size = PageRows::AtMost(1).into()),
        step("GET", DOCS, Kind::List)
            .with("x-ms-documentdb-partitionkeyrangeid", "0", |options| options.range_id = 0.into()),
        step("GET", DOCS, Kind::List)
            .with("x-ms-start-epk", "", |options| options.epk_range = EpkRange::FULL.into())
            .with("x-ms-end-epk", "FF", |_| {}),
        step("GET", DOCS, Kind::ChangeFeed)
            .with("a-im", "Incremental Feed", |options| options.change_mode = ChangeMode::LatestVersion.into()),
        step("GET", DOCS, Kind::ChangeFeed)
            .with("a-im", "Incremental Feed", |options| options.change_mode = ChangeMode::LatestVersion.into())
            .with("if-none-match", "*", |options| options.if_none_match = Some("*"))
            .with("x-ms-cosmos-changefeed-wire-format-version", "1", |options| options.enveloped = true),
        step("POST", DOCS, Kind::ChangeFeedQuery)
            .marked("x-ms-documentdb-isquery")
            .with("a-im", "Incremental Feed", |options| options.change_mode = ChangeMode::LatestVersion.into())
            .body(r#"{"query":"SELECT c.id FROM c WHERE c.n > 1"}"#),
        query("SELECT * FROM c WHERE c.pk = 'a'").key(r#"["a"]"#),
        query("SELECT c.id FROM c ORDER BY c.n DESC"),
        query("SELECT c.id FROM c ORDER BY c.n DESC").with(
            "x-ms-documentdb-query-enablecrosspartition",
            "True",
            |options| options.cross_partition = true,
        ),
        query("SELECT VALUE COUNT(1) FROM c")
            .with("x-pleiad-cross-partition", "true", |options| options.cross_partition_by_server = true)
            .with("x-ms-max-item-count", "-1", |options| options.page_size = PageRows::Dynamic.into()),
        query("SELECT c.id FROM c WHERE c.n > 0").key(r#"["a"]"#).with(
            "x-ms-cosmos-populateindexmetrics",
            "True",
            |options| {
                options.report = ReportOptions { indexes: true, ..ReportOptions::default() };
            },
        ),
        step("POST", DOCS, Kind::Query)
            .key(r#"["a"]"#)
            .with("content-type", "application/sql", |options| options.bare_query = true)
            .body("SELECT VALUE c.id FROM c"),
        step("POST", DOCS, Kind::QueryPlan)
            .marked("x-ms-cosmos-is-query-plan-request")
            .with("x-ms-cosmos-supported-query-features", "Aggregate, OrderBy", |options| {
                options.query_features = "Aggregate, OrderBy";
            })
            .body(r#"{"query":"SELECT * FROM c ORDER BY c.n"}"#),
        batch(r#"[{"operationType":"Create","resourceBody":{"id":"b1","pk":"a"}},{"operationType":"Read","id":"1"}]"#)
            .key(r#"["a"]"#)
            .with("x-ms-cosmos-batch-atomic", "True", |options| options.batch_is_atomic = true),
        batch(r#"[{"operationType":"Delete","id":"no","partitionKey":"[\"a\"]"}]"#)
            .with("x-ms-documentdb-partitionkeyrangeid", "0", |options| options.range_id = 0.into())
            .with("x-ms-cosmos-batch-continue-on-error", "True", |options| options.continue_on_error = true),
        step("DELETE", one, Kind::Delete).key(r#"["a"]"#),
        step("DELETE", one, Kind::Delete).key(r#"["a"]"#),
        step("POST", "/dbs/d/colls/c/operations/partitionkeydelete", Kind::DeleteByPartitionKey).key(r#"["b"]"#),
        step("PUT", DOCS, Kind::NotAllowed),
    ]
}

fn scripts() -> Vec<Step> {
    let mut steps = Vec::new();
    let (pre, post) = (r#","triggerType":"Pre""#, r#","triggerOperation":"All""#);
    for (feed, id, more) in
        [("sprocs", "s", String::new()), ("triggers", "t", format!("{pre}{post}")), ("udfs", "u", String::new())]
    {
        let path = format!("/dbs/d/colls/c/{feed}");
        let one = format!("{path}/{id}");
        let text = match feed {
            "sprocs" => "function () { getContext().getResponse().setBody(7); console.log('ran'); }",
            "triggers" => "function () {}",
            _ => "function (x) { return x; }",
        };
        let body = format!(r#"{{"id":"{id}","body":"{text}"{more}}}"#);
        steps.push(step("POST", &path, Kind::Create).body(&body));
        steps.push(step("POST", &path, Kind::Upsert).marked("x-ms-documentdb-is-upsert").body(&body));
        steps.push(step("GET", &path, Kind::List));
        steps.push(
            step("POST", &path, Kind::Query)
                .marked("x-ms-documentdb-isquery")
                .body(r#"{"query":"SELECT VALUE r.id FROM r"}"#),
        );
        steps.push(step("GET", &one, Kind::Read));
        steps.push(step("PUT", &one, Kind::Replace).body(&body));
    }
    steps.push(
        step("POST", "/dbs/d/colls/c/sprocs/s", Kind::Execute)
            .key(r#"["a"]"#)
            .with("x-ms-documentdb-script-enable-logging", "True", |options| options.script_logging = true)
            .body("[]"),
    );
    let triggers = Triggers { pre: Some("t".to_owned()), post: None };
    steps.push(
        step("POST", DOCS, Kind::Create)
            .key(r#"["t"]"#)
            .with("x-ms-documentdb-pre-trigger-include", "t", |options| options.triggers = triggers.into())
            .body(r#"{"id":"t","pk":"t"}"#),
    );
    steps.push(step("DELETE", "/dbs/d/colls/c/sprocs/s", Kind::Delete));
    steps
}

fn metadata(offer: &str) -> Vec<Step> {
    let query = |path: &str| {
        let body = r#"{"query":"SELECT VALUE r.id FROM r"}"#;
        step("POST", path, Kind::Query).marked("x-ms-documentdb-isquery").body(body)
    };
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":-1}"#;
    let key = r#"{"id":"k","encryptionAlgorithm":"A","wrappedDataEncryptionKey":"AA==","keyWrapMetadata":{"name":"n","type":"t","value":"v","algorithm":"a"}}"#;
    let permission = r#"{"id":"p","permissionMode":"Read","resource":"dbs/d/colls/c"}"#;
    let offer = format!("/offers/{offer}");
    vec![
        step("GET", "/", Kind::Read),
        step("POST", "/dbs", Kind::Create).body(r#"{"id":"e"}"#).with("x-ms-offer-throughput", "400", |options| {
            options.throughput = ThroughputRequest::Manual(400).into();
        }),
        step("GET", "/dbs", Kind::List),
        query("/dbs"),
        step("GET", "/dbs/e", Kind::Read),
        step("DELETE", "/dbs/e", Kind::Delete),
        step("POST", "/dbs", Kind::Create).body(r#"{"id":"f"}"#).with(
            "x-ms-cosmos-offer-autopilot-settings",
            r#"{"maxThroughput":4000}"#,
            |options| options.throughput = ThroughputRequest::Autoscale { max: 4000, increment_percent: None }.into(),
        ),
        step("GET", "/dbs/d/colls", Kind::List),
        query("/dbs/d/colls"),
        step("GET", "/dbs/d/colls/c", Kind::Read)
            .with("x-ms-documentdb-populatequotainfo", "True", |options| options.quota_info = true)
            .with("x-ms-documentdb-populatepartitionstatistics", "True", |options| {
                options.partition_statistics = true;
            }),
        step("PUT", "/dbs/d/colls/c", Kind::Replace).body(container),
        step("POST", "/dbs/d/colls", Kind::Create).body(r#"{"id":"old"}"#).with(
            "x-ms-version",
            "2020-07-15",
            |options| options.api_version = Some("2020-07-15"),
        ),
        step("GET", "/dbs/d/colls/c/pkranges", Kind::List),
        step("GET", "/dbs/d/colls/c/conflicts", Kind::List),
        step("GET", "/dbs/d/colls/c/conflicts/x", Kind::Read),
        step("GET", "/offers", Kind::List),
        query("/offers"),
        step("GET", &offer, Kind::Read),
        step("PUT", &offer, Kind::Replace).body(r#"{"content":{"offerThroughput":500}}"#),
        step("PUT", &offer, Kind::Replace).with("x-ms-cosmos-migrate-offer-to-autopilot", "true", |options| {
            options.offer_migration = Some(OfferMigration::ToAutoscale);
        }),
        step("POST", "/dbs/d/users", Kind::Create).body(r#"{"id":"u"}"#),
        step("POST", "/dbs/d/users", Kind::Upsert).marked("x-ms-documentdb-is-upsert").body(r#"{"id":"u"}"#),
        step("GET", "/dbs/d/users", Kind::List),
        query("/dbs/d/users"),
        step("GET", "/dbs/d/users/u", Kind::Read),
        step("PUT", "/dbs/d/users/u", Kind::Replace).body(r#"{"id":"u"}"#),
        step("POST", "/dbs/d/users/u/permissions", Kind::Create).body(permission).with(
            "x-ms-documentdb-expiry-seconds",
            "60",
            |options| options.expiry_s = 60.into(),
        ),
        step("GET", "/dbs/d/users/u/permissions", Kind::List),
        query("/dbs/d/users/u/permissions"),
        step("GET", "/dbs/d/users/u/permissions/p", Kind::Read),
        step("PUT", "/dbs/d/users/u/permissions/p", Kind::Replace).body(permission),
        step("DELETE", "/dbs/d/users/u/permissions/p", Kind::Delete),
        step("DELETE", "/dbs/d/users/u", Kind::Delete),
        step("POST", "/dbs/d/clientencryptionkeys", Kind::Create).body(key),
        step("GET", "/dbs/d/clientencryptionkeys", Kind::List),
        query("/dbs/d/clientencryptionkeys"),
        step("GET", "/dbs/d/clientencryptionkeys/k", Kind::Read),
        step("PUT", "/dbs/d/clientencryptionkeys/k", Kind::Replace).body(key),
        step("GET", "/dbs/d/colls/c/docs/1/attachments", Kind::List),
        step("DELETE", "/dbs/d/colls/c", Kind::Delete),
    ]
}

/// Requests that refer to earlier replies: versions, positions, sessions, resource ids.
async fn later_requests(api: &NosqlApi) -> Vec<Step> {
    let one = || step("GET", "/dbs/d/colls/c/docs/22", Kind::Read).key(r#"["a"]"#);
    let page = || {
        let rows = PageRows::AtMost(1);
        step("GET", DOCS, Kind::List).with("x-ms-max-item-count", "1", |options| options.page_size = rows.into())
    };
    let etag = text(by_hand(api, &mut one(), 0).await.metadata.etag);
    let continuation = text(by_hand(api, &mut page(), 0).await.metadata.continuation);
    let container = by_hand(api, &mut step("GET", "/dbs/d/colls/c", Kind::Read), 0).await;
    let container = json::parse(&container.body).unwrap();
    let self_link = container.get("_self").and_then(Value::as_str).unwrap();
    vec![
        one().with("if-none-match", etag, |options| options.if_none_match = Some(etag)),
        one().with("x-ms-session-token", "0:-1#9999", |options| {
            options.session_token = SessionToken(vec![(0, 9999)]).into();
        }),
        page().with("x-ms-continuation", continuation, |options| options.continuation = Some(continuation)),
        step("GET", DOCS, Kind::ChangeFeed)
            .with("a-im", "Incremental Feed", |options| options.change_mode = ChangeMode::LatestVersion.into())
            .with("if-modified-since", "Mon, 16 Nov 2026 03:20:00 GMT", |options| {
                options.since_s = 1_794_799_200.into()
            }),
        step("POST", DOCS, Kind::Query)
            .marked("x-ms-documentdb-isquery")
            .key(r#"["a"]"#)
            .with("x-ms-max-item-count", "1", |options| options.page_size = PageRows::AtMost(1).into())
            .with("x-ms-documentdb-responsecontinuationtokenlimitinkb", "1", |options| {
                options.continuation_kb_max = 1.into();
            })
            .with("x-ms-documentdb-query-enable-scan", "True", |options| options.enable_scan = true)
            .body(r#"{"query":"SELECT c.id FROM c"}"#),
        step("GET", DOCS, Kind::List)
            .with("x-ms-documentdb-partitionkeyrangeid", "99", |options| options.range_id = 99.into())
            .with("user-agent", "azsdk-python-cosmos/4.9.0", |options| options.sdk = Sdk::Python),
        step("GET", &format!("/{self_link}"), Kind::Read),
        step("GET", &format!("/{self_link}docs"), Kind::List),
    ]
}

/// For options, which borrow from their request.
fn text(of_reply: Option<String>) -> &'static str {
    of_reply.unwrap().leak()
}

/// The NoSQL API of a new account in memory: every account has the same clock and the same random numbers.
async fn api(now_ms: u64) -> NosqlApi {
    let (store, env) = (AnyStore::Memory(Memory::default()), Arc::new(ManualEnv::at(now_ms, 7)));
    let policy = SyncPolicy::Synced;
    let engine = Engine::open(store, policy, PartitionLimits::default(), env).await.unwrap();
    let keys = AccountKeyring::new(EMULATOR_KEY, None, None, None).unwrap();
    let tokens = Arc::new(TokenSigner::new(&[7; 32]));
    let access = Arc::new(AccountAccess { keys, tokens, bearer: Arc::default(), emulator_tokens: true });
    let (id, region, consistency) = ("pleiad".to_owned(), "Local".to_owned(), Consistency::Session);
    let account = Account {
        id,
        region,
        consistency,
        previous_images: false,
        public_endpoint: None,
        trusted_proxies: Default::default(),
    };
    NosqlApi::new(AccountHost::new(engine), account, access)
}

async fn by_hand(api: &NosqlApi, step: &mut Step, port: u16) -> Reply {
    let parsed = address::parse(&step.path).unwrap();
    let address = Address::of_names(parsed.resource, &parsed.segments(), parsed.by_rid).unwrap();
    let mut options = std::mem::take(&mut step.options);
    options.endpoint = Endpoint { scheme: "http", host: format!("localhost:{port}").into() };
    let operation = Operation { kind: step.kind, address: &address, options, body: step.body.clone().into() };
    match api.execute(&operation, &Caller::ReadWrite).await {
        Ok(reply) => reply,
        Err(error) => error.reply("7"),
    }
}

fn over_http(client: &mut Client, step: &Step) -> Response {
    let mut headers = client::authorization(None, step.method, &step.path).unwrap();
    headers.push(("x-ms-activity-id".to_owned(), "7".to_owned()));
    headers.extend(step.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let request = Request { method: step.method, path: &step.path, headers, body: step.body.as_bytes() };
    client.send(&request).unwrap()
}

fn assert_same(step: &Step, http: &Response, reply: &Reply) {
    let at = format!("{} {} {:?} {}", step.method, step.path, step.headers, step.body);
    let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
    assert_eq!(http.status, reply.status.code(), "{at}\n{}\n{}", text(&http.body), text(&reply.body));
    assert_eq!(text(&http.body), text(&reply.body), "{at}");
    let metadata = &reply.metadata;
    let number = |name: &str| http.header(name).map(|value| value.parse::<f64>().unwrap());
    let charge_ru = (metadata.charge_ru * 100.0).round() / 100.0;
    assert_eq!(number("x-ms-request-charge"), Some(charge_ru), "{at}");
    assert_eq!(number("x-ms-substatus"), metadata.substatus.map(f64::from), "{at}");
    assert_eq!(http.header("etag"), metadata.etag.as_deref(), "{at}");
    assert_eq!(http.header("x-ms-continuation"), metadata.continuation.as_deref(), "{at}");
    assert_eq!(number("x-ms-item-count"), metadata.item_count.map(|count| count as f64), "{at}");
    assert_eq!(number("x-ms-item-lsn"), metadata.item_lsn.map(|lsn| lsn as f64), "{at}");
    assert_eq!(number("lsn"), metadata.served_by.map(|served_by| served_by.lsn as f64), "{at}");
    assert_eq!(http.header("x-ms-content-path"), metadata.owner.as_ref().map(|owner| owner.rid.as_str()), "{at}");
    let query = metadata.query.as_ref();
    let utilization = query.and_then(|query| query.index_utilization.as_deref());
    assert_eq!(http.header("x-ms-cosmos-index-utilization"), utilization, "{at}");
    let usage = metadata.container.as_ref().map(|container| container.usage.as_str());
    assert_eq!(http.header("x-ms-resource-usage"), usage, "{at}");
    assert_eq!(number("x-ms-cosmos-min-throughput"), metadata.offer.map(|offer| offer.minimum_ru.into()), "{at}");
    let has_log = metadata.script_log.as_ref().is_some_and(|log| !log.is_empty());
    assert_eq!(http.header("x-ms-documentdb-script-log-results").is_some(), has_log, "{at}");
}

/// The resource id of the one offer.
async fn offer(api: &NosqlApi) -> String {
    let reply = by_hand(api, &mut step("GET", "/offers", Kind::List), 0).await;
    let body = json::parse(&reply.body).unwrap();
    let offers = body.get("Offers").and_then(Value::as_array).unwrap();
    offers[0].get("_rid").and_then(Value::as_str).unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_built_by_hand_gets_the_reply_that_it_gets_over_http() {
    let now_ms = SystemEnv.now_ms();
    let (served, called) = (api(now_ms).await, api(now_ms).await);
    let router = Router::new(served, Arc::new(Metrics::new(false)), 4 << 20, None);
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    let drain = Drain::new(); // begins when it is dropped
    let mut transport = Transport::new(ConnectionLimits::default(), &drain);
    transport.add_port([socket], None, Http::new(Arc::new(router), HttpLimits::default()));
    tokio::spawn(transport.serve());
    let mut client = Client::new(port);
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    let created = [
        step("POST", "/dbs", Kind::Create).body(r#"{"id":"d"}"#),
        step("POST", "/dbs/d/colls", Kind::Create).body(container),
    ];
    let mut done = Vec::new();
    for step in created.into_iter().chain(items()).chain(scripts()) {
        done.push(compare(&mut client, &called, step).await);
    }
    for step in later_requests(&called).await {
        done.push(compare(&mut client, &called, step).await);
    }
    for step in metadata(&offer(&called).await) {
        done.push(compare(&mut client, &called, step).await);
    }
    for kind in KINDS {
        assert!(done.iter().any(|(of_step, _)| *of_step == kind), "no step has the kind {kind:?}");
    }
    for resource in RESOURCES {
        assert!(done.iter().any(|(_, of_step)| *of_step == resource), "no step is for {resource:?}");
    }
}

const KINDS: [Kind; 14] = [
    Kind::Read,
    Kind::List,
    Kind::ChangeFeed,
    Kind::Query,
    Kind::QueryPlan,
    Kind::Create,
    Kind::Upsert,
    Kind::Replace,
    Kind::Patch,
    Kind::Delete,
    Kind::DeleteByPartitionKey,
    Kind::Batch,
    Kind::Execute,
    Kind::NotAllowed,
];

/// All but replica addresses, which are not built: over HTTP they have a parameter.
const RESOURCES: [ResourceType; 15] = [
    ResourceType::Account,
    ResourceType::Databases,
    ResourceType::Containers,
    ResourceType::Items,
    ResourceType::Attachments,
    ResourceType::StoredProcedures,
    ResourceType::Triggers,
    ResourceType::UserDefinedFunctions,
    ResourceType::Conflicts,
    ResourceType::Ranges,
    ResourceType::Operations,
    ResourceType::Users,
    ResourceType::Permissions,
    ResourceType::ClientEncryptionKeys,
    ResourceType::Offers,
];

/// Executes a step in both accounts; returns its kind and the type of its resource.
async fn compare(client: &mut Client, called: &NosqlApi, mut step: Step) -> (Kind, ResourceType) {
    let http = tokio::task::block_in_place(|| over_http(client, &step));
    let reply = by_hand(called, &mut step, client.port).await;
    assert_same(&step, &http, &reply);
    (step.kind, address::parse(&step.path).unwrap().resource)
}
