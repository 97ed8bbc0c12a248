//! The change feed of items.
//!
//! Guarantees: every response has an etag, the position at which the next request continues. Without new changes the
//! response is 304, which makes clients stop for now; an empty 200 does not.

use pleiad_engine::{Admitted, ChangeFrom, ChangeMode, ChangeRequest, ChangedItems, PageLimit};
use pleiad_model::Result;

use super::items::{PAGE_BYTES_MAX, PAGE_ITEMS, PAGE_ITEMS_MAX, list_scope};
use crate::nosql::operation::Operation;
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
            since_s: options.since_s.get()?.copied(),
            limit: PageLimit { items, bytes: PAGE_BYTES_MAX },
        };
        let session = operation.session(at)?;
        let (page, served_by, charge_ru) = ErrorReply::of(self.engine.change_feed(at, &request, session).await)?;
        let container = at.container();
        let reply = match &page.changes {
            nothing if nothing.is_empty() => Reply::empty(Status::NotModified),
            ChangedItems::Latest(records) => {
                Reply::new(Status::Ok, encode::changed_items(container.rid, records, options.enveloped))
            }
            ChangedItems::Versions(versions) => Reply::new(Status::Ok, encode::versions(container, versions)),
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
