//! Signatures and tokens in the `authorization` header: the caller of a request.
//!
//! Invariant: a request that is signed with a key of the account is signed over its own verb, resource and date, which
//! differs from the server's clock by at most fifteen minutes. What the caller may do beyond reading and writing is
//! decided elsewhere.
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

mod date;
#[cfg(test)]
mod tests;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use smallvec::SmallVec;

use crate::account::{AccountAccess, AccountKeyring, AuthError, AuthTime, Caller, SKEW_MS_MAX};
use crate::nosql::address::{Signing, percent_decode};

const SIGNATURE_BYTES: usize = 32;

/// Holds the string to sign of nearly every request without a heap allocation.
type StringToSign = SmallVec<[u8; 256]>;

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

/// Returns the caller that signed the request, or the reason why the credentials are invalid.
pub fn authenticate(access: &AccountAccess, credentials: &Credentials<'_>, at: AuthTime) -> Result<Caller, AuthError> {
    let header = credentials.authorization.ok_or(AuthError::Missing)?;
    let decoded =
        percent_decode(header).ok_or(AuthError::Malformed("a percent sign without two hexadecimal digits"))?;
    let text = std::str::from_utf8(&decoded).map_err(|_| AuthError::Malformed("not UTF-8"))?;
    match AuthToken::parse(text)? {
        AuthToken::Master(signature) => check_master_key(&access.keys, credentials, signature, at.wall_ms),
        AuthToken::Aad(jwt) => access.check_bearer(jwt, at),
        AuthToken::Resource(signature) => access.check_resource_token(signature, at),
    }
}

/// The same. An issuer may have rotated its keys: a token with an unknown key is checked again after the key set was
/// fetched again.
pub async fn authenticate_with_current_keys(
    access: &AccountAccess,
    credentials: &Credentials<'_>,
    at: AuthTime,
) -> Result<Caller, AuthError> {
    match authenticate(access, credentials, at) {
        Err(AuthError::UnknownKey) if access.bearer.refetch_for_unknown_key().await => {
            authenticate(access, credentials, at)
        }
        result => result,
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

fn check_master_key(
    keys: &AccountKeyring,
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

fn signer(keys: &AccountKeyring, credentials: &Credentials<'_>, signature: &[u8]) -> Result<Caller, AuthError> {
    let text = string_to_sign(credentials, credentials.date.unwrap_or_default());
    if let Some(caller) = keys.by_signature(&text, signature) {
        return Ok(caller);
    }
    // HTTP stacks may add a `date` header without the knowledge of a client that signed `x-ms-date` alone.
    if credentials.x_ms_date.is_some()
        && credentials.date.is_some()
        && let Some(caller) = keys.by_signature(&string_to_sign(credentials, ""), signature)
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
