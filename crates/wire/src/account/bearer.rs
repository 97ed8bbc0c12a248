//! Bearer tokens: JSON Web Tokens from a trusted issuer with configured keys.
//!
//! Invariant: a `Principal` exists only for a token that one of the issuer's keys signed, that was issued for this
//! account's audience, and that is currently valid. The algorithm must match the key, so that a client cannot choose a
//! weaker one; `none` and shared secrets are not supported. `roles` decides what the principal may do.
//!
//! ```text
//! base64url {"alg":"RS256","kid":"k1"} . base64url {"iss":…,"aud":…,"exp":…,"nbf":…,"oid":…,"groups":[…]} . base64url signature
//! └───────────────────────────────── signed bytes ─────────────────────────────────────────────────────┘
//! ```

mod jwks; // an issuer's public keys
pub mod jwks_cache; // loads the key set, and fetches it again when needed

#[cfg(test)]
pub mod tests;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pleiad_model::{Value, json};

pub use jwks::JsonWebKeySet;

use super::AuthError;

/// The maximum difference between an issuer's clock and the server's.
const SKEW_S: i64 = 5 * 60;

/// The issuer whose tokens are accepted.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// The required `iss`.
    pub name: String,
    /// Accepted audiences: `aud` must be, or contain, one of these.
    pub audiences: Vec<String>,
}

/// The user or application that a token identifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The object id of the user or application.
    pub id: String,
    /// The object ids of its groups.
    pub groups: Vec<String>,
}

impl Principal {
    /// All ids that a role assignment may refer to.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.id.as_str()).chain(self.groups.iter().map(String::as_str))
    }
}

pub fn check(issuer: &Issuer, keys: &JsonWebKeySet, jwt: &str, now_s: i64) -> Result<Principal, AuthError> {
    let claims = signed_claims(keys, jwt)?;
    check_claims(issuer, &claims, now_s).map_err(AuthError::Bearer)?;
    principal(&claims).ok_or(AuthError::Bearer("it names no principal: the claim 'oid' is missing"))
}

/// The claims, after the signature was verified.
fn signed_claims(keys: &JsonWebKeySet, jwt: &str) -> Result<Value, AuthError> {
    const UNREADABLE: AuthError = AuthError::Bearer("it is not a signed JSON Web Token");
    let (signed, signature) = jwt.rsplit_once('.').ok_or(UNREADABLE)?;
    let (header, claims) = signed.split_once('.').ok_or(UNREADABLE)?;
    let header = decode_part(header).and_then(|bytes| json::parse(&bytes).ok()).ok_or(UNREADABLE)?;
    if header.get("crit").is_some() {
        return Err(AuthError::Bearer("it has critical extensions"));
    }
    let signature = decode_part(signature).ok_or(UNREADABLE)?;
    let name = |name| header.get(name).and_then(Value::as_str);
    let algorithm = name("alg").ok_or(UNREADABLE)?;
    match keys.verify(name("kid"), algorithm, signed.as_bytes(), &signature) {
        jwks::Verdict::Signed => {}
        jwks::Verdict::NoSuchKey => return Err(AuthError::UnknownKey),
        jwks::Verdict::NotSigned => return Err(AuthError::Bearer("its signature is not the issuer's")),
    }
    decode_part(claims).and_then(|bytes| json::parse(&bytes).ok()).ok_or(UNREADABLE)
}

fn decode_part(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn check_claims(issuer: &Issuer, claims: &Value, now_s: i64) -> Result<(), &'static str> {
    if claims.get("iss").and_then(Value::as_str) != Some(&issuer.name) {
        return Err("it is from another issuer");
    }
    if !accepts_audience(&issuer.audiences, claims.get("aud")) {
        return Err("it is for another audience");
    }
    let expires_s = claims.get("exp").and_then(seconds).ok_or("it never expires: the claim 'exp' is missing")?;
    if now_s >= expires_s.saturating_add(SKEW_S) {
        return Err("it has expired");
    }
    match claims.get("nbf").map(|time| seconds(time).ok_or("its claim 'nbf' is no time")).transpose()? {
        Some(from_s) if now_s < from_s.saturating_sub(SKEW_S) => Err("it is not valid yet"),
        _ => Ok(()),
    }
}

/// A trailing slash is ignored: clients derive the audience from the account's address with or without one.
fn accepts_audience(audiences: &[String], claim: Option<&Value>) -> bool {
    let is_accepted = |claim: &Value| {
        let claim = claim.as_str().map(|text| text.trim_end_matches('/'));
        audiences.iter().any(|audience| claim == Some(audience.trim_end_matches('/')))
    };
    match claim {
        Some(Value::Array(claims)) => claims.iter().any(is_accepted),
        Some(claim) => is_accepted(claim),
        None => false,
    }
}

/// Times may have a fraction.
fn seconds(value: &Value) -> Option<i64> {
    value.as_number().map(|number| number.as_f64()).filter(|seconds| seconds.is_finite()).map(|seconds| seconds as i64)
}

fn principal(claims: &Value) -> Option<Principal> {
    let id = claims.get("oid").and_then(Value::as_str).filter(|id| !id.is_empty())?.to_owned();
    let groups = claims.get("groups").and_then(Value::as_array).unwrap_or_default();
    Some(Principal { id, groups: groups.iter().filter_map(Value::as_str).map(str::to_owned).collect() })
}
