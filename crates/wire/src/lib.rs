//! wire: every byte in or out. Protocols become requests of the engine here, and answers become bytes.
//!
//! Knows no key layout and no store. Read in this order.

pub mod listener; // accept, TLS or plain on one port, limits, drain
pub mod metrics; // what is counted
pub mod nosql; // Cosmos DB for NoSQL over HTTP
mod management; // seeing and steering partitions
mod http_client; // requests of ours to somebody else's server
pub mod webhook; // alerts to a URL of the operator's
