//! The trait that protocols implement, and how several protocols share one port.
//!
//! A port has one protocol; a pair of protocols is a protocol, so `(A, (B, C))` is a list in order of precedence. The
//! choice is static: it costs no allocation and no dynamic call.

use std::future::Future;

use super::connection::{Connection, ConnectionError};

/// A protocol decides within this many bytes whether it applies.
pub const FIRST_BYTES_MAX: usize = 16;

/// A protocol on the transport.
///
/// For the timeouts, an implementation holds an `Activity::begin` of the connection's state while it processes a
/// request. Up to there the client's time is limited by `slow_client_timeout`; from there on the protocol itself limits
/// what it still reads of the request. It reserves the bytes of a request in the connection's `MessageMemory` before it
/// receives them, and holds them until the request is answered. When `Connection::draining` begins, the implementation
/// completes the requests that have begun and returns.
pub trait Protocol: Send + Sync + 'static {
    /// What the opening says beyond the protocol's name: for example its version.
    type Variant: Send;

    /// The ALPN identifiers of the protocol, in order of preference.
    fn alpn(&self) -> Vec<&'static [u8]> {
        Vec::new()
    }

    /// Whether a connection that opens like this is one of this protocol.
    fn recognize(&self, opening: &Opening<'_>) -> Recognition<Self::Variant>;

    /// Serves a connection until its end.
    fn serve(
        &self,
        variant: Self::Variant,
        connection: Connection,
    ) -> impl Future<Output = Result<(), ConnectionError>> + Send;
}

/// What is known of a connection before a protocol is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'c> {
    /// The protocol that client and server agreed on in the TLS handshake.
    pub alpn: Option<&'c [u8]>,
    /// The first bytes, decrypted; none directly after a TLS handshake. The protocol reads them again.
    pub first_bytes: &'c [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognition<V> {
    Yes(V),
    No,
    /// Further bytes decide; at most `FIRST_BYTES_MAX` in all.
    MoreBytes,
}

/// The variant of a pair of protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneOf<A, B> {
    First(A),
    Second(B),
}

/// The first protocol takes precedence. It is not considered if the client negotiated a protocol that is not its own.
impl<A: Protocol, B: Protocol> Protocol for (A, B) {
    type Variant = OneOf<A::Variant, B::Variant>;

    fn alpn(&self) -> Vec<&'static [u8]> {
        [self.0.alpn(), self.1.alpn()].concat()
    }

    fn recognize(&self, opening: &Opening<'_>) -> Recognition<Self::Variant> {
        let negotiated_other = opening.alpn.is_some_and(|alpn| !self.0.alpn().contains(&alpn));
        let first = if negotiated_other { Recognition::No } else { self.0.recognize(opening) };
        match first {
            Recognition::Yes(variant) => Recognition::Yes(OneOf::First(variant)),
            Recognition::MoreBytes => Recognition::MoreBytes,
            Recognition::No => match self.1.recognize(opening) {
                Recognition::Yes(variant) => Recognition::Yes(OneOf::Second(variant)),
                Recognition::MoreBytes => Recognition::MoreBytes,
                Recognition::No => Recognition::No,
            },
        }
    }

    async fn serve(&self, variant: Self::Variant, connection: Connection) -> Result<(), ConnectionError> {
        match variant {
            OneOf::First(variant) => self.0.serve(variant, connection).await,
            OneOf::Second(variant) => self.1.serve(variant, connection).await,
        }
    }
}
