//! Start-up banner: endpoint, key, data directory and how to stop the server, for people.
//!
//! Guarantees: the banner goes to standard error, so that standard output has only the ready line. Only `pleiad dev`
//! shows the key.

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::config::{RunMode, Settings, Storage};
use crate::endpoint::Endpoints;

/// Prints the banner, except with `--quiet`. `authority` is the certificate authority that clients can trust.
pub fn print(settings: &Settings, endpoints: &Endpoints, authority: Option<&Path>) {
    if !settings.quiet {
        eprint!("{}", text(settings, endpoints, authority));
    }
}

fn text(settings: &Settings, endpoints: &Endpoints, authority: Option<&Path>) -> String {
    let mut lines = vec![("endpoint", endpoints.all().collect::<Vec<_>>().join("  "))];
    if settings.mode == RunMode::Dev {
        let key = settings.keys.primary.reveal();
        lines.push(("key", key.to_owned()));
        lines.push(("connect", format!("AccountEndpoint={}/;AccountKey={key};", endpoints.preferred())));
    }
    lines.extend(endpoints.further.iter().map(|endpoint| (endpoint.name, endpoint.address.clone())));
    lines.push(("data", data_location(&settings.storage)));
    if let Some(authority) = authority.filter(|_| settings.protocols.has_https()) {
        lines.push(("https", format!("`pleiad trust` makes clients trust {}", authority.display())));
    }
    lines.push(("stop", "Ctrl-C".to_owned()));
    let head = format!("\n  Pleiad {} ({})\n\n", env!("CARGO_PKG_VERSION"), settings.mode.as_str());
    lines.into_iter().fold(head, |text, (label, value)| text + &format!("  {label:<9} {value}\n")) + "\n"
}

fn data_location(storage: &Storage) -> String {
    match storage {
        Storage::Memory => "in memory, deleted when the server stops".to_owned(),
        Storage::Directory(directory) => directory.display().to_string(),
    }
}
