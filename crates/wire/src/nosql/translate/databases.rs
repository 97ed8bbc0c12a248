//! Databases.

use std::sync::Arc;

use pleiad_engine::Database;
use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_model::Result;

use super::metadata::{MetadataRows, id_of, one};
use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::operation::{Operation, OperationKind};
use crate::nosql::reply::{Handled, Reply};
use crate::nosql::status::Status;

impl RequestContext<'_> {
    pub(super) async fn databases(&self, operation: &Operation<'_>) -> Handled {
        match operation.kind {
            OperationKind::List => self.list(operation, self.database_rows()),
            OperationKind::Query => self.query(operation, self.database_rows()),
            OperationKind::Create | OperationKind::Upsert => self.create_database(operation).await,
            OperationKind::Read => Ok(one(operation, Status::Ok, &encode::database(&*self.database_of(operation)?))),
            OperationKind::Delete => {
                self.engine.catalog.delete_database(self.database_of(operation)?.rid).await?;
                Ok(Reply::empty(Status::NoContent).charged(METADATA_WRITE_RU))
            }
            _ => Err(not_allowed()),
        }
    }

    async fn create_database(&self, operation: &Operation<'_>) -> Handled {
        let body = operation.json()?;
        let database = self.engine.catalog.create_database(id_of(&body)?, operation.throughput()?).await?;
        Ok(one(operation, Status::Created, &encode::database(&database)).charged(METADATA_WRITE_RU))
    }

    /// The database that the first segment of the path names.
    pub(super) fn database_of(&self, operation: &Operation<'_>) -> Result<Arc<Database>> {
        match operation.database_rid() {
            Some(rid) => self.engine.find_database_by_rid(rid),
            None => self.engine.find_database(operation.address.segment(0).unwrap_or_default()),
        }
    }

    fn database_rows(&self) -> MetadataRows<'static> {
        let tree = self.engine.catalog.tree();
        let numbered =
            tree.databases.iter().map(|(&number, database)| (u64::from(number), encode::database(database))).collect();
        MetadataRows { owner: "", array: "Databases", numbered }
    }
}
