//! A request's body, whole and bounded.
//!
//! Promise: no more than `bytes_max` is ever kept, and a body that arrives in one frame is not copied.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::timeout;

/// How long a body may pause.
const FRAME_TIMEOUT: Duration = Duration::from_secs(30);
/// The whole of a body: a client that sends a byte now and then is slow as well.
const BODY_TIMEOUT: Duration = Duration::from_secs(120);
/// Memory follows what has arrived, not what was announced.
const RESERVED_BYTES_MAX: u64 = 64 * 1024;
/// What we read of a body that is too large, only to let the client finish: if we closed the connection on a client
/// that is still sending, the reset would often destroy our answer before it is read.
const DISCARDED_BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// More bytes than allowed.
    TooLarge,
    /// The client went away, or does not speak HTTP.
    Broken,
    /// The client stopped sending and did not go away.
    TimedOut,
}

/// Reads a body of at most `bytes_max` bytes.
pub async fn read_body<B: Body<Data = Bytes> + Unpin>(body: B, bytes_max: usize) -> Result<Bytes, BodyError> {
    timeout(BODY_TIMEOUT, read_all(body, bytes_max)).await.unwrap_or(Err(BodyError::TimedOut))
}

async fn read_all<B: Body<Data = Bytes> + Unpin>(mut body: B, bytes_max: usize) -> Result<Bytes, BodyError> {
    let announced = body.size_hint().lower();
    if announced > bytes_max as u64 {
        discard(body, announced).await;
        return Err(BodyError::TooLarge);
    }
    let first = next_data(&mut body).await?.unwrap_or_default();
    if first.len() <= bytes_max && body.is_end_stream() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len().max(announced.min(RESERVED_BYTES_MAX) as usize));
    let mut next = Some(first);
    while let Some(data) = next {
        if whole.len() + data.len() > bytes_max {
            let received = whole.len() + data.len();
            discard(body, received as u64).await;
            return Err(BodyError::TooLarge);
        }
        whole.extend_from_slice(&data);
        next = next_data(&mut body).await?;
    }
    Ok(whole.freeze())
}

/// The next piece of data; trailers are passed over.
async fn next_data<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> Result<Option<Bytes>, BodyError> {
    loop {
        match timeout(FRAME_TIMEOUT, body.frame()).await {
            Err(_) => return Err(BodyError::TimedOut),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(BodyError::Broken),
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Reads on and keeps nothing. `expected` is what is known to be coming.
async fn discard<B: Body<Data = Bytes> + Unpin>(mut body: B, expected: u64) {
    if expected > DISCARDED_BYTES_MAX {
        return;
    }
    let mut left = DISCARDED_BYTES_MAX;
    while let Ok(Some(data)) = next_data(&mut body).await {
        match left.checked_sub(data.remaining() as u64) {
            Some(less) => left = less,
            None => return,
        }
    }
}
