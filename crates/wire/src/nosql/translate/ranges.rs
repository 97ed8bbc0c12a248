//! Partition key ranges, as a plain feed and as a change feed.
//!
//! Guarantees: a client that sends the current etag gets 304. Clients loop until they get it, so any other response
//! would hang them.

use http::{Method, StatusCode};
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Value};

use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::reply::{Handled, ITEM_COUNT, Reply};
use crate::nosql::request::Request;

impl RequestContext<'_> {
    pub(super) fn ranges(&self, request: &Request<'_>) -> Handled {
        if request.method != Method::GET {
            return Err(not_allowed());
        }
        let admitted = self.engine.admit(request.container_name()?, request.intended_rid())?;
        let container = admitted.container();
        if !request.address.is_feed {
            return Err(Error::not_found("Partition key ranges are read as a feed.").into());
        }
        let etag = format!("\"{}-{}\"", container.rid, container.map.epoch);
        // An etag of an earlier container with this name, or of an epoch after the current one: the client starts from
        // the beginning.
        let seen = request.header("if-none-match").and_then(|etag| epoch_of(etag, container.rid));
        let seen = seen.filter(|seen| *seen <= container.map.epoch).unwrap_or(0);
        if seen == container.map.epoch {
            return Ok(Reply::empty(StatusCode::NOT_MODIFIED).etag(&etag));
        }
        let ranges = container.map.ranges().iter().enumerate();
        let changed = ranges.filter(|(_, range)| range.since > seen).map(|(at, _)| encode::range(container, at));
        let changed: Vec<Value> = changed.collect();
        let owner = container.rid.to_string();
        let reply = Reply::new(StatusCode::OK, encode::feed(&owner, "PartitionKeyRanges", &changed));
        Ok(reply.etag(&etag).with_number(ITEM_COUNT, changed.len() as u64))
    }
}

fn epoch_of(etag: &str, container: ContainerRid) -> Option<u64> {
    let (owner, epoch) = etag.trim_matches('"').rsplit_once('-')?;
    epoch.parse().ok().filter(|_| owner == container.to_string())
}
