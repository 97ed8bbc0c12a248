//! Signed requests as bytes.
//!
//! Guarantees: sending a request costs the load generator a copy: reads are signed before the clock starts, and all
//! creates of one container share a signature, because a POST to a feed signs the parent resource.

use std::time::{Duration, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pleiad_model::env::{Env, SystemEnv};
use ring::hmac;

use crate::item;

pub const DATABASE: &str = "bench";
pub const CONTAINER: &str = "items";

/// The account's key before base64: 64 bytes. `pleiad serve` rejects the emulators' well-known key.
const KEY_BYTES: &[u8; 64] = b"pleiad-bench: a key that only ever guards made-up items; no use.";

pub fn key() -> String {
    STANDARD.encode(KEY_BYTES)
}

/// Signs requests with one fixed date, which servers accept for a quarter of an hour.
pub struct RequestSigner {
    key: hmac::Key,
    date: String,
}

/// Appends the `n`-th request of a load to the buffer.
pub trait Requests: Send + Sync {
    fn write(&self, n: u64, out: &mut Vec<u8>);
}

impl RequestSigner {
    pub fn now() -> RequestSigner {
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(SystemEnv.now_ms()));
        RequestSigner { key: hmac::Key::new(hmac::HMAC_SHA256, KEY_BYTES), date }
    }

    /// A request's head, without the length of the body and without the blank line at its end.
    pub fn head(&self, verb: &str, path: &str, resource: &str, link: &str) -> String {
        let text = format!("{}\n{resource}\n{link}\n{}\n\n", verb.to_lowercase(), self.date.to_lowercase());
        let signature = STANDARD.encode(hmac::sign(&self.key, text.as_bytes()));
        let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        format!(
            "{verb} /{path} HTTP/1.1\r\nhost: localhost\r\nuser-agent: pleiad-bench\r\naccept: application/json\r\n\
             x-ms-version: 2020-07-15\r\nx-ms-date: {}\r\nauthorization: type%3Dmaster%26ver%3D1.0%26sig%3D{signature}\r\n",
            self.date
        )
    }

    /// A complete request with a body; `headers` are complete lines.
    pub fn request(&self, verb: &str, path: &str, resource: &str, link: &str, headers: &str, body: &str) -> Vec<u8> {
        let head = self.head(verb, path, resource, link);
        format!("{head}{headers}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }
}

/// Point reads of the items `0..count`, in pseudo-random order.
pub struct Reads {
    requests: Vec<Vec<u8>>,
}

impl Reads {
    pub fn sign(signer: &RequestSigner, count: u64) -> Reads {
        Reads { requests: (0..count).map(|n| read(signer, n)).collect() }
    }
}

fn read(signer: &RequestSigner, n: u64) -> Vec<u8> {
    let link = format!("dbs/{DATABASE}/colls/{CONTAINER}/docs/{}", item::id(n));
    let mut head = signer.head("GET", &link, "docs", &link);
    head.push_str(&format!("x-ms-documentdb-partitionkey: [\"{}\"]\r\n\r\n", item::partition_key(n)));
    head.into_bytes()
}

impl Requests for Reads {
    fn write(&self, n: u64, out: &mut Vec<u8>) {
        let at = item::scramble(n) as usize % self.requests.len();
        out.extend_from_slice(&self.requests[at]);
    }
}

/// Creates of the items from `first` on.
pub struct CreateRequests {
    head: String,
    first: u64,
}

impl CreateRequests {
    pub fn sign(signer: &RequestSigner, first: u64) -> CreateRequests {
        let link = format!("dbs/{DATABASE}/colls/{CONTAINER}");
        let head = signer.head("POST", &format!("{link}/docs"), "docs", &link);
        CreateRequests {
            head: format!("{head}content-type: application/json\r\ncontent-length: {}\r\n", item::ITEM_BYTES),
            first,
        }
    }
}

impl Requests for CreateRequests {
    fn write(&self, n: u64, out: &mut Vec<u8>) {
        let n = self.first + n;
        let mut text = String::with_capacity(self.head.len() + item::ITEM_BYTES + 64);
        text.push_str(&self.head);
        text.push_str("x-ms-documentdb-partitionkey: [\"");
        text.push_str(&item::partition_key(n));
        text.push_str("\"]\r\n\r\n");
        item::write_body(n, &mut text);
        out.extend_from_slice(text.as_bytes());
    }
}
