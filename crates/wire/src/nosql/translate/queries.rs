//! Queries over items: a page of rows, or the plan that a client needs to execute the query itself.

use std::time::{Duration, Instant};

use http::StatusCode;
use pleiad_engine::{Admitted, CrossPartition, ItemQuery, PageSize, Parameters, QueryPage, ReportOptions};
use pleiad_model::{Error, Result, Value, json};

use super::items::current_scope;
use crate::nosql::RequestContext;
use crate::nosql::reply::{
    CONTINUATION, ErrorReply, Handled, INDEX_UTILIZATION, ITEM_COUNT, QUERY_ADVICE, QUERY_METRICS, QUERY_PLAN, Reply,
};
use crate::nosql::request::Request;
use crate::nosql::{encode, query_metrics};

const PAGE_ROWS: usize = 1_000;
/// For pages whose size the client leaves to the server with `-1`: such a page is limited by its bytes.
const DYNAMIC_PAGE_ROWS: usize = 1 << 16;
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Proxies accept headers of up to 16 KB.
const TOKEN_KB: usize = 8;

const QUERY_TIMES: &str = "x-ms-documentdb-populatequerymetrics";
const INDEX_METRICS: &str = "x-ms-cosmos-populateindexmetrics";
const INDEX_METRICS_V2: &str = "x-ms-cosmos-populateindexmetrics-v2";

/// The substatus that makes clients fetch the plan.
const CROSS_PARTITION: u32 = 1004;

/// Makes the server execute a cross-partition query completely, for clients that cannot merge partitions themselves.
const SERVED_WHOLE: &str = "x-pleiad-cross-partition";

impl RequestContext<'_> {
    pub(super) async fn query_items(&self, request: &Request<'_>, at: &Admitted) -> Handled {
        let began = Instant::now();
        let rid = at.container().rid.to_string();
        let (text, parameters) = query_of(request)?;
        let token = request.header("x-ms-continuation").filter(|token| !token.is_empty());
        let tell = tell(request);
        let query = ItemQuery {
            text,
            parameters,
            scope: current_scope(request, at)?,
            cross_partition: across(request),
            size: PageSize { rows: page_rows(request)?, bytes: PAGE_BYTES_MAX },
            from: token.map(|token| self.tokens.redeem_query(&rid, token)).transpose()?,
            report: tell,
            enable_scan: request.flag("x-ms-documentdb-query-enable-scan"),
        };
        let session = request.session(at)?;
        let answer = self.engine.query_items(at, query, session.as_ref()).await;
        let (page, place, charge_ru) = match ErrorReply::of(answer) {
            Err(refusal) => return Err(self.with_plan(request, at, refusal)),
            Ok(answer) => answer,
        };
        let ran = Instant::now();
        let reply =
            Reply::new(StatusCode::OK, encode::rows(&rid, "Documents", &page.rows)).charged(charge_ru).at_lsn(place);
        let reply = reply.with_number(ITEM_COUNT, page.rows.len() as u64);
        let reply = measured(request, tell, reply, &page, began, ran.elapsed());
        Ok(match &page.next {
            Some(cursor) => reply.with(CONTINUATION, &self.tokens.issue_query(&rid, cursor, token_bytes_max(request)?)),
            None => reply,
        })
    }

    pub(super) fn query_plan(&self, request: &Request<'_>, at: &Admitted) -> Handled {
        let (text, parameters) = query_of(request)?;
        let features = request.header("x-ms-cosmos-supported-query-features").unwrap_or_default();
        let plan = self.engine.query_plan(at, &text, &parameters, Some(features))?;
        Ok(Reply::new(StatusCode::OK, plan_text(&plan)).charged(pleiad_engine::price::METADATA_RU))
    }

    /// A client that has to merge the query itself receives the plan with the error.
    fn with_plan(&self, request: &Request<'_>, at: &Admitted, mut refusal: ErrorReply) -> ErrorReply {
        if refusal.failure.substatus == Some(CROSS_PARTITION)
            && let Ok((text, parameters)) = query_of(request)
            && let Ok(plan) = self.engine.query_plan(at, &text, &parameters, None)
        {
            refusal.failure.additional_info = String::from_utf8(plan_text(&plan)).ok();
        }
        refusal
    }
}

/// Weights of scores are doubles, and the Java SDK misreads a number without a decimal point.
fn plan_text(plan: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    json::write_doubles(plan, &mut text);
    text
}

/// `{"query": "…", "parameters": […]}`, or the bare text.
pub(super) fn query_of(request: &Request<'_>) -> Result<(String, Parameters)> {
    if request.has_bare_query() {
        let text = str::from_utf8(&request.body).map_err(|_| Error::invalid("The query is not UTF-8."))?;
        return Ok((text.to_owned(), Parameters::default()));
    }
    let body = request.json()?;
    let text = body.get("query").and_then(Value::as_str).or(body.as_str());
    let text = text.ok_or_else(|| Error::invalid("The body of a query is {\"query\": \"…\", \"parameters\": […]}."))?;
    Ok((text.to_owned(), Parameters::from_value(body.get("parameters"))?))
}

fn across(request: &Request<'_>) -> CrossPartition {
    if request.flag(SERVED_WHOLE) {
        CrossPartition::ByServer
    } else if request.flag("x-ms-documentdb-query-enablecrosspartition") {
        CrossPartition::ByClient
    } else {
        CrossPartition::Forbidden
    }
}

fn page_rows(request: &Request<'_>) -> Result<usize> {
    let left_to_us = if request.is_dynamic_page() { DYNAMIC_PAGE_ROWS } else { PAGE_ROWS };
    Ok(request.max_item_count()?.unwrap_or(left_to_us))
}

fn token_bytes_max(request: &Request<'_>) -> Result<usize> {
    let kb = match request.header("x-ms-documentdb-responsecontinuationtokenlimitinkb") {
        None | Some("" | "0") => TOKEN_KB,
        Some(text) => text.parse().map_err(|_| {
            Error::invalid(format!("The limit of continuation tokens is {text:?}; it must be a number of kilobytes."))
        })?,
    };
    Ok(kb.min(TOKEN_KB).saturating_mul(1024))
}

fn tell(request: &Request<'_>) -> ReportOptions {
    ReportOptions {
        indexes: request.flag(INDEX_METRICS) || request.flag(INDEX_METRICS_V2),
        times: request.flag(QUERY_TIMES),
        advice: request.flag("x-ms-cosmos-populatequeryadvice"),
    }
}

/// Adds the metrics that the client asked for.
fn measured(
    request: &Request<'_>,
    tell: ReportOptions,
    reply: Reply,
    page: &QueryPage,
    began: Instant,
    wrote: Duration,
) -> Reply {
    let mut reply = reply;
    if tell.times {
        reply = reply.with(QUERY_METRICS, &query_metrics::metrics(&page.report, began.elapsed(), wrote));
    }
    if tell.indexes {
        let form = if request.flag(INDEX_METRICS_V2) {
            query_metrics::index_utilization_v2
        } else {
            query_metrics::index_utilization
        };
        reply = reply.with(INDEX_UTILIZATION, &form(&page.report));
        reply = reply.with(QUERY_PLAN, &query_metrics::plan(&page.report));
    }
    if !page.report.advice.is_empty() {
        reply = reply.with(QUERY_ADVICE, &query_metrics::advice(&page.report));
    }
    reply
}
