//! Declarations: databases, containers and items of the configuration file that exist before the first request.
//!
//! Guarantees: a `Declaration` has well-formed ids, throughput and container bodies; a body is what a client would send
//! to create the container. The engine checks the policies in it, and `server::declare` handles resources that exist
//! already. Items are read from their files only when they are created.
//!
//! ```toml
//! [[database]]
//! id = "shop"
//! [[database.container]]
//! id = "orders"                     → {"id":"orders","partitionKey":{"paths":["/customer"],
//! partition-key = "/customer"          "kind":"Hash","version":2},"defaultTtl":3600}
//! default-ttl = 3600
//! seed = "orders.ndjson"            → Items::File, read line by line
//! ```

mod items;
#[cfg(test)]
mod tests;

pub use items::Items;

use pleiad_model::{Error, Object, Result, Value};
use toml::de::{DeTable, DeValue};

use crate::config::{TomlDocument, TomlEntry};

#[derive(Debug, Default, PartialEq)]
pub struct Declaration {
    pub databases: Vec<SeedDatabase>,
}

#[derive(Debug, PartialEq)]
pub struct SeedDatabase {
    pub id: String,
    pub throughput: Option<SeedThroughput>,
    pub containers: Vec<SeedContainer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedThroughput {
    Manual { ru_per_s: u64 },
    Autoscale { max_ru_per_s: u64 },
}

#[derive(Debug, PartialEq)]
pub struct SeedContainer {
    pub id: String,
    pub throughput: Option<SeedThroughput>,
    /// The body of a request that creates the container.
    pub body: Value,
    pub items: Items,
}

const DATABASE_KEYS: [&str; 4] = ["id", "throughput", "autoscale-max", "container"];
const CONTAINER_KEYS: [&str; 6] = ["id", "partition-key", "throughput", "autoscale-max", "seed", "items"];

/// The name of a policy in the file, and in Cosmos DB.
const POLICIES: [(&str, &str); 11] = [
    ("indexing-policy", "indexingPolicy"),
    ("unique-key-policy", "uniqueKeyPolicy"),
    ("conflict-resolution-policy", "conflictResolutionPolicy"),
    ("computed-properties", "computedProperties"),
    ("default-ttl", "defaultTtl"),
    ("analytical-storage-ttl", "analyticalStorageTtl"),
    ("change-feed-policy", "changeFeedPolicy"),
    ("vector-embedding-policy", "vectorEmbeddingPolicy"),
    ("full-text-policy", "fullTextPolicy"),
    ("geospatial-config", "geospatialConfig"),
    ("client-encryption-policy", "clientEncryptionPolicy"),
];

impl Declaration {
    /// From the file's `database` entry.
    pub fn parse(document: &TomlDocument, entry: &TomlEntry) -> Result<Declaration> {
        let tables = document.tables(entry)?;
        let databases = tables.into_iter().map(|table| database(document, entry, table)).collect::<Result<Vec<_>>>()?;
        check_unique_ids(document, entry, databases.iter().map(|database| &database.id))?;
        Ok(Declaration { databases })
    }
}

fn database(document: &TomlDocument, parent: &TomlEntry, table: &DeTable) -> Result<SeedDatabase> {
    let entries = document.entries(table, &DATABASE_KEYS)?;
    let containers = match find(&entries, "container") {
        Some(entry) => containers(document, entry)?,
        None => Vec::new(),
    };
    Ok(SeedDatabase { id: id(document, parent, &entries)?, throughput: throughput(document, &entries)?, containers })
}

fn containers(document: &TomlDocument, entry: &TomlEntry) -> Result<Vec<SeedContainer>> {
    let tables = document.tables(entry)?;
    let containers = tables.into_iter().map(|table| container(document, entry, table)).collect::<Result<Vec<_>>>()?;
    check_unique_ids(document, entry, containers.iter().map(|container| &container.id))?;
    Ok(containers)
}

fn container(document: &TomlDocument, parent: &TomlEntry, table: &DeTable) -> Result<SeedContainer> {
    let known = CONTAINER_KEYS.into_iter().chain(POLICIES.map(|(ours, _)| ours)).collect::<Vec<_>>();
    let entries = document.entries(table, &known)?;
    let id = id(document, parent, &entries)?;
    let mut body = Object::new().with("id", id.as_str());
    body.set("partitionKey", partition_key(document, parent, &entries)?);
    for entry in &entries {
        if let Some((_, theirs)) = POLICIES.iter().find(|(ours, _)| *ours == entry.name) {
            body.set(*theirs, document.json(entry)?);
        }
    }
    Ok(SeedContainer {
        id,
        throughput: throughput(document, &entries)?,
        body: body.into(),
        items: items(document, &entries)?,
    })
}

fn find<'e, 'd>(entries: &'e [TomlEntry<'d>], name: &str) -> Option<&'e TomlEntry<'d>> {
    entries.iter().find(|entry| entry.name == name)
}

