//! Request bodies, read completely and with a size limit.
//!
//! Guarantees: never buffers more than `bytes_max`, nor more than is reserved in the connections' memory; a body that
//! arrives in one frame is not copied.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::timeout;

use crate::transport::{MessageMemory, ReservedMemory};

/// The longest pause within a body.
const FRAME_TIMEOUT: Duration = Duration::from_secs(30);
/// For the whole body: a client that sends a byte now and then is slow, too.
const BODY_TIMEOUT: Duration = Duration::from_secs(120);
/// Memory grows with the bytes received, not with the announced length.
const RESERVED_BYTES_MAX: u64 = 64 * 1024;
/// How much of an oversized body is read and discarded to let the client finish: closing the connection on a client
/// that is still sending would often destroy the response by a reset before the client reads it.
const DISCARDED_BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// More bytes than allowed.
    TooLarge,
    /// The client disconnected or violated HTTP.
    Broken,
    /// The client stopped sending without disconnecting.
    TimedOut,
}

/// A body, and the memory that it occupies until the request is answered.
pub struct ReceivedBody {
    pub bytes: Bytes,
    _memory: Option<ReservedMemory>,
}

impl ReceivedBody {
    /// Of a request whose body is not read.
    pub fn none() -> ReceivedBody {
        ReceivedBody { bytes: Bytes::new(), _memory: None }
    }
}

/// Reads a body of at most `bytes_max` bytes, when there is memory for it. A body of unknown length gets memory for the
/// longest one.
pub async fn read_body<B: Body<Data = Bytes> + Unpin>(
    body: B,
    bytes_max: usize,
    memory: &MessageMemory,
) -> Result<ReceivedBody, BodyError> {
    let length = body.size_hint().exact().and_then(|length| usize::try_from(length).ok()).unwrap_or(bytes_max);
    let memory = memory.reserve(length.min(bytes_max)).await;
    let bytes = timeout(BODY_TIMEOUT, read_all(body, bytes_max)).await.unwrap_or(Err(BodyError::TimedOut))?;
    Ok(ReceivedBody { bytes, _memory: Some(memory) })
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

/// The next data frame; trailers are skipped.
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

/// Reads and discards the rest of the body. `expected` is the number of bytes known to be coming.
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
