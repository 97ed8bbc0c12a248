//! The NoSQL API over HTTP: one request from its request line to its response. Authenticates, reads the body, executes
//! the operation, and records metrics.
//!
//! Invariant: below `nosql`, only this module and its children know methods, headers and status lines.

mod decode; // an operation from a request
mod encode; // a reply as a response
pub mod signature; // the caller of a request
#[cfg(test)]
pub(super) mod testing; // requests without a connection

use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use http::header::{AUTHORIZATION, DATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use pleiad_model::{Error, Kind};

use super::address::{self, Address, ResourceType, Signing};
use super::operation::OperationKind;
use super::reply::{ErrorReply, Handled};
use super::role_access::account_key_required;
use super::status::{ErrorStatus, Status};
use super::{Frontend, is_unavailable};
use crate::account::{AuthError, AuthTime, Caller};
use crate::http::{BodyError, ConnectionOrigin, Service, read_body};
use crate::management;
use crate::metrics::MetricOperation;
use encode::Diagnostics;
use signature::{Credentials, authenticate};

impl Service for Frontend {
    async fn call(&self, origin: &ConnectionOrigin, request: http::Request<Incoming>) -> Response<Full<Bytes>> {
        let began = Instant::now();
        let (parts, body) = request.into_parts();
        if self.https_only && !origin.secure {
            let error = ErrorReply::from(ErrorStatus::new(Status::BadRequest, "This port speaks HTTPS only."));
            let activity = activity_id(&parts.headers).unwrap_or_else(|| self.new_activity_id());
            return encode::encode(error.reply(activity.to_str().unwrap_or_default()), &activity, None);
        }
        if let Some(response) = self.operational_endpoint(&parts) {
            return response;
        }
        let activity = activity_id(&parts.headers).unwrap_or_else(|| self.new_activity_id());
        let (operation, handled) = self.handle(origin, &parts, body).await;
        let reply = match handled {
            Ok(reply) => reply,
            Err(error) => {
                log_failure(&parts, &error.failure, &activity);
                error.reply(activity.to_str().unwrap_or_default())
            }
        };
        let took = began.elapsed();
        self.metrics.request(operation, reply.status.code(), reply.metadata.charge_ru, took);
        let diagnostics = Diagnostics {
            started: &self.started,
            transport_request_id: self.next_transport_request_id.fetch_add(1, Ordering::Relaxed),
            duration_ms: took.as_secs_f64() * 1000.0,
        };
        encode::encode(reply, &activity, Some(&diagnostics))
    }
}

impl Frontend {
    /// The reply, and what the request counts as.
    async fn handle(&self, origin: &ConnectionOrigin, parts: &Parts, body: Incoming) -> (MetricOperation, Handled) {
        if let Some(path) = management::below_root(parts.uri.path()) {
            return (MetricOperation::Management, self.manage(path, parts, body).await);
        }
        match address::parse(parts.uri.path()) {
            Ok(address) => self.handle_operation(origin, parts, &address, body).await,
            Err(error) => (MetricOperation::Other, Err(error.into())),
        }
    }

    async fn handle_operation(
        &self,
        origin: &ConnectionOrigin,
        parts: &Parts,
        address: &Address,
        body: Incoming,
    ) -> (MetricOperation, Handled) {
        let mut operation = decode::decode(parts, address, origin);
        let counted_as = MetricOperation::from(operation.kind);
        let is_read = decode::is_read(&parts.method, operation.kind);
        let handled = async {
            let signed = signed_address(parts, address)?;
            let signing = signed.as_ref().unwrap_or(address).signing();
            let caller = self.caller(parts, signing, is_read).await?;
            operation.body = self.body(&parts.method, body).await?;
            self.api.execute(&operation, &caller).await
        };
        (counted_as, handled.await)
    }

    /// The management API: other paths, the same keys. Its requests cost no request units.
    async fn manage(&self, path: &str, parts: &Parts, body: Incoming) -> Handled {
        let names = management::names(path)?;
        let link = management::link(&names);
        let is_read = parts.method == Method::GET;
        match self.caller(parts, management::signing(&link), is_read).await? {
            Caller::ReadWrite | Caller::ReadOnly => {}
            Caller::Data if is_read => {}
            _ => {
                let path = parts.uri.path().trim_start_matches('/');
                return Err(account_key_required(&self.api.account.id, parts.method.as_str(), path));
            }
        }
        let body = self.body(&parts.method, body).await?;
        let request = management::ManagementRequest { method: &parts.method, names, query: parts.uri.query(), body };
        let handled = match management::snapshots::SnapshotRoute::parse(&request.names) {
            Some(route) => management::snapshots::answer(&self.api.account_host, route, &request).await,
            None => self.call_management_api(&request).await,
        };
        match handled {
            Ok(reply) => Ok(reply.charged(0.0)),
            Err(mut error) => {
                error.metadata.charge_ru = 0.0;
                Err(error)
            }
        }
    }

    async fn call_management_api(&self, request: &management::ManagementRequest<'_>) -> Handled {
        let mut engine = self.api.account_host.engine();
        loop {
            let handled = management::ManagementApi::new(engine.clone(), self.clock.clone()).answer(request).await;
            match self.api.account_host.replacement_for(&engine, is_unavailable(&handled)).await? {
                None => return handled,
                Some(next) => engine = next,
            }
        }
    }

    /// An issuer may have rotated its keys: a token with an unknown key is checked again after the key set was fetched
    /// again.
    async fn caller(&self, parts: &Parts, signing: Signing<'_>, is_read: bool) -> Result<Caller, AuthError> {
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
        let access = &self.api.access;
        match authenticate(access, &credentials, at) {
            Err(AuthError::UnknownKey) if access.bearer.refetch_for_unknown_key().await => {
                authenticate(access, &credentials, at)
            }
            result => result,
        }
    }

    async fn body(&self, method: &Method, body: Incoming) -> Result<Bytes, ErrorStatus> {
        match *method {
            Method::GET | Method::DELETE | Method::HEAD => Ok(Bytes::new()),
            _ => read_body(body, self.body_bytes_max).await.map_err(|error| body_failure(error, self.body_bytes_max)),
        }
    }

    /// Endpoints outside the protocol: probes, metrics, the certificate.
    fn operational_endpoint(&self, parts: &Parts) -> Option<Response<Full<Bytes>>> {
        if parts.method != Method::GET {
            return None;
        }
        match parts.uri.path() {
            "/health" => Some(plain("text/plain; charset=utf-8", "ok\n".into())),
            "/ready" => Some(self.ready()),
            "/metrics" => {
                let text = self.metrics.render(&self.api.account_host.engine().metrics());
                Some(plain("text/plain; version=0.0.4; charset=utf-8", text.into()))
            }
            "/_explorer/emulator.pem" => self.certificate.clone().map(|pem| plain("application/x-pem-file", pem)),
            _ => None,
        }
    }

    fn ready(&self) -> Response<Full<Bytes>> {
        match self.api.account_host.engine().check_ready() {
            Ok(()) => plain("text/plain; charset=utf-8", "ready\n".into()),
            Err(error) => {
                let mut response = plain("text/plain; charset=utf-8", format!("not ready: {error}\n").into());
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                response
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

impl From<OperationKind> for MetricOperation {
    fn from(kind: OperationKind) -> Self {
        match kind {
            OperationKind::Read => MetricOperation::Read,
            OperationKind::List => MetricOperation::List,
            OperationKind::ChangeFeed => MetricOperation::ChangeFeed,
            OperationKind::Query => MetricOperation::Query,
            OperationKind::QueryPlan => MetricOperation::QueryPlan,
            OperationKind::Create => MetricOperation::Create,
            OperationKind::Upsert => MetricOperation::Upsert,
            OperationKind::Replace => MetricOperation::Replace,
            OperationKind::Patch => MetricOperation::Patch,
            OperationKind::Delete | OperationKind::DeleteByPartitionKey => MetricOperation::Delete,
            OperationKind::Batch => MetricOperation::Batch,
            OperationKind::Execute => MetricOperation::Execute,
            OperationKind::NotAllowed => MetricOperation::Other,
        }
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

fn plain(content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
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
