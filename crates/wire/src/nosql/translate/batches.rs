//! Requests for many items: transactional batches, bulk, delete by partition key.

use pleiad_engine::{Addressed, Admitted};
use pleiad_model::{Error, Kind};

use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::batch::{self, BatchFormat};
use crate::nosql::operation::{Operation, OperationKind};
use crate::nosql::reply::{ErrorReply, Handled, Reply, in_container};
use crate::nosql::status::Status;

/// The size limit of the whole body.
pub(super) const BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;

impl RequestContext<'_> {
    pub(super) async fn delete_by_partition_key(&self, operation: &Operation<'_>) -> Handled {
        let at = self.admit_container(operation, Addressed::Parent)?;
        let at = at.in_class(operation.class()?);
        if operation.kind != OperationKind::DeleteByPartitionKey {
            return Err(not_allowed());
        }
        let answer = self.engine.delete_by_partition_key(&at, operation.partition_key()?).await;
        let ((), served_by, charge_ru) = ErrorReply::of(answer)?;
        in_container(Ok(Reply::empty(Status::Ok).charged(charge_ru).served_by(served_by)), at.container())
    }

    pub(super) async fn batch(&self, operation: &Operation<'_>, at: &Admitted) -> Handled {
        check_size(operation.body.len())?;
        let format = BatchFormat::of(&operation.body);
        let (operations, minimal) = batch::parse(format, &operation.body)?;
        let (key, session) = (operation.partition_key()?, operation.session(at)?);
        let answer = match operation.options.batch_is_atomic {
            true => self.engine.run_batch(at, key, &operations, session).await,
            false => {
                let continue_on_error = operation.options.continue_on_error;
                let range = operation.range_id()?;
                self.engine.run_bulk(at, key, range, &operations, continue_on_error, session).await
            }
        };
        let (results, served_by, charge_ru) = ErrorReply::of(answer)?;
        let failed = results.iter().any(|result| result.result.is_err());
        let status = if failed { Status::MultiStatus } else { Status::Ok };
        let body = batch::write(format, at.container().rid, results, &minimal);
        Ok(Reply::new(status, body).charged(charge_ru).served_by(served_by))
    }
}

fn check_size(bytes: usize) -> Result<(), Error> {
    if bytes <= BATCH_BYTES_MAX {
        return Ok(());
    }
    let message =
        format!("Request size is too large: a batch has at most {BATCH_BYTES_MAX} bytes, this one has {bytes}.");
    Err(Error::new(Kind::TooLarge, message))
}
