use super::super::testing::{body, check_invalid, check_rejected, check_returned, create};

fn members(version: u8, path: &str, kind: &str) -> String {
    format!(r#""clientEncryptionPolicy":{}"#, policy(version, path, kind))
}

fn policy(version: u8, path: &str, kind: &str) -> String {
    format!(
        r#"{{"includedPaths":[{{"path":"{path}","clientEncryptionKeyId":"k","encryptionType":"{kind}","encryptionAlgorithm":"AEAD_AES_256_CBC_HMAC_SHA256"}}],"policyFormatVersion":{version}}}"#
    )
}

#[test]
fn the_policy_is_returned_as_sent() {
    let sent = policy(1, "/ssn", "Randomized");
    check_returned(&members(1, "/ssn", "Randomized"), "clientEncryptionPolicy", &sent);
}

#[test]
fn id_and_partition_key_need_deterministic_encryption_and_version_2() {
    for path in ["/id", "/pk"] {
        create(&members(2, path, "Deterministic"));
        check_rejected(&members(2, path, "Randomized"), "which names items");
        check_rejected(&members(1, path, "Deterministic"), "which names items");
    }
}

#[test]
fn members_are_validated() {
    check_rejected(&members(1, "/a/b", "Randomized"), "not top-level");
    check_rejected(&members(1, "/a", "Maybe"), "the encryptionType 'Maybe'");
    check_rejected(&members(3, "/a", "Randomized"), "policyFormatVersion 3");
    check_rejected(&members(1, "/a", "Randomized").replace("AEAD_AES_256", "ROT13"), "the encryptionAlgorithm");
    check_rejected(&members(1, "/a", "Randomized").replace("\"k\"", "\"\""), "no clientEncryptionKeyId");
    check_rejected(r#""clientEncryptionPolicy":[]"#, "One of the specified inputs is invalid");
}

#[test]
fn the_policy_is_immutable() {
    let old = create(&members(1, "/ssn", "Randomized"));
    check_invalid(old.replace(&body("")), "'clientEncryptionPolicy' cannot be changed");
    check_invalid(old.replace(&body(&members(1, "/ssn", "Deterministic"))), "cannot be changed");
    assert_eq!(old.replace(&body(&members(1, "/ssn", "Randomized"))), Ok(old.clone()));
}
