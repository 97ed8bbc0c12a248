//! A connection as its protocol gets it.

use std::net::SocketAddr;
use std::sync::Arc;

use super::drain::Draining;
use super::limits::ConnectionLimits;
use super::memory::MessageMemory;
use super::timeouts::{Activity, TimedStream};

/// Why a connection ended; only logged.
pub type ConnectionError = Box<dyn std::error::Error + Send + Sync>;

/// How a connection reached the server.
#[derive(Clone, Debug)]
pub struct ConnectionOrigin {
    pub secure: bool,
    pub local: SocketAddr,
    pub peer: SocketAddr,
}

/// State that all requests of one connection share.
pub struct ConnectionState {
    pub origin: ConnectionOrigin,
    pub activity: Activity,
    /// Of all connections together.
    pub memory: Arc<MessageMemory>,
}

/// An open connection. Dropping it closes it.
pub struct Connection {
    /// Begins with the client's first byte. Ends or fails when the client is idle or slow.
    pub stream: TimedStream,
    pub state: Arc<ConnectionState>,
    pub limits: ConnectionLimits,
    pub draining: Draining,
}
