//! Request handling: one HTTP request from its request line to its response. Authenticates, reads the body, dispatches,
//! and records metrics.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{AUTHORIZATION, DATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use pleiad_model::{Error, Kind};

use super::address::Signing;
use super::auth::{self, AuthError, AuthTime, Caller, Credentials, TrustAnchors};
use super::reply::{
    ErrorReply, Handled, LAST_STATE_CHANGE, REQUEST_DURATION_MS, Reply, TRANSPORT_REQUEST_ID, set, set_number,
};
use super::request::{Request, is_read};
use super::role_access::account_key_required;
use super::status::ErrorStatus;
use super::{Frontend, address};
use crate::http::{BodyError, ConnectionOrigin, Service, read_body};
use crate::management;
use crate::metrics::MetricOperation;

impl Service for Frontend {
    async fn call(&self, origin: &ConnectionOrigin, request: http::Request<Incoming>) -> Response<Full<Bytes>> {
        let began = Instant::now();
        let (parts, body) = request.into_parts();
        if self.https_only && !origin.secure {
            let refusal = ErrorReply::from(ErrorStatus::new(StatusCode::BAD_REQUEST, "This port speaks HTTPS only."));
            let activity = activity_id(&parts.headers).unwrap_or_else(|| self.new_activity_id());
            return refusal.reply(activity.to_str().unwrap_or_default()).finish(&activity);
        }
        if let Some(reply) = self.operational_endpoint(&parts) {
            return reply;
        }
        let activity = activity_id(&parts.headers).unwrap_or_else(|| self.new_activity_id());
        let handled = self.handle(origin, &parts, body).await;
        let reply = match handled {
            Ok(reply) => reply,
            Err(refusal) => {
                log_failure(&parts, &refusal.failure, &activity);
                refusal.reply(activity.to_str().unwrap_or_default())
            }
        };
        let took = began.elapsed();
        self.metrics.request(MetricOperation::of(&parts.method), reply.status.as_u16(), reply.charge_ru, took);
        self.with_diagnostics(reply, took).finish(&activity)
    }
}

impl Frontend {
    async fn handle(&self, origin: &ConnectionOrigin, parts: &Parts, body: Incoming) -> Handled {
        if let Some(path) = management::below_root(parts.uri.path()) {
            return self.manage(path, parts, body).await;
        }
        let address = address::parse(parts.uri.path())?;
        let signed = self.signed_address(parts, &address)?;
        let signing = signed.as_ref().unwrap_or(&address).signing();
        let caller = self.caller(parts, signing, is_read(&parts.method, &parts.headers, &address)).await?;
        let body = self.body(&parts.method, body).await?;
        let authority = parts.uri.authority().map(|authority| authority.as_str());
        let request =
            Request { method: &parts.method, address: &address, headers: &parts.headers, body, origin, authority };
        let mut engine = self.account_host.engine();
        loop {
            let handled = self.request_context(&engine).dispatch(&request, &caller).await;
            match self.account_host.replacement_for(&engine, is_unavailable(&handled)).await? {
                None => return handled,
                Some(next) => engine = next,
            }
        }
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
                return Err(account_key_required(
                    &self.account.id,
                    &parts.method,
                    parts.uri.path().trim_start_matches('/'),
                ));
            }
        }
        let body = self.body(&parts.method, body).await?;
        let request = management::ManagementRequest { method: &parts.method, names, query: parts.uri.query(), body };
        let handled = match management::snapshots::SnapshotRoute::parse(&request.names) {
            Some(route) => management::snapshots::answer(&self.account_host, route, &request).await,
            None => self.call_management_api(&request).await,
        };
        match handled {
            Ok(reply) => Ok(reply.charged(0.0)),
            Err(refusal) => Err(ErrorReply { charge_ru: 0.0, ..refusal }),
        }
    }

    async fn call_management_api(&self, request: &management::ManagementRequest<'_>) -> Handled {
        let mut engine = self.account_host.engine();
        loop {
            let handled = management::ManagementApi::new(engine.clone(), self.clock.clone()).answer(request).await;
            match self.account_host.replacement_for(&engine, is_unavailable(&handled)).await? {
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
        let engine = self.account_host.engine();
        let at = AuthTime { now_ms: engine.now_ms(), wall_ms: engine.wall_ms() };
        let keyring = self.access.jwks_cache.as_ref();
        let trust = TrustAnchors { keys: &self.keys, tokens: &self.tokens, jwks_cache: keyring };
        match (auth::authenticate(trust, &credentials, at), keyring) {
            (Err(AuthError::UnknownKey), Some(keyring)) if keyring.refetch_for_unknown_key().await => {
                auth::authenticate(trust, &credentials, at)
            }
            (result, _) => result,
        }
    }

    async fn body(&self, method: &Method, body: Incoming) -> Result<Bytes, ErrorStatus> {
        match *method {
            Method::GET | Method::DELETE | Method::HEAD => Ok(Bytes::new()),
            _ => read_body(body, self.body_bytes_max).await.map_err(|error| body_failure(error, self.body_bytes_max)),
        }
    }

    /// Adds headers about the server and this request for client diagnostics.
    fn with_diagnostics(&self, mut reply: Reply, took: Duration) -> Reply {
        reply.headers.insert(LAST_STATE_CHANGE, self.started.clone());
        set_number(
            &mut reply.headers,
            TRANSPORT_REQUEST_ID,
            self.next_transport_request_id.fetch_add(1, Ordering::Relaxed),
        );
        set(&mut reply.headers, REQUEST_DURATION_MS, &format!("{:.3}", took.as_secs_f64() * 1000.0));
        reply
    }

    /// A request for replica addresses signs the resource in its `$resolveFor` parameter.
    fn signed_address(&self, parts: &Parts, address: &address::Address) -> Result<Option<address::Address>, Error> {
        if address.resource != address::ResourceType::Addresses {
            return Ok(None);
        }
        let query = parts.uri.query().unwrap_or_default();
        let resolve_for =
            query.split('&').find_map(|pair| pair.strip_prefix("$resolveFor=").or(pair.strip_prefix("%24resolveFor=")));
        let path = percent_encoding::percent_decode_str(resolve_for.unwrap_or_default()).decode_utf8_lossy();
        address::parse(&path).map(Some)
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
                let text = self.metrics.render(&self.account_host.engine().metrics());
                Some(plain("text/plain; version=0.0.4; charset=utf-8", text.into()))
            }
            "/_explorer/emulator.pem" => self.certificate.clone().map(|pem| plain("application/x-pem-file", pem)),
            _ => None,
        }
    }

    fn ready(&self) -> Response<Full<Bytes>> {
        match self.account_host.engine().check_ready() {
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

/// The finalizer of splitmix64: a bijection that scatters neighboring inputs.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether the engine declined to execute the request, as opposed to reporting an outcome: after a restore the request
/// then runs on the new engine.
fn is_unavailable(handled: &Handled) -> bool {
    matches!(handled, Err(refusal) if refusal.failure.status == StatusCode::SERVICE_UNAVAILABLE)
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
        BodyError::TimedOut => {
            ErrorStatus::new(StatusCode::REQUEST_TIMEOUT, "The request's body did not arrive in time.")
        }
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
    if failure.status.is_server_error() && failure.status != StatusCode::NOT_IMPLEMENTED {
        tracing::error!(%method, path, activity, status = failure.status.as_u16(), error = failure.message, "request failed");
    } else {
        tracing::debug!(%method, path, activity, status = failure.status.as_u16(), error = failure.message, "request rejected");
    }
}
