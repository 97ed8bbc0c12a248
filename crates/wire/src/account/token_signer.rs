//! Token signer: text that the server gives to a client and recognises when it comes back, unmodified.
//!
//! ```text
//! base64url( bytes │ tag 32 )     tag = HMAC-SHA256 with the account's secret over the owner and the bytes
//! ```
//!
//! The first byte distinguishes all tokens that this secret signs: 2 and 6 are for queries, 4 and 7 for feeds, 5 for
//! resource tokens and 99 (`c`) for change feeds; 3 is not in use.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

/// How much longer the bytes of a token are than what it seals.
pub const TAG_BYTES: usize = 32;

pub struct TokenSigner {
    key: hmac::Key,
}

impl TokenSigner {
    pub fn new(secret: &[u8; 32]) -> Self {
        TokenSigner { key: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    /// Signs the bytes for an owner, such as the `_rid` of a container, and encodes them as ASCII text.
    pub fn seal(&self, owner: &str, bytes: Vec<u8>) -> String {
        URL_SAFE_NO_PAD.encode(self.sign(owner, bytes))
    }

    /// The bytes that were sealed for this owner.
    pub fn unseal(&self, owner: &str, token: &str) -> Option<Vec<u8>> {
        self.verify(owner, URL_SAFE_NO_PAD.decode(token).ok()?)
    }

    /// Appends the tag, for a token that is not base64.
    pub fn sign(&self, owner: &str, mut bytes: Vec<u8>) -> Vec<u8> {
        let tag = hmac::sign(&self.key, &covered(owner, &bytes));
        bytes.extend_from_slice(tag.as_ref());
        bytes
    }

    /// The bytes that were signed for this owner.
    pub fn verify(&self, owner: &str, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
        let (signed, tag) = bytes.split_at_checked(bytes.len().checked_sub(TAG_BYTES)?)?;
        hmac::verify(&self.key, &covered(owner, signed), tag).ok()?;
        bytes.truncate(bytes.len() - TAG_BYTES);
        Some(bytes)
    }
}

/// Owners contain no zero byte, so the border between owner and bytes is unambiguous.
fn covered(owner: &str, bytes: &[u8]) -> Vec<u8> {
    [owner.as_bytes(), &[0], bytes].concat()
}
