//! The NoSQL API over HTTP: one request from its request line to its response. Authenticates, reads the body, executes
//! the operation, and records metrics.
//!
//! Invariant: below `nosql`, only this module and its children know methods, headers and status lines.

pub mod headers; // which headers have an effect
mod decode; // an operation from a request
mod encode; // a reply as a response
pub mod signature; // the caller of a request
#[cfg(test)]
pub(super) mod testing; // requests without a connection

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{AUTHORIZATION, DATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use pleiad_engine::ActivityId;
use pleiad_model::{Error, Kind};

use super::NosqlApi;
use super::address::{self, Address, ResourceType, Signing};
use super::operation::OperationKind;
use super::reply::{ErrorReply, Handled};
use super::session::TokenForm;
use super::status::{ErrorStatus, Status};
use crate::account::{AuthError, AuthTime, Caller};
use crate::http::{BodyError, ConnectionState, ReceivedBody, read_body};
use crate::metrics::Metrics;
use encode::Diagnostics;
use signature::{Credentials, authenticate_with_current_keys};

/// The NoSQL API of one account over HTTP. Other APIs with the same signatures and replies use its parts.
pub struct NosqlHttp {
    api: NosqlApi,
    metrics: Arc<Metrics>,
    body_bytes_max: usize,
    activity_seed: u64,
    activity_count: AtomicU64,
    /// When the server started, as an HTTP date.
    started: HeaderValue,
    next_transport_request_id: AtomicU64,
}

/// One request, from its arrival to its response.
pub(crate) struct Exchange<'p> {
    pub parts: &'p Parts,
    began: Instant,
    activity: HeaderValue,
}

impl Exchange<'_> {
    fn token_form(&self) -> TokenForm {
        TokenForm::of_version(text(&self.parts.headers, "x-ms-version"))
    }

    pub fn activity(&self) -> ActivityId {
        ActivityId::new(self.activity.to_str().unwrap_or_default())
    }
}

