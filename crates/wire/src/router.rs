//! HTTP router: tells the APIs of one port apart, by path, upgrade and authorization scheme.
//!
//! | request | API |
//! |---|---|
//! | `GET /health`, `/ready`, `/metrics`, `/_explorer/emulator.pem` | probes, metrics and the certificate, without a key |
//! | `/_pleiad/…` | management |
//! | an upgrade to WebSocket | Gremlin, which is not built yet |
//! | `Authorization: SharedKey …` or `SharedKeyLite …`, `/Tables…` | Table, which is not built yet |
//! | anything else | NoSQL |

use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, UPGRADE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use pleiad_engine::{AccountHost, Action, ServerAuthority};
use pleiad_model::env::OffsetEnv;
use pleiad_model::{Error, Result};

use crate::http::{ConnectionState, Service};
use crate::management;
use crate::management::http::ManagementHttp;
use crate::metrics::Metrics;
use crate::nosql::NosqlApi;
use crate::nosql::http::NosqlHttp;
use crate::nosql::status::{ErrorStatus, Status};

/// The API that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HttpApi<'p> {
    Probe(HttpProbe),
    /// With the path below the API's root.
    Management(&'p str),
    Gremlin,
    Table,
    Nosql,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HttpProbe {
    Health,
    Ready,
    Metrics,
    Certificate,
}

impl<'p> HttpApi<'p> {
    fn of(parts: &'p Parts) -> HttpApi<'p> {
        let path = parts.uri.path();
        if let Some(probe) = HttpProbe::of(&parts.method, path) {
            return HttpApi::Probe(probe);
        }
        if let Some(path) = management::below_root(path) {
            return HttpApi::Management(path);
        }
        if text(parts, UPGRADE).eq_ignore_ascii_case("websocket") {
            return HttpApi::Gremlin;
        }
        let scheme = text(parts, AUTHORIZATION).split(' ').next().unwrap_or_default();
        if scheme.eq_ignore_ascii_case("SharedKey") || scheme.eq_ignore_ascii_case("SharedKeyLite") || is_table(path) {
            return HttpApi::Table;
        }
        HttpApi::Nosql
    }
}

impl HttpProbe {
    fn of(method: &Method, path: &str) -> Option<HttpProbe> {
        match path {
            _ if method != Method::GET => None,
            "/health" => Some(HttpProbe::Health),
            "/ready" => Some(HttpProbe::Ready),
            "/metrics" => Some(HttpProbe::Metrics),
            "/_explorer/emulator.pem" => Some(HttpProbe::Certificate),
            _ => None,
        }
    }
}

/// `/Tables` or `/Tables('name')`
fn is_table(path: &str) -> bool {
    path.strip_prefix("/Tables").is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
}

fn text(parts: &Parts, name: HeaderName) -> &str {
    parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// All HTTP APIs of one account.
pub struct Router {
    account_host: Arc<AccountHost>,
    nosql: Arc<NosqlHttp>,
    management: ManagementHttp,
    metrics: Arc<Metrics>,
    /// The certificate of the authority that signed the server's certificate, for clients to download.
    certificate: Option<Bytes>,
    /// Reject requests that arrive in clear text.
    https_only: bool,
}

impl Router {
    /// Tests may advance the `clock`; without one, test controls are disabled.
    pub fn new(api: NosqlApi, metrics: Arc<Metrics>, body_bytes_max: usize, clock: Option<Arc<OffsetEnv>>) -> Self {
        let account_host = api.account_host.clone();
        let nosql = Arc::new(NosqlHttp::new(api, metrics.clone(), body_bytes_max));
        let management = ManagementHttp::new(nosql.clone(), clock);
        Router { account_host, nosql, management, metrics, certificate: None, https_only: false }
    }

    pub fn with_certificate(self, certificate: Option<Bytes>) -> Self {
        Router { certificate, ..self }
    }

    pub fn https_only(self, https_only: bool) -> Self {
        Router { https_only, ..self }
    }

    /// `None` if there is no certificate to download.
    fn probe(&self, probe: HttpProbe) -> Option<Response<Full<Bytes>>> {
        const TEXT: &str = "text/plain; charset=utf-8";
        match probe {
            HttpProbe::Health => Some(plain(TEXT, "ok\n".into())),
            HttpProbe::Ready => Some(match self.account_host.engine().check_ready() {
                Ok(()) => plain(TEXT, "ready\n".into()),
                Err(error) => unavailable(plain(TEXT, format!("not ready: {error}\n").into())),
            }),
            HttpProbe::Metrics => Some(match self.render_metrics() {
                Ok(text) => plain("text/plain; version=0.0.4; charset=utf-8", text.into()),
                Err(error) => unavailable(plain(TEXT, format!("no metrics: {error}\n").into())),
            }),
            HttpProbe::Certificate => self.certificate.clone().map(|pem| plain("application/x-pem-file", pem)),
        }
    }

    fn render_metrics(&self) -> Result<String> {
        let engine = self.account_host.engine();
        let at = engine.authorize(&ServerAuthority, Action::Monitor)?;
        Ok(self.metrics.render(&engine.metrics(&at)?))
    }
}

impl Service for Router {
    async fn call(&self, connection: &ConnectionState, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        if self.https_only && !connection.origin.secure {
            let error = ErrorStatus::new(Status::BadRequest, "This port speaks HTTPS only.");
            return self.nosql.reject(&parts, error);
        }
        match HttpApi::of(&parts) {
            HttpApi::Probe(probe) => match self.probe(probe) {
                Some(response) => response,
                None => self.nosql.call(connection, &parts, body).await,
            },
            HttpApi::Management(path) => self.management.call(connection, path, &parts, body).await,
            HttpApi::Gremlin => self.nosql.reject(&parts, Error::unsupported("Gremlin (WebSocket)")),
            HttpApi::Table => self.nosql.reject(&parts, Error::unsupported("The Table API")),
            HttpApi::Nosql => self.nosql.call(connection, &parts, body).await,
        }
    }
}

fn plain(content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn unavailable(mut response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let request =
            headers.iter().fold(Request::builder().method(method).uri(path), |all, (k, v)| all.header(*k, *v));
        format!("{:?}", HttpApi::of(&request.body(()).unwrap().into_parts().0))
    }

    #[test]
    fn path_upgrade_and_scheme_tell_the_apis_apart() {
        assert_eq!(api("GET", "/health", &[]), "Probe(Health)");
        assert_eq!(api("GET", "/metrics?x=1", &[]), "Probe(Metrics)");
        assert_eq!(api("POST", "/health", &[]), "Nosql");
        assert_eq!(api("GET", "/_pleiad/v1/jobs", &[]), "Management(\"/v1/jobs\")");
        assert_eq!(api("GET", "/_pleiadic", &[]), "Nosql");
        assert_eq!(api("GET", "/gremlin", &[("upgrade", "WebSocket")]), "Gremlin");
        assert_eq!(api("GET", "/t(PartitionKey='a')", &[("authorization", "SharedKey a:b")]), "Table");
        assert_eq!(api("GET", "/t()", &[("authorization", "sharedkeylite a:b")]), "Table");
        assert_eq!(api("POST", "/Tables", &[]), "Table");
        assert_eq!(api("DELETE", "/Tables('t')", &[]), "Table");
        assert_eq!(api("GET", "/Tablespoon", &[]), "Nosql");
        assert_eq!(api("GET", "/", &[("authorization", "type%3dmaster%26ver%3d1.0%26sig%3dx")]), "Nosql");
        assert_eq!(api("GET", "/dbs/Tables", &[("authorization", "Bearer x")]), "Nosql");
    }
}
