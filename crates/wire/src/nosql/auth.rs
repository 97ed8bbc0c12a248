//! Authentication: determines the caller of a request from its credentials.
//!
//! Invariant: a `Caller` exists only for a request that was signed with one of the account's keys over its own verb,
//! resource and date, which differs from the server's clock by at most fifteen minutes; or that carries an unexpired
//! token, signed by this account or by the trusted issuer, or an emulator token with the text of the primary key.
//! Signatures are compared in constant time. Authorization beyond reading and writing, and the status codes of errors,
//! are handled elsewhere.
//!
//! The string to sign, for `POST /dbs/My%20Db/colls/c/docs`; every line ends in a line feed, the fifth is usually empty:
//!
//! ```text
//! post                             verb, lower case
//! docs                             resource type
//! dbs/My Db/colls/c                link of the resource, of the parent for a feed; resource ids in lower case
//! thu, 27 apr 2017 00:51:12 gmt    x-ms-date, lower case
//!                                  date, lower case
//! ```
//!
//! Signed with the emulator's key: `TNO0TdGvOKRJlzJCLBBitENSMvXu8d3IiDZwl96dshA=`.

pub mod bearer; // tokens of a trusted issuer
mod date;
mod emulator_token;
#[cfg(test)]
mod tests;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pleiad_model::{Error, Result};
use ring::hmac;
use smallvec::SmallVec;

use super::address::{Signing, percent_decode};
use super::continuation::TokenSigner;
use super::resource_token::ResourceToken;
pub use bearer::Principal;
use bearer::jwks_cache::JwksCache;

/// The maximum difference between the date of a request and the server's clock, either way.
pub const SKEW_MS_MAX: u64 = 15 * 60 * 1000;

const SIGNATURE_BYTES: usize = 32;

/// Holds the string to sign of nearly every request without a heap allocation.
type StringToSign = SmallVec<[u8; 256]>;

/// The account's four keys. Stores only what verification needs and prints none of it.
pub struct SigningKeys {
    primary: hmac::Key,
    secondary: Option<hmac::Key>,
    primary_read_only: Option<hmac::Key>,
    secondary_read_only: Option<hmac::Key>,
    /// HMAC of the primary key's text under the primary key: emulator tokens contain that text, which is not stored
    /// here.
    primary_text_tag: hmac::Tag,
}

/// The parts of a request that authenticate it.
#[derive(Clone, Copy, Debug)]
pub struct Credentials<'a> {
    pub verb: &'a str,
    pub signing: Signing<'a>,
    /// Queries are reads whatever their verb, so the caller of this module decides.
    pub is_read: bool,
    pub authorization: Option<&'a str>,
    pub x_ms_date: Option<&'a str>,
    pub date: Option<&'a str>,
}

/// The time at which a request is checked. The two clocks differ only if a test has advanced the server's: clients sign
/// dates with their own clocks, which the test has not advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthTime {
    pub now_ms: u64,
    pub wall_ms: u64,
}

