//! SCRAM-SHA-256 credentials (RFC 5802, RFC 7677): what a server keeps in order to verify a client that knows a
//! password, without the password being sent.
//!
//! ```text
//! salted     = PBKDF2-HMAC-SHA-256(password, salt, iterations)
//! stored key = SHA-256(client key)        client key = HMAC(salted, "Client Key")
//! server key = HMAC(salted, "Server Key")
//! proof      = client key XOR HMAC(stored key, auth message)
//! ```

use std::num::NonZeroU32;

use ring::{digest, hmac, pbkdf2};

/// An account key is 64 random bytes, so the salt need not be secret or random: there is no dictionary of account keys.
pub(super) const SALT: &[u8] = b"pleiad account key";
/// The fewest that drivers accept.
pub(super) const ITERATIONS: u32 = 4096;

const HASH_BYTES: usize = 32;

pub struct ScramCredential {
    stored_key: [u8; HASH_BYTES],
    server_key: hmac::Key,
}

impl ScramCredential {
    /// Takes milliseconds, by design. `password` is ASCII, so that it needs no normalisation.
    pub fn derive(password: &str, salt: &[u8], iterations: u32) -> ScramCredential {
        let mut salted = [0; HASH_BYTES];
        let iterations = NonZeroU32::new(iterations).unwrap_or(NonZeroU32::MIN);
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, password.as_bytes(), &mut salted);
        let salted = hmac::Key::new(hmac::HMAC_SHA256, &salted);
        let client_key = hmac::sign(&salted, b"Client Key");
        let server_key = hmac::sign(&salted, b"Server Key");
        ScramCredential {
            stored_key: sha256(client_key.as_ref()),
            server_key: hmac::Key::new(hmac::HMAC_SHA256, server_key.as_ref()),
        }
    }

    /// The signature that proves to the client that the server knows the password, if the client's proof is right.
    pub fn server_signature(&self, auth_message: &[u8], proof: &[u8]) -> Option<[u8; HASH_BYTES]> {
        let client_signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.stored_key), auth_message);
        let mut client_key: [u8; HASH_BYTES] = proof.try_into().ok()?;
        for (byte, mask) in client_key.iter_mut().zip(client_signature.as_ref()) {
            *byte ^= mask;
        }
        // Both sides are hashes under a key that the client does not know, so comparing them reveals nothing.
        let expected = hmac::sign(&self.server_key, &self.stored_key);
        hmac::verify(&self.server_key, &sha256(&client_key), expected.as_ref()).ok()?;
        hmac::sign(&self.server_key, auth_message).as_ref().try_into().ok()
    }
}

fn sha256(bytes: &[u8]) -> [u8; HASH_BYTES] {
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    fn salted(password: &str, salt: &[u8], iterations: u32) -> hmac::Key {
        let mut salted = [0; HASH_BYTES];
        let iterations = NonZeroU32::new(iterations).unwrap();
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, password.as_bytes(), &mut salted);
        hmac::Key::new(hmac::HMAC_SHA256, &salted)
    }

    /// What a client with this password sends.
    pub fn client_proof(password: &str, salt: &[u8], iterations: u32, auth_message: &[u8]) -> Vec<u8> {
        let client_key = hmac::sign(&salted(password, salt, iterations), b"Client Key");
        let stored_key = hmac::Key::new(hmac::HMAC_SHA256, &sha256(client_key.as_ref()));
        let signature = hmac::sign(&stored_key, auth_message);
        client_key.as_ref().iter().zip(signature.as_ref()).map(|(key, mask)| key ^ mask).collect()
    }

    pub fn server_signature(password: &str, salt: &[u8], iterations: u32, auth_message: &[u8]) -> [u8; 32] {
        let server_key = hmac::sign(&salted(password, salt, iterations), b"Server Key");
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, server_key.as_ref()), auth_message);
        signature.as_ref().try_into().unwrap()
    }

    /// The exchange in RFC 7677, section 3.
    #[test]
    fn the_exchange_of_the_standard_is_accepted() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let message = "n=user,r=rOprNGfwEbeRWgbNEkqO,\
            r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
            c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let proof = STANDARD.decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=").unwrap();
        let credential = ScramCredential::derive("pencil", &salt, 4096);
        let signature = credential.server_signature(message.as_bytes(), &proof).unwrap();
        assert_eq!(STANDARD.encode(signature), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        assert!(credential.server_signature(b"another message", &proof).is_none());
        assert!(credential.server_signature(message.as_bytes(), &proof[1..]).is_none());
    }
}
