//! Commands to a running server, run with the real binary as a user runs them.
//!
//! The tests check that the output shows the server's state, as tables and as JSON, and that an error says what to do
//! next and has exit code 1. The golden pages of the management API check the responses in detail.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "golden/bearer.rs"]
mod bearer; // bearer tokens, signed as an issuer signs them
#[path = "golden/client.rs"]
mod client; // HTTP requests, signed as a client signs them

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use pleiad_model::{Value, json};
use tempfile::TempDir;

use client::{Client, EMULATOR_KEY, READ_ONLY_KEY, Request, authorization};

struct Server {
    child: Child,
    port: u16,
    /// Deleted with the server.
    data: TempDir,
}

type Result<T, E = String> = std::result::Result<T, E>;

impl Server {
    fn start(flags: &[&str]) -> Server {
        Server::start_as("dev", EMULATOR_KEY, flags)
    }

    fn start_as(face: &str, key: &str, flags: &[&str]) -> Server {
        let data = TempDir::new().unwrap();
        let mut pleiad = Command::new(env!("CARGO_BIN_EXE_pleiad"));
        pleiad.args([face, "--quiet", "--port=0", "--log-level=error", "--data"]).arg(data.path()).args(flags);
        let pleiad = pleiad.env_clear().env("PLEIAD_PRIMARY_KEY", key);
        let mut child = pleiad.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = json::parse(line.as_bytes()).unwrap().get("port").and_then(Value::as_i64).unwrap();
        Server { child, port: u16::try_from(port).unwrap(), data }
    }

    fn authority(&self) -> PathBuf {
        self.data.path().join("certificates/ca.pem")
    }

    /// Runs the program with this server's endpoint in the environment.
    fn order(&self, words: &[&str]) -> Output {
        order(&format!("http://localhost:{}", self.port), words)
    }

    #[track_caller]
    fn says(&self, words: &[&str]) -> String {
        let output = self.order(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        json::parse(self.says(&[words, &["--json"]].concat()).as_bytes()).unwrap()
    }

    #[track_caller]
    fn refuses(&self, words: &[&str], why: &str) {
        check_refusal(&self.order(words), why);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill(); // fails if it has exited already
        let _ = self.child.wait();
    }
}

fn order(endpoint: &str, words: &[&str]) -> Output {
    let mut pleiad = Command::new(env!("CARGO_BIN_EXE_pleiad"));
    pleiad.env_clear().env("PLEIAD_ENDPOINT", endpoint).args(words).output().unwrap()
}

#[track_caller]
fn check_refusal(output: &Output, why: &str) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains(why), "{told}");
}

#[test]
fn s64_containers_are_created_and_scaled_from_the_command_line() {
    let server = Server::start(&["--initial-ranges=2", "--tls=off"]);
    let made =
        server.says(&["containers", "create", "My Db/orders", "--partition-key", "/customer", "--throughput", "400"]);
    assert_eq!(made, "400 RU/s (at least 400)\n");
    assert_eq!(server.says(&["throughput", "set", "My Db/orders", "1000"]), "1000 RU/s (at least 400)\n");
    let scaled = server.json(&["throughput", "set", "My Db/orders", "2000", "--autoscale"]);
    assert_eq!(scaled.get("autoscaleMaxThroughput").and_then(Value::as_i64), Some(2000));
    assert_eq!(server.says(&["throughput", "show", "My Db/orders"]), "autoscale, up to 2000 RU/s (at least 1000)\n");
    server.refuses(&["throughput", "set", "My Db/orders", "150"], "less than required minimum throughput 400 (400)");
    server.refuses(&["throughput", "show", "My Db"], "ask its containers");
    server.refuses(&["containers", "create", "My Db/orders", "--partition-key", "/customer"], "(409)");
}

