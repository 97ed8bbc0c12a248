//! The account of a committed data directory: the requests that make it, and the questions that are asked about it.
//!
//! The writes are in two steps, with a snapshot and a split between them. The first step is in RocksDB's tables, the
//! second in its write-ahead log, as a running server leaves them.

use pleiad_model::{Object, Value, json};

/// A request, and how it is stored beside its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Ask {
    fn new(method: &str, path: &str, body: &str) -> Ask {
        Ask { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: body.to_owned() }
    }

    pub fn get(path: &str) -> Ask {
        Ask::new("GET", path, "")
    }

    pub fn post(path: &str, body: &str) -> Ask {
        Ask::new("POST", path, body).header("content-type", "application/json")
    }

    pub fn put(path: &str, body: &str) -> Ask {
        Ask { method: "PUT".to_owned(), ..Ask::post(path, body) }
    }

    pub fn delete(path: &str) -> Ask {
        Ask::new("DELETE", path, "")
    }

    pub fn header(mut self, name: &str, value: &str) -> Ask {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The partition key, a JSON array.
    fn key(self, key: &str) -> Ask {
        self.header("x-ms-documentdb-partitionkey", key)
    }

    pub fn to_value(&self) -> Value {
        let headers = self.headers.iter().fold(Object::new(), |all, (name, value)| all.with(name, value.as_str()));
        Object::new()
            .with("method", self.method.as_str())
            .with("path", self.path.as_str())
            .with("headers", headers)
            .with("body", self.body.as_str())
            .into()
    }

    pub fn from_value(value: &Value) -> Ask {
        let text = |name| value.get(name).and_then(Value::as_str).unwrap();
        let headers = value.get("headers").and_then(Value::as_object).unwrap();
        let headers = headers.iter().map(|(name, value)| (name.to_owned(), value.as_str().unwrap().to_owned()));
        Ask { headers: headers.collect(), ..Ask::new(text("method"), text("path"), text("body")) }
    }
}

fn query_with(container: &str, text: &str, parameters: &[(&str, &str)]) -> Ask {
    let parameter = |(name, value): &(&str, &str)| Object::new().with("name", *name).with("value", *value).into();
    let parameters: Vec<Value> = parameters.iter().map(parameter).collect();
    let body = Object::new().with("query", text).with("parameters", parameters);
    Ask::new("POST", &format!("{container}/docs"), &json::to_string(&body.into()))
        .header("content-type", "application/query+json")
        .header("x-ms-documentdb-isquery", "True")
        .header("x-pleiad-cross-partition", "true")
        .header("x-ms-max-item-count", "1000")
}

fn query(container: &str, text: &str) -> Ask {
    query_with(container, text, &[])
}

/// A query of the container with a full-text index, which shows its access paths.
pub fn text_query(text: &str) -> Ask {
    query(TEXTS, text).header("x-ms-cosmos-populateindexmetrics", "true")
}

const ORDERS: &str = "/dbs/shop/colls/orders";
const TENANTS: &str = "/dbs/shop/colls/tenants";
const LONG: &str = "/dbs/shop/colls/long";
const FIRST_HASH: &str = "/dbs/archive/colls/first%20hash";
const TEXTS: &str = "/dbs/archive/colls/texts";

/// The container that is split.
pub const SPLIT: &str = "/_pleiad/v1/containers/shop/orders/partitions/split?wait=true";
pub const SNAPSHOT: &str = "/_pleiad/v1/snapshots/between";
pub const RESTORE: &str = "/_pleiad/v1/snapshots/between/restore";

/// The index truncates strings at 1,000 bytes, and at 300 in a composite index.
const LENGTHS: [usize; 7] = [299, 300, 301, 999, 1000, 1001, 2680];
const ENDINGS: [&str; 4] = ["", "a", "b", "\0"];

