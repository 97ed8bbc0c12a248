//! Requests for many items: transactional batches, bulk, delete by partition key.

use http::{Method, StatusCode};
use pleiad_engine::Admitted;
use pleiad_model::{Error, Kind};

use super::items::told;
use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::batch::{self, BatchFormat};
use crate::nosql::reply::{ErrorReply, Handled, Reply};
use crate::nosql::request::Request;

/// The size limit of the whole body.
pub(super) const BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;

impl RequestContext<'_> {
    /// Verbs on a container that are not resources: `POST operations/partitionkeydelete`.
    pub(super) async fn operations(&self, request: &Request<'_>) -> Handled {
        let at = self.engine.admit(request.container_name()?, request.intended_rid())?.in_class(request.class()?);
        let known = request.address.last().is_some_and(|name| name.eq_ignore_ascii_case("partitionkeydelete"));
        if request.method != Method::POST || !known {
            return Err(not_allowed());
        }
        let key = request.partition_key()?;
        let ((), place, charge_ru) = ErrorReply::of(self.engine.delete_by_partition_key(&at, key.as_ref()).await)?;
        Ok(told(Reply::empty(StatusCode::OK).charged(charge_ru).at_lsn(place), &at))
    }

    pub(super) async fn batch(&self, request: &Request<'_>, at: &Admitted) -> Handled {
        check_size(request.body.len())?;
        let format = BatchFormat::of(&request.body);
        let (sent, minimal) = batch::parse(format, &request.body)?;
        let (key, session) = (request.partition_key()?, request.session(at)?);
        let answer = match request.flag("x-ms-cosmos-batch-atomic") {
            true => self.engine.run_batch(at, key.as_ref(), &sent, session.as_ref()).await,
            false => {
                let go_on = request.flag("x-ms-cosmos-batch-continue-on-error");
                let range = request.range_id()?;
                self.engine.run_bulk(at, key.as_ref(), range, &sent, go_on, session.as_ref()).await
            }
        };
        let (answers, place, charge_ru) = ErrorReply::of(answer)?;
        let failed = answers.iter().any(|answer| answer.result.is_err());
        let status = if failed { StatusCode::MULTI_STATUS } else { StatusCode::OK };
        let body = batch::write(format, at.container().rid, answers, &minimal);
        Ok(Reply::new(status, body).charged(charge_ru).at_lsn(place))
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
