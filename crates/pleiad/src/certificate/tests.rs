//! The authority is reused, the server's certificate is re-issued for new names and before expiry, clients accept it.

use std::fs;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{RootCertStore, ServerConfig};

use super::*;

/// 2025-06-15
const NOW_S: u64 = 1_750_000_000;

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

fn identity_at(directory: &Path, list: &[&str], now_s: u64) -> Identity {
    generated(Some(directory), &names(list), now_s).unwrap()
}

/// Whether a client that trusts `ca.pem` accepts the server under this name.
fn accepts(identity: &Identity, name: &str, now_s: u64) -> bool {
    let authority = CertificateDer::from_pem_file(identity.authority.as_ref().unwrap()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now_s));
    let (leaf, rest) = identity.chain.split_first().unwrap();
    verifier.verify_server_cert(leaf, rest, &name, &[], now).is_ok()
}

#[test]
fn clients_that_trust_the_authority_accept_every_name_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let identity = identity_at(directory.path(), &["localhost", "127.0.0.1", "::1", "cosmos.test"], NOW_S);
    for name in ["localhost", "127.0.0.1", "::1", "cosmos.test"] {
        assert!(accepts(&identity, name, NOW_S), "{name}");
    }
    assert!(!accepts(&identity, "elsewhere.test", NOW_S));
}

#[test]
fn a_tls_server_config_accepts_the_identity() {
    let identity = generated(None, &names(&["localhost"]), NOW_S).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    assert!(builder.with_no_client_auth().with_single_cert(identity.chain, identity.key).is_ok());
}

#[test]
fn a_second_start_reuses_the_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let first = identity_at(directory.path(), &["localhost", "::1"], NOW_S);
    let second = identity_at(directory.path(), &["localhost"], NOW_S + 1);
    assert_eq!(first.chain, second.chain);
    assert_eq!(first.key, second.key);
}

#[test]
fn a_new_name_re_issues_under_the_same_authority() {
    let directory = tempfile::tempdir().unwrap();
    let first = identity_at(directory.path(), &["localhost"], NOW_S);
    let second = identity_at(directory.path(), &["localhost", "cosmos.test"], NOW_S);
    assert_ne!(first.chain[0], second.chain[0]);
    assert_eq!(first.chain.last(), second.chain.last());
    assert!(accepts(&first, "localhost", NOW_S) && accepts(&second, "cosmos.test", NOW_S));
}

#[test]
fn a_certificate_is_re_issued_before_it_expires() {
    let directory = tempfile::tempdir().unwrap();
    let first = identity_at(directory.path(), &["localhost"], NOW_S);
    let late_s = NOW_S + (SERVER_DAYS - RENEW_BEFORE_DAYS) * DAY_S;
    let second = identity_at(directory.path(), &["localhost"], late_s);
    assert_ne!(first.chain[0], second.chain[0]);
    assert_eq!(first.chain.last(), second.chain.last());
    assert!(accepts(&first, "localhost", late_s) && accepts(&second, "localhost", late_s));
    let old_s = NOW_S + AUTHORITY_DAYS * DAY_S;
    assert!(accepts(&identity_at(directory.path(), &["localhost"], old_s), "localhost", old_s));
}

#[test]
fn damaged_or_missing_files_are_regenerated() {
    let directory = tempfile::tempdir().unwrap();
    for file in ["ca.pem", "ca-key.pem", "server.pem"] {
        for damage in [None, Some(""), Some("-----BEGIN CERTIFICATE-----\nAAAA")] {
            identity_at(directory.path(), &["localhost"], NOW_S);
            let path = directory.path().join(file);
            match damage {
                None => fs::remove_file(path).unwrap(),
                Some(text) => fs::write(path, text).unwrap(),
            }
            assert!(
                accepts(&identity_at(directory.path(), &["localhost"], NOW_S), "localhost", NOW_S),
                "{file} {damage:?}"
            );
        }
    }
}

/// Test suites start several servers at the same time; a client that trusts the authority must reach all of them.
#[test]
fn servers_started_at_once_share_one_authority() {
    let directory = tempfile::tempdir().unwrap();
    let first = CertificateAuthority::generate(NOW_S).unwrap();
    let path = directory.path().join("ca-key.pem");
    let winner = CertificateAuthority::load_or_generate(&path, NOW_S).unwrap();
    assert_ne!(first.certificate_pem, winner.certificate_pem);
    assert!(!files::write_private_once(&path, b"the loser's").unwrap());
    assert_eq!(CertificateAuthority::load_or_generate(&path, NOW_S).unwrap().certificate_pem, winner.certificate_pem);
}

#[cfg(unix)]
#[test]
fn keys_are_readable_by_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let certificates = directory.path().join("data/certificates");
    identity_at(&certificates, &["localhost"], NOW_S);
    let mode = |name: &str| fs::metadata(certificates.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("ca-key.pem"), mode("server.pem"), mode("")), (0o600, 0o600, 0o700));
    assert_eq!(fs::read_dir(&certificates).unwrap().count(), 3, "no temporary files are left");
}

#[test]
fn without_a_writable_directory_the_certificate_is_only_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let blocked = directory.path().join("file");
    fs::write(&blocked, "in the way").unwrap();
    let identity = generated(Some(&blocked.join("certificates")), &names(&["localhost"]), NOW_S).unwrap();
    assert_eq!(identity.authority, None);
    assert_eq!(identity.chain.len(), 2);
}

#[test]
fn a_configured_certificate_is_used_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let made = identity_at(directory.path(), &["localhost"], NOW_S);
    let bundle = directory.path().join("server.pem");
    let own = |chain: &Path, key: &Path| load_own(&OwnCertificate { chain: chain.into(), key: key.into() });
    assert_eq!(own(&bundle, &bundle).unwrap().chain, made.chain);
    let ca = directory.path().join("ca.pem");
    assert!(own(&bundle, &ca).unwrap_err().to_string().contains("holds no private key"));
    assert!(own(&directory.path().join("gone"), &ca).unwrap_err().to_string().contains("gone"));
}
