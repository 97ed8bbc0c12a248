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

    fn start_as(mode: &str, key: &str, flags: &[&str]) -> Server {
        let data = TempDir::new().unwrap();
        let mut pleiad = Command::new(env!("CARGO_BIN_EXE_pleiad"));
        pleiad.args([mode, "--quiet", "--port=0", "--log-level=error", "--data"]).arg(data.path()).args(flags);
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
    fn run_command(&self, words: &[&str]) -> Output {
        run_command(&format!("http://localhost:{}", self.port), words)
    }

    #[track_caller]
    fn stdout(&self, words: &[&str]) -> String {
        let output = self.run_command(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        json::parse(self.stdout(&[words, &["--json"]].concat()).as_bytes()).unwrap()
    }

    #[track_caller]
    fn assert_fails(&self, words: &[&str], why: &str) {
        assert_failure(&self.run_command(words), why);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill(); // fails if it has exited already
        let _ = self.child.wait();
    }
}

fn run_command(endpoint: &str, words: &[&str]) -> Output {
    let mut pleiad = Command::new(env!("CARGO_BIN_EXE_pleiad"));
    pleiad.env_clear().env("PLEIAD_ENDPOINT", endpoint).args(words).output().unwrap()
}

#[track_caller]
fn assert_failure(output: &Output, why: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains(why), "{stderr}");
}

#[test]
fn s64_containers_are_created_and_scaled_from_the_command_line() {
    let server = Server::start(&["--initial-ranges=2", "--tls=off"]);
    let made =
        server.stdout(&["containers", "create", "My Db/orders", "--partition-key", "/customer", "--throughput", "400"]);
    assert_eq!(made, "400 RU/s (at least 400)\n");
    assert_eq!(server.stdout(&["throughput", "set", "My Db/orders", "1000"]), "1000 RU/s (at least 400)\n");
    let scaled = server.json(&["throughput", "set", "My Db/orders", "2000", "--autoscale"]);
    assert_eq!(scaled.get("autoscaleMaxThroughput").and_then(Value::as_i64), Some(2000));
    assert_eq!(server.stdout(&["throughput", "show", "My Db/orders"]), "autoscale, up to 2000 RU/s (at least 1000)\n");
    server
        .assert_fails(&["throughput", "set", "My Db/orders", "150"], "less than required minimum throughput 400 (400)");
    server.assert_fails(&["throughput", "show", "My Db"], "ask its containers");
    server.assert_fails(&["containers", "create", "My Db/orders", "--partition-key", "/customer"], "(409)");
}

