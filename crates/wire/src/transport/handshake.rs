//! The handshake: from a connection's first byte to the choice of its protocol. The caller limits how long that takes.
//!
//! ```text
//! 16 03 01 …       a TLS handshake record: client hello, record version 3.1 to 3.4
//! 16 03 00 00 …    a message of 790 bytes of a protocol that begins with a length in little-endian order
//! anything else    plain text
//! ```
//!
//! The third byte is necessary: with the first byte alone, every 256th length would be taken for TLS. A first message of
//! more than 64 KiB would still be, but the protocols that begin with a length begin with a short message.

use std::io;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::protocol::{Protocol, Recognition};
use super::stream::{ClientStream, Prefixed};

/// Returns the stream, positioned at its first byte, and what the protocol recognized.
pub(super) async fn handshake<P: Protocol>(
    socket: TcpStream,
    tls: Option<&TlsAcceptor>,
    protocol: &P,
) -> io::Result<(ClientStream, P::Variant)> {
    let mut stream = accept_tls(Prefixed::new(socket), tls).await?;
    loop {
        match protocol.recognize(&stream.opening()) {
            Recognition::Yes(variant) => return Ok((stream, variant)),
            Recognition::No => return Err(io::Error::other("no protocol of this port begins like this")),
            Recognition::MoreBytes => stream.read_first_bytes().await?,
        }
    }
}

async fn accept_tls(mut socket: Prefixed<TcpStream>, tls: Option<&TlsAcceptor>) -> io::Result<ClientStream> {
    let is_tls = loop {
        match begins_tls(socket.first_bytes()) {
            Some(is_tls) => break is_tls,
            None => socket.read_first_bytes().await?,
        }
    };
    if !is_tls {
        return Ok(ClientStream::Plain(socket));
    }
    let acceptor = tls.ok_or_else(|| io::Error::other("TLS is not configured on this port"))?;
    Ok(ClientStream::Tls(Box::new(Prefixed::new(acceptor.accept(socket).await?))))
}

/// `None` while further bytes decide.
pub(super) fn begins_tls(first_bytes: &[u8]) -> Option<bool> {
    match first_bytes {
        [] | [0x16] | [0x16, 0x03] => None,
        [0x16, 0x03, 0x01..=0x04, ..] => Some(true),
        _ => Some(false),
    }
}
