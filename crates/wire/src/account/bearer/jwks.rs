//! JSON Web Key Set (JWKS): an issuer's public keys.
//!
//! ```text
//! {"keys": [{"kty":"RSA","kid":"k1","use":"sig","n":"…","e":"AQAB"}, {"kty":"EC","kid":"k2","crv":"P-256","x":"…","y":"…"}]}
//! ```
//!
//! Invariant: a key verifies only algorithms of its own type. Keys of unknown types, or not for signatures, are
//! ignored, as the standard requires.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pleiad_model::{Error, Result, Value, json};
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};

/// More than any issuer has; a token without a key id is tried with all of them.
const KEYS_MAX: usize = 100;

#[derive(Debug, Default)]
pub struct JsonWebKeySet {
    keys: Vec<PublicKey>,
}

#[derive(Debug)]
struct PublicKey {
    id: Option<String>,
    /// The only algorithm that the key may be used with, if the set specifies one.
    algorithm: Option<String>,
    kind: KeyAlgorithm,
}

#[derive(Debug)]
enum KeyAlgorithm {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// `04 │ x │ y`
    P256(Vec<u8>),
    P384(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Signed,
    NotSigned,
    /// The issuer may have new keys.
    NoSuchKey,
}

impl JsonWebKeySet {
    pub fn parse(text: &[u8]) -> Result<JsonWebKeySet> {
        let set = json::parse(text)?;
        let keys = set.get("keys").and_then(Value::as_array);
        let keys = keys.ok_or_else(|| Error::invalid("A key set is a JSON object with an array 'keys'."))?;
        if keys.len() > KEYS_MAX {
            return Err(Error::invalid(format!("A key set has at most {KEYS_MAX} keys.")));
        }
        let keys: Vec<PublicKey> = keys.iter().filter_map(PublicKey::read).collect();
        if keys.is_empty() {
            return Err(Error::invalid("The key set has no RSA, P-256 or P-384 key for signatures."));
        }
        Ok(JsonWebKeySet { keys })
    }

    /// Verifies with the key of that id, or with any key if the token has no key id.
    pub fn verify(&self, id: Option<&str>, algorithm: &str, signed: &[u8], signature: &[u8]) -> Verdict {
        let mut verdict = Verdict::NoSuchKey;
        for key in self.keys.iter().filter(|key| id.is_none() || key.id.as_deref() == id) {
            if key.verifies(algorithm, signed, signature) {
                return Verdict::Signed;
            }
            verdict = Verdict::NotSigned;
        }
        verdict
    }
}

impl PublicKey {
    fn read(key: &Value) -> Option<PublicKey> {
        let text = |name| key.get(name).and_then(Value::as_str);
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let kind = match (text("kty")?, text("crv")) {
            ("RSA", _) => KeyAlgorithm::Rsa { modulus: number(text("n")?)?, exponent: number(text("e")?)? },
            ("EC", Some("P-256")) => KeyAlgorithm::P256(point(text("x")?, text("y")?, 32)?),
            ("EC", Some("P-384")) => KeyAlgorithm::P384(point(text("x")?, text("y")?, 48)?),
            _ => return None,
        };
        Some(PublicKey { id: text("kid").map(str::to_owned), algorithm: text("alg").map(str::to_owned), kind })
    }

    fn verifies(&self, algorithm: &str, signed: &[u8], signature: &[u8]) -> bool {
        if self.algorithm.as_deref().is_some_and(|own| own != algorithm) {
            return false;
        }
        match (&self.kind, algorithm) {
            (KeyAlgorithm::P256(point), "ES256") => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point).verify(signed, signature).is_ok()
            }
            (KeyAlgorithm::P384(point), "ES384") => {
                UnparsedPublicKey::new(&signature::ECDSA_P384_SHA384_FIXED, point).verify(signed, signature).is_ok()
            }
            (KeyAlgorithm::Rsa { modulus, exponent }, algorithm) => rsa(algorithm).is_some_and(|parameters| {
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(parameters, signed, signature).is_ok()
            }),
            _ => false,
        }
    }
}

fn rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &signature::RSA_PSS_2048_8192_SHA256,
        "PS384" => &signature::RSA_PSS_2048_8192_SHA384,
        "PS512" => &signature::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// Without leading zeros, which some issuers write and the verifier does not accept.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let start = bytes.iter().position(|&byte| byte != 0)?;
    bytes.get(start..).map(<[u8]>::to_vec)
}

fn point(x: &str, y: &str, bytes: usize) -> Option<Vec<u8>> {
    let coordinate = |text| URL_SAFE_NO_PAD.decode(text).ok().filter(|decoded: &Vec<u8>| decoded.len() == bytes);
    Some([vec![4], coordinate(x)?, coordinate(y)?].concat())
}
