//! Endpoints: the URLs at which clients reach the listening server.

use crate::config::Settings;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    pub port: u16,
    pub http: Option<String>,
    pub https: Option<String>,
}

impl Endpoints {
    /// `port` is the bound port; the settings may have asked for any free one (0).
    pub fn new(settings: &Settings, port: u16) -> Endpoints {
        let at = |scheme: &str| format!("{scheme}://{}:{port}", settings.public_name);
        Endpoints {
            port,
            http: settings.protocols.has_http().then(|| at("http")),
            https: settings.protocols.has_https().then(|| at("https")),
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
