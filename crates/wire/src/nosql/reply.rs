//! Responses of this protocol: status, headers, body.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use pleiad_engine::{EngineResponse, PartitionLsn};
use pleiad_model::{Result, Throttle};

use super::session;
use super::status::ErrorStatus;

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub charge_ru: f64,
    pub substatus: Option<u32>,
}

/// What handlers return: a reply, or an error with its charge and headers.
pub type Handled = Result<Reply, ErrorReply>;

pub struct ErrorReply {
    pub failure: ErrorStatus,
    pub charge_ru: f64,
    /// Boxed, so that errors do not enlarge every result.
    pub headers: Box<HeaderMap>,
}

impl<E: Into<ErrorStatus>> From<E> for ErrorReply {
    fn from(error: E) -> Self {
        ErrorReply { failure: error.into(), charge_ru: pleiad_engine::price::METADATA_RU, headers: Box::default() }
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl Reply {
    pub fn new(status: StatusCode, body: impl Into<Bytes>) -> Self {
        let headers = HeaderMap::with_capacity(32);
        Reply { status, headers, body: body.into(), charge_ru: pleiad_engine::price::METADATA_RU, substatus: None }
    }

    pub fn empty(status: StatusCode) -> Self {
        Reply::new(status, Bytes::new())
    }

    pub fn charged(mut self, charge_ru: f64) -> Self {
        self.charge_ru = charge_ru;
        self
    }

    pub fn etag(self, etag: &str) -> Self {
        self.with(ETAG, etag)
    }

    /// Values that are not valid in a header are omitted: the body contains them, too.
    pub fn with(mut self, name: HeaderName, value: &str) -> Self {
        set(&mut self.headers, name, value);
        self
    }

    pub fn with_number(mut self, name: HeaderName, value: u64) -> Self {
        set_number(&mut self.headers, name, value);
        self
    }

    pub fn at_lsn(mut self, place: Option<PartitionLsn>) -> Self {
        if let Some(place) = place {
            set_partition_headers(&mut self.headers, place);
        }
        self
    }

    pub fn finish(mut self, activity: &HeaderValue) -> Response<Full<Bytes>> {
        let headers = &mut self.headers;
        if !self.body.is_empty() {
            headers.entry(CONTENT_TYPE).or_insert(JSON);
        }
        headers.insert(ACTIVITY_ID, activity.clone());
        set(headers, REQUEST_CHARGE, &charge_text(self.charge_ru));
        if let Some(substatus) = self.substatus {
            set_number(headers, SUBSTATUS, u64::from(substatus));
        }
        headers.insert(SCHEMA_VERSION, HeaderValue::from_static("1.18"));
        headers
            .insert(SERVICE_VERSION, HeaderValue::from_static(concat!("version=pleiad-", env!("CARGO_PKG_VERSION"))));
        headers.insert(GATEWAY_VERSION, HeaderValue::from_static("version=2.14.0"));
        let mut response = Response::new(Full::new(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

impl ErrorReply {
    pub fn of<T>(response: EngineResponse<T>) -> std::result::Result<(T, Option<PartitionLsn>, f64), ErrorReply> {
        let EngineResponse { result, served_by: place, charge_ru } = response;
        match result {
            Ok(value) => Ok((value, place, charge_ru)),
            Err(error) => {
                let mut headers = Box::<HeaderMap>::default();
                if let Some(place) = place {
                    set_partition_headers(&mut headers, place);
                }
                Err(ErrorReply { failure: error.into(), charge_ru, headers })
            }
        }
    }

    pub fn reply(self, activity: &str) -> Reply {
        let mut reply = Reply::new(self.failure.status, self.failure.body(activity)).charged(self.charge_ru);
        reply.headers = *self.headers;
        reply.substatus = self.failure.substatus;
        if let Some(ms) = self.failure.retry_after_ms {
            set_number(&mut reply.headers, RETRY_AFTER_MS, ms);
        }
        if let Some(throttle) = &self.failure.throttle {
            set_throttle(&mut reply.headers, throttle);
        }
        reply
    }
}

/// The reason for throttling, for clients that do not parse messages.
fn set_throttle(headers: &mut HeaderMap, throttle: &Throttle) {
    set_number(headers, THROTTLE_RANGE, u64::from(throttle.range));
    set(headers, THROTTLE_SHARE, &charge_text(throttle.share_ru));
    set(headers, THROTTLE_USED, &charge_text(throttle.used_ru));
    if let Some(key) = &throttle.busiest_key {
        set(headers, THROTTLE_KEY, key);
    }
}

/// At most two decimals, no trailing zeros: `1`, `6.95`.
fn charge_text(charge_ru: f64) -> String {
    let rounded = (charge_ru * 100.0).round() / 100.0;
    format!("{rounded}")
}

/// Headers about the partition that served the request.
fn set_partition_headers(headers: &mut HeaderMap, position: PartitionLsn) {
    set(headers, SESSION_TOKEN, &session::write(position));
    set_number(headers, RANGE_ID, u64::from(position.range));
    let lsn = HeaderValue::from(position.lsn);
    for name in [LSN, LOCAL_LSN, GLOBAL_COMMITTED_LSN, QUORUM_ACKED_LSN, QUORUM_ACKED_LOCAL_LSN] {
        headers.insert(name, lsn.clone());
    }
    headers.insert(CURRENT_WRITE_QUORUM, HeaderValue::from_static("1"));
    headers.insert(CURRENT_REPLICA_SET_SIZE, HeaderValue::from_static("1"));
    headers.insert(NUMBER_OF_READ_REGIONS, HeaderValue::from_static("0"));
    headers.insert(XP_ROLE, HeaderValue::from_static("1"));
}

pub fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

pub fn set_number(headers: &mut HeaderMap, name: HeaderName, value: u64) {
    headers.insert(name, HeaderValue::from(value));
}

macro_rules! names {
    ($($constant:ident = $text:literal;)*) => {
        $(pub const $constant: HeaderName = HeaderName::from_static($text);)*
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
