//! Container churn: creates and deletes containers, to test the catalog and the purge of dropped containers under load.

use std::collections::BTreeMap;

use pleiad_model::{Object, Value, json};

use crate::client::{Client, Request};
use crate::load::{DATABASE, expect};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    There,
    Gone,
    /// The request was not answered.
    Unsure,
}

#[derive(Default)]
pub struct Scratch {
    fates: BTreeMap<String, Fate>,
}

impl Scratch {
    pub fn work(&mut self, mut client: Client) -> std::io::Error {
        loop {
            if let Err(end) = self.live_and_die(&mut client) {
                return end;
            }
        }
    }

    fn live_and_die(&mut self, client: &mut Client) -> std::io::Result<()> {
        let left: Vec<String> =
            self.fates.iter().filter(|(_, fate)| **fate == Fate::There).map(|(name, _)| name.clone()).collect();
        for name in left {
            self.delete(client, name)?;
        }
        let name = format!("s{}", self.fates.len());
        self.create(client, name.clone())?;
        for n in 0..20_i64 {
            let item = Object::new().with("id", format!("i{n}")).with("pk", n);
            let create = Request::new("POST", format!("{DATABASE}/colls/{name}/docs")).body(&item.into());
            expect(&client.send(&create.header("x-ms-documentdb-partitionkey", format!("[{n}]")))?, &[201, 429]);
        }
        self.delete(client, name)
    }

    fn create(&mut self, client: &mut Client, name: String) -> std::io::Result<()> {
        let key = json::parse(br#"{"paths":["/pk"],"kind":"Hash","version":2}"#).unwrap();
        let body = Object::new().with("id", name.as_str()).with("partitionKey", key);
        self.fates.insert(name.clone(), Fate::Unsure);
        expect(&client.send(&Request::new("POST", format!("{DATABASE}/colls")).body(&body.into()))?, &[201]);
        self.fates.insert(name, Fate::There);
        Ok(())
    }

    fn delete(&mut self, client: &mut Client, name: String) -> std::io::Result<()> {
        self.fates.insert(name.clone(), Fate::Unsure);
        expect(&client.send(&Request::new("DELETE", format!("{DATABASE}/colls/{name}")))?, &[204]);
        self.fates.insert(name, Fate::Gone);
        Ok(())
    }

    /// The containers that differ from their acknowledged state. The current state becomes the expected one.
    pub fn compare(&mut self, client: &mut Client) -> Vec<String> {
        let response = client.send(&Request::new("GET", format!("{DATABASE}/colls"))).unwrap();
        expect(&response, &[200]);
        let listed = response.body.get("DocumentCollections").and_then(Value::as_array).unwrap();
        let mut differences = Vec::new();
        for (name, fate) in &mut self.fates {
            let is_there = listed.iter().any(|container| container.get("id").and_then(Value::as_str) == Some(name));
            let found = if is_there { Fate::There } else { Fate::Gone };
            if *fate != Fate::Unsure && *fate != found {
                differences.push(format!("container {name}: acknowledged {fate:?}, found {found:?}"));
            }
            *fate = found;
        }
        differences
    }
}
