//! Restores under crashes: an account with a snapshot, and later writes that a restore undoes.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use pleiad_model::{Object, Value};

use crate::client::{Client, Request};
use crate::load::{DATABASE, expect};
use crate::server::{RunMode, Server, Site};

const SNAPSHOT: &str = "_pleiad/v1/snapshots/clean";
/// The number of items in the snapshot.
const SNAPSHOT_ITEMS: i64 = 50;

/// The expected state of the account, and counts of the results so far.
#[derive(Default)]
pub struct Account {
    /// Items that were acknowledged after the snapshot was taken.
    after_snapshot: BTreeSet<i64>,
    acknowledged: bool,
    restored: u64,
    not_restored: u64,
}

impl Account {
    pub fn prepare(site: &Site) -> Account {
        let server = site.start(RunMode::Serve);
        let mut client = server.client();
        let key = pleiad_model::json::parse(br#"{"paths":["/pk"],"kind":"Hash","version":2}"#).unwrap();
        let body = Object::new().with("id", "undone").with("partitionKey", key);
        expect(&client.send(&Request::new("POST", format!("{DATABASE}/colls")).body(&body.into())).unwrap(), &[201]);
        (0..SNAPSHOT_ITEMS).for_each(|n| create(&mut client, n));
        expect(&client.send(&Request::new("PUT", SNAPSHOT)).unwrap(), &[201]);
        server.kill();
        Account::default()
    }

    /// Writes some items, starts a restore, and kills the server before or shortly after the restore ends.
    pub fn restore_until_killed(&mut self, server: Server, after: Duration) {
        let mut client = server.client();
        let first = 1000 + i64::try_from(self.restored + self.not_restored).unwrap() * 10;
        for n in first..first + 5 {
            create(&mut client, n);
            self.after_snapshot.insert(n);
        }
        let restoring = std::thread::spawn(move || client.send(&Request::new("POST", format!("{SNAPSHOT}/restore"))));
        std::thread::sleep(after);
        server.kill();
        self.acknowledged = restoring.join().unwrap().is_ok_and(|response| response.status == 200);
    }

    #[track_caller]
    pub fn check(&mut self, server: Server) {
        let mut client = server.client();
        let found = items(&mut client);
        let clean: BTreeSet<i64> = (0..SNAPSHOT_ITEMS).collect();
        if found == clean {
            self.after_snapshot.clear();
            self.restored += 1;
        } else {
            let all: BTreeSet<i64> = clean.union(&self.after_snapshot).copied().collect();
            assert_eq!(found, all, "neither the previous state nor that of the snapshot");
            assert!(!self.acknowledged, "an acknowledged restore was lost");
            self.not_restored += 1;
        }
        let snapshot = client.send(&Request::new("GET", SNAPSHOT)).unwrap();
        expect(&snapshot, &[200]);
        server.kill();
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} restores took effect, {} did not", self.restored, self.not_restored)
    }
}

fn create(client: &mut Client, n: i64) {
    let item = Object::new().with("id", n.to_string()).with("pk", n).with("n", n);
    let request = Request::new("POST", format!("{DATABASE}/colls/undone/docs")).body(&item.into());
    expect(&client.send(&request.header("x-ms-documentdb-partitionkey", format!("[{n}]"))).unwrap(), &[201]);
}

fn items(client: &mut Client) -> BTreeSet<i64> {
    let request = Request::new("GET", format!("{DATABASE}/colls/undone/docs")).header("x-ms-max-item-count", "1000");
    let response = client.send(&request).unwrap();
    expect(&response, &[200]);
    let documents = response.body.get("Documents").and_then(Value::as_array).unwrap();
    documents.iter().map(|item| item.get("n").and_then(Value::as_i64).unwrap()).collect()
}
