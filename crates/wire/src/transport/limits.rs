//! Limits on what clients may occupy, with their defaults. They hold for every protocol.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Open connections of all ports together; further ones wait in the operating system's queue.
    pub connections_max: usize,
    /// Bytes of the requests that are being received and processed on all connections together; further ones wait.
    pub message_bytes_max: usize,
    /// From the first byte of a request until the protocol begins to process it; for what precedes the first request,
    /// including the TLS handshake; and for accepting any part of a response.
    pub slow_client_timeout: Duration,
    /// How long a connection may stay open without a request. Clients pool connections and do not expect a short
    /// timeout.
    pub idle_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        ConnectionLimits {
            connections_max: 10_000,
            message_bytes_max: 256 << 20,
            slow_client_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(300),
        }
    }
}
