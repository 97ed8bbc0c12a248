//! Other people's servers: what a developer would otherwise use.
//!
//! Promise: each is given its best: keep-alive where its own command line has none, prepared statements, its default
//! settings for durability and no encryption. What it does not do (sign, sync, index) is said beside its figures.

pub mod cosmosdb_server; // an emulator in JavaScript, in memory
pub mod postgres; // jsonb with a GIN index
