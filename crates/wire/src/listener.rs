//! Connection listener: accepts connections, TLS and plain text on one port, enforces limits, drains. Independent of
//! any protocol above HTTP.
//!
//! Guarantees: a broken, slow or hostile client costs one connection and nothing else; an idle connection is woken at
//! most twice until its timeout closes it; a request that has begun before the drain begins is completed.
//!
//! ```text
//!            ┌ 16 ………………… TLS ─ ALPN ┬ h2 ────────┐
//! accept ─ sniff ┬ "PRI * HTTP/2.0" ─┼────────────┴ HTTP/2 ─┐
//!                └ anything else ────┴ http/1.1 ─── HTTP/1.1 ┴─ Service
//! ```
//!
//! At `connections_max` open connections the listener stops accepting: new connections wait in the operating system's
//! queue until an open one ends. Closing them instead would look like a crashed server to a client that only has to
//! wait briefly.

mod again;
mod body;
mod drain;
mod limits;
mod patience;
mod sniff;
#[cfg(test)]
mod tests;
mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

pub use body::{BodyError, read_body};
pub use drain::Drain;
pub use limits::ConnectionLimits;
pub use tls::{tls_config, tls_config_of};

use again::again;
use drain::Draining;
use patience::{Activity, Patient};
use sniff::{Protocol, Rewound};

/// After a failed accept (usually: no file descriptors left), the time to wait for connections to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How a connection reached the server.
#[derive(Clone, Debug)]
pub struct ConnectionOrigin {
    pub secure: bool,
    pub local: SocketAddr,
    pub peer: SocketAddr,
}