/// The keys that credentials are verified against.
#[derive(Clone, Copy)]
pub struct TrustAnchors<'a> {
    pub keys: &'a SigningKeys,
    pub tokens: &'a TokenSigner,
    /// Without it, only emulator tokens are accepted as bearer tokens.
    pub jwks_cache: Option<&'a JwksCache>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// One of the two read-write keys.
    ReadWrite,
    /// One of the two read-only keys, on a request that reads.
    ReadOnly,
    /// An emulator token: data access as with a read-write key, but no management of databases and containers.
    Data,
    /// A resource token: the access that its permission grants.
    Permitted(ResourceToken),
    /// A token from the issuer: the access that the principal's roles grant.
    Principal(Principal),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// No `authorization` header.
    Missing,
    /// The header, or the date it belongs to, cannot be parsed; contains the reason.
    Malformed(&'static str),
    /// No key of the account produced this signature; contains the string that the server expected to be signed.
    BadSignature { string_to_sign: String },
    /// Signed, but too long ago or too far in the future.
    Skewed,
    /// Signed with a read-only key, but not a read.
    ReadOnlyKey,
    /// A resource token that this account did not issue.
    BadToken,
    /// A resource token after its expiry.
    Expired,
    /// A bearer token that is not an emulator token of this account, while no issuer is trusted.
    AadNotAccepted,
    /// An invalid bearer token; contains the reason.
    Bearer(&'static str),
    /// A bearer token signed with a key that is not in the cached key set, but may be in the issuer's current one.
    UnknownKey,
}

impl SigningKeys {
    /// Each key is base64 text, as a portal shows it; one key is enough for an account.
    pub fn new(
        primary: &str,
        secondary: Option<&str>,
        primary_read_only: Option<&str>,
        secondary_read_only: Option<&str>,
    ) -> Result<SigningKeys> {
        let primary_key = key(primary)?;
        Ok(SigningKeys {
            primary_text_tag: hmac::sign(&primary_key, primary.as_bytes()),
            primary: primary_key,
            secondary: secondary.map(key).transpose()?,
            primary_read_only: primary_read_only.map(key).transpose()?,
            secondary_read_only: secondary_read_only.map(key).transpose()?,
        })
    }

    fn signer(&self, string_to_sign: &[u8], signature: &[u8]) -> Option<Caller> {
        let signed = |key: &hmac::Key| hmac::verify(key, string_to_sign, signature).is_ok();
        if signed(&self.primary) || self.secondary.as_ref().is_some_and(signed) {
            return Some(Caller::ReadWrite);
        }
        let read_only = [&self.primary_read_only, &self.secondary_read_only].into_iter().flatten().any(signed);
        read_only.then_some(Caller::ReadOnly)
    }
}

fn key(text: &str) -> Result<hmac::Key> {
    match STANDARD.decode(text) {
        Ok(bytes) if !bytes.is_empty() => Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes)),
        // The text is a secret even if it is invalid, so the message does not repeat it.
        _ => Err(Error::invalid("An account key must be base64 text of at least one byte. Generate 64 random bytes.")),
    }
}

impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(not shown)")
    }
}

/// Returns the caller that signed the request, or the reason why the credentials are invalid.
pub fn authenticate(trust: TrustAnchors<'_>, credentials: &Credentials<'_>, at: AuthTime) -> Result<Caller, AuthError> {
    let header = credentials.authorization.ok_or(AuthError::Missing)?;
    let decoded =
        percent_decode(header).ok_or(AuthError::Malformed("a percent sign without two hexadecimal digits"))?;
    let text = std::str::from_utf8(&decoded).map_err(|_| AuthError::Malformed("not UTF-8"))?;
    match AuthToken::parse(text)? {
        AuthToken::Master(signature) => check_master_key(trust.keys, credentials, signature, at.wall_ms),
        AuthToken::Aad(jwt) => check_bearer(trust, jwt, at),
        AuthToken::Resource(signature) => check_resource_token(trust.tokens, signature, at.now_ms),
    }
}

/// The issuer of a bearer token writes its own clock's time into it, which tests do not advance.
fn check_bearer(trust: TrustAnchors<'_>, jwt: &str, at: AuthTime) -> Result<Caller, AuthError> {
    match (emulator_token::check(trust.keys, jwt, at.wall_ms), trust.jwks_cache) {
        (Err(_), Some(jwks_cache)) => jwks_cache.check(jwt, at.wall_ms).map(Caller::Principal),
        (emulated, _) => emulated,
    }
}

