//! wire: the protocols. Decodes requests into calls of the engine and encodes its responses as bytes.
//!
//! Independent of key layouts and of the store. Modules are listed in reading order.

mod http_client; // HTTP client for outgoing requests: token keys and the alert webhook
pub mod webhook; // posts alerts to a URL that the operator configures
pub mod metrics; // metrics in the Prometheus text format
pub mod listener; // accept, TLS or plain on one port, limits, drain
pub mod account; // the account's keys, tokens and roles
pub mod nosql; // Cosmos DB for NoSQL over HTTP
mod management; // the management API: inspecting and administering partitions
