//! Protocol detection by the first bytes of a connection, which stay readable.
//!
//! ```text
//! 16 03 01 …                  a TLS handshake record
//! "PRI * HTTP/2.0" 0d 0a …    HTTP/2 by prior knowledge
//! anything else               HTTP/1.1, or bytes that its parser will reject
//! ```
//!
//! `POST` and `PATCH` begin like `PRI`, so bytes are read until they differ from the preface or complete it. The caller
//! limits how long that may take.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

const TLS_HANDSHAKE: u8 = 0x16;
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Tls,
    Http1,
    Http2,
}

pub(super) async fn sniff<IO: AsyncRead + Unpin>(mut stream: IO) -> io::Result<(Protocol, Rewound<IO>)> {
    let mut seen = [0; HTTP2_PREFACE.len()];
    let mut filled = 0;
    loop {
        let read = stream.read(&mut seen[filled..]).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += read;
        if let Some(protocol) = recognize(&seen[..filled]) {
            return Ok((protocol, Rewound { seen, unread: 0..filled, stream }));
        }
    }
}

/// `None` while more bytes could still decide.
fn recognize(seen: &[u8]) -> Option<Protocol> {
    match seen {
        [] => None,
        [TLS_HANDSHAKE, ..] => Some(Protocol::Tls),
        _ if seen.starts_with(HTTP2_PREFACE) => Some(Protocol::Http2),
        _ if HTTP2_PREFACE.starts_with(seen) => None,
        _ => Some(Protocol::Http1),
    }
}

/// A stream whose first bytes were already read; it returns them again.
pub(super) struct Rewound<IO> {
    seen: [u8; HTTP2_PREFACE.len()],
    unread: std::ops::Range<usize>,
    stream: IO,
}

impl<IO: AsyncRead + Unpin> AsyncRead for Rewound<IO> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let count = self.unread.len().min(buf.remaining());
        let end = self.unread.start + count;
        buf.put_slice(&self.seen[self.unread.start..end]);
        self.unread.start = end;
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Rewound<IO> {
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
