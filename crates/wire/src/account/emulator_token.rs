//! Emulator tokens: bearer tokens that test suites create for an emulator.
//!
//! They look like JSON Web Tokens of Microsoft Entra, but the third part is not a signature: it is the primary key's
//! text. A client with that key has full access anyway, so accepting the token grants nothing new. `bearer` checks
//! tokens of real issuers.
//!
//! ```text
//! base64url {"typ":"JWT","alg":"RS256","x5t":"CosmosEmulatorPrimaryMaster","kid":"CosmosEmulatorPrimaryMaster"}
//! . base64url {"aud":"https://localhost.localhost","iss":"https://sts.fake-issuer.net/…","tid":"EmulatorFederation",…}
//! . base64url of the primary key's text
//! ```

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pleiad_model::{Value, json};

use super::{AccountKeyring, AuthError, Caller, SKEW_MS_MAX};

const KEY_NAME: &str = "CosmosEmulatorPrimaryMaster";
const AUDIENCE: &str = "https://localhost.localhost";
const ISSUER_PREFIX: &str = "https://sts.fake-issuer.net/";
const TENANT: &str = "EmulatorFederation";

pub(super) fn check(keys: &AccountKeyring, jwt: &str, wall_ms: u64) -> Result<Caller, AuthError> {
    accepted(keys, jwt, wall_ms).filter(|&yes| yes).map(|_| Caller::Data).ok_or(AuthError::AadNotAccepted)
}

/// `None` if the token cannot be parsed.
fn accepted(keys: &AccountKeyring, jwt: &str, wall_ms: u64) -> Option<bool> {
    let mut parts = jwt.split('.');
    let (header, claims, secret) =
        (decode_part(parts.next()?)?, decode_part(parts.next()?)?, decode_part(parts.next()?)?);
    // The secret is checked first: JSON of a client without the key is never parsed.
    if parts.next().is_some() || !keys.is_primary(&secret) {
        return Some(false);
    }
    Some(names_the_key(&json::parse(&header).ok()?) && is_for_emulator(&json::parse(&claims).ok()?, wall_ms / 1000))
}

fn decode_part(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn names_the_key(header: &Value) -> bool {
    text(header, "x5t") == KEY_NAME && text(header, "kid") == KEY_NAME
}

fn is_for_emulator(claims: &Value, now_s: u64) -> bool {
    let within = |name, holds: fn(u64, u64) -> bool| time_s(claims, name).is_none_or(|time| holds(time, now_s));
    text(claims, "aud") == AUDIENCE
        && text(claims, "iss").starts_with(ISSUER_PREFIX)
        && text(claims, "tid") == TENANT
        && within("exp", |exp, now| now <= exp.saturating_add(SKEW_MS_MAX / 1000))
        && within("nbf", |nbf, now| nbf <= now.saturating_add(SKEW_MS_MAX / 1000))
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn time_s(object: &Value, name: &str) -> Option<u64> {
    object.get(name)?.as_i64().map(|time| time.max(0) as u64)
}
