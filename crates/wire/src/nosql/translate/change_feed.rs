//! The change feed of items.
//!
//! Guarantees: every response has an etag, the position at which the next request continues. Without new changes the
//! response is 304, which makes clients stop for now; an empty 200, if a query has dropped all new changes, does not.

use pleiad_engine::{Admitted, ChangeFilter, ChangeFrom, ChangeMode, ChangeRequest, ChangedItems, PageLimit};
use pleiad_model::Result;

use super::items::{PAGE_BYTES_MAX, PAGE_ITEMS, PAGE_ITEMS_MAX, list_scope};
use super::query_body::QueryBody;
use crate::nosql::operation::{Operation, OperationKind};
use crate::nosql::reply::{ErrorReply, Handled, Reply};
use crate::nosql::status::Status;
use crate::nosql::{RequestContext, encode};

impl RequestContext<'_> {
    pub(super) async fn change_feed(&self, operation: &Operation<'_>, at: &Admitted) -> Handled {
        let options = &operation.options;
        let rid = at.container().rid.to_string();
        let items = operation.page_rows()?.unwrap_or(PAGE_ITEMS).min(PAGE_ITEMS_MAX);
        let request = ChangeRequest {
            mode: options.change_mode.get()?.copied().unwrap_or(ChangeMode::LatestVersion),
            scope: list_scope(operation)?,
            from: self.change_from(operation, &rid)?,
            // Changes of the given second itself are not returned.
            since_s: options.since_s.get()?.map(|since_s| since_s.saturating_add(1)),
            filter: filter_of(operation)?,
            limit: PageLimit { items, bytes: PAGE_BYTES_MAX },
        };
        let session = operation.session(at)?;
        let (page, served_by, charge_ru) = ErrorReply::of(self.engine.change_feed(at, &request, session).await)?;
        let (container, rows) = (at.container(), page.rows.as_deref());
        let reply = match &page.changes {
            _ if !page.is_modified => Reply::empty(Status::NotModified),
            ChangedItems::Latest(records) => {
                Reply::new(Status::Ok, encode::changed_items(container.rid, records, rows, options.enveloped))
            }
            ChangedItems::Versions(versions) => {
                let previous_images = self.account.previous_images;
                Reply::new(Status::Ok, encode::versions(container, versions, rows, previous_images))
            }
        };
        let etag = self.tokens.issue_changes(&rid, &page.next)?;
        Ok(reply.charged(charge_ru).served_by(served_by).etag(etag).item_count(page.changes.len()))
    }

    fn change_from(&self, operation: &Operation<'_>, rid: &str) -> Result<ChangeFrom> {
        match operation.options.if_none_match.map(str::trim) {
            None | Some("") => Ok(ChangeFrom::Beginning),
            Some(etag) => self.tokens.redeem_changes(rid, etag),
        }
    }
}

fn filter_of(operation: &Operation<'_>) -> Result<Option<ChangeFilter>> {
    if operation.kind != OperationKind::ChangeFeedQuery {
        return Ok(None);
    }
    let QueryBody { text, parameters, .. } = QueryBody::of_change_feed(operation)?;
    Ok(Some(ChangeFilter { text, parameters }))
}
