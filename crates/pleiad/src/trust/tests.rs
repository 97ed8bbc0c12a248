//! The instructions contain the real path, quoted where a shell needs it.

use std::fs;

use super::*;

#[test]
fn every_platform_and_runtime_is_explained_with_the_real_path() {
    let text = explain(Path::new("/data/certificates/ca.pem"));
    for wanted in [
        "sudo cp /data/certificates/ca.pem /usr/local/share/ca-certificates/pleiad.crt",
        "sudo update-ca-certificates",
        "sudo update-ca-trust",
        "security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain /data/certificates/ca.pem",
        "certutil -user -addstore Root /data/certificates/ca.pem",
        "keytool -importcert",
        "NODE_EXTRA_CA_CERTS=/data/certificates/ca.pem",
        "REQUESTS_CA_BUNDLE=/data/certificates/ca.pem",
        "SSL_CERT_FILE=/data/certificates/ca.pem",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

#[test]
fn a_path_with_spaces_is_quoted() {
    let text = explain(Path::new("/Users/ada/Application Support/ca.pem"));
    assert!(text.contains("NODE_EXTRA_CA_CERTS='/Users/ada/Application Support/ca.pem'"), "{text}");
    assert_eq!(quote("it's"), r"'it'\''s'");
}

#[cfg(target_os = "linux")]
#[test]
fn the_platform_is_detected_from_its_files() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(Platform::detect(root.path()), None);
    fs::create_dir_all(root.path().join("etc/pki/ca-trust/source/anchors")).unwrap();
    assert_eq!(Platform::detect(root.path()), Some(Platform::Fedora));
    fs::create_dir_all(root.path().join("usr/sbin")).unwrap();
    fs::write(root.path().join("usr/sbin/update-ca-certificates"), "").unwrap();
    assert_eq!(Platform::detect(root.path()), Some(Platform::Debian));
}

#[test]
fn a_command_that_fails_is_named() {
    assert!(run(&["false"]).unwrap_err().to_string().contains("`false` ended with"));
    assert!(run(&["no-such-program-here"]).unwrap_err().to_string().contains("no-such-program-here"));
}
