//! Authorization: every credential on every route gets exactly the documented status.
//!
//! The table below is the complete list: a route that is missing in it is not tested. A wrong cell fails the test with
//! the route in the message.
//!
//! ```text
//! .  the same status as with the account's key     3  403
//! 0  403/5300, management     1  403/5301, metadata     2  403/5302, data
//! ```
//!
//! Without a valid credential every request gets 401, and the account's key may do everything; these columns are not in
//! the table.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "golden/bearer.rs"]
mod bearer; // bearer tokens, signed as an issuer signs them
#[path = "golden/client.rs"]
mod client; // HTTP requests, signed as a client signs them

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pleiad_model::{Value, json};
use tempfile::TempDir;

use client::{Client, EMULATOR_KEY, READ_ONLY_KEY, Request, Response, authorization};

type Result<T, E = String> = std::result::Result<T, E>;

/// The columns:
///
/// - the read-only key;
/// - resource tokens of permissions for the container, item `1` without a key, key `["a"]`, item `1` under key `["a"]` and procedure
///   `s`, each in mode Read and in mode All; for item `1` by its `_rid`, in mode All; for the container in mode None;
///   for keys of container `h` with the prefix `["a"]`, in mode All;
/// - bearer tokens of principals with the reader role on the account, the contributor role on the account, the reader
///   role on the database, the contributor role on the container, a custom role on the container (metadata, create,
///   execute procedures), no role;
/// - the emulator's token.
const CREDENTIALS: [&str; 21] = [
    "read-only",
    "container-read",
    "container-all",
    "item-read",
    "item-all",
    "key-read",
    "key-all",
    "item_key-read",
    "item_key-all",
    "procedure-read",
    "procedure-all",
    "rid-all",
    "container-none",
    "prefix-all",
    "token:reader",
    "token:contributor",
    "token:database-reader",
    "token:container-contributor",
    "token:collector",
    "token:nobody",
    "emulator-token",
];