/// `type=…&ver=…&sig=…`; the signature is the rest, whatever it contains.
enum AuthToken<'a> {
    Master(&'a str),
    Aad(&'a str),
    Resource(&'a str),
}

impl<'a> AuthToken<'a> {
    fn parse(text: &'a str) -> Result<AuthToken<'a>, AuthError> {
        let mut parts = text.splitn(3, '&');
        let mut field = |name| parts.next().and_then(|part: &str| part.strip_prefix(name));
        let (Some(kind), Some(version), Some(signature)) = (field("type="), field("ver="), field("sig=")) else {
            return Err(AuthError::Malformed("expected type={master|resource|aad}&ver=1.0&sig={signature}"));
        };
        match (kind, version) {
            ("master", "1.0") => Ok(AuthToken::Master(signature)),
            ("aad", "1.0") => Ok(AuthToken::Aad(signature)),
            ("resource", "1" | "1.0") => Ok(AuthToken::Resource(signature)),
            ("master" | "aad" | "resource", _) => Err(AuthError::Malformed("the token version must be 1.0")),
            _ => Err(AuthError::Malformed("the token type must be master, resource or aad")),
        }
    }
}

fn check_resource_token(tokens: &TokenSigner, signature: &str, now_ms: u64) -> Result<Caller, AuthError> {
    let token = ResourceToken::redeem(signature, tokens).ok_or(AuthError::BadToken)?;
    if now_ms / 1000 >= token.expires_s {
        return Err(AuthError::Expired);
    }
    Ok(Caller::Permitted(token))
}

fn check_master_key(
    keys: &SigningKeys,
    credentials: &Credentials<'_>,
    signature: &str,
    wall_ms: u64,
) -> Result<Caller, AuthError> {
    let signature = decode_signature(signature)?;
    let date = credentials.x_ms_date.or(credentials.date).ok_or(AuthError::Malformed("no x-ms-date header"))?;
    let date_ms = date::parse_ms(date).ok_or(AuthError::Malformed("the date is not in RFC 1123 form"))?;
    let caller = signer(keys, credentials, &signature)?;
    // The clock is checked last: only clients with a valid key learn whether their clock is off.
    if wall_ms.abs_diff(date_ms) > SKEW_MS_MAX {
        return Err(AuthError::Skewed);
    }
    match caller {
        Caller::ReadOnly if !credentials.is_read => Err(AuthError::ReadOnlyKey),
        caller => Ok(caller),
    }
}

fn decode_signature(text: &str) -> Result<[u8; SIGNATURE_BYTES], AuthError> {
    let mut bytes = [0; SIGNATURE_BYTES + 4];
    match STANDARD.decode_slice(text, &mut bytes) {
        Ok(SIGNATURE_BYTES) => bytes.first_chunk().copied(),
        _ => None,
    }
    .ok_or(AuthError::Malformed("the signature is not base64 of 32 bytes"))
}

fn signer(keys: &SigningKeys, credentials: &Credentials<'_>, signature: &[u8]) -> Result<Caller, AuthError> {
    let text = string_to_sign(credentials, credentials.date.unwrap_or_default());
    if let Some(caller) = keys.signer(&text, signature) {
        return Ok(caller);
    }
    // HTTP stacks may add a `date` header without the knowledge of a client that signed `x-ms-date` alone.
    if credentials.x_ms_date.is_some()
        && credentials.date.is_some()
        && let Some(caller) = keys.signer(&string_to_sign(credentials, ""), signature)
    {
        return Ok(caller);
    }
    Err(AuthError::BadSignature { string_to_sign: String::from_utf8_lossy(&text).into_owned() })
}

fn string_to_sign(credentials: &Credentials<'_>, date: &str) -> StringToSign {
    let signing = credentials.signing;
    let mut out = StringToSign::new();
    push_line(&mut out, credentials.verb, true);
    push_line(&mut out, signing.resource_type, true);
    push_line(&mut out, signing.link, signing.lower_case_link);
    push_line(&mut out, credentials.x_ms_date.unwrap_or_default(), true);
    push_line(&mut out, date, true);
    out
}

/// All text that is lower-cased here is ASCII: keywords of the protocol, dates, resource ids.
fn push_line(out: &mut StringToSign, text: &str, lower_case: bool) {
    let start = out.len();
    out.extend_from_slice(text.as_bytes());
    if lower_case {
        out[start..].make_ascii_lowercase();
    }
    out.push(b'\n');
}
