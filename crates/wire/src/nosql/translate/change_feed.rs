//! The change feed: `GET …/docs` with `A-IM`.
//!
//! Guarantees: every response has an etag, the position at which the next request continues. Without new changes the
//! response is 304, which makes clients stop for now; an empty 200 does not.

use std::time::UNIX_EPOCH;

use http::StatusCode;
use pleiad_engine::{Admitted, ChangeFrom, ChangeMode, ChangeRequest, ChangedItems, PageLimit};
use pleiad_model::{Error, Result};

use super::items::{PAGE_BYTES_MAX, PAGE_ITEMS, PAGE_ITEMS_MAX, list_scope};
use crate::nosql::reply::{ErrorReply, Handled, ITEM_COUNT, Reply};
use crate::nosql::request::Request;
use crate::nosql::{RequestContext, encode};

const LATEST_VERSION: &str = "Incremental Feed";
const ALL_VERSIONS: &str = "Full-Fidelity Feed";
/// Puts each change into an envelope, `{"current": …, "metadata": …}`.
const WIRE_FORMAT: &str = "x-ms-cosmos-changefeed-wire-format-version";

impl RequestContext<'_> {
    pub(super) async fn change_feed(&self, request: &Request<'_>, at: &Admitted) -> Handled {
        let mode = mode(request)?;
        let rid = at.container().rid.to_string();
        let items = request.max_item_count()?.unwrap_or(PAGE_ITEMS).min(PAGE_ITEMS_MAX);
        let asked = ChangeRequest {
            mode,
            scope: list_scope(request)?,
            from: self.change_from(request, &rid)?,
            since_s: since_s(request)?,
            limit: PageLimit { items, bytes: PAGE_BYTES_MAX },
        };
        let session = request.session(at)?;
        let (page, place, charge_ru) = ErrorReply::of(self.engine.change_feed(at, &asked, session.as_ref()).await)?;
        let container = at.container();
        let enveloped = request.header(WIRE_FORMAT).is_some_and(|version| !version.is_empty());
        let reply = match &page.changes {
            nothing if nothing.is_empty() => Reply::empty(StatusCode::NOT_MODIFIED),
            ChangedItems::Latest(records) => {
                Reply::new(StatusCode::OK, encode::changed_items(container.rid, records, enveloped))
            }
            ChangedItems::Versions(versions) => Reply::new(StatusCode::OK, encode::versions(container, versions)),
        };
        let etag = self.tokens.issue_changes(&rid, &page.next)?;
        Ok(reply.charged(charge_ru).at_lsn(place).etag(&etag).with_number(ITEM_COUNT, page.changes.len() as u64))
    }

    fn change_from(&self, request: &Request<'_>, rid: &str) -> Result<ChangeFrom> {
        match request.header("if-none-match").map(str::trim) {
            None | Some("") => Ok(ChangeFrom::Beginning),
            Some(etag) => self.tokens.redeem_changes(rid, etag),
        }
    }
}

fn mode(request: &Request<'_>) -> Result<ChangeMode> {
    match request.header("a-im").unwrap_or_default().trim() {
        mode if mode.eq_ignore_ascii_case(LATEST_VERSION) => Ok(ChangeMode::LatestVersion),
        mode if mode.eq_ignore_ascii_case(ALL_VERSIONS) => Ok(ChangeMode::AllVersions),
        mode => {
            let message = format!("A-IM is {mode:?}; a change feed is \"{LATEST_VERSION}\" or \"{ALL_VERSIONS}\".");
            Err(Error::invalid(message))
        }
    }
}

/// Changes before this second are not returned. The zone is GMT; one SDK calls it UTC.
fn since_s(request: &Request<'_>) -> Result<Option<u32>> {
    let Some(text) = request.header("if-modified-since").map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let date = text.strip_suffix("UTC").map_or(text.to_owned(), |date| format!("{date}GMT"));
    let time = httpdate::parse_http_date(&date).map_err(|_| {
        Error::invalid(format!("If-Modified-Since is {text:?}; write a date as \"Mon, 16 Nov 2026 03:20:00 GMT\"."))
    })?;
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Some(u32::try_from(since.as_secs()).unwrap_or(u32::MAX)))
}