#[test]
fn s56_partitions_and_keys_are_listed() {
    let server = Server::start(&["--initial-ranges=2", "--tls=off", "--partition-max-bytes=10MB"]);
    server.stdout(&["containers", "create", "db/c", "--partition-key", "/a", "--partition-key", "/b"]);
    let table = server.stdout(&["partitions", "list", "db/c"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("ID  RANGE"), "{table}");
    assert!(lines[1].starts_with("0   -, ") && lines[1].ends_with("online"), "{table}");
    let listed = server.json(&["partitions", "list", "db/c"]);
    let quotas =
        listed.get("partitions").and_then(Value::as_array).unwrap().iter().map(|one| one.get("bytesMax").cloned());
    assert!(quotas.eq([Some(Value::from(10_000_000u64)), Some(Value::from(10_000_000u64))]));
    assert_eq!(server.stdout(&["keys", "top", "db/c"]), "no items\n");
    assert_eq!(server.stdout(&["throttles"]), "nobody was refused\n");
    server.assert_fails(&["partitions", "list", "db/none"], "(404)");
    server.assert_fails(&["partitions", "list", "db"], "write it as DB/CONTAINER");
}

#[test]
fn partitions_are_split_and_merged_from_the_command_line() {
    let server = Server::start(&["--initial-ranges=1", "--tls=off"]);
    server.stdout(&["containers", "create", "db/c", "--partition-key", "/pk"]);
    let told = server.stdout(&["partitions", "split", "db/c"]);
    assert!(told.trim_end().ends_with("split db/c 0 → 1 2  done"), "{told}");
    let told = server.stdout(&["partitions", "merge", "db/c", "1", "2"]);
    assert!(told.trim_end().ends_with("merge db/c 1 2 → 3  done"), "{told}");
    let job = server.json(&["partitions", "split", "db/c", "--range", "3", "--at", "[\"a\"]"]);
    assert_eq!(job.get("status").and_then(Value::as_str), Some("done"));
    let jobs = server.stdout(&["jobs", "--watch"]);
    assert_eq!(jobs.lines().count(), 3, "{jobs}");
    let begun = server.json(&["partitions", "split", "db/c", "--no-wait"]);
    assert!(begun.get("id").and_then(Value::as_str).is_some());
    server.stdout(&["jobs"]);
    server.assert_fails(&["partitions", "split", "db/c", "--range", "0"], "There is no partition 0 (any more)");
    server.assert_fails(&["partitions", "merge", "db/c", "4"], "2 values required");
    server.assert_fails(&["jobs", "pause", "999"], "There is no job 999");
}

#[test]
fn snapshots_are_taken_and_restored_from_the_command_line() {
    let server = Server::start(&["--tls=off"]);
    server.stdout(&["containers", "create", "db/c", "--partition-key", "/pk"]);
    assert_eq!(server.stdout(&["snapshot", "list"]), "no snapshots\n");
    let told = server.stdout(&["snapshot", "take", "before the test"]);
    assert!(told.starts_with("snapshot before the test is taken ("), "{told}");
    server.assert_fails(&["snapshot", "take", "before the test"], "say that it is to be replaced. (409)");
    server.stdout(&["snapshot", "take", "before the test", "--replace"]);
    server.stdout(&["containers", "create", "db/more", "--partition-key", "/pk"]);
    let told = server.stdout(&["snapshot", "restore", "before the test"]);
    assert!(told.starts_with("the account is what it was on ") && told.trim_end().ends_with(" ms"), "{told}");
    server.assert_fails(&["partitions", "list", "db/more"], "(404)");
    server.stdout(&["partitions", "list", "db/c"]);
    let listed = server.stdout(&["snapshot", "list"]);
    assert!(listed.lines().count() == 2 && listed.starts_with("NAME") && listed.contains(" GMT"), "{listed}");
    assert_eq!(server.stdout(&["snapshot", "delete", "before the test"]), "snapshot before the test is deleted\n");
    server.assert_fails(&["snapshot", "restore", "before the test"], "There is no snapshot named");
    for wrong in ["", "a/b", "ends "] {
        server.assert_fails(&["snapshot", "take", wrong], &format!("invalid value '{wrong}' for '<NAME>'"));
    }
}

#[test]
fn databases_are_copied_from_the_command_line() {
    let server = Server::start(&["--tls=off"]);
    server.stdout(&["containers", "create", "db/c", "--partition-key", "/pk"]);
    let told = server.stdout(&["databases", "copy", "db", "a copy"]);
    assert!(told.trim_end().ends_with("copy db → a copy  done"), "{told}");
    server.stdout(&["partitions", "list", "a copy/c"]);
    let begun = server.json(&["databases", "copy", "db", "another", "--no-wait"]);
    let id = begun.get("id").and_then(Value::as_str).unwrap().to_owned();
    let ended = server.json(&["jobs", "cancel", &id]);
    assert!(["cancelled", "done"].contains(&ended.get("status").and_then(Value::as_str).unwrap()));
    server.assert_fails(&["databases", "copy", "none", "more"], "(404)");
    server.assert_fails(&["databases", "copy", "db", "a copy"], "(409)");
    server.assert_fails(&["jobs", "cancel", "999"], "There is no job 999");
}

#[test]
fn the_generated_certificate_is_trusted_when_it_is_given() {
    let server = Server::start(&["--tls=on"]);
    let (endpoint, authority) = (format!("https://localhost:{}", server.port), server.authority());
    assert_failure(&run_command(&endpoint, &["throttles"]), "--ca");
    let output = run_command(&endpoint, &["throttles", "--ca", authority.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let with_data = ["--key-file", "/nowhere"];
    assert_failure(&run_command(&endpoint, &[&["throttles"], &with_data[..]].concat()), "/nowhere");
}

#[test]
fn serve_rejects_test_controls() {
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
        let message = String::from_utf8(response.body).unwrap();
        assert!(response.status == 403 && message.contains("`pleiad dev` has them"), "{method} {path}: {message}");
    }
}

#[test]
fn failures_say_what_to_do_next() {
    assert_failure(&run_command("http://localhost:1", &["throttles"]), "pleiad dev");
    assert_failure(&run_command("localhost:8081", &["throttles"]), "is not a URL");
    let server = Server::start(&["--tls=off"]);
    let mut pleiad = Command::new(env!("CARGO_BIN_EXE_pleiad"));
    let other_key = "bm9ib2R5J3Mga2V5IG5vYm9keSdzIGtleSBub2JvZHkncyBrZXk=";
    pleiad.env_clear().env("PLEIAD_PRIMARY_KEY", other_key).args(["throttles", "--endpoint"]);
    let output = pleiad.arg(format!("http://localhost:{}", server.port)).output().unwrap();
    assert_failure(&output, "PLEIAD_PRIMARY_KEY");
}
