//! The client's stream: plain or TLS, with the first bytes that chose the protocol.
//!
//! Guarantees: bytes that were read to choose the protocol are read again by it. Once they have been, a read goes
//! directly to the socket or to TLS: no copy, no allocation, no dynamic call.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::protocol::{FIRST_BYTES_MAX, Opening};

/// The stream of a connection, in clear text or decrypted.
pub(super) enum ClientStream {
    Plain(Prefixed<TcpStream>),
    Tls(Box<Prefixed<TlsStream<Prefixed<TcpStream>>>>),
}

impl ClientStream {
    pub(super) fn is_secure(&self) -> bool {
        matches!(self, ClientStream::Tls(_))
    }

    pub(super) fn opening(&self) -> Opening<'_> {
        match self {
            ClientStream::Plain(stream) => Opening { alpn: None, first_bytes: stream.first_bytes() },
            ClientStream::Tls(stream) => {
                Opening { alpn: stream.stream.get_ref().1.alpn_protocol(), first_bytes: stream.first_bytes() }
            }
        }
    }

    pub(super) async fn read_first_bytes(&mut self) -> io::Result<()> {
        match self {
            ClientStream::Plain(stream) => stream.read_first_bytes().await,
            ClientStream::Tls(stream) => stream.read_first_bytes().await,
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            ClientStream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            ClientStream::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            ClientStream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            ClientStream::Plain(stream) => stream.is_write_vectored(),
            ClientStream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            ClientStream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ClientStream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            ClientStream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// A stream whose first bytes can be looked at before they are read.
pub(super) struct Prefixed<IO> {
    first_bytes: [u8; FIRST_BYTES_MAX],
    unread: Range<usize>,
    stream: IO,
}

impl<IO> Prefixed<IO> {
    pub(super) fn new(stream: IO) -> Self {
        Prefixed { first_bytes: [0; FIRST_BYTES_MAX], unread: 0..0, stream }
    }

    pub(super) fn first_bytes(&self) -> &[u8] {
        &self.first_bytes[self.unread.clone()]
    }
}

impl<IO: AsyncRead + Unpin> Prefixed<IO> {
    /// Adds at least one byte to the first bytes. To be called before the stream is read.
    pub(super) async fn read_first_bytes(&mut self) -> io::Result<()> {
        let free = &mut self.first_bytes[self.unread.end..];
        if free.is_empty() {
            return Err(io::Error::other("the first bytes do not decide on a protocol"));
        }
        match self.stream.read(free).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.unread.end += read;
                Ok(())
            }
        }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Prefixed<IO> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let count = self.unread.len().min(buf.remaining());
        buf.put_slice(&self.first_bytes()[..count]);
        self.unread.start += count;
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Prefixed<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
