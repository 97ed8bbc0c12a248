//! Containers in the management API: what each is, with its kind, which the NoSQL API does not show; and creating one,
//! with the same effect as through the protocol, in one request.
//!
//! ```text
//! GET containers/shop/orders   {"database": "shop", "id": "orders", "kind": "nosql", "partitions": 3}
//! PUT containers/shop/orders   {"partitionKey": {"paths": ["/customer"]}, "throughput": 400}
//! ```

use std::sync::Arc;

use pleiad_engine::catalog::NewContainer;
use pleiad_engine::{Container, ContainerName, Database, OfferOwner, ThroughputRequest};
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::{Error, Kind, Object, Result};

use super::request::ManagementRequest;
use super::throughput::{THROUGHPUT_MEMBERS, parse_throughput};
use super::{ManagementApi, json_reply, list, ok};
use crate::nosql::reply::Handled;
use crate::nosql::status::Status;

impl ManagementApi {
    /// All containers of the account.
    pub(super) fn containers(&self) -> Handled {
        let tree = self.engine.catalog.tree();
        let containers = tree.databases.values().flat_map(|database| database.containers.values());
        list("containers", containers.map(|container| container_json(container).into()).collect())
    }

    pub(super) fn container(&self, at: ContainerName<'_>) -> Handled {
        ok(container_json(&*self.engine.find_container(at)?))
    }

    /// Also creates the database if it does not exist; that database has no throughput of its own.
    pub(super) async fn create(&self, at: ContainerName<'_>, request: &ManagementRequest<'_>) -> Handled {
        let ContainerName::Named { database, container } = at else {
            return Err(Error::invalid("A new container has a name.").into());
        };
        let new = self.new_container(container, request.object()?)?;
        let database = self.database(database).await?;
        let created = self.engine.catalog.create_container(database.rid, new).await?;
        let offer = self.engine.catalog.tree().offer(OfferOwner::Container(created.rid)).cloned();
        let reserved = offer.map_or_else(|| Object::new().with("kind", "shared"), |offer| self.offer_json(&offer));
        let reserved = reserved.with("partitions", created.partitions.len() as u64);
        Ok(json_reply(Status::Created, reserved))
    }

    fn new_container(&self, id: &str, mut body: Object) -> Result<NewContainer> {
        let mut throughput_members = body.clone();
        throughput_members.retain(|name, _| THROUGHPUT_MEMBERS.contains(&name));
        body.retain(|name, _| !THROUGHPUT_MEMBERS.contains(&name));
        body.set("id", id);
        let throughput = if throughput_members.is_empty() {
            ThroughputRequest::Unspecified
        } else {
            parse_throughput(&throughput_members)?
        };
        throughput.check(&self.engine.catalog.limits().governance)?;
        Ok(NewContainer { definition: ContainerDefinition::create(&body.into())?, throughput })
    }

    async fn database(&self, id: &str) -> Result<Arc<Database>> {
        if let Ok(found) = self.engine.find_database(id) {
            return Ok(found);
        }
        match self.engine.catalog.create_database(id, ThroughputRequest::Unspecified).await {
            Err(error) if error.kind == Kind::Conflict => self.engine.find_database(id),
            outcome => outcome,
        }
    }
}

fn container_json(container: &Container) -> Object {
    Object::new()
        .with("database", container.database.as_str())
        .with("id", container.definition.id.as_str())
        .with("kind", container.definition.kind.as_str())
        .with("partitions", container.partitions.len() as u64)
}
