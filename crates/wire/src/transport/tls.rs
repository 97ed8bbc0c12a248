//! Server-side TLS: versions 1.2 and 1.3. All ports share certificate and session tickets; each has its own ALPN list.

use std::fmt::Display;
use std::sync::Arc;

use pleiad_model::{Error, Result};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// `cert_chain_pem` starts with the server's own certificate; `key_pem` is its private key.
pub fn tls_config(cert_chain_pem: &[u8], key_pem: &[u8]) -> Result<ServerConfig> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(cert_chain_pem)
        .collect::<Result<_, _>>()
        .map_err(|error| bad("certificate", error))?;
    if chain.is_empty() {
        return Err(bad("certificate", "there is none in the file"));
    }
    let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| bad("private key", error))?;
    tls_config_of(chain, key)
}

/// The same for certificates and a key that are already parsed.
pub fn tls_config_of(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<ServerConfig> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| bad("protocol", error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| bad("certificate and key", error))?;
    // Clients that open many short connections skip the expensive half of the handshake.
    config.ticketer = ring::Ticketer::new().map_err(|error| bad("session tickets", error))?;
    Ok(config)
}

/// The acceptor of one port.
pub(super) fn acceptor(config: &ServerConfig, alpn: &[&[u8]]) -> TlsAcceptor {
    let mut config = config.clone();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

fn bad(what: &str, error: impl Display) -> Error {
    Error::invalid(format!("TLS cannot be set up, the {what} is not usable: {error}. Expected PEM text."))
}
