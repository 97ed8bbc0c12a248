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
pub fn send_once(to: SocketAddr, request: &[u8]) -> Result<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("cannot start the generator: {e}"))?;
    runtime.block_on(async {
        let mut connection = LoadConnection::connect(to).await?;
        connection.exchange(request).await?;
        Ok(std::mem::take(&mut connection.received))
    })
}

async fn generate(
    to: SocketAddr,
    requests: Arc<dyn Requests>,
    connections: usize,
    until: Until,
) -> Result<LoadOutcome> {
    let mut opened = Vec::new();
    for _ in 0..connections {
        opened.push(LoadConnection::connect(to).await?);
    }
    let next_request = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let tasks: Vec<_> = opened
        .into_iter()
        .map(|connection| {
            tokio::spawn(run_connection(connection, requests.clone(), next_request.clone(), start, until))
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.map_err(|e| format!("a connection's task ended: {e}"))??);
    }
    let elapsed = start.elapsed();
    latencies.sort_unstable();
    Ok(LoadOutcome { elapsed, latencies })
}

async fn run_connection(
    mut connection: LoadConnection,
    requests: Arc<dyn Requests>,
    next_request: Arc<AtomicU64>,
    start: Instant,
    until: Until,
) -> Result<Vec<Duration>> {
    let mut latencies = Vec::with_capacity(4096);
    let mut request = Vec::with_capacity(4096);
    loop {
        let n = next_request.fetch_add(1, Ordering::Relaxed);
        let finished = match until {
            Until::Elapsed(limit) => start.elapsed() >= limit,
            Until::Answered(count) => n >= count,
        };
        if finished {
            return Ok(latencies);
        }
        request.clear();
        requests.write(n, &mut request);
        let sent_at = Instant::now();
        connection.exchange(&request).await?;
        latencies.push(sent_at.elapsed());
    }
}

/// One keep-alive connection.
struct LoadConnection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl LoadConnection {
    async fn connect(to: SocketAddr) -> Result<LoadConnection> {
        let stream = TcpStream::connect(to).await.map_err(|e| format!("cannot connect to {to}: {e}"))?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        Ok(LoadConnection { stream, received: Vec::with_capacity(16 * 1024) })
    }

    async fn exchange(&mut self, request: &[u8]) -> Result {
        self.received.clear();
        self.stream.write_all(request).await.map_err(|e| format!("cannot send: {e}"))?;
        loop {
            let count = self.stream.read_buf(&mut self.received).await.map_err(|e| format!("cannot receive: {e}"))?;
            if count == 0 {
                return Err("the server closed the connection".to_owned());
            }
            if answer::response_bytes(&self.received)?.is_some() {
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
