//! Trusted certificate authorities: the system's, the generated one of this machine, and those of `--ca`.

use std::path::Path;
use std::sync::Arc;

use pleiad_model::{Error, Result};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::certificate;
use crate::config::Settings;

pub fn client_config(ca: Option<&Path>, settings: &Settings) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(generated) = certificate::authority(settings) {
        add(&mut roots, &generated)?;
    }
    if let Some(ca) = ca {
        add(&mut roots, ca)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn add(roots: &mut RootCertStore, file: &Path) -> Result<()> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Error::invalid(format!("cannot read certificates from {}: {error}", file.display()))
    };
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    Ok(())
}
