//! Bearer tokens, signed as an issuer signs them; the public key is in crates/pleiad/tests/golden/token_keys.json.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use pleiad_model::env::{Env, SystemEnv};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};

use crate::Result;
use crate::client::EMULATOR_KEY;

/// Used in these tests only.
const PRIVATE_KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgq/QElPTuYxkzQORSanbcrlDwDIHj9sXqgR/KyInsvJ6hRANCAAR4I1JAOtTblg3TcY+usMwDjYVbFxYb1K2It2pUSUKAFws+Khlf05htArQdJegsIVLLb8gP00OuW9Aoy8WePP9j";
pub const ISSUER: &str = "https://issuer.example/";
pub const AUDIENCE: &str = "https://cosmos.azure.com";

/// `token:reader`, `token:ann+readers` with a group, `expired-token:reader`, `emulator-token`.
pub fn authorization(credential: &str) -> Result<String> {
    let jwt = match credential.split_once(':') {
        Some(("token", principal)) => token(principal, 600)?,
        Some(("expired-token", principal)) => token(principal, -600)?,
        None if credential == "emulator-token" => emulator_token(EMULATOR_KEY),
        _ => return Err(format!("unknown token `{credential}`")),
    };
    Ok(format!("type=aad&ver=1.0&sig={jwt}"))
}

fn token(principal: &str, ttl_s: i64) -> Result<String> {
    let (id, groups) = principal.split_once('+').unwrap_or((principal, ""));
    let groups: Vec<String> = groups.split('+').map(|group| format!("{group:?}")).collect();
    let expires_s = i64::try_from(SystemEnv.now_ms() / 1000).unwrap_or_default() + ttl_s;
    let claims = format!(
        r#"{{"iss":"{ISSUER}","aud":"{AUDIENCE}","exp":{expires_s},"oid":"{id}","groups":[{}]}}"#,
        groups.join(",")
    );
    sign(r#"{"typ":"JWT","alg":"ES256","kid":"golden"}"#, &claims)
}

fn sign(header: &str, claims: &str) -> Result<String> {
    let key = STANDARD.decode(PRIVATE_KEY).map_err(|e| e.to_string())?;
    let rng = SystemRandom::new();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &rng).map_err(|e| e.to_string())?;
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature = pair.sign(&rng, signed.as_bytes()).map_err(|e| e.to_string())?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// The token of the SDKs' own tests: it has the key's text instead of a signature.
pub fn emulator_token(key: &str) -> String {
    let name = "CosmosEmulatorPrimaryMaster";
    let header = format!(r#"{{"typ":"JWT","alg":"RS256","x5t":"{name}","kid":"{name}"}}"#);
    let claims =
        r#"{"aud":"https://localhost.localhost","iss":"https://sts.fake-issuer.net/1","tid":"EmulatorFederation"}"#;
    [header.as_str(), claims, key].map(|part| URL_SAFE_NO_PAD.encode(part)).join(".")
}
