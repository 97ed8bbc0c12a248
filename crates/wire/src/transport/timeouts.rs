//! Timeouts for silent clients, for every protocol.
//!
//! There are two timeouts for two situations: a client in the middle of a request is slow or hostile and gets seconds; a
//! client between requests is a pooled connection and gets minutes. A request begins for the server when the protocol
//! calls `Activity::begin`; while it is being processed there is no limit here: that time is the server's, not the
//! client's (and a protocol limits the time for what it still reads of the request).
//!
//! ```text
//!  open │──idle──│ first byte │──slow──│ request begins │──no limit──│ response │──idle──│
//! ```
//!
//! The timer is armed only when a read would block. A timer that fires too early is re-armed, instead of being reset on
//! every request: a busy connection has nearly no timer cost, an idle one is woken twice at most. In exchange, idle
//! time counts from the first firing after the last request, so a connection may stay open longer by one slow-client
//! timeout. One timer is always armed: a protocol need not read again after a response if its last read would have
//! blocked, so only the timer makes it poll the stream.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::connection::ConnectionState;
use super::limits::ConnectionLimits;
use super::stream::ClientStream;

/// Counts the requests of a connection.
#[derive(Default)]
pub struct Activity {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// One request in progress; dropping it ends the request, for whatever reason.
pub struct InFlight<'a>(&'a Activity);

impl Activity {
    /// The protocol begins to process a request.
    #[must_use = "dropping it ends the request"]
    pub fn begin(&self) -> InFlight<'_> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        InFlight(self)
    }

    pub fn requests_begun(&self) -> u64 {
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
    RestOfRequest(Instant),
}

/// The client's stream, with timeouts. It ends when the client is idle for too long, and fails when the client is too
/// slow within a request or accepts nothing of a response.
pub struct TimedStream {
    stream: ClientStream,
    state: Arc<ConnectionState>,
    request_timeout: Duration,
    idle_timeout: Duration,
    stall_timeout: Duration,
    wait: Wait,
    requests_seen: u64,
    timer: Pin<Box<Sleep>>,
    /// Runs while the client accepts nothing of a response.
    stall_timer: Option<Pin<Box<Sleep>>>,
}

impl TimedStream {
    pub(super) fn new(stream: ClientStream, state: Arc<ConnectionState>, limits: &ConnectionLimits) -> Self {
        TimedStream {
            stream,
            state,
            request_timeout: limits.slow_client_timeout,
            idle_timeout: limits.idle_timeout,
            stall_timeout: limits.slow_client_timeout,
            wait: Wait::Nothing,
            requests_seen: 0,
            timer: Box::pin(sleep_until(Instant::now() + limits.slow_client_timeout)),
            stall_timer: None,
        }
    }

    /// For protocols whose clients also send bytes that belong to no request: such bytes are no sign of a slow client,
    /// so the client has the idle timeout to begin a request.
    pub fn allow_bytes_between_requests(&mut self) {
        self.request_timeout = self.idle_timeout;
    }

    /// Handles the result of a write, flush or shutdown. A client that accepts some of its response, however slowly, is
    /// alive; one that accepts nothing for too long occupies a connection and memory that other clients need.
    fn limit_stall<T>(&mut self, outcome: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stall_timer = None;
            return outcome;
        }
        let deadline = Instant::now() + self.stall_timeout;
        let timer = self.stall_timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        timer.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// The first bytes after a pause start the request timeout, later ones do not restart it.
    fn bytes_received(&mut self) {
        if !matches!(self.wait, Wait::RestOfRequest(_)) {
            self.wait = Wait::RestOfRequest(Instant::now());
        }
    }

    /// A client that accepts a response slowly is not idle.
    fn after_write(&mut self, outcome: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if outcome.is_ready() && matches!(self.wait, Wait::Request(_)) {
            self.wait = Wait::Nothing;
        }
        self.limit_stall(outcome, cx)
    }

    /// A read would block. Ready when the client's time is up: with the end of the stream between requests, which
    /// closes the connection gracefully, and with an error within a request.
    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let requests = self.state.activity.requests_begun();
        if requests != self.requests_seen {
            self.requests_seen = requests;
            self.wait = Wait::Nothing;
        }
        let now = Instant::now();
        if self.state.activity.is_busy() {
            let _ = self.poll_timer(now + self.idle_timeout, cx);
            return Poll::Pending;
        }
        let (deadline, verdict) = match self.wait {
            Wait::RestOfRequest(since) => (since + self.request_timeout, Err(io::ErrorKind::TimedOut.into())),
            Wait::Request(since) => (since + self.idle_timeout, Ok(())),
            Wait::Nothing => {
                self.wait = Wait::Request(now);
                (now + self.idle_timeout, Ok(()))
            }
        };
        if now >= deadline {
            return Poll::Ready(verdict);
        }
        self.poll_timer(deadline, cx).map(|()| verdict)
    }

    fn poll_timer(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if self.timer.deadline() > deadline || self.timer.is_elapsed() {
            self.timer.as_mut().reset(deadline);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        match Pin::new(&mut this.stream).poll_read(cx, buf) {
            Poll::Pending => this.poll_timeout(cx),
            Poll::Ready(outcome) => {
                if buf.filled().len() > before {
                    this.bytes_received();
                }
                Poll::Ready(outcome)
            }
        }
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.after_write(outcome, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.after_write(outcome, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_flush(cx);
        this.limit_stall(outcome, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.limit_stall(outcome, cx)
    }
}
