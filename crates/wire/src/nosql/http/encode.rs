//! Encoder: a reply as an HTTP response.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use pleiad_engine::PartitionLsn;
use pleiad_model::Throttle;

use crate::nosql::reply::{ContainerMetadata, Metadata, OfferMetadata, OwnerPath, QueryMetadata, Reply};
use crate::nosql::session::{self, TokenForm};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// About the server and this request, for client diagnostics.
pub struct Diagnostics<'a> {
    /// When the server started, as an HTTP date.
    pub started: &'a HeaderValue,
    pub transport_request_id: u64,
    pub duration_ms: f64,
}

/// `activity` is a GUID that finds the request in the log.
pub fn encode(
    reply: Reply,
    activity: &HeaderValue,
    tokens: TokenForm,
    diagnostics: Option<&Diagnostics<'_>>,
) -> Response<Full<Bytes>> {
    let Reply { status, body, metadata } = reply;
    let mut headers = HeaderMap::with_capacity(32);
    if !body.is_empty() {
        headers.insert(CONTENT_TYPE, JSON);
    }
    set_metadata(&mut headers, metadata, tokens);
    if let Some(diagnostics) = diagnostics {
        headers.insert(LAST_STATE_CHANGE, diagnostics.started.clone());
        set_number(&mut headers, TRANSPORT_REQUEST_ID, diagnostics.transport_request_id);
        set(&mut headers, REQUEST_DURATION_MS, &format!("{:.3}", diagnostics.duration_ms));
    }
    headers.insert(ACTIVITY_ID, activity.clone());
    headers.insert(SCHEMA_VERSION, HeaderValue::from_static("1.18"));
    headers.insert(SERVICE_VERSION, HeaderValue::from_static(concat!("version=pleiad-", env!("CARGO_PKG_VERSION"))));
    headers.insert(GATEWAY_VERSION, HeaderValue::from_static("version=2.14.0"));
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = StatusCode::from_u16(status.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.headers_mut() = headers;
    response
}

fn set_metadata(headers: &mut HeaderMap, metadata: Metadata, tokens: TokenForm) {
    set(headers, REQUEST_CHARGE, &charge_text(metadata.charge_ru));
    if let Some(substatus) = metadata.substatus {
        set_number(headers, SUBSTATUS, u64::from(substatus));
    }
    if let Some(served_by) = metadata.served_by {
        set_partition(headers, served_by, tokens);
    }
    set_text(headers, ETAG, metadata.etag.as_deref());
    set_text(headers, CONTINUATION, metadata.continuation.as_deref());
    if let Some(count) = metadata.item_count {
        set_number(headers, ITEM_COUNT, count);
    }
    if let Some(lsn) = metadata.item_lsn {
        set_number(headers, ITEM_LSN, lsn);
        set_number(headers, ITEM_LOCAL_LSN, lsn);
    }
    if let Some(OwnerPath { path, rid }) = &metadata.owner {
        set(headers, ALT_CONTENT_PATH, &encode_path(path));
        set(headers, CONTENT_PATH, rid);
    }
    if let Some(ms) = metadata.retry_after_ms {
        set_number(headers, RETRY_AFTER_MS, ms);
    }
    if let Some(throttle) = &metadata.throttle {
        set_throttle(headers, throttle);
    }
    if let Some(query) = &metadata.query {
        set_query(headers, query);
    }
    if let Some(requires_plan) = metadata.requires_plan {
        set(headers, REQUIRES_DISTRIBUTION, if requires_plan { "True" } else { "False" });
    }
    if let Some(container) = &metadata.container {
        let ContainerMetadata { quota, usage, index_percent } = &**container;
        set(headers, RESOURCE_QUOTA, quota);
        set(headers, RESOURCE_USAGE, usage);
        set_number(headers, INDEX_PROGRESS, *index_percent);
    }
    if let Some(OfferMetadata { minimum_ru, is_replace_pending }) = metadata.offer {
        set_number(headers, MIN_THROUGHPUT, u64::from(minimum_ru));
        set(headers, OFFER_REPLACE_PENDING, if is_replace_pending { "true" } else { "false" });
    }
    if let Some(log) = metadata.script_log.filter(|log| !log.is_empty()) {
        set(headers, SCRIPT_LOG, &utf8_percent_encode(&log, NON_ALPHANUMERIC).to_string());
    }
}

/// Headers about the partition that served the request.
fn set_partition(headers: &mut HeaderMap, served_by: PartitionLsn, tokens: TokenForm) {
    set(headers, SESSION_TOKEN, &session::write(served_by, tokens));
    set_number(headers, RANGE_ID, u64::from(served_by.range));
    let lsn = HeaderValue::from(served_by.lsn);
    for name in [LSN, LOCAL_LSN, GLOBAL_COMMITTED_LSN, QUORUM_ACKED_LSN, QUORUM_ACKED_LOCAL_LSN] {
        headers.insert(name, lsn.clone());
    }
    headers.insert(CURRENT_WRITE_QUORUM, HeaderValue::from_static("1"));
    headers.insert(CURRENT_REPLICA_SET_SIZE, HeaderValue::from_static("1"));
    headers.insert(NUMBER_OF_READ_REGIONS, HeaderValue::from_static("0"));
    headers.insert(XP_ROLE, HeaderValue::from_static("1"));
}

/// The reason for throttling, for clients that do not parse messages.
fn set_throttle(headers: &mut HeaderMap, throttle: &Throttle) {
    set_number(headers, THROTTLE_RANGE, u64::from(throttle.range));
    set(headers, THROTTLE_SHARE, &charge_text(throttle.share_ru));
    set(headers, THROTTLE_USED, &charge_text(throttle.used_ru));
    set_text(headers, THROTTLE_KEY, throttle.busiest_key.as_deref());
}

fn set_query(headers: &mut HeaderMap, query: &QueryMetadata) {
    set_text(headers, QUERY_METRICS, query.metrics.as_deref());
    set_text(headers, INDEX_UTILIZATION, query.index_utilization.as_deref());
    set_text(headers, QUERY_PLAN, query.plan.as_deref());
    set_text(headers, QUERY_ADVICE, query.advice.as_deref());
}

/// At most two decimals, no trailing zeros: `1`, `6.95`.
fn charge_text(charge_ru: f64) -> String {
    let rounded = (charge_ru * 100.0).round() / 100.0;
    format!("{rounded}")
}

/// Escapes only what a header cannot contain: clients compare the value with names that they encode themselves.
const UNSAFE: &AsciiSet = &CONTROLS.add(b'%');

fn encode_path(path: &str) -> std::borrow::Cow<'_, str> {
    if path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'%' || byte == b' ') {
        return path.into();
    }
    utf8_percent_encode(path, UNSAFE).to_string().into()
}

