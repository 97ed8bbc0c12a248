//! Transport: serves the ports of the server and hands each connection to a protocol. Independent of any protocol.
//!
//! Guarantees: a broken, slow or hostile client, or a panic in a protocol, costs one connection and nothing else; an
//! idle connection is woken at most twice until its timeout closes it; a request that has begun before the drain begins
//! is completed.
//!
//! ```text
//!  port A ─┐                        ┌ 16 03 … TLS ─┬ ALPN ──────────┐
//!  port B ─┼─ slot ─ accept ─ sniff ┤              └ sniff again ─┐ ├─ Protocol::serve(connection)
//!  port C ─┘                        └ anything else ──────────────┴─┘
//! ```
//!
//! `connections_max` limits the connections of all ports together. At the limit the transport stops accepting: new
//! connections wait in the operating system's queue until an open one ends. Closing them instead would look like a
//! crashed server to a client that only has to wait briefly. `message_bytes_max` limits the bytes of their requests in
//! the same way: a request waits until its bytes can be received.

mod connection; // what a protocol gets
mod drain; // graceful shutdown
mod handshake; // from the first byte to the choice of a protocol
mod limits;
mod memory; // a budget for the bytes of requests
mod protocol; // the trait that protocols implement
mod self_wake; // polls a task that wakes itself again, without the runtime's queue
mod stream; // plain or TLS
#[cfg(test)]
pub(crate) mod tests;
mod timeouts; // slow and idle clients
mod tls; // certificates

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

pub use connection::{Connection, ConnectionError, ConnectionOrigin, ConnectionState};
pub use drain::{Drain, Draining};
pub use limits::ConnectionLimits;
pub use memory::{MessageMemory, ReservedMemory};
pub use protocol::{FIRST_BYTES_MAX, OneOf, Opening, Protocol, Recognition};
pub use timeouts::{Activity, InFlight, TimedStream};
pub use tls::{tls_config, tls_config_of};

use handshake::handshake;
use self_wake::poll_again_on_self_wake;

/// After a failed accept (usually: no file descriptors left), the time to wait for connections to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The ports of a server, with limits and a drain that they share.
pub struct Transport {
    limits: ConnectionLimits,
    memory: Arc<MessageMemory>,
    draining: Draining,
    sockets: Vec<PortSocket>,
}

/// One socket of a port. Its port is shared with the port's other sockets (`127.0.0.1` and `::1`).
struct PortSocket {
    listener: TcpListener,
    port: Arc<dyn StartConnection>,
}

/// A port, whatever its protocol: the one dynamic call of a connection, made when it is accepted.
trait StartConnection: Send + Sync {
    /// Spawns the task that serves the connection.
    fn start(self: Arc<Self>, accepted: Accepted, draining: Draining);
}

struct Port<P> {
    tls: Option<TlsAcceptor>,
    limits: ConnectionLimits,
    memory: Arc<MessageMemory>,
    protocol: P,
}

/// An accepted connection and its slot of `connections_max`.
struct Accepted {
    slot: OwnedSemaphorePermit,
    socket: TcpStream,
    peer: SocketAddr,
}

impl Transport {
    /// `Drain::wait` waits for this transport from now on.
    pub fn new(limits: ConnectionLimits, drain: &Drain) -> Transport {
        let memory = Arc::new(MessageMemory::new(limits.message_bytes_max));
        Transport { limits, memory, draining: drain.watch(), sockets: Vec::new() }
    }

    /// Adds a port. A pair of protocols is a protocol, so that several can share a port. Without `tls`, clients that
    /// begin a TLS handshake are disconnected.
    pub fn add_port<P: Protocol>(
        &mut self,
        sockets: impl IntoIterator<Item = TcpListener>,
        tls: Option<&rustls::ServerConfig>,
        protocol: P,
    ) {
        let tls = tls.map(|config| tls::acceptor(config, &protocol.alpn()));
        let (limits, memory) = (self.limits, self.memory.clone());
        let port: Arc<dyn StartConnection> = Arc::new(Port { tls, limits, memory, protocol });
        self.sockets.extend(sockets.into_iter().map(|listener| PortSocket { listener, port: port.clone() }));
    }

    /// Accepts connections until the drain begins. Connections may outlive this call: `Drain::wait` waits for them.
    pub async fn serve(self) {
        let slots = Arc::new(Semaphore::new(self.limits.connections_max.min(Semaphore::MAX_PERMITS)));
        let mut turn = 0;
        loop {
            let mut draining = self.draining.clone();
            let accepted = tokio::select! {
                biased;
                () = draining.begun() => return,
                accepted = accept(&self.sockets, &mut turn, &slots) => accepted,
            };
            match accepted {
                Ok((socket, accepted)) => socket.port.clone().start(accepted, draining),
                Err(error) if is_of_one_connection(&error) => {
                    debug!(%error, "a connection ended before it was accepted")
                }
                Err(error) => {
                    warn!(%error, "cannot accept connections; trying again");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Acquires the slot before the connection, so that neither exists without the other. One call for all sockets: if each
/// socket waited for connections with a slot of its own, quiet ports would hold slots that busy ports need.
async fn accept<'s>(
    sockets: &'s [PortSocket],
    turn: &mut usize,
    slots: &Arc<Semaphore>,
) -> io::Result<(&'s PortSocket, Accepted)> {
    let slot = slots.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (at, socket, peer) = poll_fn(|cx| poll_accept(sockets, turn, cx)).await?;
    Ok((at, Accepted { slot, socket, peer }))
}

/// Starts behind the socket that was ready last, so that a busy port does not starve the others.
fn poll_accept<'s>(
    sockets: &'s [PortSocket],
    turn: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<(&'s PortSocket, TcpStream, SocketAddr)>> {
    let (before, from_turn) = sockets.split_at(*turn % sockets.len().max(1));
    for (skipped, socket) in from_turn.iter().chain(before).enumerate() {
        if let Poll::Ready(accepted) = socket.listener.poll_accept(cx) {
            *turn = before.len() + skipped + 1;
            return Poll::Ready(accepted.map(|(stream, peer)| (socket, stream, peer)));
        }
    }
    Poll::Pending
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

impl<P: Protocol> StartConnection for Port<P> {
    fn start(self: Arc<Self>, Accepted { slot, socket, peer }: Accepted, draining: Draining) {
        drop(tokio::spawn(poll_again_on_self_wake(async move {
            if let Err(error) = self.serve(socket, peer, draining).await {
                debug!(%peer, %error, "connection ended");
            }
            drop(slot);
        })));
    }
}

impl<P: Protocol> Port<P> {
    /// Serves a connection from its first byte to its last.
    async fn serve(&self, socket: TcpStream, peer: SocketAddr, mut draining: Draining) -> Result<(), ConnectionError> {
        // Responses are small and complete when written; waiting to fill a segment only adds latency.
        socket.set_nodelay(true)?;
        let local = socket.local_addr()?;
        let opening = timeout(self.limits.slow_client_timeout, handshake(socket, self.tls.as_ref(), &self.protocol));
        let (stream, variant) = tokio::select! {
            biased;
            () = draining.begun() => return Ok(()),
            opened = opening => opened??,
        };
        let origin = ConnectionOrigin { secure: stream.is_secure(), local, peer };
        let (activity, memory) = (Activity::default(), self.memory.clone());
        let state = Arc::new(ConnectionState { origin, activity, memory });
        let stream = TimedStream::new(stream, state.clone(), &self.limits);
        let connection = Connection { stream, state, limits: self.limits, draining };
        self.protocol.serve(variant, connection).await
    }
}
