//! The official Rust SDK against Pleiad. Every test runs twice: over http and over https.
//!
//! xtask starts the server; PLEIAD_ENDPOINT, PLEIAD_ENDPOINT_HTTPS, PLEIAD_KEY and PLEIAD_CA_FILE say where it is. The
//! SDK is the published one, unmodified. It uses HTTP/2 from the first byte, also in clear text, and writes items as
//! Cosmos binary JSON; no test disables either of them, except `text.rs`.

mod support; // set-up; the only module that creates clients

mod management; // splits, snapshots and copies, without the SDK
mod readings; // the items of the query tests

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
