//! Limits on what one client may consume, with their defaults.

use std::time::Duration;

use super::patience::Times;

#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Open connections; further ones wait in the operating system's queue.
    pub connections_max: usize,
    /// Concurrent requests on one HTTP/2 connection.
    pub streams_max: u32,
    /// Request line and headers together. Session tokens and continuations are headers.
    pub header_bytes_max: usize,
    /// From the first byte of a request to the last of its headers; also applies to what precedes the request,
    /// including the TLS handshake.
    pub header_read_timeout: Duration,
    /// For callers that read bodies with `read_body`; the listener itself reads none.
    pub body_bytes_max: usize,
    /// How long a connection may stay open without a request. Clients pool connections and do not expect a short
    /// timeout.
    pub idle_timeout: Duration,
}

impl ConnectionLimits {
    pub(super) fn times(&self, head: Duration) -> Times {
        Times { head, idle: self.idle_timeout, stall: self.header_read_timeout }
    }
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        ConnectionLimits {
            connections_max: 10_000,
            streams_max: 256,
            header_bytes_max: 64 * 1024,
            header_read_timeout: Duration::from_secs(15),
            body_bytes_max: 4 * 1024 * 1024,
            idle_timeout: Duration::from_secs(300),
        }
    }
}
