//! A damaged write-ahead log: the server says so instead of dropping acknowledged writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pleiad_model::{Object, Value, json};

use crate::client::{Client, Request, Response};
use crate::load::{DATABASE, expect};
use crate::server::{RunMode, Server, Site};

const ITEMS: i64 = 120;

/// Creates items one by one, each acknowledged, and returns their LSNs. Every fifth replaces the item before it.
pub fn write_items(server: &Server, from: i64) -> BTreeSet<String> {
    let mut client = server.client();
    (from..from + ITEMS).map(|n| upsert(&mut client, n - i64::from(n % 5 == 4))).collect()
}

pub fn try_upsert(client: &mut Client, n: i64) -> Response {
    let item = Object::new().with("id", n.to_string()).with("pk", n).with("text", "x".repeat(700));
    let request = Request::new("POST", format!("{DATABASE}/colls/plain/docs")).body(&item.into());
    let request = request.header("x-ms-documentdb-partitionkey", format!("[{n}]"));
    client.send(&request.header("x-ms-documentdb-is-upsert", "True")).unwrap()
}

fn upsert(client: &mut Client, n: i64) -> String {
    let response = try_upsert(client, n);
    expect(&response, &[200, 201]);
    // Its first digits are the LSN.
    response.body.get("_etag").and_then(Value::as_str).unwrap()[1..14].to_owned()
}

pub fn ids(server: &Server) -> BTreeSet<String> {
    let request = Request::new("GET", format!("{DATABASE}/colls/plain/docs")).header("x-ms-max-item-count", "1000");
    let response = server.client().send(&request).unwrap();
    expect(&response, &[200]);
    let documents = response.body.get("Documents").and_then(Value::as_array).unwrap();
    documents.iter().map(|item| item.get("id").and_then(Value::as_str).unwrap().to_owned()).collect()
}

/// Waits until the file names a position that covers every acknowledged write: at most a second.
pub fn wait_until_noted(site: &Site) {
    let (log, until) = (newest_log(site), Instant::now() + Duration::from_secs(10));
    let bytes = fs::metadata(&log).unwrap().len();
    let noted = format!("{bytes:016x}");
    while !fs::read_to_string(site.data().join("SYNCED")).unwrap().contains(&noted) {
        assert!(Instant::now() < until, "{bytes} bytes of the log are not noted as synced");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn newest_log(site: &Site) -> PathBuf {
    let files = fs::read_dir(site.data().join("store")).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "log")).max().expect("a log file")
}

/// One way to lose bytes of the log.
pub type Damage = fn(&Path);

pub const DAMAGE: [Damage; 3] = [flip_a_bit, cut, |log| fs::remove_file(log).unwrap()];

pub fn flip_a_bit(log: &Path) {
    let mut bytes = fs::read(log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 16;
    fs::write(log, bytes).unwrap();
}

fn cut(log: &Path) {
    let bytes = fs::read(log).unwrap();
    fs::write(log, &bytes[..bytes.len() / 2]).unwrap();
}

/// The contents of every file below the directory.
pub fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

/// The ids in a file that `salvage` wrote.
pub fn salvaged_ids(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap();
    let items = text.lines().map(|line| json::parse(line.as_bytes()).unwrap());
    items.map(|item| item.get("id").and_then(Value::as_str).unwrap().to_owned()).collect()
}

#[track_caller]
pub fn check_refused(site: &Site, mode: RunMode, log: &Path) {
    let before = files(&site.data());
    let message = site.fail_to_start(mode);
    for part in [log.file_name().unwrap().to_str().unwrap(), "bytes", "pleiad salvage", "--accept-data-loss"] {
        assert!(message.contains(part), "no {part:?} in: {message}");
    }
    let inspected = site.run(&["inspect"]);
    assert!(!inspected.0 && inspected.1.contains("problem: "), "{}", inspected.1);
    assert!(!inspected.1.contains("nothing is wrong"), "{}", inspected.1);
    assert_eq!(files(&site.data()), before, "the evidence was changed");
}
