//! What one client may cost: the defaults.

use std::time::Duration;

use super::patience::Times;

#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Open connections; more wait in the operating system's queue.
    pub connections_max: usize,
    /// Requests under way on one HTTP/2 connection.
    pub streams_max: u32,
    /// Request line and headers together. Session tokens and continuations travel in headers.
    pub header_bytes_max: usize,
    /// From the first byte of a request to the last of its headers; also for what comes before, down to the TLS
    /// handshake.
    pub header_read_timeout: Duration,
    /// For whoever reads bodies with `read_body`; the listener itself reads none.
    pub body_bytes_max: usize,
    /// How long a connection may be open without a request. Clients pool connections and are surprised by a short one.
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
