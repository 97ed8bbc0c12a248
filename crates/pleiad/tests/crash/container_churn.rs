//! Container churn: creates and deletes containers, to test the catalog and the purge of dropped containers under load.

use std::collections::BTreeMap;

use pleiad_model::{Object, Value, json};

use crate::client::{Client, Request};
use crate::load::{DATABASE, expect};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContainerState {
    Exists,
    Deleted,
    /// The request was not answered.
    Unknown,
}

#[derive(Default)]
pub struct ContainerChurn {
    states: BTreeMap<String, ContainerState>,
}

impl ContainerChurn {
    pub fn work(&mut self, mut client: Client) -> std::io::Error {
        loop {
            if let Err(end) = self.create_fill_delete(&mut client) {
                return end;
            }
        }
    }

    fn create_fill_delete(&mut self, client: &mut Client) -> std::io::Result<()> {
        let remaining: Vec<String> = self
            .states
            .iter()
            .filter(|(_, state)| **state == ContainerState::Exists)
            .map(|(name, _)| name.clone())
            .collect();
        for name in remaining {
            self.delete(client, name)?;
        }
        let name = format!("s{}", self.states.len());
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
        self.states.insert(name.clone(), ContainerState::Unknown);
        expect(&client.send(&Request::new("POST", format!("{DATABASE}/colls")).body(&body.into()))?, &[201]);
        self.states.insert(name, ContainerState::Exists);
        Ok(())
    }

    fn delete(&mut self, client: &mut Client, name: String) -> std::io::Result<()> {
        self.states.insert(name.clone(), ContainerState::Unknown);
        expect(&client.send(&Request::new("DELETE", format!("{DATABASE}/colls/{name}")))?, &[204]);
        self.states.insert(name, ContainerState::Deleted);
        Ok(())
    }

    /// The containers that differ from their acknowledged state. The current state becomes the expected one.
    pub fn compare(&mut self, client: &mut Client) -> Vec<String> {
        let response = client.send(&Request::new("GET", format!("{DATABASE}/colls"))).unwrap();
        expect(&response, &[200]);
        let listed = response.body.get("DocumentCollections").and_then(Value::as_array).unwrap();
        let mut differences = Vec::new();
        for (name, state) in &mut self.states {
            let is_there = listed.iter().any(|container| container.get("id").and_then(Value::as_str) == Some(name));
            let found = if is_there { ContainerState::Exists } else { ContainerState::Deleted };
            if *state != ContainerState::Unknown && *state != found {
                differences.push(format!("container {name}: acknowledged {state:?}, found {found:?}"));
            }
            *state = found;
        }
        differences
    }
}
