//! Ceilings: the layers below the database, measured on their own.

pub mod http; // transport, HTTP and the signature check with a constant answer
pub mod store; // the rows of creates, committed without requests
