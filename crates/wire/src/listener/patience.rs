//! How long we wait for a client that says nothing.
//!
//! Two times, because they mean different things: a client in the middle of a request's head is slow or hostile and
//! gets seconds; a client between requests is a pooled connection and gets minutes. While a request is being answered
//! there is no limit here: that time is ours, not the client's (and `read_body` minds bodies).
//!
//! ```text
//!  open │──idle──│ first byte │──head──│ request begins │──no limit──│ answered │──idle──│
//! ```
//!
//! The alarm is set only when a read finds nothing, and one that rings too early is put off rather than moved on every
//! request: a busy connection pays nearly no timer, an idle one is woken twice at most. The price is that idle time
//! counts from the next ring after the last request, so a connection may live longer by one head's time. One alarm is
//! always set: hyper does not read again after an answer when its last read found nothing, and so only the alarm makes
//! it look.

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

/// Which requests a connection has seen.
#[derive(Default)]
pub(super) struct Activity {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// One request under way; dropping it ends it, however that comes about.
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
        // Ended first: a request that begins in between makes us busy, never idle.
        let ended = self.ended.load(Ordering::Relaxed);
        self.begun.load(Ordering::Relaxed) != ended
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// What the client is being waited for, and since when.
#[derive(Clone, Copy)]
enum Wait {
    Nothing,
    Request(Instant),
    RestOfHead(Instant),
}

/// How long a client may take: for the head of a request, between requests, and to take any of an answer.
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
    /// Running while the client takes nothing of what we have for it.
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

    /// What a write came to. A client that takes some of its answer, however slowly, is alive; one that takes nothing
    /// for too long holds a connection and an answer that others need the room of.
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

    /// Bytes came in: the first ones after a pause start the head's time, later ones do not start it again.
    fn heard(&mut self) {
        if !matches!(self.wait, Wait::RestOfHead(_)) {
            self.wait = Wait::RestOfHead(Instant::now());
        }
    }

    /// Bytes went out: a client that takes an answer slowly is not idle.
    fn said(&mut self) {
        if matches!(self.wait, Wait::Request(_)) {
            self.wait = Wait::Nothing;
        }
    }

    /// Nothing to read. Ready when the client's time is up: as the end of the stream between requests, which closes
    /// the connection politely, and as an error within one.
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
