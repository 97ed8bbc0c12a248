//! Closed-loop load generator: many connections, one thread.
//!
//! Guarantees: each connection has one request in flight and sends the next when the response is complete; all
//! connections are open before the clock starts; a latency runs from the request's first byte to the response's last.
//! One thread, and no parsing beyond the response's head, to leave the machine to the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::signed::Requests;
use crate::{Result, answer};

/// When to stop.
#[derive(Clone, Copy)]
pub enum Until {
    Elapsed(Duration),
    /// After this many requests were answered.
    Answered(u64),
}

/// The result of one round.
pub struct LoadOutcome {
    pub elapsed: Duration,
    /// Sorted.
    pub latencies: Vec<Duration>,
}

pub fn run(to: SocketAddr, requests: Arc<dyn Requests>, connections: usize, until: Until) -> Result<LoadOutcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("cannot start the generator: {e}"))?;
    runtime.block_on(generate(to, requests, connections, until))
}

/// Sends one request on its own connection; anything but a success is an error.
pub fn once(to: SocketAddr, request: &[u8]) -> Result<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("cannot start the generator: {e}"))?;
    runtime.block_on(async {
        let mut line = Line::connect(to).await?;
        line.ask(request).await?;
        Ok(std::mem::take(&mut line.received))
    })
}

async fn generate(
    to: SocketAddr,
    requests: Arc<dyn Requests>,
    connections: usize,
    until: Until,
) -> Result<LoadOutcome> {
    let mut lines = Vec::new();
    for _ in 0..connections {
        lines.push(Line::connect(to).await?);
    }
    let ticket = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let tasks: Vec<_> = lines
        .into_iter()
        .map(|line| tokio::spawn(talk(line, requests.clone(), ticket.clone(), start, until)))
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.map_err(|e| format!("a connection's task ended: {e}"))??);
    }
    let elapsed = start.elapsed();
    latencies.sort_unstable();
    Ok(LoadOutcome { elapsed, latencies })
}

async fn talk(
    mut line: Line,
    requests: Arc<dyn Requests>,
    ticket: Arc<AtomicU64>,
    start: Instant,
    until: Until,
) -> Result<Vec<Duration>> {
    let mut latencies = Vec::with_capacity(4096);
    let mut request = Vec::with_capacity(4096);
    loop {
        let n = ticket.fetch_add(1, Ordering::Relaxed);
        let over = match until {
            Until::Elapsed(limit) => start.elapsed() >= limit,
            Until::Answered(count) => n >= count,
        };
        if over {
            return Ok(latencies);
        }
        request.clear();
        requests.write(n, &mut request);
        let asked = Instant::now();
        line.ask(&request).await?;
        latencies.push(asked.elapsed());
    }
}

/// One keep-alive connection.
struct Line {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Line {
    async fn connect(to: SocketAddr) -> Result<Line> {
        let stream = TcpStream::connect(to).await.map_err(|e| format!("cannot connect to {to}: {e}"))?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        Ok(Line { stream, received: Vec::with_capacity(16 * 1024) })
    }

    async fn ask(&mut self, request: &[u8]) -> Result {
        self.received.clear();
        self.stream.write_all(request).await.map_err(|e| format!("cannot send: {e}"))?;
        loop {
            let got = self.stream.read_buf(&mut self.received).await.map_err(|e| format!("cannot receive: {e}"))?;
            if got == 0 {
                return Err("the server closed the connection".to_owned());
            }
            if answer::whole(&self.received)?.is_some() {
                return Ok(());
            }
        }
    }
}

impl LoadOutcome {
    pub fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    pub fn percentile_us(&self, percent: usize) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let at = (self.latencies.len() * percent / 100).min(last);
        self.latencies.get(at).map_or(0.0, |latency| latency.as_secs_f64() * 1e6)
    }
}