/// One row per request: the cells, then method, path, words for headers (`KEY a`) and the body. `<n>` is a different
/// number in every request. The request before `THEN` is sent with the account's key, each time.
const TABLE: &str = r#"
.  ......  .....3.  .....1.  GET /
.  333333  3333333  ..1111.  GET /dbs
.  333333  3333333  ..1111.  POST /dbs QUERY {"query":"SELECT * FROM c"}
3  333333  3333333  0000000  POST /dbs {"id":"new"}
.  333333  3333333  ...111.  GET /dbs/golden1
.  333333  3333333  ..1111.  GET /dbs/away
.  333333  3333333  ...111.  GET /dbs/golden1/colls
.  333333  3333333  ...111.  POST /dbs/golden1/colls QUERY {"query":"SELECT * FROM c"}
3  333333  3333333  0000000  POST /dbs/golden1/colls {"id":"new","partitionKey":{"paths":["/pk"]}}
.  ......  .....33  .....1.  GET /dbs/golden1/colls/c
.  ......  .....33  .....1.  GET <c>
.  333333  3333333  ...111.  GET /dbs/golden1/colls/other
.  333333  3333333  ..1111.  GET /dbs/away/colls/c
.  333333  3333333  ..1111.  GET <away>
3  3.3333  3333333  0000000  PUT /dbs/golden1/colls/c {"id":"c","partitionKey":{"paths":["/pk"]}}
.  ......  .....33  .....1.  GET /dbs/golden1/colls/c/pkranges
.  ......  .....33  ....22.  POST /dbs/golden1/colls/c/docs PLAN {"query":"SELECT * FROM c"}
.  ..33..  ..33333  ....22.  GET /dbs/golden1/colls/c/docs/1 KEY a
.  ..3333  3333333  ....22.  GET /dbs/golden1/colls/c/docs/1 KEY b
.  ..33..  3333333  ....22.  GET /dbs/golden1/colls/c/docs/2 KEY a
.  ..33..  3333.33  ....22.  GET <one> KEY a
.  333333  3333333  ...222.  GET /dbs/golden1/colls/other/docs/1 KEY a
.  333333  3333333  ..2222.  GET /dbs/away/colls/c/docs/1 KEY a
3  3.333.  3.33333  2.2.22.  PUT /dbs/golden1/colls/c/docs/1 KEY a {"id":"1","pk":"a"}
3  3.333.  3333.33  2.2.22.  PUT <one> KEY a {"id":"1","pk":"a"}
3  3.333.  3333333  2.2.22.  PUT /dbs/golden1/colls/c/docs/2 KEY a {"id":"2","pk":"a"}
3  3.3333  3333333  2.2.22.  PUT /dbs/golden1/colls/c/docs/1 KEY b {"id":"1","pk":"b"}
3  3.333.  3.33333  2.2.22.  PATCH /dbs/golden1/colls/c/docs/1 KEY a [{"op":"set","path":"/n","value":1}]
3  3.333.  3333333  2.2.22.  DELETE /dbs/golden1/colls/c/docs/gone KEY a
3  3.333.  3333333  2.2..2.  POST /dbs/golden1/colls/c/docs KEY a {"id":"new<n>","pk":"a"}
3  3.3333  3333333  2.2..2.  POST /dbs/golden1/colls/c/docs KEY b {"id":"new<n>","pk":"b"}
3  3.333.  3333333  2.2.22.  POST /dbs/golden1/colls/c/docs KEY a UPSERT {"id":"1","pk":"a"}
3  333333  3333333  2.2222.  POST /dbs/golden1/colls/other/docs KEY a UPSERT {"id":"1","pk":"a"}
3  3.333.  3333333  2.2..2.  POST /dbs/golden1/colls/c/docs KEY a BATCH [{"operationType":"Create","resourceBody":{"id":"new<n>","pk":"a"}}]
3  3.333.  3333333  2.2.22.  POST /dbs/golden1/colls/c/docs KEY a BATCH [{"operationType":"Create","resourceBody":{"id":"new<n>","pk":"a"}},{"operationType":"Read","id":"1"}]
3  3.333.  3333333  ....22.  POST /dbs/golden1/colls/c/docs KEY a BATCH [{"operationType":"Read","id":"1"}]
3  3.333.  3333333  ....22.  POST /dbs/golden1/colls/c/docs KEY a BULK [{"operationType":"Read","id":"1"}]
3  3.3333  3333333  ....22.  POST /dbs/golden1/colls/c/docs BULK [{"operationType":"Read","id":"1","partitionKey":"[\"a\"]"}]
3  3.3333  3333333  2.2..2.  POST /dbs/golden1/colls/c/docs RANGE 0 BULK [{"operationType":"Create","partitionKey":"[\"a\"]","resourceBody":{"id":"new<n>","pk":"a"}}]
.  ..3333  3333333  ....22.  GET /dbs/golden1/colls/c/docs
.  ..33..  3333333  ....22.  GET /dbs/golden1/colls/c/docs KEY a
.  ..3333  3333333  ....22.  GET /dbs/golden1/colls/c/docs CHANGES
.  ..33..  3333333  ....22.  GET /dbs/golden1/colls/c/docs KEY a CHANGES
.  ..3333  3333333  ....22.  POST /dbs/golden1/colls/c/docs CHANGES QUERY {"query":"SELECT * FROM c"}
.  ..33..  3333333  ....22.  POST /dbs/golden1/colls/c/docs KEY a CHANGES QUERY {"query":"SELECT * FROM c"}
.  ..3333  3333333  ....22.  POST /dbs/golden1/colls/c/docs QUERY {"query":"SELECT * FROM c"}
.  ..33..  3333333  ....22.  POST /dbs/golden1/colls/c/docs KEY a QUERY {"query":"SELECT * FROM c"}
.  ..3333  3333333  ....22.  POST /dbs/golden1/colls/c/docs KEY b QUERY {"query":"SELECT * FROM c"}
.  ..33..  3333333  ....22.  GET /dbs/golden1/colls/c/docs EPK 3A5381E1114EB8D3FCC90795045B49B7 3A5381E1114EB8D3FCC90795045B49B8 CHANGES
.  ..33..  3333333  ....22.  POST /dbs/golden1/colls/c/docs EPK 3A5381E1114EB8D3FCC90795045B49B7 3A5381E1114EB8D3FCC90795045B49B8 QUERY {"query":"SELECT * FROM c"}
.  ..3333  3333333  ....22.  GET /dbs/golden1/colls/c/docs EPK 00 FF CHANGES
.  ..3333  3333333  ....22.  POST /dbs/golden1/colls/c/docs RANGE 0 QUERY {"query":"SELECT * FROM c"}
3  3.3333  3333333  2.2.22.  POST /dbs/golden1/colls/c/operations/partitionkeydelete KEY nobody
3  3.3333  3333333  2.2.22.  POST /dbs/golden1/colls/c/operations/partitionkeydelete KEY nobody QUERY
3  3.3333  3333333  2.2.22.  POST /dbs/golden1/colls/c/operations/partitionkeydelete KEY nobody PLAN
.  ..3333  3333333  2.2.22.  GET /dbs/golden1/colls/c/conflicts
3  3.3333  3333333  2.2.22.  DELETE /dbs/golden1/colls/c/conflicts/gone KEY a
.  ..3333  3333333  0000000  GET /dbs/golden1/colls/c/sprocs
.  ..3333  3333333  0000000  POST /dbs/golden1/colls/c/sprocs QUERY {"query":"SELECT * FROM c"}
.  ..3333  33..333  0000000  GET /dbs/golden1/colls/c/sprocs/s
3  3.3333  3333333  0000000  POST /dbs/golden1/colls/c/sprocs {"id":"new<n>","body":"function() {}"}
3  3.3333  333.333  0000000  PUT /dbs/golden1/colls/c/sprocs/s {"id":"s","body":"function() {}"}
3  3.3333  3333333  0000000  DELETE /dbs/golden1/colls/c/sprocs/gone
3  3.333.  333.333  2.2..2.  POST /dbs/golden1/colls/c/sprocs/s KEY a []
3  3.3333  333.333  2.2..2.  POST /dbs/golden1/colls/c/sprocs/s KEY b []
3  3.333.  333.333  2.2..2.  POST /dbs/golden1/colls/c/sprocs/s KEY a QUERY []
3  3.333.  333.333  2.2..2.  POST /dbs/golden1/colls/c/sprocs/s KEY a PLAN []
.  ..3333  3333333  0000000  GET /dbs/golden1/colls/c/triggers
3  3.3333  3333333  0000000  POST /dbs/golden1/colls/c/triggers {"id":"new<n>","body":"function() {}","triggerType":"Pre","triggerOperation":"All"}
.  ..3333  3333333  0000000  GET /dbs/golden1/colls/c/udfs
3  3.3333  3333333  0000000  POST /dbs/golden1/colls/c/udfs {"id":"new<n>","body":"function() {}"}
.  333333  3333333  0000000  GET /dbs/golden1/colls/c/docs/1/attachments
.  333333  3333333  0000000  GET /dbs/golden1/users
.  333333  3333333  0000000  POST /dbs/golden1/users QUERY {"query":"SELECT * FROM c"}
.  333333  3333333  0000000  GET /dbs/golden1/users/u
3  333333  3333333  0000000  POST /dbs/golden1/users {"id":"new<n>"}
3  333333  3333333  0000000  DELETE /dbs/golden1/users/gone
3  333333  3333333  0000000  GET /dbs/golden1/users/u/permissions
3  333333  3333333  0000000  POST /dbs/golden1/users/u/permissions QUERY {"query":"SELECT * FROM c"}
3  333333  3333333  0000000  GET /dbs/golden1/users/u/permissions/p
3  333333  3333333  0000000  PUT /dbs/golden1/users/u/permissions/p {"id":"p","permissionMode":"All","resource":"dbs/golden1/colls/c"}
3  333333  3333333  0000000  DELETE /dbs/golden1/users/u/permissions/gone
3  333333  3333333  0000000  POST /dbs/golden1/users/u/permissions {"id":"new<n>","permissionMode":"All","resource":"dbs/golden1/colls/new<n>"}
.  333333  3333333  ...111.  GET /dbs/golden1/clientencryptionkeys
3  333333  3333333  0000000  POST /dbs/golden1/clientencryptionkeys {"id":"new<n>"}
.  333333  3333333  0000000  GET /offers
.  333333  3333333  0000000  POST /offers QUERY {"query":"SELECT * FROM c"}
3  333333  3333333  0000000  PUT /offers/AAAA {}
.  333333  3333333  .....1.  GET /addresses/?$resolveFor=dbs/golden1/colls/c/docs
.  000000  0000000  000000.  GET /_pleiad/v1/containers
.  000000  0000000  000000.  GET /_pleiad/v1/containers/golden1/c
.  000000  0000000  000000.  GET /_pleiad/v1/containers/golden1/c/partitions
3  000000  0000000  0000000  POST /_pleiad/v1/containers/golden1/c/partitions/split {}
.  000000  0000000  000000.  GET /_pleiad/v1/snapshots
3  000000  0000000  0000000  PUT /_pleiad/v1/snapshots/s {}
3  000000  0000000  0000000  POST /_pleiad/v1/snapshots/s/restore {}
3  000000  0000000  0000000  DELETE /_pleiad/v1/snapshots/s
3  000000  0000000  0000000  POST /_pleiad/v1/databases/golden1/copy {"to":"x"}
.  333333  333333.  ...111.  GET /dbs/golden1/colls/h
3  333333  3333333  0000000  PUT /dbs/golden1/colls/h {"id":"h","partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2}}
.  333333  333333.  ...222.  GET /dbs/golden1/colls/h/docs/1 KEY a,x
.  333333  3333333  ...222.  GET /dbs/golden1/colls/h/docs/1 KEY b,x
.  333333  333333.  ...222.  GET /dbs/golden1/colls/h/docs KEY a
.  333333  3333333  ...222.  GET /dbs/golden1/colls/h/docs
.  333333  333333.  ...222.  GET /dbs/golden1/colls/h/docs EPK 3A5381E1114EB8D3FCC90795045B49B7 3A5381E1114EB8D3FCC90795045B49B7FF CHANGES
.  333333  3333333  ...222.  GET /dbs/golden1/colls/h/docs EPK 3A5381E1114EB8D3FCC90795045B49B7 3A5381E1114EB8D3FCC90795045B49B8 CHANGES
3  333333  333333.  2.2222.  POST /dbs/golden1/colls/h/docs KEY a,x {"id":"new<n>","a":"a","b":"x"}
3  333333  3333333  2.2222.  POST /dbs/golden1/colls/h/docs KEY b,x {"id":"new<n>","a":"b","b":"x"}
3  3.333.  3333333  2.2.22.  POST /dbs/golden1/colls/c/docs KEY a UPSERT {"id":"1","pk":"a"} THEN PUT /dbs/golden1/colls/c/docs/1 KEY a {"id":"new<n>","pk":"a"}
3  3.3333  3333333  0000000  POST /dbs/golden1/colls {"id":"c","partitionKey":{"paths":["/pk"]}} THEN DELETE /dbs/golden1/colls/c
3  333333  3333333  0000000  DELETE /dbs/golden1
"#;

struct Server {
    child: Child,
    client: Client,
    roles: std::path::PathBuf,
    /// Deleted with the server.
    _data: TempDir,
    /// Resource tokens, by the name of their column.
    tokens: Vec<(&'static str, String)>,
    /// Paths that contain resource ids, by placeholder.
    rid_paths: Vec<(&'static str, String)>,
    request_count: usize,
}

impl Server {
    fn start() -> Server {
        let data = TempDir::new().unwrap();
        let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let roles = data.path().join("roles.json");
        std::fs::copy(golden.join("roles.json"), &roles).unwrap();
        let mut pleiad = Command::new(env!("CARGO_BIN_EXE_pleiad"));
        pleiad.args(["dev", "--quiet", "--port=0", "--tls=off", "--log-level=error", "--ephemeral"]);
        pleiad.arg("--token-keys").arg(golden.join("token_keys.json")).arg("--roles").arg(&roles);
        pleiad.arg(format!("--token-issuer={}", bearer::ISSUER)).arg(format!("--token-audience={}", bearer::AUDIENCE));
        pleiad.env_clear().env("PLEIAD_PRIMARY_KEY", EMULATOR_KEY).env("PLEIAD_PRIMARY_READ_ONLY_KEY", READ_ONLY_KEY);
        let (child, client) = spawn(pleiad);
        Server { child, client, roles, _data: data, tokens: Vec::new(), rid_paths: Vec::new(), request_count: 0 }
    }

    /// Sends the requests of one row of the table.
    fn send_row(&mut self, credential: Option<&str>, line: &str) -> Response {
        let Some((first, line)) = line.split_once(" THEN ") else { return self.request(credential, line) };
        self.request(None, first);
        self.request(credential, line)
    }

    /// Sends one request in the notation of the table.
    fn request(&mut self, credential: Option<&str>, line: &str) -> Response {
        let (line, body) = split_body(line);
        let mut words = line.split_whitespace();
        let (method, path) = (words.next().unwrap(), self.path(words.next().unwrap()));
        self.request_count += 1;
        let body = body.replace("<n>", &self.request_count.to_string());
        let mut headers = self.signed(credential, method, &path);
        while let Some(word) = words.next() {
            let (name, value) = match word {
                "KEY" => (
                    "x-ms-documentdb-partitionkey",
                    format!("{:?}", words.next().unwrap().split(',').collect::<Vec<_>>()),
                ),
                "RANGE" => ("x-ms-documentdb-partitionkeyrangeid", words.next().unwrap().to_owned()),
                "EPK" => {
                    headers.push(("x-ms-start-epk".to_owned(), words.next().unwrap().to_owned()));
                    ("x-ms-end-epk", words.next().unwrap().to_owned())
                }
                "QUERY" => ("x-ms-documentdb-isquery", "True".to_owned()),
                "PLAN" => ("x-ms-cosmos-is-query-plan-request", "True".to_owned()),
                "UPSERT" => ("x-ms-documentdb-is-upsert", "True".to_owned()),
                "BATCH" | "BULK" => ("x-ms-cosmos-is-batch-request", "True".to_owned()),
                "CHANGES" => ("a-im", "Incremental Feed".to_owned()),
                other => panic!("{other}"),
            };
            headers.push((name.to_owned(), value));
        }
        if line.contains("BATCH") {
            headers.push(("x-ms-cosmos-batch-atomic".to_owned(), "True".to_owned()));
        }
        if line.contains("BULK") {
            headers.push(("x-ms-cosmos-batch-continue-on-error".to_owned(), "True".to_owned()));
        }
        self.client.send(&Request { method, path: &path, headers, body: body.as_bytes() }).unwrap()
    }

    fn path(&self, written: &str) -> String {
        let known = self.rid_paths.iter().find(|(name, _)| *name == written);
        known.map_or(written.to_owned(), |(_, path)| path.clone())
    }

    fn signed(&self, credential: Option<&str>, method: &str, path: &str) -> Vec<(String, String)> {
        let issued = self.tokens.iter().find(|(name, _)| Some(*name) == credential);
        match issued {
            Some((_, token)) => vec![("authorization".to_owned(), token.replace('&', "%26").replace('=', "%3D"))],
            None => authorization(credential, method, path).unwrap(),
        }
    }

    fn must_succeed(&mut self, line: &str) -> Value {
        let response = self.send_row(None, line);
        let message = String::from_utf8_lossy(&response.body).into_owned();
        assert!((200..300).contains(&response.status), "{line}: {} {message}", response.status);
        json::parse(&response.body).unwrap_or(Value::Null)
    }

    /// Creates two databases, four containers, items, a procedure, and a user with a permission for each column.
    fn create_resources(&mut self) {
        for line in [
            r#"POST /dbs {"id":"golden1"}"#,
            r#"POST /dbs {"id":"away"}"#,
            r#"POST /dbs/golden1/colls {"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#,
            r#"POST /dbs/golden1/colls {"id":"other","partitionKey":{"paths":["/pk"]}}"#,
            r#"POST /dbs/golden1/colls {"id":"h","partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2}}"#,
            r#"POST /dbs/away/colls {"id":"c","partitionKey":{"paths":["/pk"]}}"#,
            r#"POST /dbs/golden1/colls/c/docs KEY a {"id":"1","pk":"a"}"#,
            r#"POST /dbs/golden1/colls/c/docs KEY a {"id":"2","pk":"a"}"#,
            r#"POST /dbs/golden1/colls/other/docs KEY a {"id":"1","pk":"a"}"#,
            r#"POST /dbs/golden1/colls/h/docs KEY a,x {"id":"1","a":"a","b":"x"}"#,
            r#"POST /dbs/golden1/colls/c/sprocs {"id":"s","body":"function() {}"}"#,
            r#"POST /dbs/golden1/users {"id":"u"}"#,
            r#"POST /dbs/golden1/users/u/permissions {"id":"p","permissionMode":"Read","resource":"dbs/golden1/colls/c"}"#,
        ] {
            self.must_succeed(line);
        }
        let rid_targets = [
            ("<c>", "/dbs/golden1/colls/c"),
            ("<away>", "/dbs/away/colls/c"),
            ("<one>", "/dbs/golden1/colls/c/docs/1 KEY a"),
        ];
        for (name, path) in rid_targets {
            let found = self.must_succeed(&format!("GET {path}"));
            let link = found.get("_self").and_then(Value::as_str).unwrap();
            self.rid_paths.push((name, format!("/{}", link.trim_end_matches('/'))));
        }
        let one = self.path("<one>");
        for name in CREDENTIALS {
            let Some((scope, mode)) = name.split_once('-') else { continue };
            let resource = match scope {
                "container" => r#""dbs/golden1/colls/c""#.to_owned(),
                "item" => r#""dbs/golden1/colls/c/docs/1""#.to_owned(),
                "key" => r#""dbs/golden1/colls/c","resourcePartitionKey":["a"]"#.to_owned(),
                "item_key" => r#""dbs/golden1/colls/c/docs/1","resourcePartitionKey":["a"]"#.to_owned(),
                "procedure" => r#""dbs/golden1/colls/c/sprocs/s""#.to_owned(),
                "rid" => format!("{one:?}"),
                "prefix" => r#""dbs/golden1/colls/h","resourcePartitionKey":["a"]"#.to_owned(),
                _ => continue,
            };
            self.grant(name, mode, &resource);
        }
    }

    /// A user can have only one permission for a resource, so each permission has its own user.
    fn grant(&mut self, name: &'static str, mode: &str, resource: &str) {
        self.must_succeed(&format!(r#"POST /dbs/golden1/users {{"id":"{name}"}}"#));
        let permission = self.must_succeed(&format!(
            r#"POST /dbs/golden1/users/{name}/permissions {{"id":"p","permissionMode":"{mode}","resource":{resource}}}"#
        ));
        self.tokens.push((name, permission.get("_token").and_then(Value::as_str).unwrap().to_owned()));
    }
}

/// Starts a server and connects to it.
fn spawn(mut pleiad: Command) -> (Child, Client) {
    let mut child = pleiad.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = json::parse(line.as_bytes()).unwrap().get("port").and_then(Value::as_i64).unwrap();
    (child, Client::new(u16::try_from(port).unwrap()))
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill(); // fails if it has exited already
        let _ = self.child.wait();
    }
}

fn split_body(line: &str) -> (&str, &str) {
    let at = line.find(" {").or_else(|| line.find(" [")).map_or(line.len(), |at| at + 1);
    line.split_at(at)
}

/// The table's cell for this response; `key` is the status that the account's key gets.
fn cell(response: &Response, key: u16) -> char {
    match (response.status, response.header("x-ms-substatus").unwrap_or("0")) {
        (401, _) => 'u',
        (403, "5300") => '0',
        (403, "5301") => '1',
        (403, "5302") => '2',
        (403, "0") => '3',
        (403, _) => '?',
        (status, _) if status == key && (status < 500 || status == 501) => '.',
        _ => '!',
    }
}

#[test]
fn s131_every_credential_reaches_exactly_what_is_documented() {
    let mut server = Server::start();
    server.create_resources();
    let mut wrong = Vec::new();
    let unauthenticated = ["not", "wrong-key", "expired-token:contributor"];
    for row in TABLE.lines().filter(|row| !row.is_empty()) {
        let (cells, line) = row.split_at(row.find(|c: char| c.is_ascii_uppercase()).unwrap());
        let mut wanted: Vec<char> = cells.chars().filter(|c| !c.is_whitespace()).collect();
        assert_eq!(wanted.len(), CREDENTIALS.len(), "{row}");
        // A group with the reader role has the rights of the reader.
        wanted.push(wanted[CREDENTIALS.iter().position(|name| *name == "token:reader").unwrap()]);
        wanted.extend(['u'; 3]);
        let names = CREDENTIALS.into_iter().chain(["token:somebody+readers"]).chain(unauthenticated);
        let responses: Vec<Response> = names.map(|name| server.send_row(Some(name), line)).collect();
        // The account's key comes last: its request may delete the resource that the others use.
        let key = server.send_row(None, line).status;
        let got: Vec<char> = responses.iter().map(|response| cell(response, key)).collect();
        if got != wanted || [401, 403].contains(&key) {
            let statuses: Vec<u16> = responses.iter().map(|response| response.status).collect();
            wrong.push(format!("{line}\n  wanted {wanted:?}\n  got    {got:?}\n  {statuses:?}, the key {key}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn roles_are_reloaded_when_the_file_changes_and_invalid_files_are_ignored() {
    let mut server = Server::start();
    server.create_resources();
    let read = "GET /dbs/golden1/colls/c/docs/1 KEY a";
    assert_eq!(cell(&server.send_row(Some("token:newcomer"), read), 200), '2');
    let assignment =
        r#"{"roleDefinitionId":"00000000-0000-0000-0000-000000000001","principalId":"newcomer","scope":"/"}"#;
    std::fs::write(&server.roles, format!(r#"{{"sqlRoleAssignments":[{assignment}]}}"#)).unwrap();
    let began = Instant::now();
    while cell(&server.send_row(Some("token:newcomer"), read), 200) != '.' {
        assert!(began.elapsed() < Duration::from_secs(30), "the file was not reloaded");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(
        cell(&server.send_row(Some("token:reader"), read), 200),
        '2',
        "a principal whose assignment was removed has no rights"
    );
    std::fs::write(&server.roles, r#"{"sqlRoleAssignments":[{"principalId":"reader"}]}"#).unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(cell(&server.send_row(Some("token:newcomer"), read), 200), '.');
}

/// Only `dev` takes the place of an emulator.
#[test]
fn only_dev_accepts_emulator_tokens() {
    let status = |mode: &str| {
        let data = TempDir::new().unwrap();
        let mut pleiad = Command::new(env!("CARGO_BIN_EXE_pleiad"));
        pleiad.args([mode, "--quiet", "--port=0", "--tls=off", "--log-level=error", "--data"]).arg(data.path());
        pleiad.env_clear().env("PLEIAD_PRIMARY_KEY", READ_ONLY_KEY);
        let (mut child, mut client) = spawn(pleiad);
        let token = format!("type%3Daad%26ver%3D1.0%26sig%3D{}", bearer::emulator_token(READ_ONLY_KEY));
        let headers = vec![("authorization".to_owned(), token)];
        let response = client.send(&Request { method: "GET", path: "/dbs", headers, body: b"" });
        let _ = child.kill(); // fails if it has exited already
        let _ = child.wait();
        response.unwrap().status
    };
    assert_eq!([status("dev"), status("serve")], [200, 401]);
}

#[test]
fn incomplete_token_settings_prevent_the_start() {
    let assert_rejected = |flags: &[&str], why: &str| {
        let mut pleiad = Command::new(env!("CARGO_BIN_EXE_pleiad"));
        pleiad.args(["dev", "--quiet", "--port=0", "--tls=off", "--ephemeral"]).args(flags).env_clear();
        let output = pleiad.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && stderr.contains(why), "{flags:?}: {stderr}");
    };
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let file = |name: &str| golden.join(name).to_str().unwrap().to_owned();
    let (keys, roles) =
        (format!("--token-keys={}", file("token_keys.json")), format!("--roles={}", file("roles.json")));
    let token_flags = ["--token-issuer=i", "--token-audience=a"];
    assert_rejected(&[&roles], "token-keys");
    assert_rejected(&[&keys], "token-issuer");
    assert_rejected(&[&keys, &roles, "--token-issuer=i"], "token-audience");
    assert_rejected(&[&keys, "--token-keys-url=http://localhost:1/", token_flags[0], token_flags[1]], "not both");
    assert_rejected(&["--token-keys=/nowhere", token_flags[0], token_flags[1]], "/nowhere");
    assert_rejected(&[&keys, "--roles=/nowhere", token_flags[0], token_flags[1]], "/nowhere");
    let keys_as_roles = format!("--roles={}", file("token_keys.json"));
    assert_rejected(&[&keys, &keys_as_roles, token_flags[0], token_flags[1]], "token_keys.json");
}