fn containers() -> Vec<Ask> {
    let mut asks = vec![
        Ask::post("/dbs", r#"{"id":"shop"}"#),
        Ask::post("/dbs", r#"{"id":"archive"}"#).header("x-ms-offer-throughput", "1000"),
    ];
    let mut container = |database: &str, body: &str| asks.push(Ask::post(&format!("/dbs/{database}/colls"), body));
    container(
        "shop",
        r#"{"id":"orders","partitionKey":{"paths":["/customer"],"kind":"Hash","version":2},
            "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/number"]}]},
            "indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/notes/*"}],
              "compositeIndexes":[[{"path":"/city"},{"path":"/total","order":"descending"}]],
              "spatialIndexes":[{"path":"/place/*","types":["Point"]}]}}"#,
    );
    container(
        "shop",
        r#"{"id":"tenants","partitionKey":{"paths":["/tenant","/user","/session"],"kind":"MultiHash","version":2},
            "defaultTtl":-1}"#,
    );
    let paths = |n: usize| format!(r#"{{"path":"/a{n}","order":"{}ending"}}"#, if n % 2 == 1 { "asc" } else { "desc" });
    let eight: Vec<String> = (1..=8).map(paths).collect();
    container(
        "shop",
        &format!(
            r#"{{"id":"long","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}},
                "uniqueKeyPolicy":{{"uniqueKeys":[{{"paths":["/u"]}}]}},
                "indexingPolicy":{{"includedPaths":[{{"path":"/*"}}],"excludedPaths":[{{"path":"/u/?"}}],
                  "compositeIndexes":[[{}],[{{"path":"/n"}},{{"path":"/s"}}]]}}}}"#,
            eight.join(",")
        ),
    );
    container(
        "archive",
        r#"{"id":"first hash","partitionKey":{"paths":["/pk"],"kind":"Hash","version":1},
            "changeFeedPolicy":{"retentionDuration":50000000}}"#,
    );
    container(
        "archive",
        r#"{"id":"texts","partitionKey":{"paths":["/id"],"kind":"Hash","version":2},
            "fullTextPolicy":{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/text"}]},
            "vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"float32","dimensions":2,"distanceFunction":"euclidean"}]},
            "indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/v/*"}],
              "fullTextIndexes":[{"path":"/text"}],"vectorIndexes":[{"path":"/v","type":"flat"}]},
            "computedProperties":[{"name":"low","query":"SELECT VALUE LOWER(c.text) FROM c"}]}"#,
    );
    asks
}

