//! Configuration: flags, environment variables and the TOML file become one checked `Settings`.
//!
//! Guarantees: a `Settings` is complete and valid; its users check nothing and fill in no defaults. A flag takes
//! precedence over a variable, a variable over the file, the file over the default. Every setting is defined in one
//! place, `table`.

mod address; // listen addresses and host names
mod command; // the command line: subcommands, flags, help
mod toml_document; // TOML with line numbers
mod file; // the configuration file
mod keys; // the account's keys
mod print; // list, sample and documentation
mod port; // the ports to open
mod profile; // the service's limits in earlier years
mod settings; // the checked result: rules between settings, derived values
mod precedence; // flag, variable, file, default
mod table; // the definition of every setting
mod value; // setting value types and their parsers

#[cfg(test)]
mod tests;

pub use command::{Command, Print, TrustCommand, parse};
pub use keys::{AccountKey, new_key};
pub use port::PortPlan;
pub use precedence::{Environment, FlagValues};
pub use print::{list, markdown, sample};
pub use settings::{DurabilitySetting, OwnCertificate, Settings, Storage};
pub use table::RunMode;
pub use toml_document::{TomlDocument, TomlEntry};
pub use value::LogFormat;
