//! Client of the management API: one signed request over HTTP or HTTPS.
//!
//! Guarantees: `send` returns the server's JSON; every other outcome is an error that says what to do next.
//! docs/management.md describes what is signed.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use pleiad_model::env::{Env, SystemEnv};
use pleiad_model::{Error, Object, Result, Value, json};
use ring::hmac;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;

use crate::config::AccountKey;

pub struct Client {
    /// As the user wrote it, for error messages.
    endpoint: String,
    host: String,
    port: u16,
    tls: Option<TlsConnector>,
    key: hmac::Key,
}

impl Client {
    pub fn new(endpoint: &str, key: &AccountKey, tls: Result<Arc<ClientConfig>>) -> Result<Client> {
        let wrong = || Error::invalid(format!("the endpoint {endpoint:?} is not a URL such as http://localhost:8081."));
        let (scheme, rest) = endpoint.trim_end_matches('/').split_once("://").ok_or_else(wrong)?;
        let (tls, preset) = match scheme {
            "https" => (Some(TlsConnector::from(tls?)), 443),
            "http" => (None, 80),
            _ => return Err(wrong()),
        };
        let uri: hyper::http::uri::Authority = rest.parse().map_err(|_| wrong())?;
        let bytes = BASE64_STANDARD.decode(key.reveal()).map_err(|_| Error::invalid("the key is not base64."))?;
        Ok(Client {
            endpoint: endpoint.to_owned(),
            host: uri.host().to_owned(),
            port: uri.port_u16().unwrap_or(preset),
            tls,
            key: hmac::Key::new(hmac::HMAC_SHA256, &bytes),
        })
    }

    /// `path` is the part after `/_pleiad/v1/`, percent-encoded.
    pub async fn send(&self, method: &str, path: &str, body: Option<Object>) -> Result<Value> {
        let body = body.map(|body| json::to_string(&body.into())).unwrap_or_default();
        let response = self.exchange(self.request(method, path, body)?).await?;
        let status = response.status();
        let bytes = response.into_body().collect().await.map_err(|error| self.bad_response(&error))?.to_bytes();
        let answer = if bytes.is_empty() { Ok(Value::Null) } else { json::parse(&bytes) };
        match (status.is_success(), answer) {
            (true, Ok(answer)) => Ok(answer),
            (_, answer) => Err(self.error_response(status.as_u16(), answer.unwrap_or(Value::Null))),
        }
    }

    fn request(&self, method: &str, path: &str, body: String) -> Result<Request<Full<Bytes>>> {
        let path = format!("/_pleiad/v1/{path}");
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(SystemEnv.now_ms()));
        Request::builder()
            .method(method)
            .uri(&path)
            .header("host", format!("{}:{}", self.host, self.port))
            .header("x-ms-date", &date)
            .header("authorization", self.authorization(method, &path, &date))
            .header("content-type", "application/json")
            .body(Full::new(body.into()))
            .map_err(|error| Error::internal(format!("a request that cannot be sent: {error}")))
    }

    fn authorization(&self, method: &str, path: &str, date: &str) -> String {
        let named = path.split('?').next().unwrap_or_default().trim_start_matches('/');
        let link = percent_decode_str(named).decode_utf8_lossy();
        let text = format!("{}\npleiad\n{link}\n{}\n\n", method.to_ascii_lowercase(), date.to_ascii_lowercase());
        let signature = BASE64_STANDARD.encode(hmac::sign(&self.key, text.as_bytes()));
        let header = format!("type=master&ver=1.0&sig={signature}");
        percent_encoding::utf8_percent_encode(&header, percent_encoding::NON_ALPHANUMERIC).to_string()
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Response<hyper::body::Incoming>> {
        let host = self.host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, self.port)).await.map_err(|error| self.unreachable(&error))?;
        match &self.tls {
            None => self.send_over(stream, request).await,
            Some(connector) => {
                let name = ServerName::try_from(host.to_owned()).map_err(|error| self.bad_response(&error))?;
                let stream = connector.connect(name, stream).await.map_err(|error| self.untrusted(&error))?;
                self.send_over(stream, request).await
            }
        }
    }

    async fn send_over<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<hyper::body::Incoming>> {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.bad_response(&error))?;
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(|error| self.bad_response(&error))
    }

    fn unreachable(&self, error: &std::io::Error) -> Error {
        Error::unavailable(format!(
            "no server answers at {} ({error}). Start one with `pleiad dev`, or say where it is with --endpoint or PLEIAD_ENDPOINT.",
            self.endpoint
        ))
    }

    fn untrusted(&self, error: &std::io::Error) -> Error {
        Error::unavailable(format!(
            "the certificate of {} is not trusted ({error}). Give its authority with --ca; `pleiad trust --path` tells where a generated one is.",
            self.endpoint
        ))
    }

    fn bad_response(&self, error: &dyn std::fmt::Display) -> Error {
        Error::unavailable(format!("{} did not answer as expected ({error}). Is it a Pleiad server?", self.endpoint))
    }

    fn error_response(&self, status: u16, body: Value) -> Error {
        let message = body.get("message").and_then(Value::as_str).unwrap_or_default();
        let message = message.split("\r\n").next().unwrap_or_default();
        Error::invalid(match status {
            401 => {
                "the server does not accept this key. Give the account's key as PLEIAD_PRIMARY_KEY or with --key-file."
                    .to_owned()
            }
            _ if message.is_empty() => format!("{} answered {status}. Is it a Pleiad server?", self.endpoint),
            _ => format!("{message} ({status})"),
        })
    }
}
