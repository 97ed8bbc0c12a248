//! Requests without a connection, for tests.

use http::Method;
use http::request::Parts;

use super::decode;
use crate::http::ConnectionOrigin;
use crate::nosql::address::Address;
use crate::nosql::operation::Operation;

pub fn request_parts(method: &Method, path: &str, headers: &[(&str, &str)]) -> Parts {
    let request = http::Request::builder().method(method).uri(path);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(()).unwrap().into_parts().0
}

/// Decodes a request that arrived in clear text on port 8081, through a trusted proxy.
pub fn decode<'a>(parts: &'a Parts, address: &'a Address) -> Operation<'a> {
    let local = std::net::SocketAddr::from(([127, 0, 0, 1], 8081));
    decode::decode(parts, address, &ConnectionOrigin { secure: false, local, peer: local }, true)
}
