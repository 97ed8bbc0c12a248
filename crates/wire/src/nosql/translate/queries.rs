//! Queries over items: a page of rows, or the plan that a client needs to execute the query itself.

use std::time::{Duration, Instant};

use pleiad_engine::{Admitted, CrossPartition, FeedRange, ItemQuery, PageReach, PageSize, QueryPage};
use pleiad_model::{Result, Value, json};

use super::items::{current_scope, named_place};
use super::query_body::QueryBody;
use crate::nosql::RequestContext;
use crate::nosql::operation::{Operation, OperationOptions, PageRows};
use crate::nosql::reply::{ErrorReply, Handled, QueryMetadata, Reply};
use crate::nosql::status::Status;
use crate::nosql::{encode, query_metrics};

const PAGE_ROWS: usize = 1_000;
/// For pages whose size the client leaves to the server: such a page is limited by its bytes.
const DYNAMIC_PAGE_ROWS: usize = 1 << 16;
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Proxies accept headers of up to 16 KB.
const TOKEN_KB: usize = 8;

/// The substatus that makes clients fetch the plan.
const CROSS_PARTITION: u32 = 1004;

impl RequestContext<'_> {
    pub(super) async fn query_items(&self, operation: &Operation<'_>, at: &Admitted) -> Handled {
        let began = Instant::now();
        let rid = at.container().rid.to_string();
        let options = &operation.options;
        let body = QueryBody::of(operation)?;
        let scope = current_scope(operation, at)?;
        let requires_plan = match options.is_optimistic {
            true => Some(self.engine.requires_plan(at, &body.text, &scope)?),
            false => None,
        };
        let (is_gateway, place) = (scope == FeedRange::Container, named_place(&scope, at));
        let redeem = |text| self.tokens.redeem_query(&rid, text, place.as_ref());
        let query = ItemQuery {
            resume: body.resume_filter(at.container().rid)?,
            text: body.text,
            parameters: body.parameters,
            scope,
            cross_partition: cross_partition(options, self.engine.limits().cross_partition_page),
            size: PageSize { rows: page_rows(options)?, bytes: PAGE_BYTES_MAX },
            from: options.continuation.map(redeem).transpose()?,
            report: options.report,
            enable_scan: options.enable_scan,
        };
        let session = operation.session(at)?;
        let answer = self.engine.query_items(at, query, session).await;
        let (page, served_by, charge_ru) = match ErrorReply::of(answer) {
            Err(error) => return Err(self.with_plan(operation, at, error)),
            Ok(answer) => answer,
        };
        let ran = Instant::now();
        let body = encode::rows(&rid, "Documents", &page.rows);
        let mut reply = Reply::new(Status::Ok, body).charged(charge_ru).served_by(served_by);
        reply.metadata.requires_plan = requires_plan;
        let (took, wrote) = (began.elapsed(), ran.elapsed());
        let token_bytes_max = token_bytes_max(options)?;
        let token = page.next.as_ref().map(|cursor| match is_gateway {
            true => self.tokens.issue_gateway_query(&rid, cursor, token_bytes_max),
            false => self.tokens.issue_query(&rid, cursor, token_bytes_max),
        });
        let token_bytes = token.as_ref().map_or(0, String::len);
        reply.metadata.query = metadata(options, &page, took, wrote, token_bytes);
        Ok(reply.item_count(page.rows.len()).continuation(token))
    }

    pub(super) fn query_plan(&self, operation: &Operation<'_>, at: &Admitted) -> Handled {
        let QueryBody { text, parameters, .. } = QueryBody::of(operation)?;
        let plan = self.engine.query_plan(at, &text, &parameters, Some(operation.options.query_features))?;
        Ok(Reply::new(Status::Ok, plan_text(&plan)))
    }

    /// A client that has to merge the query itself receives the plan with the error.
    fn with_plan(&self, operation: &Operation<'_>, at: &Admitted, mut error: ErrorReply) -> ErrorReply {
        if error.failure.substatus == Some(CROSS_PARTITION)
            && let Ok(QueryBody { text, parameters, .. }) = QueryBody::of(operation)
            && let Ok(plan) = self.engine.query_plan(at, &text, &parameters, None)
        {
            error.failure.additional_info = String::from_utf8(plan_text(&plan)).ok();
        }
        error
    }
}

/// Weights of scores are doubles, and the Java SDK misreads a number without a decimal point.
fn plan_text(plan: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    json::write_doubles(plan, &mut text);
    text
}

fn cross_partition(options: &OperationOptions<'_>, reach: PageReach) -> CrossPartition {
    match options {
        OperationOptions { cross_partition_by_server: true, .. } => CrossPartition::ByServer,
        OperationOptions { cross_partition: true, .. } => CrossPartition::ByClient(reach),
        _ => CrossPartition::Forbidden,
    }
}

fn page_rows(options: &OperationOptions<'_>) -> Result<usize> {
    Ok(match options.page_size.get()? {
        None => PAGE_ROWS,
        Some(PageRows::Dynamic) => DYNAMIC_PAGE_ROWS,
        Some(PageRows::AtMost(rows)) => *rows,
    })
}

fn token_bytes_max(options: &OperationOptions<'_>) -> Result<usize> {
    let kb = options.continuation_kb_max.get()?.copied().unwrap_or(TOKEN_KB);
    Ok(kb.min(TOKEN_KB).saturating_mul(1024))
}

/// The metrics that the client asked for.
fn metadata(
    options: &OperationOptions<'_>,
    page: &QueryPage,
    took: Duration,
    wrote: Duration,
    token_bytes: usize,
) -> Option<Box<QueryMetadata>> {
    let report = &page.report;
    let mut metadata = QueryMetadata::default();
    if options.report.times {
        metadata.metrics = Some(query_metrics::metrics(report, took, wrote));
    }
    if options.report.indexes {
        let format = match options.index_metrics_v2 {
            true => query_metrics::index_utilization_v2,
            false => query_metrics::index_utilization,
        };
        metadata.index_utilization = Some(format(report, token_bytes));
        metadata.plan = Some(query_metrics::plan(report));
    }
    if !report.advice.is_empty() {
        metadata.advice = Some(query_metrics::advice(report));
    }
    let is_asked = options.report.times || options.report.indexes || metadata.advice.is_some();
    is_asked.then(|| Box::new(metadata))
}