#[test]
fn s56_partitions_and_keys_are_listed() {
    let server = Server::start(&["--initial-ranges=2", "--tls=off", "--partition-max-bytes=10MB"]);
    server.says(&["containers", "create", "db/c", "--partition-key", "/a", "--partition-key", "/b"]);
    let table = server.says(&["partitions", "list", "db/c"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("ID  RANGE"), "{table}");
    assert!(lines[1].starts_with("0   -, ") && lines[1].ends_with("online"), "{table}");
    let told = server.json(&["partitions", "list", "db/c"]);
    let quotas =
        told.get("partitions").and_then(Value::as_array).unwrap().iter().map(|one| one.get("bytesMax").cloned());
    assert!(quotas.eq([Some(Value::from(10_000_000u64)), Some(Value::from(10_000_000u64))]));
    assert_eq!(server.says(&["keys", "top", "db/c"]), "no items\n");
    assert_eq!(server.says(&["throttles"]), "nobody was refused\n");
    server.refuses(&["partitions", "list", "db/none"], "(404)");
    server.refuses(&["partitions", "list", "db"], "write it as DB/CONTAINER");
}

#[test]
fn partitions_are_split_and_merged_from_the_command_line() {
    let server = Server::start(&["--initial-ranges=1", "--tls=off"]);
    server.says(&["containers", "create", "db/c", "--partition-key", "/pk"]);
    let told = server.says(&["partitions", "split", "db/c"]);
    assert!(told.trim_end().ends_with("split db/c 0 → 1 2  done"), "{told}");
    let told = server.says(&["partitions", "merge", "db/c", "1", "2"]);
    assert!(told.trim_end().ends_with("merge db/c 1 2 → 3  done"), "{told}");
    let job = server.json(&["partitions", "split", "db/c", "--range", "3", "--at", "[\"a\"]"]);
    assert_eq!(job.get("status").and_then(Value::as_str), Some("done"));
    let jobs = server.says(&["jobs", "--watch"]);
    assert_eq!(jobs.lines().count(), 3, "{jobs}");
    let begun = server.json(&["partitions", "split", "db/c", "--no-wait"]);
    assert!(begun.get("id").and_then(Value::as_str).is_some());
    server.says(&["jobs"]);
    server.refuses(&["partitions", "split", "db/c", "--range", "0"], "There is no partition 0 (any more)");
    server.refuses(&["partitions", "merge", "db/c", "4"], "2 values required");
    server.refuses(&["jobs", "pause", "999"], "There is no job 999");
}

#[test]
fn snapshots_are_taken_and_restored_from_the_command_line() {
    let server = Server::start(&["--tls=off"]);
    server.says(&["containers", "create", "db/c", "--partition-key", "/pk"]);
    assert_eq!(server.says(&["snapshot", "list"]), "no snapshots\n");
    let told = server.says(&["snapshot", "take", "before the test"]);
    assert!(told.starts_with("snapshot before the test is taken ("), "{told}");
    server.refuses(&["snapshot", "take", "before the test"], "say that it is to be replaced. (409)");
    server.says(&["snapshot", "take", "before the test", "--replace"]);
    server.says(&["containers", "create", "db/more", "--partition-key", "/pk"]);
    let told = server.says(&["snapshot", "restore", "before the test"]);
    assert!(told.starts_with("the account is what it was on ") && told.trim_end().ends_with(" ms"), "{told}");
    server.refuses(&["partitions", "list", "db/more"], "(404)");
    server.says(&["partitions", "list", "db/c"]);
    let listed = server.says(&["snapshot", "list"]);
    assert!(listed.lines().count() == 2 && listed.starts_with("NAME") && listed.contains(" GMT"), "{listed}");
    assert_eq!(server.says(&["snapshot", "delete", "before the test"]), "snapshot before the test is deleted\n");
    server.refuses(&["snapshot", "restore", "before the test"], "There is no snapshot named");
    for wrong in ["", "a/b", "ends "] {
        server.refuses(&["snapshot", "take", wrong], &format!("invalid value '{wrong}' for '<NAME>'"));
    }
}

#[test]
fn databases_are_copied_from_the_command_line() {
    let server = Server::start(&["--tls=off"]);
    server.says(&["containers", "create", "db/c", "--partition-key", "/pk"]);
    let told = server.says(&["databases", "copy", "db", "a copy"]);
    assert!(told.trim_end().ends_with("copy db → a copy  done"), "{told}");
    server.says(&["partitions", "list", "a copy/c"]);
    let begun = server.json(&["databases", "copy", "db", "another", "--no-wait"]);
    let id = begun.get("id").and_then(Value::as_str).unwrap().to_owned();
    let ended = server.json(&["jobs", "cancel", &id]);
    assert!(["cancelled", "done"].contains(&ended.get("status").and_then(Value::as_str).unwrap()));
    server.refuses(&["databases", "copy", "none", "more"], "(404)");
    server.refuses(&["databases", "copy", "db", "a copy"], "(409)");
    server.refuses(&["jobs", "cancel", "999"], "There is no job 999");
}

#[test]
fn the_generated_certificate_is_believed_when_it_is_given() {
    let server = Server::start(&["--tls=on"]);
    let (endpoint, authority) = (format!("https://localhost:{}", server.port), server.authority());
    check_refusal(&order(&endpoint, &["throttles"]), "--ca");
    let output = order(&endpoint, &["throttles", "--ca", authority.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let with_data = ["--key-file", "/nowhere"];
    check_refusal(&order(&endpoint, &[&["throttles"], &with_data[..]].concat()), "/nowhere");
}

#[test]
fn a_server_for_real_use_is_not_steered_by_tests() {
    // `serve` requires a key other than the well-known one.
    let server = Server::start_as("serve", READ_ONLY_KEY, &[]);
    let mut client = Client::new(server.port);
    let (fault, clock) = ("/_pleiad/v1/containers/db/c/partitions/0/fault", "/_pleiad/v1/topology/clock");
    for (method, path, body) in [
        ("PUT", fault, r#"{"kind":"gone"}"#),
        ("DELETE", fault, ""),
        ("POST", clock, "{}"),
        ("PUT", "/_pleiad/v1/topology/holds/copy", ""),
    ] {
        let headers = authorization(Some("read-only"), method, path).unwrap();
        let response = client.send(&Request { method, path, headers, body: body.as_bytes() }).unwrap();
        let told = String::from_utf8(response.body).unwrap();
        assert!(response.status == 403 && told.contains("`pleiad dev` has them"), "{method} {path}: {told}");
    }
}

#[test]
fn failures_say_what_to_do_next() {
    check_refusal(&order("http://localhost:1", &["throttles"]), "pleiad dev");
    check_refusal(&order("localhost:8081", &["throttles"]), "is not a URL");
    let server = Server::start(&["--tls=off"]);
    let mut pleiad = Command::new(env!("CARGO_BIN_EXE_pleiad"));
    let other_key = "bm9ib2R5J3Mga2V5IG5vYm9keSdzIGtleSBub2JvZHkncyBrZXk=";
    pleiad.env_clear().env("PLEIAD_PRIMARY_KEY", other_key).args(["throttles", "--endpoint"]);
    let output = pleiad.arg(format!("http://localhost:{}", server.port)).output().unwrap();
    check_refusal(&output, "PLEIAD_PRIMARY_KEY");
}