/// The entry, or an error at the first entry of its table, or at the table's parent if the table is empty.
fn require<'e, 'd>(
    document: &TomlDocument,
    parent: &TomlEntry,
    entries: &'e [TomlEntry<'d>],
    name: &str,
) -> Result<&'e TomlEntry<'d>> {
    let missing = || {
        let entry = entries.first().unwrap_or(parent);
        document.error(entry, &format!("a {} needs `{name}`.", parent.name))
    };
    find(entries, name).ok_or_else(missing)
}

fn id(document: &TomlDocument, parent: &TomlEntry, entries: &[TomlEntry]) -> Result<String> {
    document.string(require(document, parent, entries, "id")?).map(str::to_owned)
}

fn throughput(document: &TomlDocument, entries: &[TomlEntry]) -> Result<Option<SeedThroughput>> {
    match (find(entries, "throughput"), find(entries, "autoscale-max")) {
        (None, None) => Ok(None),
        (Some(manual), None) => Ok(Some(SeedThroughput::Manual { ru_per_s: document.count(manual)? })),
        (None, Some(most)) => Ok(Some(SeedThroughput::Autoscale { max_ru_per_s: document.count(most)? })),
        (Some(_), Some(both)) => {
            Err(document.error(both, "`throughput` and `autoscale-max` exclude each other; keep one."))
        }
    }
}

/// One path is a plain key, several are a hierarchical key. Both are version 2, the only version for new containers.
fn partition_key(document: &TomlDocument, parent: &TomlEntry, entries: &[TomlEntry]) -> Result<Object> {
    let entry = require(document, parent, entries, "partition-key")?;
    let paths = match entry.value {
        DeValue::String(path) => Some(vec![Value::from(path.as_ref())]),
        DeValue::Array(paths) => paths.iter().map(|path| path.get_ref().as_str().map(Value::from)).collect(),
        _ => None,
    };
    let paths = paths.filter(|paths| !paths.is_empty());
    let paths = paths.ok_or_else(|| document.must_be(entry, "a path such as \"/pk\", or an array of paths"))?;
    let kind = if paths.len() == 1 { "Hash" } else { "MultiHash" };
    Ok(Object::new().with("paths", paths).with("kind", kind).with("version", 2_i64))
}

fn items(document: &TomlDocument, entries: &[TomlEntry]) -> Result<Items> {
    match (find(entries, "seed"), find(entries, "items")) {
        (None, None) => Ok(Items::None),
        (Some(_), Some(both)) => Err(document.error(both, "`seed` and `items` exclude each other; keep one.")),
        (Some(seed), None) => {
            let directory = document.path.parent().unwrap_or(std::path::Path::new(""));
            let file = directory.join(document.string(seed)?);
            Items::file(file).map_err(|error| document.error(seed, &error.to_string()))
        }
        (None, Some(inline)) => match document.json(inline)? {
            Value::Array(items) if items.iter().all(|item| item.as_object().is_some()) => Ok(Items::Inline(items)),
            _ => Err(document.must_be(inline, "an array of items, such as [{ id = \"1\" }]")),
        },
    }
}

fn check_unique_ids<'i>(
    document: &TomlDocument,
    entry: &TomlEntry,
    ids: impl Iterator<Item = &'i String>,
) -> Result<(), Error> {
    let mut seen = std::collections::BTreeSet::new();
    for id in ids {
        if !seen.insert(id) {
            return Err(document.error(entry, &format!("there are two {}s with the id \"{id}\".", entry.name)));
        }
    }
    Ok(())
}
