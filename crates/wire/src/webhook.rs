//! A URL of the operator's that is told of alerts: one POST of JSON, over HTTP or HTTPS.
//!
//! Promise: nobody waits for it but the task that posts, and that one not for long. Certificates are checked against
//! those that the machine trusts (`SSL_CERT_FILE`, or where systems keep them).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, Uri};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use pleiad_engine::{Alert, AlertKind};
use pleiad_model::{Error, Object, Result, json};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const TIMEOUT: Duration = Duration::from_secs(10);
const AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

pub struct Webhook {
    url: Uri,
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
}

impl Webhook {
    pub fn new(url: &str) -> Result<Self> {
        let wrong = || Error::invalid("the alert webhook must be a URL such as https://example.org/alerts");
        let url: Uri = url.parse().map_err(|_| wrong())?;
        let host = url.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        let tls = match url.scheme_str() {
            Some("http") => None,
            Some("https") => Some(TlsConnector::from(Arc::new(client_config()?))),
            _ => return Err(wrong()),
        };
        let port = url.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        Ok(Webhook { url, host, port, tls })
    }

    pub async fn tell(&self, alert: &Alert) -> Result<()> {
        let told = tokio::time::timeout(TIMEOUT, self.post(body(alert))).await;
        told.unwrap_or_else(|_| Err(Error::unavailable("it did not answer in time")))
    }

    async fn post(&self, body: Vec<u8>) -> Result<()> {
        let socket = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(failed)?;
        match &self.tls {
            None => self.send(socket, body).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone()).map_err(failed)?;
                self.send(tls.connect(name, socket).await.map_err(failed)?, body).await
            }
        }
    }

    async fn send(&self, socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, body: Vec<u8>) -> Result<()> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.map_err(failed)?;
        let driving = tokio::spawn(connection);
        let answer = sender.send_request(self.request(body)?).await.map_err(failed);
        driving.abort();
        let status = answer?.status();
        if status.is_success() { Ok(()) } else { Err(Error::unavailable(format!("it answered with {status}"))) }
    }

    fn request(&self, body: Vec<u8>) -> Result<Request<Full<Bytes>>> {
        let path = self.url.path_and_query().map_or("/", |path| path.as_str());
        let authority = self.url.authority().map_or("", |authority| authority.as_str());
        let host = authority.rsplit('@').next().unwrap_or_default();
        let request = Request::post(path).header(HOST, host).header(CONTENT_TYPE, "application/json");
        request.body(Full::new(Bytes::from(body))).map_err(failed)
    }
}

/// `{"kind": "HotPartition", "time": 1700000000, "database": …, "message": …}`
fn body(alert: &Alert) -> Vec<u8> {
    let mut out = Vec::new();
    json::write(&shown(alert).into(), &mut out);
    out
}

/// An alert as JSON.
pub(crate) fn shown(alert: &Alert) -> Object {
    let object = Object::new()
        .with("kind", alert.what.name())
        .with("time", alert.ts_s)
        .with("database", alert.database.as_str())
        .with("container", alert.container.as_str())
        .with("partitionKeyRangeId", alert.range.to_string());
    let object = match &alert.what {
        AlertKind::HotPartition { share_ru, throttled, busiest_key } => {
            let object = object.with("shareRuPerSecond", *share_ru).with("throttledRequests", *throttled);
            busiest_key.iter().fold(object, |object, key| object.with("busiestPartitionKey", key.as_str()))
        }
        AlertKind::KeyNearlyFull { key, bytes, bytes_max } => {
            object.with("partitionKey", key.as_str()).with("sizeBytes", *bytes).with("maxBytes", *bytes_max)
        }
    };
    object.with("message", alert.to_string())
}

fn client_config() -> Result<ClientConfig> {
    let given = std::env::var("SSL_CERT_FILE").ok();
    let mut trusted = RootCertStore::empty();
    for path in given.iter().map(String::as_str).chain(AUTHORITIES) {
        if let Ok(certificates) = CertificateDer::pem_file_iter(path) {
            trusted.add_parsable_certificates(certificates.flatten());
            break;
        }
    }
    if trusted.is_empty() {
        return Err(Error::invalid("no trusted certificates were found for the alert webhook: set SSL_CERT_FILE."));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(failed)?;
    Ok(config.with_root_certificates(trusted).with_no_client_auth())
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::unavailable(error.to_string())
}

#[cfg(test)]
mod tests;