impl NosqlHttp {
    pub fn new(api: NosqlApi, metrics: Arc<Metrics>, body_bytes_max: usize) -> Self {
        let engine = api.account_host.engine();
        let (activity_seed, activity_count) = (engine.random_u64(), AtomicU64::new(0));
        let started = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(engine.now_ms()));
        let started = HeaderValue::from_str(&started).unwrap_or(HeaderValue::from_static(""));
        let next_transport_request_id = AtomicU64::new(1);
        NosqlHttp { api, metrics, body_bytes_max, activity_seed, activity_count, started, next_transport_request_id }
    }

    pub(crate) fn api(&self) -> &NosqlApi {
        &self.api
    }

    pub(crate) fn begin<'p>(&self, parts: &'p Parts) -> Exchange<'p> {
        let activity = activity_id(&parts.headers).unwrap_or_else(|| self.new_activity_id());
        Exchange { parts, began: Instant::now(), activity }
    }

    pub(crate) async fn call(
        &self,
        connection: &ConnectionState,
        parts: &Parts,
        body: Incoming,
    ) -> Response<Full<Bytes>> {
        let exchange = self.begin(parts);
        let (operation, handled) = match address::parse(parts.uri.path()) {
            Ok(address) => self.handle(connection, &exchange, &address, body).await,
            Err(error) => (OperationKind::NotAllowed.name(), Err(error.into())),
        };
        self.end(&exchange, operation, handled)
    }

    /// The reply, and what the request counts as.
    async fn handle(
        &self,
        connection: &ConnectionState,
        exchange: &Exchange<'_>,
        address: &Address,
        body: Incoming,
    ) -> (&'static str, Handled) {
        let parts = exchange.parts;
        let from_proxy = self.api.account.trusted_proxies.contain(connection.origin.peer.ip());
        let mut operation = decode::decode(parts, address, &connection.origin, from_proxy);
        operation.options.activity = exchange.activity();
        let counted_as = operation.kind.name();
        let is_read = decode::is_read(&parts.method, operation.kind);
        let handled = async {
            let signed = signed_address(parts, address)?;
            let signing = signed.as_ref().unwrap_or(address).signing();
            let caller = self.caller(parts, signing, is_read).await?;
            if let Some(feature) = operation.options.refused {
                return Err(Error::unsupported(feature).into());
            }
            let received = self.body(connection, &parts.method, body).await?;
            operation.body = received.bytes.clone();
            self.api.execute(&operation, &caller).await
        };
        (counted_as, handled.await)
    }

    /// Counts and logs the request, and encodes its reply.
    pub(crate) fn end(
        &self,
        exchange: &Exchange<'_>,
        counted_as: &'static str,
        handled: Handled,
    ) -> Response<Full<Bytes>> {
        let reply = match handled {
            Ok(reply) => reply,
            Err(error) => {
                log_failure(exchange.parts, &error.failure, &exchange.activity);
                error.reply(exchange.activity.to_str().unwrap_or_default())
            }
        };
        let took = exchange.began.elapsed();
        self.metrics.request(counted_as, reply.status.code(), reply.metadata.charge_ru, took);
        let diagnostics = Diagnostics {
            started: &self.started,
            transport_request_id: self.next_transport_request_id.fetch_add(1, Ordering::Relaxed),
            duration_ms: took.as_secs_f64() * 1000.0,
        };
        encode::encode(reply, &exchange.activity, exchange.token_form(), Some(&diagnostics))
    }

    /// The response to a request that reaches no API; it is not counted.
    pub(crate) fn reject(&self, parts: &Parts, error: impl Into<ErrorReply>) -> Response<Full<Bytes>> {
        let exchange = self.begin(parts);
        let reply = error.into().reply(exchange.activity.to_str().unwrap_or_default());
        encode::encode(reply, &exchange.activity, exchange.token_form(), None)
    }

    pub(crate) async fn caller(&self, parts: &Parts, signing: Signing<'_>, is_read: bool) -> Result<Caller, AuthError> {
        let credentials = Credentials {
            verb: parts.method.as_str(),
            signing,
            is_read,
            authorization: text(&parts.headers, AUTHORIZATION.as_str()),
            x_ms_date: text(&parts.headers, "x-ms-date"),
            date: text(&parts.headers, DATE.as_str()),
        };
        let engine = self.api.account_host.engine();
        let at = AuthTime { now_ms: engine.now_ms(), wall_ms: engine.wall_ms() };
        authenticate_with_current_keys(&self.api.access, &credentials, at).await
    }

    /// The body of an authenticated request.
    pub(crate) async fn body(
        &self,
        connection: &ConnectionState,
        method: &Method,
        body: Incoming,
    ) -> Result<ReceivedBody, ErrorStatus> {
        let bytes_max = self.body_bytes_max;
        match *method {
            Method::GET | Method::DELETE | Method::HEAD => Ok(ReceivedBody::none()),
            _ => {
                let received = read_body(body, bytes_max, &connection.memory).await;
                received.map_err(|error| body_failure(error, bytes_max))
            }
        }
    }

    /// An activity id (a GUID) for requests without one: unique but not secret, so that it costs no system call.
    fn new_activity_id(&self) -> HeaderValue {
        let count = self.activity_count.fetch_add(1, Ordering::Relaxed);
        let (high, low) = (mix(self.activity_seed ^ count), mix(self.activity_seed.wrapping_add(!count)));
        // Marked as version 4, variant 1, as if it were random.
        let guid = format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xFFFF,
            high & 0xFFF,
            0x8000 | ((low >> 48) & 0x3FFF),
            low & 0xFFFF_FFFF_FFFF
        );
        HeaderValue::from_str(&guid).unwrap_or(HeaderValue::from_static("00000000-0000-0000-0000-000000000000"))
    }
}

/// The finalizer of splitmix64: a bijection that scatters neighboring inputs.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// A request for replica addresses signs the resource in its `$resolveFor` parameter.
fn signed_address(parts: &Parts, address: &Address) -> Result<Option<Address>, Error> {
    if address.resource != ResourceType::Addresses {
        return Ok(None);
    }
    let query = parts.uri.query().unwrap_or_default();
    let resolve_for =
        query.split('&').find_map(|pair| pair.strip_prefix("$resolveFor=").or(pair.strip_prefix("%24resolveFor=")));
    let path = percent_encoding::percent_decode_str(resolve_for.unwrap_or_default()).decode_utf8_lossy();
    address::parse(&path).map(Some)
}

fn activity_id(headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get("x-ms-activity-id").filter(|id| !id.is_empty()).cloned()
}

fn body_failure(error: BodyError, bytes_max: usize) -> ErrorStatus {
    match error {
        BodyError::TooLarge => {
            Error::new(Kind::TooLarge, format!("Request size is too large: a request has at most {bytes_max} bytes."))
                .into()
        }
        BodyError::TimedOut => ErrorStatus::new(Status::RequestTimeout, "The request's body did not arrive in time."),
        BodyError::Broken => Error::invalid("The request's body did not arrive whole.").into(),
    }
}

/// Rejections concern only the client and are logged at debug level; the server's own failures are logged as errors.
fn log_failure(parts: &Parts, failure: &ErrorStatus, activity: &HeaderValue) {
    let (method, path) = (&parts.method, parts.uri.path());
    let activity = activity.to_str().unwrap_or_default();
    if failure.status.is_server_failure() {
        tracing::error!(%method, path, activity, status = failure.status.code(), error = failure.message, "request failed");
    } else {
        tracing::debug!(%method, path, activity, status = failure.status.code(), error = failure.message, "request rejected");
    }
}
