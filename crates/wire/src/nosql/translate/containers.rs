//! Containers.

use std::sync::Arc;

use http::{Method, StatusCode};
use pleiad_engine::catalog::NewContainer;
use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_engine::{Container, Database, KEYS_REPORTED, KeyStatistics};
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::resource_id::ScriptKind;
use pleiad_model::{Error, Kind, Result, Value};

use super::metadata::{MetadataRows, one};
use super::{creates, not_allowed};
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::reply::{
    ALT_CONTENT_PATH, CONTENT_PATH, Handled, INDEX_PROGRESS, RESOURCE_QUOTA, RESOURCE_USAGE, Reply,
};
use crate::nosql::request::{PostKind, Request};

/// The first protocol version with partition keys.
const VERSION_PARTITIONED: &str = "2015-12-16";
/// From this version on, a container must have a partition key.
const VERSION_KEY_REQUIRED: &str = "2018-12-31";

impl RequestContext<'_> {
    pub(super) async fn containers(&self, request: &Request<'_>) -> Handled {
        match (request.method, request.address.is_feed) {
            (&Method::GET, true) => {
                let database = self.owner_of(request)?;
                self.list(request, container_rows(&database, &database.rid.to_string()))
            }
            (&Method::POST, true) if request.post_kind() == PostKind::Query => {
                let database = self.owner_of(request)?;
                self.query(request, container_rows(&database, &database.rid.to_string()))
            }
            (&Method::POST, true) if creates(request) => self.create_container(request).await,
            (&Method::GET, false) => self.read_container(request).await,
            (&Method::PUT, false) => self.replace_container(request).await,
            (&Method::DELETE, false) => {
                let container = self.engine.find_container(request.container_name()?)?;
                self.engine.catalog.delete_container(container.rid).await?;
                Ok(told(Reply::empty(StatusCode::NO_CONTENT).charged(METADATA_WRITE_RU), &container))
            }
            _ => Err(not_allowed()),
        }
    }

    async fn create_container(&self, request: &Request<'_>) -> Handled {
        let database = self.owner_of(request)?;
        let body = request.json()?;
        check_version(request, &body)?;
        let definition = ContainerDefinition::create(&body)?;
        let new = NewContainer { definition, throughput: request.throughput()? };
        let container = self.engine.catalog.create_container(database.rid, new).await?;
        let reply = one(request, StatusCode::CREATED, &encode::container(&container));
        Ok(told(reply.charged(METADATA_WRITE_RU), &container))
    }

    async fn read_container(&self, request: &Request<'_>) -> Handled {
        let container = self.engine.find_container(request.container_name()?)?;
        let mut value = encode::container(&container);
        if request.flag("x-ms-documentdb-populatepartitionstatistics") {
            let keys = key_statistics(&container).await?;
            if let Value::Object(object) = &mut value {
                object.set("statistics", encode::partition_statistics(&container, &keys));
            }
        }
        let reply = told(one(request, StatusCode::OK, &value), &container);
        if !request.flag("x-ms-documentdb-populatequotainfo") {
            return Ok(reply);
        }
        let (quota, usage) = self.quota(&container);
        let reply = reply.with(RESOURCE_QUOTA, &quota).with(RESOURCE_USAGE, &usage);
        Ok(reply.with_number(INDEX_PROGRESS, container.index_percent()))
    }

    async fn replace_container(&self, request: &Request<'_>) -> Handled {
        let container = self.engine.find_container(request.container_name()?)?;
        let body = request.json()?;
        let replaced = self.engine.catalog.replace_container(container.rid, |old| old.replace(&body)).await?;
        let reply = one(request, StatusCode::OK, &encode::container(&replaced));
        Ok(told(reply.charged(METADATA_WRITE_RU), &replaced))
    }

    /// The quota and the usage of a container; sizes in KB.
    pub(super) fn quota(&self, container: &Container) -> (String, String) {
        let limits = self.engine.catalog.limits();
        let partitions = container.partitions.len() as u64;
        let collection_kb = (limits.partition_bytes_max / 1024).saturating_mul(partitions);
        let used_kb = container.item_bytes().div_ceil(1024);
        let quota = format!(
            "documentSize=2048;documentsSize={collection_kb};documentsCount=-1;collectionSize={collection_kb};storedProcedures=100;triggers=25;functions=50;"
        );
        let stored = |kind| container.scripts.of(kind).count();
        let usage = format!(
            "documentSize=0;documentsSize={used_kb};documentsCount={};collectionSize={used_kb};storedProcedures={};triggers={};functions={};",
            container.items(),
            stored(ScriptKind::StoredProcedure),
            stored(ScriptKind::Trigger),
            stored(ScriptKind::UserDefinedFunction),
        );
        (quota, usage)
    }

    /// The database that a feed of containers belongs to.
    pub(super) fn owner_of(&self, request: &Request<'_>) -> Result<Arc<Database>> {
        self.database_of(request).map_err(|_| Error::new(Kind::OwnerNotFound, "Owner resource does not exist"))
    }
}

async fn key_statistics(container: &Container) -> Result<Vec<KeyStatistics>> {
    let mut found = Vec::with_capacity(container.partitions.len());
    for partition in &container.partitions {
        found.push(partition.key_statistics(KEYS_REPORTED).await?);
    }
    Ok(found)
}

fn container_rows<'a>(database: &Database, owner: &'a str) -> MetadataRows<'a> {
    let numbered =
        database.containers.iter().map(|(&number, container)| (u64::from(number), encode::container(container)));
    MetadataRows { owner, array: "DocumentCollections", numbered: numbered.collect() }
}

/// Versions are dates, so text order is time order. No version means the newest.
fn check_version(request: &Request<'_>, body: &Value) -> Result<()> {
    let Some(version) = request.header("x-ms-version") else { return Ok(()) };
    let has_key = body.get("partitionKey").is_some_and(|key| *key != Value::Null);
    if has_key && version < VERSION_PARTITIONED {
        return Err(Error::invalid(format!(
            "Partitioned containers need x-ms-version {VERSION_PARTITIONED} or newer; the request says {version}."
        )));
    }
    if !has_key && version >= VERSION_KEY_REQUIRED {
        return Err(Error::invalid(
            "The partition key definition is missing: specify 'partitionKey' with at least one path.",
        ));
    }
    Ok(())
}

fn told(reply: Reply, container: &Container) -> Reply {
    let owner = format!("dbs/{}", container.database);
    reply
        .with(ALT_CONTENT_PATH, &super::items::encode_path(&owner))
        .with(CONTENT_PATH, &container.rid.database.to_string())
}
