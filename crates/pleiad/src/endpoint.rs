//! Endpoints: what clients need to reach the listening server.

#[cfg(test)]
mod tests;

use crate::config::{RunMode, Settings};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    pub port: u16,
    pub http: Option<String>,
    pub https: Option<String>,
    /// The protocols with ports of their own.
    pub further: Vec<ProtocolEndpoint>,
}

/// Where clients reach a protocol with a port of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolEndpoint {
    /// The name of the port: the member of the ready line, the label in the banner.
    pub name: &'static str,
    /// What the protocol's clients are configured with: a connection string, a URL, or host and port.
    pub address: String,
}

impl Endpoints {
    /// `port` is the bound port; the settings may have asked for any free one (0).
    pub fn new(settings: &Settings, port: u16, further: Vec<ProtocolEndpoint>) -> Endpoints {
        // Ready line and banner end up in logs. Only the key of `dev`, which is public, may be in a connection string.
        let key = settings.keys.primary.reveal();
        let shows_key = further.iter().any(|endpoint| endpoint.address.contains(key));
        assert!(settings.mode == RunMode::Dev || !shows_key, "an endpoint contains the account's key");
        let at = |scheme: &str| format!("{scheme}://{}:{port}", settings.public_name);
        Endpoints {
            port,
            http: settings.protocols.has_http().then(|| at("http")),
            https: settings.protocols.has_https().then(|| at("https")),
            further,
        }
    }

    /// The endpoint to recommend: HTTP if it is enabled, because it needs no entry in the client's trust store.
    pub fn preferred(&self) -> &str {
        self.http.as_deref().or(self.https.as_deref()).unwrap_or_default()
    }

    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.http.iter().chain(&self.https).map(String::as_str)
    }
}
