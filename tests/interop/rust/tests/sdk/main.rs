//! The official Rust SDK against Pleiad. Every test runs twice: over http and over https.
//!
//! The server is not ours to start: PLEIAD_ENDPOINT, PLEIAD_ENDPOINT_HTTPS, PLEIAD_KEY and PLEIAD_CA_FILE say where it
//! is. The SDK is the published one, unmodified. It speaks HTTP/2 from the first byte, also in clear text, and writes
//! items as Cosmos binary JSON; no option is set to spare the server either of them, except in `text.rs`.

mod support; // set-up; the only module that knows how a client is made

mod readings; // what queries ask about

mod account;
mod batch;
mod change_feed;
mod containers;
mod hierarchical;
mod items;
mod keys;
mod many;
mod queries;
mod query_pages;
mod recreated;
mod text;
mod throughput;
mod unique_keys;
