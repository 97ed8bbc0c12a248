//! Data directories of earlier formats: this version opens them, and answers as the version that wrote them did.
//!
//! `tests/formats/N` has a data directory of format N, and the answers of the binary that wrote it. A directory is
//! recorded once, with the last binary before the format changes, and never changed:
//!
//! ```text
//! PLEIAD_FORMAT_BINARY=old/pleiad PLEIAD_FORMAT=3 cargo test -p pleiad --test formats -- --ignored record
//! ```

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "golden/bearer.rs"]
mod bearer; // bearer tokens, signed as an issuer signs them
#[path = "golden/client.rs"]
mod client; // HTTP requests, signed as a client signs them
#[path = "formats/account.rs"]
mod account; // the account in the directory, and the questions about it

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use account::Ask;
use client::{Client, EMULATOR_KEY, Request, authorization};
use pleiad_model::{Object, Value, json};
use pleiad_storage::{Blocking, Direction, Limit, RocksOptions, RocksStore, Snapshot, Store, keyspace};
use tempfile::TempDir;

type Result<T, E = String> = std::result::Result<T, E>;

const BINARY: &str = env!("CARGO_BIN_EXE_pleiad");
const FORMATS: [&str; 2] = ["3", "4"];
const FORMAT_NOW: &str = "5\n";

/// RocksDB writes these files again at every start.
const NOT_RECORDED: [&str; 3] = ["LOCK", "LOG", "OPTIONS"];

fn recorded(format: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats").join(format)
}