fn scripts_and_users() -> Vec<Ask> {
    vec![
        Ask::post(
            &format!("{ORDERS}/sprocs"),
            r#"{"id":"count","body":"function () { __.filter(function () { return true; }, function (e, all) { __.response.setBody(all.length); }); }"}"#,
        ),
        Ask::post(&format!("{ORDERS}/udfs"), r#"{"id":"twice","body":"function (n) { return 2 * n; }"}"#),
        Ask::post(
            &format!("{ORDERS}/triggers"),
            r#"{"id":"t","body":"function () {}","triggerOperation":"All","triggerType":"Pre"}"#,
        ),
        Ask::post("/dbs/shop/users", r#"{"id":"ann"}"#),
        Ask::post(
            "/dbs/shop/users/ann/permissions",
            r#"{"id":"reads","permissionMode":"Read","resource":"dbs/shop/colls/orders"}"#,
        ),
    ]
}

fn order(n: usize) -> (String, String) {
    let (customer, city) = (n % 6, ["Rome", "Oslo", "Lima"][n % 3]);
    let body = format!(
        r#"{{"id":"o{n}","customer":"c{customer}","number":{n},"city":"{city}","total":{},"open":{},"lines":[{n},{}],
            "place":{{"type":"Point","coordinates":[{},{}]}},"notes":{{"text":"not indexed"}}}}"#,
        n * 7 % 20,
        n.is_multiple_of(2),
        n + 1,
        n % 40,
        n % 30,
    );
    (format!(r#"["c{customer}"]"#), body)
}

fn create(container: &str, key: &str, body: &str) -> Ask {
    Ask::post(&format!("{container}/docs"), body).key(key)
}

fn long_item(length: usize, ending: usize) -> (String, Object) {
    let text = "x".repeat(length) + ENDINGS[ending];
    let pk = format!("p{}", length % 3);
    let item = Object::new()
        .with("id", format!("s{length}-{ending}"))
        .with("pk", pk.as_str())
        .with("n", (length % 2) as u64)
        .with("u", text.as_str())
        .with("s", text);
    (format!(r#"["{pk}"]"#), item)
}

/// Its row in the composite index of eight paths has the longest key that there is.
fn item_with_long_components(n: usize) -> (String, Object) {
    let item = Object::new().with("id", format!("k{n}")).with("pk", "k").with("u", n as u64);
    let text = |path: usize| ["v", "w"][(n >> (path % 3)) & 1].repeat(300 + n);
    let item = (1..=8).fold(item, |item, path| item.with(format!("a{path}"), text(path)));
    (r#"["k"]"#.to_owned(), item)
}

/// Everything up to the snapshot.
pub fn first_writes() -> Vec<Ask> {
    let mut asks = containers();
    asks.extend(scripts_and_users());
    asks.extend((0..40).map(order).map(|(key, body)| create(ORDERS, &key, &body)));
    for (length, ending) in LENGTHS.iter().flat_map(|length| (0..ENDINGS.len()).map(move |ending| (*length, ending))) {
        let (key, item) = long_item(length, ending);
        asks.push(create(LONG, &key, &json::to_string(&item.into())));
    }
    for (key, item) in (0..4).map(item_with_long_components) {
        asks.push(create(LONG, &key, &json::to_string(&item.into())));
    }
    for n in 0..12 {
        let (tenant, user, session) = (n % 2, n % 3, n);
        let body = format!(r#"{{"id":"t{n}","tenant":"t{tenant}","user":"u{user}","session":{session},"n":{n}}}"#);
        asks.push(create(TENANTS, &format!(r#"["t{tenant}","u{user}",{session}]"#), &body));
        let text = ["The king of rock", "Rocks and rivers", "A river runs to the sea"][n % 3];
        let body = format!(r#"{{"id":"x{n}","text":"{text} {n}","v":[{n}.5,{}]}}"#, n % 4);
        asks.push(create(TEXTS, &format!(r#"["x{n}"]"#), &body));
        let pk = "p".repeat(n * 20 + 1);
        asks.push(create(FIRST_HASH, &format!(r#"["{pk}"]"#), &format!(r#"{{"id":"f{n}","pk":"{pk}"}}"#)));
    }
    // A lone dash; a value that is no text, and a vector of another length; neither of both.
    for (id, rest) in [
        ("dash", r#","text":"Rock – the first of all rivers""#),
        ("list", r#","text":["rock"],"v":[1]"#),
        ("empty", ""),
    ] {
        asks.push(create(TEXTS, &format!(r#"["{id}"]"#), &format!(r#"{{"id":"{id}"{rest}}}"#)));
    }
    asks
}

/// Everything after the snapshot and the split.
pub fn later_writes() -> Vec<Ask> {
    let mut asks = Vec::new();
    for n in [1, 7, 13] {
        asks.push(Ask::delete(&format!("{ORDERS}/docs/o{n}")).key(&order(n).0));
    }
    for n in [2, 8] {
        let (key, body) = order(n);
        let body = body.replace(&format!(r#""total":{}"#, n * 7 % 20), r#""total":99"#);
        asks.push(Ask::put(&format!("{ORDERS}/docs/o{n}"), &body).key(&key));
    }
    asks.extend((40..50).map(order).map(|(key, body)| create(ORDERS, &key, &body)));
    let (key, item) = long_item(1001, 1);
    asks.push(Ask::delete(&format!("{LONG}/docs/s1001-1")).key(&key));
    asks.push(create(LONG, &key, &json::to_string(&item.with("id", "again").into())));
    let (key, item) = item_with_long_components(3);
    let item = item.with("a8", "z".repeat(400));
    asks.push(Ask::put(&format!("{LONG}/docs/k3"), &json::to_string(&item.into())).key(&key));
    // The first expires at once, the second in 60 years.
    for (id, ttl) in [("brief", 1), ("lasting", 2_000_000_000)] {
        let body = format!(r#"{{"id":"{id}","tenant":"t","user":"u","session":0,"ttl":{ttl}}}"#);
        asks.push(create(TENANTS, r#"["t","u",0]"#, &body));
    }
    asks.push(Ask::delete(&format!("{FIRST_HASH}/docs/f3")).key(&format!(r#"["{}"]"#, "p".repeat(61))));
    asks
}

/// Questions whose answers a restore of the snapshot brings back.
pub fn questions() -> Vec<Ask> {
    let mut asks = Vec::new();
    for container in [ORDERS, TENANTS, LONG, FIRST_HASH, TEXTS] {
        asks.push(query(container, "SELECT * FROM c"));
        asks.push(Ask::get(container));
        asks.push(Ask::get(&format!("{container}/docs")).header("x-ms-max-item-count", "1000"));
    }
    let texts = [
        (ORDERS, "SELECT VALUE c.id FROM c WHERE c.total > 5 ORDER BY c.total DESC"),
        (ORDERS, "SELECT c.id, c.total FROM c WHERE c.city = 'Oslo' ORDER BY c.city, c.total DESC"),
        (ORDERS, "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.lines, 12)"),
        (ORDERS, "SELECT VALUE udf.twice(c.total) FROM c WHERE c.number IN (2, 3, 4)"),
        (ORDERS, "SELECT c.city, COUNT(1) AS orders, SUM(c.total) AS total FROM c GROUP BY c.city"),
        (
            ORDERS,
            "SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.place, {'type':'Point','coordinates':[10,10]}) < 900000",
        ),
        (TENANTS, "SELECT VALUE c.id FROM c WHERE c.tenant = 't1' AND c.n >= 3 ORDER BY c.n"),
        (TEXTS, "SELECT VALUE c.id FROM c WHERE FULLTEXTCONTAINS(c.text, 'rock')"),
        (TEXTS, "SELECT VALUE c.id FROM c WHERE FULLTEXTCONTAINS(c.text, 'runs to the seas')"),
        (TEXTS, "SELECT TOP 3 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [3, 1])"),
        (TEXTS, "SELECT VALUE c.low FROM c WHERE c.id = 'x4'"),
        (LONG, "SELECT VALUE c.id FROM c ORDER BY c.s"),
        (LONG, "SELECT VALUE c.id FROM c ORDER BY c.s DESC"),
        (LONG, "SELECT VALUE c.id FROM c ORDER BY c.n, c.s"),
        (LONG, "SELECT VALUE c.id FROM c ORDER BY c.a1, c.a2 DESC, c.a3, c.a4 DESC, c.a5, c.a6 DESC, c.a7, c.a8 DESC"),
    ];
    asks.extend(texts.map(|(container, text)| query(container, text)));
    for (length, ending) in LENGTHS.iter().flat_map(|length| [(*length, ""), (*length, "a")]) {
        let text = "x".repeat(length) + ending;
        for condition in ["c.s = @s", "c.s > @s", "c.s <= @s", "STARTSWITH(c.s, @s)", "c.n = 1 AND c.s >= @s"] {
            let text_of_query = format!("SELECT VALUE c.id FROM c WHERE {condition} ORDER BY c.s");
            asks.push(query_with(LONG, &text_of_query, &[("@s", &text)]));
        }
        // A unique value that is taken.
        let item = Object::new().with("id", "new").with("pk", format!("p{}", length % 3)).with("u", text);
        asks.push(create(LONG, &format!(r#"["p{}"]"#, length % 3), &json::to_string(&item.into())));
    }
    asks.push(create(ORDERS, r#"["c2"]"#, r#"{"id":"new","customer":"c2","number":2}"#));
    asks.push(Ask::post(&format!("{ORDERS}/sprocs/count"), "[]").key(r#"["c2"]"#));
    for feed in ["sprocs", "udfs", "triggers"] {
        asks.push(Ask::get(&format!("{ORDERS}/{feed}")));
    }
    asks.extend(["/dbs", "/dbs/shop/users", "/dbs/shop/users/ann/permissions"].map(Ask::get));
    asks
}

/// Questions about partitions, which a restore gives new ids.
pub fn questions_by_range() -> Vec<Ask> {
    let feed = |container: &str, range: &str| {
        Ask::get(&format!("{container}/docs"))
            .header("a-im", "Incremental Feed")
            .header("x-ms-max-item-count", "1000")
            .header("x-ms-documentdb-partitionkeyrangeid", range)
    };
    let mut asks = vec![feed(ORDERS, "1"), feed(ORDERS, "2"), feed(TENANTS, "0"), feed(LONG, "0")];
    asks.extend([feed(FIRST_HASH, "0"), feed(TEXTS, "0"), Ask::get("/offers")]);
    asks.push(Ask::get(&format!("{ORDERS}/pkranges")));
    asks.push(Ask::get("/_pleiad/v1/containers/shop/orders/statistics"));
    asks.push(Ask::get(&format!("{TENANTS}/docs/brief")).key(r#"["t","u",0]"#));
    asks.push(Ask::get(&format!("{TENANTS}/docs/lasting")).key(r#"["t","u",0]"#));
    asks.push(Ask::get(&format!("{ORDERS}/docs/o1")).key(r#"["c1"]"#));
    asks
}
