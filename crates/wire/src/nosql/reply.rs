//! Replies: status, body and metadata, which the encoder of a protocol turns into headers or tokens.

use bytes::Bytes;
use pleiad_engine::{Container, EngineResponse, PartitionLsn};
use pleiad_model::{Result, Throttle};

use super::status::{ErrorStatus, Status};

pub struct Reply {
    pub status: Status,
    pub body: Bytes,
    pub metadata: Metadata,
}

/// What handlers return: a reply, or an error with its metadata.
pub type Handled = Result<Reply, ErrorReply>;

pub struct ErrorReply {
    pub failure: ErrorStatus,
    /// Boxed, so that errors do not enlarge every result.
    pub metadata: Box<Metadata>,
}

/// What a reply says besides its body.
pub struct Metadata {
    pub charge_ru: f64,
    pub substatus: Option<u32>,
    /// The partition that served the request, and its LSN: the session token.
    pub served_by: Option<PartitionLsn>,
    pub etag: Option<String>,
    pub continuation: Option<String>,
    pub item_count: Option<u64>,
    pub item_lsn: Option<u64>,
    /// The resource that contains the one in the reply: clients store session tokens by it. A container that was
    /// deleted is named by its own rid, by which clients forget them.
    pub owner: Option<OwnerPath>,
    pub retry_after_ms: Option<u64>,
    pub throttle: Option<Box<Throttle>>,
    pub query: Option<Box<QueryMetadata>>,
    /// Whether a client that executed a query without a plan has to execute it with one.
    pub requires_plan: Option<bool>,
    pub container: Option<Box<ContainerMetadata>>,
    pub offer: Option<OfferMetadata>,
    /// What a script logged.
    pub script_log: Option<String>,
}

/// A resource by its names and by its resource id.
pub struct OwnerPath {
    /// `dbs/d/colls/c`
    pub path: String,
    pub rid: String,
}

/// What a client asked to be told about a query, as text.
#[derive(Default)]
pub struct QueryMetadata {
    pub metrics: Option<String>,
    pub index_utilization: Option<String>,
    pub plan: Option<String>,
    pub advice: Option<String>,
}

pub struct ContainerMetadata {
    pub quota: String,
    pub usage: String,
    pub index_percent: u64,
}

#[derive(Clone, Copy)]
pub struct OfferMetadata {
    pub minimum_ru: u32,
    pub is_replace_pending: bool,
}

/// An operation on metadata: one request unit and nothing else.
impl Default for Metadata {
    fn default() -> Self {
        Metadata {
            charge_ru: pleiad_engine::price::METADATA_RU,
            substatus: None,
            served_by: None,
            etag: None,
            continuation: None,
            item_count: None,
            item_lsn: None,
            owner: None,
            retry_after_ms: None,
            throttle: None,
            query: None,
            requires_plan: None,
            container: None,
            offer: None,
            script_log: None,
        }
    }
}

impl<E: Into<ErrorStatus>> From<E> for ErrorReply {
    fn from(error: E) -> Self {
        let failure = error.into();
        let metadata = Metadata { charge_ru: flat_ru(failure.status), ..Metadata::default() };
        ErrorReply { failure, metadata: Box::new(metadata) }
    }
}

/// What a client is told if no partition was charged for its request: every response of this API has a charge. It is
/// that of a request about metadata, and counts against no partition's budget.
fn flat_ru(status: Status) -> f64 {
    match status {
        Status::TooManyRequests | Status::ServiceUnavailable => 0.0,
        _ => pleiad_engine::price::METADATA_RU,
    }
}

impl Reply {
    pub fn new(status: Status, body: impl Into<Bytes>) -> Self {
        Reply { status, body: body.into(), metadata: Metadata::default() }
    }

    pub fn empty(status: Status) -> Self {
        Reply::new(status, Bytes::new())
    }

    pub fn charged(mut self, charge_ru: f64) -> Self {
        self.metadata.charge_ru = charge_ru;
        self
    }

    pub fn etag(mut self, etag: impl Into<String>) -> Self {
        self.metadata.etag = Some(etag.into());
        self
    }

    pub fn served_by(mut self, served_by: Option<PartitionLsn>) -> Self {
        self.metadata.served_by = served_by;
        self
    }

    pub fn item_count(mut self, count: usize) -> Self {
        self.metadata.item_count = Some(count as u64);
        self
    }

    pub fn item_lsn(mut self, lsn: u64) -> Self {
        self.metadata.item_lsn = Some(lsn);
        self
    }

    pub fn continuation(mut self, token: Option<String>) -> Self {
        self.metadata.continuation = token;
        self
    }
}

impl ErrorReply {
    /// The parts of an engine's response, or its error as a reply.
    pub fn of<T>(response: EngineResponse<T>) -> Result<(T, Option<PartitionLsn>, f64), ErrorReply> {
        let EngineResponse { result, served_by, charge_ru } = response;
        let told_ru = |status| if charge_ru > 0.0 { charge_ru } else { flat_ru(status) };
        match result {
            Ok(value) => Ok((value, served_by, told_ru(Status::Ok))),
            Err(error) => {
                let failure = ErrorStatus::from(error);
                let metadata = Metadata { charge_ru: told_ru(failure.status), served_by, ..Metadata::default() };
                Err(ErrorReply { failure, metadata: Box::new(metadata) })
            }
        }
    }

    /// The reply that tells the client; `activity` finds the request in the log.
    pub fn reply(self, activity: &str) -> Reply {
        let ErrorReply { failure, mut metadata } = self;
        let body = failure.body(activity);
        metadata.substatus = failure.substatus;
        metadata.retry_after_ms = failure.retry_after_ms;
        metadata.throttle = failure.throttle;
        Reply { status: failure.status, body: body.into(), metadata: *metadata }
    }
}

/// Names the container in a reply about something in it, error or not.
pub fn in_container(handled: Handled, container: &Container) -> Handled {
    let path = format!("dbs/{}/colls/{}", container.database, container.definition.id);
    let owner = Some(OwnerPath { path, rid: container.rid.to_string() });
    match handled {
        Ok(mut reply) => {
            reply.metadata.owner = owner;
            Ok(reply)
        }
        Err(mut error) => {
            error.metadata.owner = owner;
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleiad_model::{Error, Fact};

    fn told_ru(charge_ru: f64, result: Result<()>) -> f64 {
        match ErrorReply::of(EngineResponse { result, served_by: None, charge_ru }) {
            Ok((_, _, charge_ru)) => charge_ru,
            Err(reply) => reply.metadata.charge_ru,
        }
    }

    #[test]
    fn a_request_has_the_charge_of_its_partitions_or_that_of_metadata() {
        assert_eq!(told_ru(2.5, Ok(())), 2.5);
        assert_eq!(told_ru(2.5, Err(Fact::ItemMissing.into())), 2.5);
        assert_eq!(told_ru(0.0, Ok(())), 1.0);
        assert_eq!(told_ru(0.0, Err(Fact::KeyMissing.into())), 1.0);
        assert_eq!(told_ru(0.0, Err(Fact::ContainerChanging.into())), 1.0);
        assert_eq!(told_ru(0.0, Err(Fact::InjectedThrottle { retry_after_ms: 1 }.into())), 0.0);
        assert_eq!(ErrorReply::from(Error::invalid("no")).metadata.charge_ru, 1.0);
        assert_eq!(ErrorReply::from(Error::from(Fact::Stopping)).metadata.charge_ru, 0.0);
    }
}