/// Handles requests.
pub trait Service: Send + Sync + 'static {
    fn call(
        &self,
        origin: &ConnectionOrigin,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// Serves the socket until the drain begins. Connections may outlive this call: `Drain::wait` waits for them.
pub async fn serve<S: Service>(
    socket: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    limits: ConnectionLimits,
    service: Arc<S>,
    drain: Drain,
) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(limits.connections_max));
    let house = Arc::new(House { tls: tls.map(TlsAcceptor::from), limits, service });
    let draining = drain.watch();
    loop {
        let mut begun = draining.clone();
        let accepted = tokio::select! {
            biased;
            () = begun.begun() => return Ok(()),
            accepted = accept(&socket, &slots) => accepted,
        };
        match accepted {
            Ok((slot, stream, peer)) => {
                drop(tokio::spawn(again(connection(slot, stream, peer, house.clone(), draining.clone()))))
            }
            Err(error) if is_of_one_connection(&error) => debug!(%error, "a connection ended before it was accepted"),
            Err(error) => {
                warn!(%error, "cannot accept connections; trying again");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// State that all connections share.
struct House<S> {
    tls: Option<TlsAcceptor>,
    limits: ConnectionLimits,
    service: Arc<S>,
}

/// State that all requests of one connection share.
struct Connection {
    origin: ConnectionOrigin,
    activity: Activity,
}

/// Acquires the slot before the connection, so that neither exists without the other.
async fn accept(
    socket: &TcpListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(OwnedSemaphorePermit, TcpStream, SocketAddr)> {
    let slot = slots.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = socket.accept().await?;
    Ok((slot, stream, peer))
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn connection<S: Service>(
    slot: OwnedSemaphorePermit,
    stream: TcpStream,
    peer: SocketAddr,
    house: Arc<House<S>>,
    draining: Draining,
) {
    if let Err(error) = converse(stream, peer, &house, draining).await {
        debug!(%peer, %error, "connection ended");
    }
    drop(slot);
}

type Ending = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Serves a connection from its first byte to its last.
async fn converse<S: Service>(stream: TcpStream, peer: SocketAddr, house: &House<S>, mut draining: Draining) -> Ending {
    // Responses are small and complete when written; waiting to fill a segment only adds latency.
    stream.set_nodelay(true)?;
    let local = stream.local_addr()?;
    let greeting = timeout(house.limits.header_read_timeout, greet(stream, house));
    let greeted = tokio::select! {
        biased;
        () = draining.begun() => return Ok(()),
        greeted = greeting => greeted??,
    };
    let origin = |secure| ConnectionOrigin { secure, local, peer };
    match greeted {
        Greeted::Http1(stream) => http1(stream, origin(false), house, draining).await,
        Greeted::Http2(stream) => http2(stream, origin(false), house, draining).await,
        Greeted::SecureHttp1(stream) => http1(*stream, origin(true), house, draining).await,
        Greeted::SecureHttp2(stream) => http2(*stream, origin(true), house, draining).await,
    }
}

/// The protocol that the client uses.
enum Greeted {
    Http1(Rewound<TcpStream>),
    Http2(Rewound<TcpStream>),
    SecureHttp1(Box<SecureStream>),
    SecureHttp2(Box<SecureStream>),
}

type SecureStream = tokio_rustls::server::TlsStream<Rewound<TcpStream>>;

async fn greet<S>(stream: TcpStream, house: &House<S>) -> io::Result<Greeted> {
    let (protocol, stream) = sniff::sniff(stream).await?;
    match protocol {
        Protocol::Http1 => Ok(Greeted::Http1(stream)),
        Protocol::Http2 => Ok(Greeted::Http2(stream)),
        Protocol::Tls => {
            let acceptor = house.tls.as_ref().ok_or_else(|| io::Error::other("TLS is not configured on this port"))?;
            let stream = Box::new(acceptor.accept(stream).await?);
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(tls::ALPN_HTTP2);
            Ok(if is_http2 { Greeted::SecureHttp2(stream) } else { Greeted::SecureHttp1(stream) })
        }
    }
}

async fn http1<IO, S>(stream: IO, origin: ConnectionOrigin, house: &House<S>, mut draining: Draining) -> Ending
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service,
{
    let limits = &house.limits;
    let connection = Arc::new(Connection { origin, activity: Activity::default() });
    let stream = Patient::new(stream, connection.clone(), limits.times(limits.header_read_timeout));
    let mut serving = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            // `Patient` enforces both timeouts; hyper's single one would close idle connections as if they were slow.
            .header_read_timeout(None)
            .max_buf_size(limits.header_bytes_max)
            .serve_connection(TokioIo::new(stream), answer(house.service.clone(), connection.clone()))
    );
    tokio::select! {
        biased;
        ended = serving.as_mut() => return Ok(ended?),
        () = draining.begun() => {}
    }
    // Without a first request, hyper's graceful shutdown would wait for one.
    if connection.activity.requests_begun() == 0 {
        return Ok(());
    }
    serving.as_mut().graceful_shutdown();
    Ok(serving.await?)
}

async fn http2<IO, S>(stream: IO, origin: ConnectionOrigin, house: &House<S>, mut draining: Draining) -> Ending
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service,
{
    let limits = &house.limits;
    let connection = Arc::new(Connection { origin, activity: Activity::default() });
    // Bytes outside a request may be frames, which are no sign of a slow client, so both timeouts are the idle timeout.
    let stream = Patient::new(stream, connection.clone(), limits.times(limits.idle_timeout));
    let header_bytes_max = u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX);
    let mut serving = pin!(
        http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_header_list_size(header_bytes_max)
            .max_concurrent_streams(limits.streams_max)
            .serve_connection(TokioIo::new(stream), answer(house.service.clone(), connection.clone()))
    );
    tokio::select! {
        biased;
        ended = serving.as_mut() => return Ok(ended?),
        () = draining.begun() => {}
    }
    serving.as_mut().graceful_shutdown();
    Ok(serving.await?)
}

/// Adapts hyper's service to `Service`: no allocation and no task per request.
fn answer<S: Service>(
    service: Arc<S>,
    connection: Arc<Connection>,
) -> impl hyper::service::HttpService<Incoming, ResBody = Full<Bytes>, Error = Infallible, Future: Send + 'static> + use<S>
{
    service_fn(move |request| {
        let (service, connection) = (service.clone(), connection.clone());
        async move {
            let _in_flight = connection.activity.begin();
            Ok(service.call(&connection.origin, request).await)
        }
    })
}
