//! config: what the program was told, from every side, made into one checked value.
//!
//! Promise: whoever holds a `Settings` need not check or default anything again. Words are ranked flag,
//! environment, file, preset; the table is the one place where a setting is defined.
//!
//! Read in this order.

mod address; // where to listen, and under which names
mod command; // flags and help
mod document; // TOML with line numbers
mod file; // what the file says
mod keys; // the account's keys
mod print;
mod profile; // limits of other years
mod settings; // the checked whole
mod source; // whose word counts
mod table; // every setting there is
mod word; // what a value may be // list, sample and documentation

#[cfg(test)]
mod tests;

pub use command::{Command, Print, Trust, parse};
pub use document::{Document, Entry};
pub use keys::{Key, new_key};
pub use print::{list, markdown, sample};
pub use settings::{Durability, OwnCertificate, Settings, Storage};
pub use source::{Environment, Flags};
pub use table::Face;
pub use word::LogFormat;
