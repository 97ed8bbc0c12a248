//! HTTP client for outgoing requests, over HTTP or HTTPS: JSON Web Key Sets and the alert webhook.
//!
//! Guarantees: each request opens one connection and returns, within ten seconds, a response of bounded size or an
//! error with the reason. Certificates are verified against the machine's trust store (`SSL_CERT_FILE`, or the usual
//! system paths). Redirects are not followed: the operator configures the final URL.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use pleiad_model::{Error, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const TIMEOUT: Duration = Duration::from_secs(10);
const RESPONSE_BYTES_MAX: usize = 1 << 20;
const CA_BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// A URL to send requests to.
pub struct Remote {
    url: Uri,
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
}

impl Remote {
    /// `None` if the text is not an `http` or `https` URL.
    pub fn new(url: &str) -> Result<Option<Remote>> {
        let Ok(url) = url.parse::<Uri>() else { return Ok(None) };
        let Some(host) = url.host().map(|host| host.trim_matches(['[', ']']).to_owned()) else { return Ok(None) };
        let tls = match url.scheme_str() {
            Some("http") => None,
            Some("https") => Some(TlsConnector::from(Arc::new(client_config()?))),
            _ => return Ok(None),
        };
        let port = url.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        Ok(Some(Remote { url, host, port, tls }))
    }

    /// The request needs only its method, further headers and body; this adds the URL's path and the `Host` header.
    pub async fn send_request(&self, request: http::request::Builder, body: Vec<u8>) -> Result<(StatusCode, Bytes)> {
        let request = self.build_request(request, body)?;
        let outcome = tokio::time::timeout(TIMEOUT, self.connect_and_send(request)).await;
        outcome.unwrap_or_else(|_| Err(Error::unavailable("it did not answer in time")))
    }

    fn build_request(&self, request: http::request::Builder, body: Vec<u8>) -> Result<Request<Full<Bytes>>> {
        let path = self.url.path_and_query().map_or("/", |path| path.as_str());
        let authority = self.url.authority().map_or("", |authority| authority.as_str());
        let host = authority.rsplit('@').next().unwrap_or_default();
        request.uri(path).header(HOST, host).body(Full::new(Bytes::from(body))).map_err(failed)
    }

    async fn connect_and_send(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes)> {
        let socket = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(failed)?;
        match &self.tls {
            None => send(socket, request).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone()).map_err(failed)?;
                send(tls.connect(name, socket).await.map_err(failed)?, request).await
            }
        }
    }
}

async fn send(
    socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes)> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.map_err(failed)?;
    let connection_task = tokio::spawn(connection);
    let response = read_response(sender.send_request(request).await.map_err(failed)).await;
    connection_task.abort();
    response
}

async fn read_response(answer: Result<http::Response<hyper::body::Incoming>>) -> Result<(StatusCode, Bytes)> {
    let answer = answer?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), RESPONSE_BYTES_MAX).collect().await;
    Ok((status, body.map_err(failed)?.to_bytes()))
}

fn client_config() -> Result<ClientConfig> {
    let configured = std::env::var("SSL_CERT_FILE").ok();
    let mut trusted = RootCertStore::empty();
    for path in configured.iter().map(String::as_str).chain(CA_BUNDLES) {
        if let Ok(certificates) = CertificateDer::pem_file_iter(path) {
            trusted.add_parsable_certificates(certificates.flatten());
            break;
        }
    }
    if trusted.is_empty() {
        return Err(Error::invalid("no trusted certificates were found for requests over HTTPS: set SSL_CERT_FILE."));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(failed)?;
    Ok(config.with_root_certificates(trusted).with_no_client_auth())
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::unavailable(error.to_string())
}
