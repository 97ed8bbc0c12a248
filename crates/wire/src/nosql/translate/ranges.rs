//! Partition key ranges, as a plain feed and as a change feed.
//!
//! Guarantees: a client that sends the current etag gets 304. Clients loop until they get it, so any other response
//! would hang them.

use pleiad_engine::Addressed;
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Value};

use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::operation::{Operation, OperationKind};
use crate::nosql::reply::{Handled, Reply};
use crate::nosql::status::Status;

impl RequestContext<'_> {
    pub(super) fn ranges(&self, operation: &Operation<'_>) -> Handled {
        let admitted = self.admit_container(operation, Addressed::Parent)?;
        if !matches!(operation.kind, OperationKind::List | OperationKind::Read) {
            return Err(not_allowed());
        }
        let container = admitted.container();
        if operation.kind == OperationKind::Read {
            return Err(Error::not_found("Partition key ranges are read as a feed.").into());
        }
        let etag = format!("\"{}-{}\"", container.rid, container.map.epoch);
        // An etag of an earlier container with this name, or of an epoch after the current one: the client starts from
        // the beginning.
        let seen = operation.options.if_none_match.and_then(|etag| epoch_of(etag, container.rid));
        let seen = seen.filter(|seen| *seen <= container.map.epoch).unwrap_or(0);
        if seen == container.map.epoch {
            return Ok(Reply::empty(Status::NotModified).etag(etag));
        }
        let ranges = container.map.ranges().iter().enumerate();
        let changed = ranges.filter(|(_, range)| range.since > seen).map(|(at, _)| encode::range(container, at));
        let changed: Vec<Value> = changed.collect();
        let owner = container.rid.to_string();
        let reply = Reply::new(Status::Ok, encode::feed(&owner, "PartitionKeyRanges", &changed));
        Ok(reply.etag(etag).item_count(changed.len()))
    }
}

fn epoch_of(etag: &str, container: ContainerRid) -> Option<u64> {
    let (owner, epoch) = etag.trim_matches('"').rsplit_once('-')?;
    epoch.parse().ok().filter(|_| owner == container.to_string())
}
