//! Metadata feeds: listing, paging, querying and conditional reads, shared by all of them.

use pleiad_engine::{FeedCursor, RowSet};
use pleiad_model::partition_key::EpkRange;
use pleiad_model::{Error, Result, Value, json};

use super::query_body::QueryBody;
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
        let feed = format!("{}/{}", rows.owner, rows.array);
        let (after, limit) = self.page_of(operation, &feed)?;
        let mut left = rows.numbered.into_iter().skip_while(|(number, _)| *number <= after).peekable();
        let page: Vec<(u64, Value)> = left.by_ref().take(limit).collect();
        let next = left.peek().and(page.last()).map(|(number, _)| *number);
        let values: Vec<Value> = page.into_iter().map(|(_, value)| value).collect();
        let reply = Reply::new(Status::Ok, encode::feed(rows.owner, rows.array, &values));
        Ok(reply.item_count(values.len()).continuation(next.map(|number| self.token(&feed, number))))
    }

    /// Evaluates `{"query": "…", "parameters": […]}` over the whole feed, which is small. A continuation counts the rows
    /// that were returned, because rows may be sorted, grouped or projected; it belongs to the text of its query.
    pub(super) fn query(&self, operation: &Operation<'_>, rows: MetadataRows<'_>) -> Handled {
        let values: Vec<Value> = rows.numbered.into_iter().map(|(_, value)| value).collect();
        let body = QueryBody::of(operation)?;
        body.check_no_resume_filter()?;
        let QueryBody { text, parameters, .. } = body;
        let feed = format!("{}/{} {text}", rows.owner, rows.array);
        let (returned, limit) = self.page_of(operation, &feed)?;
        let found = self.engine.filter(&text, &parameters, &values)?;
        let mut page = RowSet::default();
        found.iter().skip(returned as usize).take(limit).for_each(|row| page.push(row));
        let returned = returned.saturating_add(page.len() as u64);
        let next = ((returned as usize) < found.len()).then(|| self.token(&feed, returned));
        let reply = Reply::new(Status::Ok, encode::rows(rows.owner, rows.array, &page));
        Ok(reply.item_count(page.len()).continuation(next))
    }

    /// The number after which the requested page begins, and its maximum length.
    fn page_of(&self, operation: &Operation<'_>, feed: &str) -> Result<(u64, usize)> {
        let after = match operation.options.continuation {
            Some(token) => self.tokens.redeem(feed, token)?.ranges.first().map_or(0, |cursor| cursor.docnum),
            None => 0,
        };
        operation.options.continuation_kb_max.get()?;
        Ok((after, operation.page_rows()?.unwrap_or(PAGE_ROWS)))
    }

    fn token(&self, feed: &str, after: u64) -> String {
        self.tokens.issue(feed, &FeedCursor::after(EpkRange::FULL, after))
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
