//! Databases.

use pleiad_engine::Addressed;
use pleiad_engine::price::METADATA_WRITE_RU;

use super::metadata::{MetadataRows, id_of, one};
use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::operation::{Operation, OperationKind};
use crate::nosql::reply::{ErrorReply, Handled, Reply};
use crate::nosql::status::Status;

impl RequestContext<'_> {
    pub(super) async fn databases(&self, operation: &Operation<'_>) -> Handled {
        match operation.kind {
            OperationKind::List => self.list(operation, self.database_rows(operation)?),
            OperationKind::Query => self.query(operation, self.database_rows(operation)?),
            OperationKind::Create | OperationKind::Upsert => self.create_database(operation).await,
            OperationKind::Read => {
                let at = self.admit_database(operation, Addressed::Itself)?;
                Ok(one(operation, Status::Ok, &encode::database(at.database())))
            }
            OperationKind::Delete => {
                self.engine.delete_database(&self.admit_database(operation, Addressed::Itself)?).await?;
                Ok(Reply::empty(Status::NoContent).charged(METADATA_WRITE_RU))
            }
            _ => {
                self.admit(operation)?;
                Err(not_allowed())
            }
        }
    }

    async fn create_database(&self, operation: &Operation<'_>) -> Handled {
        let (at, body) = (self.admit(operation)?, operation.json()?);
        let database = self.engine.create_database(&at, id_of(&body)?, operation.throughput()?).await?;
        Ok(one(operation, Status::Created, &encode::database(&database)).charged(METADATA_WRITE_RU))
    }

    fn database_rows(&self, operation: &Operation<'_>) -> Result<MetadataRows<'static>, ErrorReply> {
        let databases = self.engine.databases(&self.admit(operation)?)?;
        let numbered = databases.iter().map(|database| (u64::from(database.rid.0), encode::database(database)));
        Ok(MetadataRows { owner: "", array: "Databases", numbered: numbered.collect() })
    }
}
