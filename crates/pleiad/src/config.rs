//! config: what the program was told, from every side, made into one checked value.
//!
//! Promise: whoever holds a `Settings` need not check or default anything again. Words are ranked flag,
//! environment, file, preset; the table is the one place where a setting is defined.
//!
//! Read in this order.

mod address; // where to listen, and under which names
mod command; // flags and help
mod toml_document; // TOML with line numbers
mod file; // what the file says
mod keys; // the account's keys
mod print;
mod profile; // limits of other years
mod settings; // the checked whole
mod precedence; // whose word counts
mod table; // every setting there is
mod value; // what a value may be // list, sample and documentation

#[cfg(test)]
mod tests;

pub use command::{Command, Print, TrustCommand, parse};
pub use keys::{AccountKey, new_key};
pub use precedence::{Environment, FlagValues};
pub use print::{list, markdown, sample};
pub use settings::{DurabilitySetting, OwnCertificate, Settings, Storage};
pub use table::RunMode;
pub use toml_document::{TomlDocument, TomlEntry};
pub use value::LogFormat;
