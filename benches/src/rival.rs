//! The systems that Pleiad is compared with: alternatives that a developer could use.
//!
//! Guarantees: each system runs under favourable conditions: keep-alive connections, even where its own command line
//! disables them, prepared statements, its default durability settings and no encryption. The page with the figures
//! states what a system does not do (sign, sync, index).

pub mod cosmosdb_server; // an emulator in JavaScript, in memory
pub mod postgres; // jsonb with a GIN index
