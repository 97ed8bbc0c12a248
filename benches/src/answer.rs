//! Response framing: finds the end of an HTTP response with little work.
//!
//! Guarantees: a response is complete or not; a response without a success status becomes an error with its text. Both
//! framings are read, content-length and chunked, because not every system in the comparison sends a length.

use crate::Result;

/// More headers than any of the servers sends.
const HEADERS_MAX: usize = 64;

/// The length of the response at the front of `bytes`; `None` while it is incomplete.
pub fn response_bytes(bytes: &[u8]) -> Result<Option<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let head_bytes = match head.parse(bytes).map_err(|e| format!("not an HTTP answer: {e}"))? {
        httparse::Status::Complete(bytes) => bytes,
        httparse::Status::Partial => return Ok(None),
    };
    let body = &bytes[head_bytes..];
    let Some(body_bytes) = body_bytes(head.headers, body)? else { return Ok(None) };
    match head.code {
        Some(200..300) if body_bytes <= body.len() => Ok(Some(head_bytes + body_bytes)),
        Some(200..300) => Ok(None),
        _ => Err(format!("the server returned an error: {}", String::from_utf8_lossy(bytes))),
    }
}

fn body_bytes(headers: &[httparse::Header<'_>], body: &[u8]) -> Result<Option<usize>> {
    let find = |name: &str| headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
    if let Some(length) = find("content-length") {
        let length = std::str::from_utf8(length.value).ok().and_then(|text| text.trim().parse().ok());
        return length.map(Some).ok_or_else(|| "a content-length that is not a number".to_owned());
    }
    match find("transfer-encoding") {
        // A connection has one request in flight, so the last chunk is also the end of the received bytes.
        Some(_) => Ok(body.ends_with(b"0\r\n\r\n").then_some(body.len())),
        None => Ok(Some(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_ends_by_its_length_or_its_last_chunk() {
        assert_eq!(response_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"), Ok(Some(40)));
        assert_eq!(response_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"), Ok(None));
        assert_eq!(response_bytes(b"HTTP/1.1 200 OK\r\nConte"), Ok(None));
        assert_eq!(
            response_bytes(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n").unwrap(),
            Some(58)
        );
        assert_eq!(response_bytes(b"HTTP/1.1 204 No Content\r\n\r\n"), Ok(Some(27)));
        assert!(response_bytes(b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n").is_err());
    }
}
