//! Timeouts for silent clients.
//!
//! There are two timeouts for two situations: a client in the middle of a request's head is slow or hostile and gets
//! seconds; a client between requests is a pooled connection and gets minutes. While a request is being processed there
//! is no limit here: that time is the server's, not the client's (and `read_body` limits the time for bodies).
//!
//! ```text
//!  open │──idle──│ first byte │──head──│ request begins │──no limit──│ response │──idle──│
//! ```
//!
//! The timer is armed only when a read would block. A timer that fires too early is re-armed, instead of being reset on
//! every request: a busy connection has nearly no timer cost, an idle one is woken twice at most. In exchange, idle
//! time counts from the first firing after the last request, so a connection may stay open longer by one head timeout.
//! One timer is always armed: hyper does not read again after a response if its last read would have blocked, so only
//! the timer makes it poll the stream.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::Connection;

/// Counts the requests of a connection.
#[derive(Default)]
pub(super) struct Activity {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// One request in progress; dropping it ends the request, for whatever reason.
pub(super) struct InFlight<'a>(&'a Activity);

impl Activity {
    pub(super) fn begin(&self) -> InFlight<'_> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        InFlight(self)
    }

    pub(super) fn requests_begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    fn is_busy(&self) -> bool {
        // Load `ended` first: a request that begins in between makes the connection busy, never idle.
        let ended = self.ended.load(Ordering::Relaxed);
        self.begun.load(Ordering::Relaxed) != ended
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// What the connection is waiting for, and since when.
#[derive(Clone, Copy)]
enum Wait {
    Nothing,
    Request(Instant),
    RestOfHead(Instant),
}

/// How long a client may take: for the head of a request, between requests, and to accept any part of a response.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub head: Duration,
    pub idle: Duration,
    pub stall: Duration,
}

/// A stream that ends when its client has been silent for too long.
pub(super) struct Patient<IO> {
    stream: IO,
    connection: Arc<Connection>,
    head_timeout: Duration,
    idle_timeout: Duration,
    wait: Wait,
    requests_seen: u64,
    alarm: Pin<Box<Sleep>>,
    /// Runs while the client accepts nothing of a response.
    stalled: Option<Pin<Box<Sleep>>>,
    stall_timeout: Duration,
}

impl<IO> Patient<IO> {
    pub(super) fn new(stream: IO, connection: Arc<Connection>, times: Times) -> Self {
        let Times { head: head_timeout, idle: idle_timeout, stall: stall_timeout } = times;
        let alarm = Box::pin(sleep_until(Instant::now() + head_timeout));
        let (wait, requests_seen, stalled) = (Wait::Nothing, 0, None);
        Patient { stream, connection, head_timeout, idle_timeout, wait, requests_seen, alarm, stalled, stall_timeout }
    }

    /// Handles the result of a write. A client that accepts some of its response, however slowly, is alive; one that
    /// accepts nothing for too long occupies a connection and memory that other clients need.
    fn wrote(&mut self, outcome: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if outcome.is_ready() {
            self.stalled = None;
            self.said();
            return outcome;
        }
        let deadline = Instant::now() + self.stall_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        stalled.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Bytes were received: the first ones after a pause start the head timeout, later ones do not restart it.
    fn heard(&mut self) {
        if !matches!(self.wait, Wait::RestOfHead(_)) {
            self.wait = Wait::RestOfHead(Instant::now());
        }
    }

    /// Bytes were sent: a client that accepts a response slowly is not idle.
    fn said(&mut self) {
        if matches!(self.wait, Wait::Request(_)) {
            self.wait = Wait::Nothing;
        }
    }

    /// A read would block. Ready when the client's time is up: with the end of the stream between requests, which
    /// closes the connection gracefully, and with an error within a request.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let requests = self.connection.activity.requests_begun();
        if requests != self.requests_seen {
            self.requests_seen = requests;
            self.wait = Wait::Nothing;
        }
        let now = Instant::now();
        if self.connection.activity.is_busy() {
            let _ = self.poll_alarm(now + self.idle_timeout, cx);
            return Poll::Pending;
        }
        let (deadline, verdict) = match self.wait {
            Wait::RestOfHead(since) => (since + self.head_timeout, Err(io::ErrorKind::TimedOut.into())),
            Wait::Request(since) => (since + self.idle_timeout, Ok(())),
            Wait::Nothing => {
                self.wait = Wait::Request(now);
                (now + self.idle_timeout, Ok(()))
            }
        };
        if now >= deadline {
            return Poll::Ready(verdict);
        }
        self.poll_alarm(deadline, cx).map(|()| verdict)
    }

    fn poll_alarm(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if self.alarm.deadline() > deadline || self.alarm.is_elapsed() {
            self.alarm.as_mut().reset(deadline);
        }
        while self.alarm.as_mut().poll(cx).is_ready() {
            if self.alarm.deadline() >= deadline {
                return Poll::Ready(());
            }
            self.alarm.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Patient<IO> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        match Pin::new(&mut this.stream).poll_read(cx, buf) {
            Poll::Pending => this.poll_patience(cx),
            Poll::Ready(outcome) => {
                if buf.filled().len() > before {
                    this.heard();
                }
                Poll::Ready(outcome)
            }
        }
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Patient<IO> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.wrote(outcome, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.wrote(outcome, cx)
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
