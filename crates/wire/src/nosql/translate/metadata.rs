//! Metadata feeds: listing, paging, querying and conditional reads, shared by all of them.

use pleiad_engine::FeedCursor;
use pleiad_model::partition_key::EpkRange;
use pleiad_model::{Error, Result, Value, json};

use super::queries::query_of;
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::operation::{Operation, OperationKind};
use crate::nosql::reply::{Handled, Reply};
use crate::nosql::status::Status;

/// Rows of a feed, ordered by their numbers.
pub(super) struct MetadataRows<'a> {
    pub owner: &'a str,
    pub array: &'static str,
    pub numbered: Vec<(u64, Value)>,
}

const PAGE_ROWS: usize = 100;

impl RequestContext<'_> {
    pub(super) fn list(&self, operation: &Operation<'_>, rows: MetadataRows<'_>) -> Handled {
        let after = match operation.options.continuation {
            Some(token) => self.tokens.redeem(rows.owner, token)?.0.first().map_or(0, |cursor| cursor.docnum),
            None => 0,
        };
        let limit = operation.page_rows()?.unwrap_or(PAGE_ROWS);
        let mut left = rows.numbered.into_iter().skip_while(|(number, _)| *number <= after).peekable();
        let page: Vec<(u64, Value)> = left.by_ref().take(limit).collect();
        let next = left.peek().and(page.last()).map(|(number, _)| FeedCursor::after(EpkRange::FULL, *number));
        let values: Vec<Value> = page.into_iter().map(|(_, value)| value).collect();
        let token = next.map(|position| self.tokens.issue(rows.owner, &position));
        let reply = Reply::new(Status::Ok, encode::feed(rows.owner, rows.array, &values));
        Ok(reply.item_count(values.len()).continuation(token))
    }

    /// Evaluates `{"query": "…", "parameters": […]}` over the whole feed, which is small.
    pub(super) fn query(&self, operation: &Operation<'_>, rows: MetadataRows<'_>) -> Handled {
        let values: Vec<Value> = rows.numbered.into_iter().map(|(_, value)| value).collect();
        let (text, parameters) = query_of(operation)?;
        let found = self.engine.filter(&text, &parameters, &values)?;
        let reply = Reply::new(Status::Ok, encode::rows(rows.owner, rows.array, &found));
        Ok(reply.item_count(found.len()))
    }
}

/// One resource, or 304 if the client already has this version.
pub(super) fn one(operation: &Operation<'_>, status: Status, value: &Value) -> Reply {
    let etag = value.get("_etag").and_then(Value::as_str).unwrap_or_default();
    if operation.kind == OperationKind::Read && operation.options.if_none_match == Some(etag) {
        return Reply::empty(Status::NotModified).etag(etag);
    }
    let mut body = Vec::with_capacity(512);
    json::write(value, &mut body);
    Reply::new(status, body).etag(etag)
}

/// The `id` of a new resource.
pub(super) fn id_of(body: &Value) -> Result<&str> {
    let missing =
        || Error::invalid("The input content is invalid because the required properties - 'id; ' - are missing");
    let id = body.get("id").ok_or_else(missing)?;
    id.as_str().ok_or_else(|| Error::invalid("The input name is invalid: 'id' must be a string."))
}