/// A copy of the recorded directory; deleted at the end of the test.
fn copy_of(format: &str) -> TempDir {
    let copy = TempDir::new().unwrap();
    copy_files(&recorded(format).join("data"), copy.path());
    copy
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(std::result::Result::unwrap) {
        let (name, target) = (entry.file_name(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy_files(&entry.path(), &target);
        } else if !NOT_RECORDED.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

struct Server {
    child: Child,
    client: Client,
}

impl Server {
    fn start(binary: &str, data: &Path) -> Server {
        let mut child = command(binary, data).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = json::parse(line.as_bytes()).unwrap().get("port").and_then(Value::as_i64).unwrap();
        Server { child, client: Client::new(u16::try_from(port).unwrap()) }
    }

    #[track_caller]
    fn send(&mut self, ask: &Ask) -> client::Response {
        let mut headers = authorization(None, &ask.method, &ask.path).unwrap();
        headers.extend(ask.headers.clone());
        headers.push(("x-ms-version".to_owned(), "2020-07-15".to_owned()));
        self.client.send(&Request { method: &ask.method, path: &ask.path, headers, body: ask.body.as_bytes() }).unwrap()
    }

    #[track_caller]
    fn write(&mut self, ask: &Ask) {
        let response = self.send(ask);
        let text = String::from_utf8_lossy(&response.body);
        assert!((200..300).contains(&response.status), "{ask:?}: {} {text}", response.status);
    }

    /// The status and the rows of all pages. Of an error only the status: its text may change.
    #[track_caller]
    fn answer(&mut self, ask: &Ask) -> Value {
        let (mut rows, mut next) = (Vec::new(), ask.clone());
        let status = loop {
            let response = self.send(&next);
            if response.status >= 300 {
                break response.status;
            }
            rows.extend(rows_of(&json::parse(&response.body).unwrap()));
            match response.header("x-ms-continuation") {
                Some(continuation) => next = ask.clone().header("x-ms-continuation", continuation),
                None => break response.status,
            }
        };
        Object::new().with("status", u64::from(status)).with("rows", rows).into()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill(); // fails if it has exited already
        let _ = self.child.wait();
    }
}

fn command(binary: &str, data: &Path) -> Command {
    let mut pleiad = Command::new(binary);
    pleiad.args(["dev", "--quiet", "--port=0", "--log-level=error", "--tls=off", "--initial-ranges=1", "--data"]);
    pleiad.arg(data).env_clear().env("PLEIAD_PRIMARY_KEY", EMULATOR_KEY).stdin(Stdio::null());
    pleiad
}

/// The elements of a feed's list, or the body itself; without tokens, which depend on the time.
fn rows_of(body: &Value) -> Vec<Value> {
    let list = body.as_object().and_then(|members| members.iter().find_map(|(_, value)| value.as_array()));
    let rows = match list {
        Some(list) if body.get("_count").is_some() => list.to_vec(),
        _ => vec![body.clone()],
    };
    rows.into_iter().map(without_token).collect()
}

fn without_token(row: Value) -> Value {
    match row {
        Value::Object(mut object) => {
            object.retain(|name, _| name != "_token");
            object.into()
        }
        other => other,
    }
}

/// One recorded line: when the question was asked, the question, the answer.
fn line(moment: &str, ask: &Ask, answer: Value) -> String {
    json::to_string(&Object::new().with("at", moment).with("ask", ask.to_value()).with("answer", answer).into())
}

/// Long runs of a letter as in golden pages: `<x*2048>` is x 2,048 times.
fn shorten(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let runs = characters.chunk_by(|a, b| a == b);
    let shortened = runs.map(|run| match run {
        [letter, ..] if run.len() >= 20 && letter.is_ascii_lowercase() => format!("<{letter}*{}>", run.len()),
        _ => run.iter().collect(),
    });
    shortened.collect()
}

fn expand(text: &str) -> String {
    let mut parts = text.split('<');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |expanded, part| match run_at(part) {
        Some((letter, count, rest)) => expanded + &letter.repeat(count) + rest,
        None => expanded + "<" + part,
    })
}

/// `x*2048>` and what follows.
fn run_at(part: &str) -> Option<(&str, usize, &str)> {
    let (run, rest) = part.split_once('>')?;
    let (letter, count) = run.split_once('*')?;
    (letter.len() == 1).then_some((letter, count.parse().ok()?, rest))
}

/// The questions that were asked at this moment, with their answers.
fn answers(format: &str, moment: &str) -> Vec<(Ask, Value)> {
    let text = expand(&fs::read_to_string(recorded(format).join("answers.jsonl")).unwrap());
    let lines = text.lines().map(|line| json::parse(line.as_bytes()).unwrap());
    let lines = lines.filter(|line| line.get("at").and_then(Value::as_str) == Some(moment));
    lines.map(|line| (Ask::from_value(line.get("ask").unwrap()), line.get("answer").cloned().unwrap())).collect()
}

#[track_caller]
fn check_answers(server: &mut Server, format: &str, moment: &str) {
    let answers = answers(format, moment);
    assert!(answers.len() > 100, "{} answers", answers.len());
    for (ask, before) in answers {
        let now = server.answer(&ask);
        let (now, before) = (json::to_string(&now), json::to_string(&before));
        assert!(now == before, "format {format}, {ask:?}\nbefore {before}\nnow    {now}");
    }
}

fn inspect(data: &Path) -> Output {
    Command::new(BINARY).env_clear().args(["inspect", "--data"]).arg(data).output().unwrap()
}

#[track_caller]
fn check_sound(data: &Path) {
    let output = inspect(data);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("  long  nosql, 1 partitions"), "{text}");
}

fn format_of(data: &Path) -> String {
    fs::read_to_string(data.join("FORMAT")).unwrap()
}

/// Removes what the account has, item by item: the rows of every index are found.
fn delete_items(server: &mut Server) {
    let container = "/dbs/shop/colls/long";
    let query = Ask::post(&format!("{container}/docs"), r#"{"query":"SELECT c.id, c.pk FROM c"}"#);
    let query = query.header("x-ms-documentdb-isquery", "True").header("x-pleiad-cross-partition", "true");
    let answer = server.answer(&query);
    let rows = answer.get("rows").and_then(Value::as_array).unwrap();
    assert!(rows.len() > 30, "{}", rows.len());
    for row in rows {
        let text = |name| row.get(name).and_then(Value::as_str).unwrap();
        let key = format!("[\"{}\"]", text("pk"));
        let ask = Ask::delete(&format!("{container}/docs/{}", text("id")));
        server.write(&ask.header("x-ms-documentdb-partitionkey", &key));
    }
}

#[test]
fn shortened_texts_are_expanded_again() {
    let text = format!("a < b, c <= d, <x*y>, {}<{}>", "x".repeat(300), "y".repeat(20));
    assert_eq!(shorten(&text), "a < b, c <= d, <x*y>, <x*300><<y*20>>");
    assert_eq!(expand(&shorten(&text)), text);
}

#[test]
fn an_upgraded_directory_answers_as_before() {
    for format in FORMATS {
        let data = copy_of(format);
        for _ in 0..2 {
            let mut server = Server::start(BINARY, data.path());
            check_answers(&mut server, format, "end");
            drop(server);
            assert_eq!(format_of(data.path()), FORMAT_NOW);
            check_sound(data.path());
        }
        let mut server = Server::start(BINARY, data.path());
        delete_items(&mut server);
        drop(server);
        check_sound(data.path());
    }
}

#[test]
fn a_snapshot_of_an_earlier_format_is_restored() {
    for format in FORMATS {
        let data = copy_of(format);
        let mut server = Server::start(BINARY, data.path());
        server.write(&Ask::post(account::RESTORE, ""));
        check_answers(&mut server, format, "snapshot");
        drop(server);
        check_sound(data.path());
        check_answers(&mut Server::start(BINARY, data.path()), format, "snapshot");
    }
}

/// The new number is written first. After a crash behind it, or at any other moment of the start, the next start
/// finishes the upgrade.
#[test]
fn an_interrupted_upgrade_starts_over() {
    for format in FORMATS {
        let data = copy_of(format);
        fs::write(data.path().join("FORMAT"), FORMAT_NOW).unwrap();
        check_answers(&mut Server::start(BINARY, data.path()), format, "end");
        let data = copy_of(format);
        for delay_ms in [0, 1, 2, 4, 8, 12, 16, 24, 32] {
            let mut child = command(BINARY, data.path()).stdout(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(delay_ms));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let mut server = Server::start(BINARY, data.path());
        check_answers(&mut server, format, "end");
        check_rebuilt_texts(&mut server, format);
        drop(server);
        check_sound(data.path());
    }
}

/// The answers of the analyzer of format 5: digits and `first` are stop words, a lone dash is a word.
#[track_caller]
fn check_texts(server: &mut Server, format: &str) -> bool {
    let expected = match format {
        "3" => r#"[{"texts":12,"words":30,"rocks":8}]"#,
        _ => r#"[{"texts":15,"words":33,"rocks":9}]"#,
    };
    let statistics = account::text_query(
        "SELECT COUNT(1) AS texts, SUM(_FullTextWordCount(c.text)) AS words, \
         COUNTIF(FullTextContains(c.text, 'rock')) AS rocks FROM c",
    );
    let response = server.send(&statistics);
    let rows = rows_of(&json::parse(&response.body).unwrap());
    assert_eq!(json::to_string(&rows.into()), expected, "format {format}");
    for text in ["7", "first", "to the"] {
        let search = account::text_query(&format!("SELECT c.id FROM c WHERE FullTextContains(c.text, '{text}')"));
        let answer = server.answer(&search);
        assert_eq!(answer.get("rows").and_then(Value::as_array).map(|rows| rows.len()), Some(0), "{text}");
    }
    response.header("x-pleiad-query-plan").is_some_and(|plan| plan.contains("full-text statistics"))
}

/// While the index is being rebuilt, and when it is used again.
#[track_caller]
fn check_rebuilt_texts(server: &mut Server, format: &str) {
    let began = std::time::Instant::now();
    while !check_texts(server, format) {
        assert!(began.elapsed() < Duration::from_secs(30), "the full-text index is not used again");
    }
}

#[test]
fn a_full_text_index_is_rebuilt_for_the_current_analyzer() {
    for format in FORMATS {
        let data = copy_of(format);
        let mut server = Server::start(BINARY, data.path());
        check_rebuilt_texts(&mut server, format);
        drop(server);
        check_sound(data.path());
        let mut server = Server::start(BINARY, data.path());
        assert!(check_texts(&mut server, format), "nothing is left to rebuild");
        server.write(&Ask::post(account::RESTORE, ""));
        check_rebuilt_texts(&mut server, format);
        drop(server);
        check_sound(data.path());
    }
}

/// A directory that no newer version has opened yet is not damaged.
#[test]
fn a_directory_of_an_earlier_format_is_sound() {
    for format in FORMATS {
        check_sound(copy_of(format).path());
    }
}

/// The recorded accounts have rows with the longest keys that the index writes.
#[test]
fn no_key_of_an_earlier_format_is_too_long() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for format in FORMATS {
        let data = copy_of(format);
        let store = RocksStore::open(data.path(), RocksOptions::default()).unwrap();
        let ((from, _), (_, to)) = (keyspace::shard_range(0), keyspace::shard_range(u64::MAX));
        let rows = runtime.block_on(async {
            store
                .snapshot(Blocking::Suspend)
                .await
                .unwrap()
                .scan(&from, &to, Direction::Forward, Limit::NONE)
                .await
                .unwrap()
        });
        let longest = rows.pairs.iter().map(|(key, _)| key.len()).max().unwrap();
        assert_eq!(longest, 2_577);
        assert!(longest <= keyspace::KEY_BYTES_MAX);
    }
}

/// Not a test: makes `tests/formats/N` with the binary of format N, as the header says.
#[test]
#[ignore = "records a directory with an older binary"]
fn record() {
    let binary = std::env::var("PLEIAD_FORMAT_BINARY").unwrap();
    let target = recorded(&std::env::var("PLEIAD_FORMAT").unwrap());
    let data = TempDir::new().unwrap();
    let mut server = Server::start(&binary, data.path());
    account::first_writes().iter().for_each(|ask| server.write(ask));
    let mut lines = Vec::new();
    lines.extend(account::questions().iter().map(|ask| line("snapshot", ask, server.answer(ask))));
    server.write(&Ask::put(account::SNAPSHOT, ""));
    // Before the later writes: it flushes the write-ahead log.
    server.write(&Ask::post(account::SPLIT, ""));
    account::later_writes().iter().for_each(|ask| server.write(ask));
    std::thread::sleep(Duration::from_secs(3)); // an item expires
    let asks = [account::questions(), account::questions_by_range()].concat();
    lines.extend(asks.iter().map(|ask| line("end", ask, server.answer(ask))));
    drop(server);
    fs::create_dir(&target).unwrap();
    copy_files(data.path(), &target.join("data"));
    fs::write(target.join("answers.jsonl"), shorten(&(lines.join("\n") + "\n"))).unwrap();
}
