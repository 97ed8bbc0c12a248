//! wire: the protocols. Decodes requests into calls of the engine and encodes its responses as bytes.
//!
//! Independent of key layouts and of the store. Modules are listed in reading order.

mod http_client; // HTTP client for outgoing requests: token keys and the alert webhook
pub mod webhook; // posts alerts to a URL that the operator configures
pub mod metrics; // metrics in the Prometheus text format
pub mod transport; // ports: accept, TLS or plain text, limits, timeouts, drain; independent of any protocol
pub mod http; // HTTP/1.1 and HTTP/2 as one protocol of the transport
pub mod account; // the account's keys, tokens and roles
pub mod nosql; // Cosmos DB for NoSQL
mod management; // the management API: inspecting and administering partitions
pub mod router; // tells the HTTP APIs apart
