//! Account keys: the four keys of an account, and the ways in which a client proves that it has one.
//!
//! | way | what is checked | used by |
//! |---|---|---|
//! | signature | HMAC-SHA256 of a message under the decoded key | NoSQL's master tokens, SharedKey of tables |
//! | password | the key's text | PLAIN |
//! | SCRAM-SHA-256 | a proof over the key's text, which is never sent | SCRAM |
//!
//! Signatures are on the path of every request and prepared at start; what the others need is derived when it is first
//! used, since a SCRAM credential alone takes milliseconds.

mod scram; // SCRAM-SHA-256 credentials

use std::fmt;
use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pleiad_model::{Error, Result};
use ring::hmac;

use super::Caller;
pub use scram::ScramCredential;

/// The account's keys. Prints none of them.
pub struct AccountKeyring {
    primary: KeyVerifier,
    secondary: Option<KeyVerifier>,
    primary_read_only: Option<KeyVerifier>,
    secondary_read_only: Option<KeyVerifier>,
}

struct KeyVerifier {
    text: Box<str>,
    mac: hmac::Key,
    /// HMAC of the text under the key itself, to compare a password in constant time.
    text_tag: OnceLock<hmac::Tag>,
    scram: OnceLock<ScramCredential>,
}

impl AccountKeyring {
    /// Each key is base64 text, as a portal shows it; one key is enough for an account.
    pub fn new(
        primary: &str,
        secondary: Option<&str>,
        primary_read_only: Option<&str>,
        secondary_read_only: Option<&str>,
    ) -> Result<AccountKeyring> {
        Ok(AccountKeyring {
            primary: KeyVerifier::new(primary)?,
            secondary: secondary.map(KeyVerifier::new).transpose()?,
            primary_read_only: primary_read_only.map(KeyVerifier::new).transpose()?,
            secondary_read_only: secondary_read_only.map(KeyVerifier::new).transpose()?,
        })
    }

    /// The caller whose key signed the message.
    pub fn by_signature(&self, message: &[u8], signature: &[u8]) -> Option<Caller> {
        self.find(|key| hmac::verify(&key.mac, message, signature).is_ok())
    }

    /// The caller whose key has this text.
    pub fn by_password(&self, password: &[u8]) -> Option<Caller> {
        self.find(|key| key.has_text(password))
    }

    /// The caller whose key made this proof in a SCRAM-SHA-256 exchange, and the server's signature for the client.
    pub fn by_scram_proof(&self, auth_message: &[u8], proof: &[u8]) -> Option<(Caller, [u8; 32])> {
        let mut signature = None;
        let caller = self.find(|key| {
            signature = key.scram().server_signature(auth_message, proof);
            signature.is_some()
        })?;
        Some((caller, signature?))
    }

    /// The salt and the iterations that a SCRAM client must use: the same for all keys.
    pub fn scram_parameters(&self) -> (&'static [u8], u32) {
        (scram::SALT, scram::ITERATIONS)
    }

    /// Whether this is the text of the primary key.
    pub(super) fn is_primary(&self, text: &[u8]) -> bool {
        self.primary.has_text(text)
    }

    fn find(&self, mut matches: impl FnMut(&KeyVerifier) -> bool) -> Option<Caller> {
        if matches(&self.primary) || self.secondary.as_ref().is_some_and(&mut matches) {
            return Some(Caller::ReadWrite);
        }
        let read_only = [&self.primary_read_only, &self.secondary_read_only].into_iter().flatten().any(matches);
        read_only.then_some(Caller::ReadOnly)
    }
}

impl KeyVerifier {
    fn new(text: &str) -> Result<KeyVerifier> {
        let mac = match STANDARD.decode(text) {
            Ok(bytes) if !bytes.is_empty() => hmac::Key::new(hmac::HMAC_SHA256, &bytes),
            // The text is a secret even if it is invalid, so the message does not repeat it.
            _ => {
                let message = "An account key must be base64 text of at least one byte. Generate 64 random bytes.";
                return Err(Error::invalid(message));
            }
        };
        let (text_tag, scram) = Default::default();
        Ok(KeyVerifier { text: text.into(), mac, text_tag, scram })
    }

    fn has_text(&self, text: &[u8]) -> bool {
        let tag = self.text_tag.get_or_init(|| hmac::sign(&self.mac, self.text.as_bytes()));
        hmac::verify(&self.mac, text, tag.as_ref()).is_ok()
    }

    fn scram(&self) -> &ScramCredential {
        self.scram.get_or_init(|| ScramCredential::derive(&self.text, scram::SALT, scram::ITERATIONS))
    }
}

impl fmt::Debug for AccountKeyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKeyring(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> AccountKeyring {
        AccountKeyring::new("cHJpbWFyeQ==", Some("c2Vjb25kYXJ5"), Some("cmVhZCBvbmx5"), None).unwrap()
    }

    #[test]
    fn a_password_is_the_text_of_a_key() {
        assert_eq!(keys().by_password(b"cHJpbWFyeQ=="), Some(Caller::ReadWrite));
        assert_eq!(keys().by_password(b"c2Vjb25kYXJ5"), Some(Caller::ReadWrite));
        assert_eq!(keys().by_password(b"cmVhZCBvbmx5"), Some(Caller::ReadOnly));
        assert_eq!(keys().by_password(b"primary"), None);
        assert_eq!(keys().by_password(b""), None);
    }

    /// So that the start takes no milliseconds for ways that no client uses.
    #[test]
    fn passwords_and_scram_are_prepared_when_they_are_first_used() {
        let keys = keys();
        assert!(keys.primary.text_tag.get().is_none() && keys.primary.scram.get().is_none());
        assert!(keys.by_password(b"cHJpbWFyeQ==").is_some());
        assert!(keys.primary.text_tag.get().is_some() && keys.primary.scram.get().is_none());
    }

    #[test]
    fn keys_are_not_printed() {
        let printed = format!("{:?}", keys());
        assert!(!printed.contains("cHJpbWFyeQ") && !printed.contains("primary"), "{printed}");
    }

    #[test]
    fn a_scram_proof_is_accepted_from_any_key() {
        let (salt, iterations) = keys().scram_parameters();
        for (text, caller) in [("cHJpbWFyeQ==", Caller::ReadWrite), ("cmVhZCBvbmx5", Caller::ReadOnly)] {
            let proof = scram::tests::client_proof(text, salt, iterations, b"message");
            let (found, signature) = keys().by_scram_proof(b"message", &proof).unwrap();
            assert_eq!(found, caller);
            assert_eq!(signature, scram::tests::server_signature(text, salt, iterations, b"message"));
            assert!(keys().by_scram_proof(b"another message", &proof).is_none());
        }
        let proof = scram::tests::client_proof("d3Jvbmc=", salt, iterations, b"message");
        assert!(keys().by_scram_proof(b"message", &proof).is_none());
    }
}
