//! TLS certificates: the user's own, or one issued by a generated certificate authority.
//!
//! Guarantees: the certificate authority of an installation is generated once and stored, so that clients that trust it
//! (`pleiad trust`) keep trusting the server; it is replaced only near its expiry, after ten years, or if its file is
//! damaged. The server's certificate is re-issued when a name is missing or its expiry is near. With a configured
//! certificate, nothing is generated. `trust` makes clients trust the authority.
//!
//! ```text
//! certificates/
//!   ca.pem        the authority's certificate, which clients add to their trust store
//!   ca-key.pem    "renew: …", the same certificate and its key                        0600
//!   server.pem    "names: …", "renew: …", certificate, authority's certificate, key   0600
//! ```
//!
//! A certificate and its key share a file so that a crash cannot separate them. The lines before them show when to
//! re-issue without decoding X.509. The authority's name is derived from its key, so that two authorities in one trust
//! store are distinguishable.

mod files;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use pleiad_model::{Error, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use time::OffsetDateTime;

use crate::config::{OwnCertificate, Settings};

const DAY_S: u64 = 24 * 60 * 60;
/// Long enough that users install the authority only once.
const AUTHORITY_DAYS: u64 = 3650;
/// Apple's systems reject a server certificate that is valid for more than 825 days.
const SERVER_DAYS: u64 = 397;
/// A server that starts just before the renewal can still run this long with its certificate.
const RENEW_BEFORE_DAYS: u64 = 60;
/// Clock skew: a client's clock may be slower than the clock of the issuing machine.
const BACKDATE_DAYS: u64 = 2;

/// What a TLS listener needs.
#[derive(Debug)]
pub struct Identity {
    /// The server's certificate first.
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    /// The path of the generated authority's certificate, if there is one on disk.
    pub authority: Option<PathBuf>,
}

/// The configured identity, or a generated one, which is created now if necessary.
pub fn identity(settings: &Settings, now_ms: u64) -> Result<Identity> {
    match &settings.own_certificate {
        Some(own) => load_own(own),
        None => generated(settings.certificate_dir.as_deref(), &settings.certificate_names, now_ms / 1000),
    }
}

/// The authority's certificate, if it was generated before.
pub fn authority(settings: &Settings) -> Option<PathBuf> {
    settings.certificate_dir.as_deref().map(|directory| directory.join("ca.pem")).filter(|path| path.exists())
}

fn load_own(own: &OwnCertificate) -> Result<Identity> {
    let bad = |path: &Path, what: &str| Error::invalid(format!("{} holds no {what} in PEM.", path.display()));
    let chain = certificates(&files::read(&own.chain)?).ok_or_else(|| bad(&own.chain, "certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(&files::read(&own.key)?).map_err(|_| bad(&own.key, "private key"))?;
    Ok(Identity { chain, key, authority: None })
}

fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()?;
    (!chain.is_empty()).then_some(chain)
}

/// A generated identity: the stored one if it is usable, or a new one, which is stored if the directory is writable.
fn generated(directory: Option<&Path>, names: &[String], now_s: u64) -> Result<Identity> {
    if let Some(identity) = directory.and_then(|directory| load(directory, names, now_s)) {
        return Ok(identity);
    }
    match directory.filter(|directory| files::make_private_directory(directory).is_ok()) {
        Some(directory) => issue_identity(directory, names, now_s),
        None => CertificateAuthority::generate(now_s)?.issue(names, now_s)?.identity(None),
    }
}

/// `None` if a file is missing or damaged, or if the certificate is from another authority, near its expiry, or without
/// one of the names.
fn load(directory: &Path, names: &[String], now_s: u64) -> Option<Identity> {
    let authority_path = directory.join("ca.pem");
    let authority = CertificateDer::from_pem_slice(&std::fs::read(&authority_path).ok()?).ok()?;
    let server = CertificateBundle::load(&directory.join("server.pem")).filter(|server| server.covers(names, now_s))?;
    let identity = server.identity(Some(authority_path)).ok()?;
    (identity.chain.last() == Some(&authority)).then_some(identity)
}

fn issue_identity(directory: &Path, names: &[String], now_s: u64) -> Result<Identity> {
    let authority = CertificateAuthority::load_or_generate(&directory.join("ca-key.pem"), now_s)?;
    let authority_path = directory.join("ca.pem");
    files::write_public(&authority_path, authority.certificate_pem.as_bytes())?;
    let server = authority.issue(names, now_s)?;
    files::write_private(&directory.join("server.pem"), server.text.as_bytes())?;
    server.identity(Some(authority_path))
}

struct CertificateAuthority {
    key: KeyPair,
    certificate_pem: String,
    renew_s: u64,
}

impl CertificateAuthority {
    fn generate(now_s: u64) -> Result<CertificateAuthority> {
        let key = new_key()?;
        let mut params = authority_params(&key);
        (params.not_before, params.not_after) = validity(now_s, AUTHORITY_DAYS)?;
        let certificate_pem = params.self_signed(&key).map_err(generation_failed)?.pem();
        Ok(CertificateAuthority { key, certificate_pem, renew_s: renew_s(now_s, AUTHORITY_DAYS) })
    }

    /// If several processes start together on a new machine, the first one to write wins and all use its authority.
    fn load_or_generate(path: &Path, now_s: u64) -> Result<CertificateAuthority> {
        if let Some(authority) = CertificateAuthority::load(path, now_s) {
            return Ok(authority);
        }
        let authority = CertificateAuthority::generate(now_s)?;
        let text =
            format!("renew: {}\n{}{}", authority.renew_s, authority.certificate_pem, authority.key.serialize_pem());
        if files::write_private_once(path, text.as_bytes())? {
            return Ok(authority);
        }
        match CertificateAuthority::load(path, now_s) {
            Some(winner) => Ok(winner),
            // The existing file is damaged or near its expiry.
            None => files::write_private(path, text.as_bytes()).map(|()| authority),
        }
    }

    fn load(path: &Path, now_s: u64) -> Option<CertificateAuthority> {
        let bundle = CertificateBundle::load(path)?;
        let renew_s = bundle.renew_s();
        let (chain, _) = bundle.parts()?;
        let key_at = bundle.text.find("-----BEGIN PRIVATE KEY-----")?;
        let (certificates, key) = bundle.text.split_at(key_at);
        let certificate_pem = certificates.get(certificates.find("-----BEGIN")?..)?.to_owned();
        let key = KeyPair::from_pem(key).ok()?;
        (now_s < renew_s && chain.len() == 1).then_some(CertificateAuthority { key, certificate_pem, renew_s })
    }

    fn issue(&self, names: &[String], now_s: u64) -> Result<CertificateBundle> {
        let key = new_key()?;
        let mut params = CertificateParams::new(names).map_err(generation_failed)?;
        params.distinguished_name = name("Pleiad");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = validity(now_s, SERVER_DAYS)?;
        let issuer = Issuer::new(authority_params(&self.key), &self.key);
        let certificate = params.signed_by(&key, &issuer).map_err(generation_failed)?.pem();
        let head = format!("names: {}\nrenew: {}\n", names.join(" "), renew_s(now_s, SERVER_DAYS));
        Ok(CertificateBundle { text: head + &certificate + &self.certificate_pem + &key.serialize_pem() })
    }
}

/// The authority's parameters except its dates, derived from its key alone.
fn authority_params(key: &KeyPair) -> CertificateParams {
    let digest = ring::digest::digest(&ring::digest::SHA256, key.der_bytes());
    let fingerprint: String = digest.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let mut params = CertificateParams::default();
    params.distinguished_name = name(&format!("Pleiad development CA {fingerprint}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// A file with the lines `names:` and `renew:`, certificates, and a key.
struct CertificateBundle {
    text: String,
}

impl CertificateBundle {
    fn load(path: &Path) -> Option<CertificateBundle> {
        std::fs::read_to_string(path).ok().map(|text| CertificateBundle { text })
    }

    /// Whether it contains every one of these names and is not due for renewal. Additional names do no harm.
    fn covers(&self, names: &[String], now_s: u64) -> bool {
        let certified: Vec<&str> = self.line("names: ").split(' ').collect();
        now_s < self.renew_s() && names.iter().all(|name| certified.contains(&name.as_str()))
    }

    fn renew_s(&self) -> u64 {
        self.line("renew: ").parse().unwrap_or(0)
    }

    fn line(&self, label: &str) -> &str {
        self.text.lines().find_map(|line| line.strip_prefix(label)).unwrap_or_default()
    }

    fn parts(&self) -> Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let pem = self.text.as_bytes();
        Some((certificates(pem)?, PrivateKeyDer::from_pem_slice(pem).ok()?))
    }

    fn identity(&self, authority: Option<PathBuf>) -> Result<Identity> {
        let (chain, key) = self.parts().ok_or_else(|| Error::corrupt("server.pem"))?;
        Ok(Identity { chain, key, authority })
    }
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "Pleiad");
    name.push(DnType::CommonName, common);
    name
}

fn renew_s(now_s: u64, days: u64) -> u64 {
    now_s.saturating_add(days.saturating_sub(RENEW_BEFORE_DAYS) * DAY_S)
}

fn validity(now_s: u64, days: u64) -> Result<(OffsetDateTime, OffsetDateTime)> {
    let at = |s: u64| {
        let timestamp = i64::try_from(s).ok().and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok());
        timestamp
            .ok_or_else(|| Error::invalid("the machine's clock shows a time no certificate can hold; set it right."))
    };
    Ok((at(now_s.saturating_sub(BACKDATE_DAYS * DAY_S))?, at(now_s.saturating_add(days * DAY_S))?))
}

/// P-256: generated in a fraction of a millisecond, and supported by every client.
fn new_key() -> Result<KeyPair> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(generation_failed)
}

fn generation_failed(error: rcgen::Error) -> Error {
    Error::internal(format!("cannot make a certificate: {error}"))
}
