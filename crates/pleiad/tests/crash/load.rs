//! Workload: clients under load, each with the state that it expects.
//!
//! Every worker has its own items, in logical partitions that all workers share: it knows the expected state of its
//! items without coordination, while all contend for the same keys, latches and commits. At the kill each worker has at
//! most one request in flight; that request has taken effect completely or not at all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pleiad_model::{Object, Value, json};

use crate::client::{Client, Request, Response};
use crate::container_churn::ContainerChurn;
use crate::rng::SeededRng;
use crate::server::Server;

pub const DATABASE: &str = "dbs/crash";
const WORKERS: u64 = 10;
/// Enough for updates and deletes to be as common as creations.
const ITEMS_PER_WORKER: usize = 150;

/// One partition, many, and a hierarchical key.
const CONTAINERS: [(&str, &str, &str); 3] = [
    ("plain", r#"{"paths":["/pk"],"kind":"Hash","version":2}"#, "400"),
    ("wide", r#"{"paths":["/pk"],"kind":"Hash","version":2}"#, "30000"),
    ("deep", r#"{"paths":["/tenant","/user"],"kind":"MultiHash","version":2}"#, "400"),
];

/// The address of an item: container, partition key as in the header, id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemAddress {
    pub container: &'static str,
    pub key: String,
    pub id: String,
}

/// An item without its system properties; the etag is unknown until the server has returned it.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    pub body: Value,
    pub etag: Option<String>,
}

/// The effect of a request on one item.
#[derive(Clone, Debug)]
struct Change {
    place: ItemAddress,
    after: Option<Version>,
}

/// A request, its effects, and the expected status codes.
type PlannedRequest = (Request<'static>, Vec<Change>, &'static [u16]);

pub type Items = BTreeMap<ItemAddress, Version>;

pub struct Workload {
    workers: Vec<Worker>,
    /// `None` in tests about unsynced data: dropping a container syncs the write-ahead log.
    churn: Option<ContainerChurn>,
}

struct Worker {
    number: u64,
    rng: SeededRng,
    /// The last version number that this worker used; each body contains its own.
    version: u64,
    items: Items,
    /// The effects of the request that is in flight, or that was not answered.
    in_flight: Vec<Change>,
    acknowledged: u64,
}

pub fn create_containers(server: &Server) {
    let mut client = server.client();
    let database = Object::new().with("id", "crash");
    expect(&client.send(&Request::new("POST", "dbs").body(&database.into())).unwrap(), &[201]);
    for (id, key, throughput) in CONTAINERS {
        let body = Object::new().with("id", id).with("partitionKey", json::parse(key.as_bytes()).unwrap());
        let create = Request::new("POST", format!("{DATABASE}/colls")).body(&body.into());
        expect(&client.send(&create.header("x-ms-offer-throughput", throughput)).unwrap(), &[201]);
    }
}

impl Workload {
    pub fn new(rng: &mut SeededRng) -> Workload {
        let (version, acknowledged) = (0, 0);
        let worker = |number| Worker {
            number,
            rng: rng.fork(),
            version,
            items: Items::new(),
            in_flight: Vec::new(),
            acknowledged,
        };
        Workload { workers: (0..WORKERS).map(worker).collect(), churn: Some(ContainerChurn::default()) }
    }

    pub fn without_container_churn(rng: &mut SeededRng) -> Workload {
        Workload { churn: None, ..Workload::new(rng) }
    }

    /// All workers send requests until the server is killed; no connection may end before that.
    pub fn work_until_killed(&mut self, server: Server, after: Duration) {
        let killed = AtomicBool::new(false);
        let assert_killed = |end: std::io::Error| assert!(killed.load(Ordering::SeqCst), "ended early: {end}");
        std::thread::scope(|scope| {
            for worker in &mut self.workers {
                let client = server.client();
                scope.spawn(|| assert_killed(worker.work(client)));
            }
            if let Some(churn) = &mut self.churn {
                let client = server.client();
                scope.spawn(|| assert_killed(churn.work(client)));
            }
            std::thread::sleep(after);
            killed.store(true, Ordering::SeqCst);
            server.kill();
        });
    }

    /// Compares the server's state with the expected state of all workers, which is then replaced by it. Asserts that
    /// every item is complete; returns the items that differ from their acknowledged state.
    pub fn compare(&mut self, server: &Server) -> Vec<String> {
        let mut client = server.client();
        let mut found: BTreeMap<u64, Items> = BTreeMap::new();
        for (place, version) in find_all(&mut client) {
            found.entry(number(&version.body, "worker")).or_default().insert(place, version);
        }
        let mut differences = self.churn.as_mut().map_or(Vec::new(), |churn| churn.compare(&mut client));
        for worker in &mut self.workers {
            differences.extend(worker.compare(found.remove(&worker.number).unwrap_or_default()));
            worker.read_some(&mut client);
        }
        assert!(found.is_empty(), "items of an unknown worker: {found:?}");
        differences
    }

    pub fn acknowledged(&self) -> u64 {
        self.workers.iter().map(|worker| worker.acknowledged).sum()
    }

    pub fn items(&self) -> usize {
        self.workers.iter().map(|worker| worker.items.len()).sum()
    }
}

impl Worker {
    fn work(&mut self, mut client: Client) -> std::io::Error {
        loop {
            if let Err(end) = self.step(&mut client) {
                return end;
            }
        }
    }

    fn step(&mut self, client: &mut Client) -> std::io::Result<()> {
        let (request, changes, wanted) = self.next_request();
        self.in_flight = changes;
        let response = client.send(&request)?;
        match response.status {
            429 => self.in_flight.clear(), // throttled: no effect
            _ => self.acknowledge(&response, wanted),
        }
        Ok(())
    }

    fn acknowledge(&mut self, response: &Response, wanted: &[u16]) {
        expect(response, wanted);
        self.acknowledged += 1;
        for Change { place, after, .. } in std::mem::take(&mut self.in_flight) {
            match after {
                Some(version) => self.items.insert(place, Version { etag: etag(&response.body), ..version }),
                None => self.items.remove(&place),
            };
        }
    }

    fn next_request(&mut self) -> PlannedRequest {
        let may_create = self.items.len() < ITEMS_PER_WORKER;
        match self.rng.below(100) {
            roll if self.items.is_empty() || (roll < 35 && may_create) => self.create(),
            0..60 => self.replace(),
            60..70 => self.rename(),
            70..85 => self.upsert(),
            _ => self.delete(),
        }
    }

    fn create(&mut self) -> PlannedRequest {
        let place = self.new_address();
        let body = self.new_body(&place);
        let request = Request::new("POST", feed(&place)).body(&body);
        (addressed(request, &place), vec![change(place, Some(body))], &[201])
    }

    fn replace(&mut self) -> PlannedRequest {
        let (place, old) = self.random_item();
        let body = self.new_body(&place);
        let request = Request::new("PUT", link(&place)).body(&body);
        // Half of the requests have a precondition on the known etag.
        let request = match &old.etag {
            Some(etag) if self.rng.one_in(2) => request.header("if-match", etag),
            _ => request,
        };
        (addressed(request, &place), vec![change(place, Some(body))], &[200])
    }

    /// One request with two effects, which must be atomic.
    fn rename(&mut self) -> PlannedRequest {
        let (place, _) = self.random_item();
        let renamed = ItemAddress { id: self.new_address().id, ..place.clone() };
        let body = self.new_body(&renamed);
        let request = addressed(Request::new("PUT", link(&place)).body(&body), &place);
        (request, vec![change(place, None), change(renamed, Some(body))], &[200])
    }

    fn upsert(&mut self) -> PlannedRequest {
        let is_there = self.rng.one_in(2);
        let place = if is_there { self.random_item().0 } else { self.new_address() };
        let body = self.new_body(&place);
        let request = Request::new("POST", feed(&place)).header("x-ms-documentdb-is-upsert", "True").body(&body);
        let wanted: &[u16] = if is_there { &[200] } else { &[201] };
        (addressed(request, &place), vec![change(place, Some(body))], wanted)
    }

    fn delete(&mut self) -> PlannedRequest {
        let (place, _) = self.random_item();
        (addressed(Request::new("DELETE", link(&place)), &place), vec![change(place, None)], &[204])
    }

    fn random_item(&mut self) -> (ItemAddress, Version) {
        let at = self.rng.below(self.items.len() as u64) as usize;
        let (place, version) = self.items.iter().nth(at).unwrap();
        (place.clone(), version.clone())
    }

    fn new_address(&mut self) -> ItemAddress {
        self.version += 1;
        let (container, ..) = CONTAINERS[self.rng.below(3) as usize];
        let key = match container {
            "deep" => format!(r#"["t{}","u{}"]"#, self.rng.below(3), self.rng.below(4)),
            _ => format!(r#"["k{}"]"#, self.rng.below(9)),
        };
        ItemAddress { container, key, id: format!("w{}-{}", self.number, self.version) }
    }

    fn new_body(&mut self, place: &ItemAddress) -> Value {
        self.version += 1;
        body(place, self.number, self.version)
    }

    fn compare(&mut self, found: Items) -> Vec<String> {
        let mut expected = std::mem::take(&mut self.items);
        let unsure = std::mem::take(&mut self.in_flight);
        let happened =
            |change: &Change| found.get(&change.place).map(|v| &v.body) == change.after.as_ref().map(|v| &v.body);
        let mut differences = Vec::new();
        if !unsure.is_empty() && unsure.iter().all(happened) {
            for change in unsure {
                // The response with the etag was never received.
                expected.remove(&change.place);
                expected.extend(found.get(&change.place).map(|version| (change.place, version.clone())));
            }
        }
        for place in expected.keys().chain(found.keys().filter(|place| !expected.contains_key(place))) {
            let (wanted, is) = (expected.get(place), found.get(place));
            if wanted != is {
                differences.push(format!("{place:?}\n  acknowledged {wanted:?}\n  found {is:?}"));
            }
        }
        found.iter().for_each(|(place, version)| check_complete(place, version));
        self.items = found;
        differences
    }

    /// Checks that point reads return the same items as the read feed.
    fn read_some(&mut self, client: &mut Client) {
        for _ in 0..self.items.len().min(3) {
            let (place, known) = self.random_item();
            let response = client.send(&addressed(Request::new("GET", link(&place)), &place)).unwrap();
            expect(&response, &[200]);
            assert_eq!(version(response.body), known);
        }
    }
}

fn change(place: ItemAddress, after: Option<Value>) -> Change {
    Change { place, after: after.map(|body| Version { body, etag: None }) }
}

/// The whole body is derived from address, worker and version, so that a mixture of two versions is detected.
fn body(place: &ItemAddress, worker: u64, version: u64) -> Value {
    let mut rng = SeededRng::new(worker << 40 | version);
    let text_bytes = if rng.one_in(60) { rng.between(10_000, 100_000) } else { rng.below(1_500) };
    let text: String = (0..text_bytes).map(|_| char::from(b'a' + rng.below(26) as u8)).collect();
    let list: Vec<Value> = (0..rng.below(6)).map(Value::from).collect();
    let mut body = Object::new().with("id", place.id.as_str());
    let key = json::parse(place.key.as_bytes()).unwrap();
    let names: &[&str] = if place.container == "deep" { &["tenant", "user"] } else { &["pk"] };
    names.iter().zip(key.as_array().unwrap()).for_each(|(name, value)| body.set(*name, value.clone()));
    body.with("worker", worker).with("version", version).with("list", list).with("text", text).into()
}

fn check_complete(place: &ItemAddress, found: &Version) {
    let expected = body(place, number(&found.body, "worker"), number(&found.body, "version"));
    assert_eq!(found.body, expected, "an item that no worker wrote");
}

fn find_all(client: &mut Client) -> Items {
    CONTAINERS.iter().flat_map(|(container, ..)| find_in(client, container)).collect()
}

fn find_in(client: &mut Client, container: &'static str) -> Items {
    let mut items = Items::new();
    let mut continuation: Option<String> = None;
    loop {
        let mut request = Request::new("GET", format!("{DATABASE}/colls/{container}/docs"));
        request = request.header("x-ms-max-item-count", "500");
        if let Some(continuation) = continuation {
            request = request.header("x-ms-continuation", continuation);
        }
        let response = client.send(&request).unwrap();
        expect(&response, &[200]);
        for item in response.body.get("Documents").and_then(Value::as_array).unwrap() {
            let version = version(item.clone());
            assert!(items.insert(address_of(container, &version.body), version).is_none(), "listed twice: {item:?}");
        }
        match response.continuation {
            Some(next) => continuation = Some(next),
            None => return items,
        }
    }
}

fn address_of(container: &'static str, body: &Value) -> ItemAddress {
    let names: &[&str] = if container == "deep" { &["tenant", "user"] } else { &["pk"] };
    let key: Vec<Value> = names.iter().map(|name| body.get(name).unwrap().clone()).collect();
    let id = body.get("id").and_then(Value::as_str).unwrap().to_owned();
    ItemAddress { container, key: json::to_string(&Value::from(key)), id }
}

/// Splits an item as returned by the server into body and etag.
fn version(shown: Value) -> Version {
    let etag = etag(&shown);
    let Value::Object(mut object) = shown else { panic!("not an item: {shown:?}") };
    object.retain(|name, _| !name.starts_with('_'));
    Version { body: object.into(), etag }
}

fn etag(body: &Value) -> Option<String> {
    body.get("_etag").and_then(Value::as_str).map(str::to_owned)
}

fn number(body: &Value, name: &str) -> u64 {
    body.get(name).and_then(Value::as_i64).unwrap().cast_unsigned()
}

fn feed(place: &ItemAddress) -> String {
    format!("{DATABASE}/colls/{}/docs", place.container)
}

fn link(place: &ItemAddress) -> String {
    format!("{}/{}", feed(place), place.id)
}

fn addressed<'a>(request: Request<'a>, place: &ItemAddress) -> Request<'a> {
    request.header("x-ms-documentdb-partitionkey", &place.key)
}

#[track_caller]
pub fn expect(response: &Response, wanted: &[u16]) {
    assert!(wanted.contains(&response.status), "wanted {wanted:?}: {response:?}");
}
