//! The official Rust SDK against Pleiad. Every test runs twice: over http and over https.
//!
//! The server is not ours to start: PLEIAD_ENDPOINT, PLEIAD_ENDPOINT_HTTPS, PLEIAD_KEY and PLEIAD_CA_FILE say where it
//! is. The SDK is the published one, unmodified. It speaks HTTP/2 from the first byte, also in clear text, and writes
//! items as Cosmos binary JSON; no option is set to spare the server either of them, except in `text.rs`.

mod support; // set-up; the only module that knows how a client is made

mod management; // splits, snapshots and copies, beside the SDK
mod readings; // what queries ask about

mod account;
mod batch;
mod change_feed;
mod computed_properties;
mod containers;
mod full_text;
mod global_indexes;
mod hierarchical;
mod items;
mod keys;
mod many;
mod policies;
mod queries;
mod query_pages;
mod recreated;
mod roles;
mod sessions;
mod snapshots;
mod splits;
mod text;
mod throughput;
mod ttl;
mod unique_keys;
mod vectors;
