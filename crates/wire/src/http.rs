//! HTTP/1.1 and HTTP/2 as one protocol of the transport. Independent of the APIs above it.
//!
//! Guarantees: the size of a request's head and the number of concurrent requests of a connection are limited; a request
//! costs no task, no lock and no allocation here beyond hyper's own.
//!
//! ```text
//! with ALPN       h2                  HTTP/2
//!                 http/1.1            HTTP/1.1
//! without ALPN    "PRI * HTTP/2.0"    HTTP/2 by prior knowledge
//!                 anything else       HTTP/1.1, or bytes that its parser rejects
//! ```

mod body; // request bodies, with a size limit
#[cfg(test)]
pub(crate) mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

pub use body::{BodyError, ReceivedBody, read_body};

use crate::transport::{Connection, ConnectionError, Opening, Protocol, Recognition};
pub use crate::transport::{ConnectionOrigin, ConnectionState};

const ALPN_HTTP2: &[u8] = b"h2";
const ALPN_HTTP1: &[u8] = b"http/1.1";
/// The beginning of an HTTP/2 connection by prior knowledge.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Handles requests.
pub trait Service: Send + Sync + 'static {
    fn call(
        &self,
        connection: &ConnectionState,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// Limits of HTTP itself; the transport has those of connections, and `read_body` that of bodies.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// Request line and headers together. Session tokens and continuations are headers.
    pub header_bytes_max: usize,
    /// Concurrent requests on one HTTP/2 connection.
    pub streams_max: u32,
}

impl Default for HttpLimits {
    fn default() -> Self {
        HttpLimits { header_bytes_max: 64 * 1024, streams_max: 256 }
    }
}

/// The protocol HTTP in front of a service.
pub struct Http<S> {
    service: Arc<S>,
    limits: HttpLimits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    Http1,
    Http2,
}

impl<S: Service> Http<S> {
    pub fn new(service: Arc<S>, limits: HttpLimits) -> Http<S> {
        Http { service, limits }
    }
}

impl<S: Service> Protocol for Http<S> {
    type Variant = HttpVersion;

    fn alpn(&self) -> Vec<&'static [u8]> {
        vec![ALPN_HTTP2, ALPN_HTTP1]
    }

    fn recognize(&self, opening: &Opening<'_>) -> Recognition<HttpVersion> {
        recognize(opening)
    }

    async fn serve(&self, version: HttpVersion, connection: Connection) -> Result<(), ConnectionError> {
        match version {
            HttpVersion::Http1 => self.serve_http1(connection).await,
            HttpVersion::Http2 => self.serve_http2(connection).await,
        }
    }
}

/// Never `No`: HTTP is the last protocol of its port. `POST` and `PATCH` begin like `PRI`, so further bytes are needed
/// until they differ from the preface or complete it.
fn recognize(opening: &Opening<'_>) -> Recognition<HttpVersion> {
    let bytes = opening.first_bytes;
    match opening.alpn {
        Some(ALPN_HTTP2) => Recognition::Yes(HttpVersion::Http2),
        Some(_) => Recognition::Yes(HttpVersion::Http1),
        None if bytes.starts_with(HTTP2_PREFACE) => Recognition::Yes(HttpVersion::Http2),
        None if HTTP2_PREFACE.starts_with(bytes) => Recognition::MoreBytes,
        None => Recognition::Yes(HttpVersion::Http1),
    }
}

impl<S: Service> Http<S> {
    async fn serve_http1(&self, connection: Connection) -> Result<(), ConnectionError> {
        let Connection { stream, state, mut draining, .. } = connection;
        let mut serving = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                // The transport enforces the timeouts; hyper's single one would close idle connections as if they
                // were slow.
                .header_read_timeout(None)
                .max_buf_size(self.limits.header_bytes_max)
                .serve_connection(TokioIo::new(stream), hyper_service(self.service.clone(), state.clone()))
        );
        tokio::select! {
            biased;
            ended = serving.as_mut() => return Ok(ended?),
            () = draining.begun() => {}
        }
        // Without a first request, hyper's graceful shutdown would wait for one.
        if state.activity.requests_begun() == 0 {
            return Ok(());
        }
        serving.as_mut().graceful_shutdown();
        Ok(serving.await?)
    }

    async fn serve_http2(&self, connection: Connection) -> Result<(), ConnectionError> {
        let Connection { mut stream, state, mut draining, .. } = connection;
        stream.allow_bytes_between_requests(); // frames
        let header_bytes_max = u32::try_from(self.limits.header_bytes_max).unwrap_or(u32::MAX);
        let mut serving = pin!(
            http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_header_list_size(header_bytes_max)
                .max_concurrent_streams(self.limits.streams_max)
                .serve_connection(TokioIo::new(stream), hyper_service(self.service.clone(), state))
        );
        tokio::select! {
            biased;
            ended = serving.as_mut() => return Ok(ended?),
            () = draining.begun() => {}
        }
        serving.as_mut().graceful_shutdown();
        Ok(serving.await?)
    }
}

/// Adapts hyper's service to `Service`: no allocation and no task per request.
fn hyper_service<S: Service>(
    service: Arc<S>,
    connection: Arc<ConnectionState>,
) -> impl hyper::service::HttpService<Incoming, ResBody = Full<Bytes>, Error = Infallible, Future: Send + 'static> + use<S>
{
    service_fn(move |request| {
        let (service, connection) = (service.clone(), connection.clone());
        async move {
            let _in_flight = connection.activity.begin();
            Ok(service.call(&connection, request).await)
        }
    })
}
