//! Containers.

use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_engine::{Addressed, Container, Database, NewContainer};
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::resource_id::ScriptKind;
use pleiad_model::{Error, Result, Value};

use super::metadata::{MetadataRows, one};
use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::operation::{Operation, OperationKind};
use crate::nosql::reply::{ContainerMetadata, Handled, OwnerPath, Reply};
use crate::nosql::status::Status;

/// The first protocol version with partition keys.
const VERSION_PARTITIONED: &str = "2015-12-16";
/// From this version on, a container must have a partition key.
const VERSION_KEY_REQUIRED: &str = "2018-12-31";

impl RequestContext<'_> {
    pub(super) async fn containers(&self, operation: &Operation<'_>) -> Handled {
        match operation.kind {
            OperationKind::List => {
                let at = self.admit_database(operation, Addressed::Parent)?;
                self.list(operation, container_rows(at.database(), &at.database().rid.to_string()))
            }
            OperationKind::Query => {
                let at = self.admit_database(operation, Addressed::Parent)?;
                self.query(operation, container_rows(at.database(), &at.database().rid.to_string()))
            }
            OperationKind::Create | OperationKind::Upsert => self.create_container(operation).await,
            OperationKind::Read => self.read_container(operation).await,
            OperationKind::Replace => self.replace_container(operation).await,
            OperationKind::Delete => {
                let at = self.admit_container(operation, Addressed::Itself)?;
                self.engine.delete_container(&at).await?;
                let mut reply = in_database(Reply::empty(Status::NoContent).charged(METADATA_WRITE_RU), at.container());
                // The rid of the container: SDKs forget its session tokens by it.
                if let Some(owner) = &mut reply.metadata.owner {
                    owner.rid = at.container().rid.to_string();
                }
                Ok(reply)
            }
            _ => {
                self.admit(operation)?;
                Err(not_allowed())
            }
        }
    }

    async fn create_container(&self, operation: &Operation<'_>) -> Handled {
        let at = self.admit_database(operation, Addressed::Parent)?;
        let body = operation.json()?;
        check_version(operation, &body)?;
        let definition = ContainerDefinition::create(&body)?;
        let new = NewContainer { definition, throughput: operation.throughput()? };
        let container = self.engine.create_container(&at, new).await?;
        let reply = one(operation, Status::Created, &encode::container(&container));
        Ok(in_database(reply.charged(METADATA_WRITE_RU), &container))
    }

    async fn read_container(&self, operation: &Operation<'_>) -> Handled {
        let at = self.admit_container(operation, Addressed::Itself)?;
        let container = at.container();
        let mut value = encode::container(container);
        if operation.options.partition_statistics {
            let reports = self.engine.largest_keys(&at).await?;
            if let Value::Object(object) = &mut value {
                object.set("statistics", encode::partition_statistics(&reports));
            }
        }
        let mut reply = in_database(one(operation, Status::Ok, &value), container);
        if operation.options.quota_info {
            let (quota, usage) = self.quota(container);
            let index_percent = container.index_percent();
            reply.metadata.container = Some(Box::new(ContainerMetadata { quota, usage, index_percent }));
        }
        Ok(reply)
    }

    async fn replace_container(&self, operation: &Operation<'_>) -> Handled {
        let at = self.admit_container(operation, Addressed::Itself)?;
        let body = operation.json()?;
        let replaced = self.engine.replace_container(&at, |old| old.replace(&body)).await?;
        let reply = one(operation, Status::Ok, &encode::container(&replaced));
        Ok(in_database(reply.charged(METADATA_WRITE_RU), &replaced))
    }

    /// The quota and the usage of a container; sizes in KB.
    pub(super) fn quota(&self, container: &Container) -> (String, String) {
        let limits = self.engine.limits();
        let partitions = container.partition_count() as u64;
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
}

fn container_rows<'a>(database: &Database, owner: &'a str) -> MetadataRows<'a> {
    let numbered =
        database.containers.iter().map(|(&number, container)| (u64::from(number), encode::container(container)));
    MetadataRows { owner, array: "DocumentCollections", numbered: numbered.collect() }
}

/// Versions are dates, so text order is time order. No version means the newest.
fn check_version(operation: &Operation<'_>, body: &Value) -> Result<()> {
    let Some(version) = operation.options.api_version else { return Ok(()) };
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

/// Names the database in a reply about one of its containers.
fn in_database(mut reply: Reply, container: &Container) -> Reply {
    let path = format!("dbs/{}", container.database);
    reply.metadata.owner = Some(OwnerPath { path, rid: container.rid.database.to_string() });
    reply
}
