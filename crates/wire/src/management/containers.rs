//! Containers in the management API: what each is, with its kind, which the NoSQL API does not show; and creating one,
//! with the same effect as through the protocol, in one request.
//!
//! ```text
//! GET containers/shop/orders   {"database": "shop", "id": "orders", "kind": "nosql", "partitions": 3}
//! PUT containers/shop/orders   {"partitionKey": {"paths": ["/customer"]}, "throughput": 400}
//! ```

use std::sync::Arc;

use pleiad_engine::{Action, Admitted, Container, ContainerName, Database, NewContainer, ThroughputRequest};
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::{Error, Kind, Object, Result};

use super::request::ManagementRequest;
use super::throughput::{THROUGHPUT_MEMBERS, offer_json, parse_throughput};
use super::{ManagementApi, json_reply, list, ok};
use crate::nosql::reply::{ErrorReply, Handled};
use crate::nosql::status::Status;

impl ManagementApi<'_> {
    /// All containers of the account.
    pub(super) fn containers(&self) -> Handled {
        let databases = self.engine.databases(&self.admit(Action::ReadMetadata)?)?;
        let containers = databases.iter().flat_map(|database| database.containers.values());
        list("containers", containers.map(|container| container_json(container).into()).collect())
    }

    pub(super) fn container(&self, at: ContainerName<'_>) -> Handled {
        ok(container_json(self.admit_container(Action::ReadMetadata, at)?.container()))
    }

    /// Also creates the database if it does not exist; that database has no throughput of its own.
    pub(super) async fn create(&self, at: ContainerName<'_>, request: &ManagementRequest<'_>) -> Handled {
        let ContainerName::Named { database, container } = at else {
            return Err(Error::invalid("A new container has a name.").into());
        };
        let new = self.new_container(container, request.object()?)?;
        let created = self.engine.create_container(&self.database(database).await?, new).await?;
        let at = self.admit_container(Action::ReadSettings, ContainerName::Rid(created.rid))?;
        let offer = self.engine.container_offer(&at)?;
        let reserved = offer.map_or_else(|| Object::new().with("kind", "shared"), |offer| offer_json(&offer));
        let reserved = reserved.with("partitions", created.partition_count() as u64);
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
        throughput.check(&self.engine.limits().governance)?;
        Ok(NewContainer { definition: ContainerDefinition::create(&body.into())?, throughput })
    }

    async fn database(&self, id: &str) -> Result<Admitted<Arc<Database>>, ErrorReply> {
        if let Ok(found) = self.admit_database(Action::WriteSettings, id) {
            return Ok(found);
        }
        let at = self.admit(Action::WriteSettings)?;
        match self.engine.create_database(&at, id, ThroughputRequest::Unspecified).await {
            Err(error) if error.kind != Kind::Conflict => Err(error.into()),
            _ => self.admit_database(Action::WriteSettings, id),
        }
    }
}

fn container_json(container: &Container) -> Object {
    Object::new()
        .with("database", container.database.as_str())
        .with("id", container.definition.id.as_str())
        .with("kind", container.definition.kind.as_str())
        .with("partitions", container.partition_count() as u64)
}