/// Values that are not valid in a header are omitted: the body contains them, too.
fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn set_text(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) {
    if let Some(value) = value {
        set(headers, name, value);
    }
}

fn set_number(headers: &mut HeaderMap, name: HeaderName, value: u64) {
    headers.insert(name, HeaderValue::from(value));
}

macro_rules! names {
    ($($constant:ident = $text:literal;)*) => {
        $(const $constant: HeaderName = HeaderName::from_static($text);)*
    };
}

names! {
    ACTIVITY_ID = "x-ms-activity-id";
    ALT_CONTENT_PATH = "x-ms-alt-content-path";
    CONTENT_PATH = "x-ms-content-path";
    CONTINUATION = "x-ms-continuation";
    CURRENT_REPLICA_SET_SIZE = "x-ms-current-replica-set-size";
    CURRENT_WRITE_QUORUM = "x-ms-current-write-quorum";
    GATEWAY_VERSION = "x-ms-gatewayversion";
    GLOBAL_COMMITTED_LSN = "x-ms-global-committed-lsn";
    INDEX_PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";
    INDEX_UTILIZATION = "x-ms-cosmos-index-utilization";
    ITEM_COUNT = "x-ms-item-count";
    LAST_STATE_CHANGE = "x-ms-last-state-change-utc";
    REQUEST_DURATION_MS = "x-ms-request-duration-ms";
    TRANSPORT_REQUEST_ID = "x-ms-transport-request-id";
    ITEM_LOCAL_LSN = "x-ms-cosmos-item-llsn";
    ITEM_LSN = "x-ms-item-lsn";
    LOCAL_LSN = "x-ms-cosmos-llsn";
    LSN = "lsn";
    MIN_THROUGHPUT = "x-ms-cosmos-min-throughput";
    NUMBER_OF_READ_REGIONS = "x-ms-number-of-read-regions";
    OFFER_REPLACE_PENDING = "x-ms-offer-replace-pending";
    QUERY_ADVICE = "x-ms-cosmos-query-advice";
    QUERY_METRICS = "x-ms-documentdb-query-metrics";
    QUERY_PLAN = "x-pleiad-query-plan";
    QUORUM_ACKED_LOCAL_LSN = "x-ms-cosmos-quorum-acked-llsn";
    QUORUM_ACKED_LSN = "x-ms-quorum-acked-lsn";
    RANGE_ID = "x-ms-documentdb-partitionkeyrangeid";
    REQUEST_CHARGE = "x-ms-request-charge";
    REQUIRES_DISTRIBUTION = "x-ms-cosmos-query-requiresdistribution";
    RESOURCE_QUOTA = "x-ms-resource-quota";
    RESOURCE_USAGE = "x-ms-resource-usage";
    RETRY_AFTER_MS = "x-ms-retry-after-ms";
    SCHEMA_VERSION = "x-ms-schemaversion";
    SCRIPT_LOG = "x-ms-documentdb-script-log-results";
    SERVICE_VERSION = "x-ms-serviceversion";
    SESSION_TOKEN = "x-ms-session-token";
    SUBSTATUS = "x-ms-substatus";
    THROTTLE_KEY = "x-pleiad-throttle-key";
    THROTTLE_RANGE = "x-pleiad-throttle-range";
    THROTTLE_SHARE = "x-pleiad-throttle-share";
    THROTTLE_USED = "x-pleiad-throttle-used";
    XP_ROLE = "x-ms-xp-role";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_are_decimal_text() {
        assert_eq!([1.0, 6.95, 10.700000000000001, 0.0].map(charge_text), ["1", "6.95", "10.7", "0"]);
    }
}
