//! Tokens signed with keys generated here, with every possible defect. The RSA vectors are from OpenSSL.

use super::*;
use pleiad_model::Object;
use proptest::prelude::*;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair};

const NOW_S: i64 = 1_700_000_000;

/// An issuer with one P-256 key.
pub struct Signer {
    pair: EcdsaKeyPair,
    pub id: &'static str,
}

impl Signer {
    pub fn new(id: &'static str) -> Signer {
        let rng = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &rng).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &rng).unwrap();
        Signer { pair, id }
    }

    /// As a member of a key set.
    pub fn public(&self) -> Object {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        Object::new().with("kty", "EC").with("crv", "P-256").with("kid", self.id).with("x", x).with("y", y)
    }

    pub fn set(&self) -> JsonWebKeySet {
        JsonWebKeySet::parse(set_of(vec![self.public().into()]).as_bytes()).unwrap()
    }

    pub fn sign(&self, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    pub fn token(&self, claims: &str) -> String {
        self.sign(&format!(r#"{{"alg":"ES256","kid":"{}"}}"#, self.id), claims)
    }
}

pub fn set_of(keys: Vec<Value>) -> String {
    json::to_string(&Object::new().with("keys", Value::Array(keys)).into())
}

pub fn issuer() -> Issuer {
    Issuer { name: "https://issuer/".to_owned(), audiences: vec!["https://cosmos.azure.com".to_owned()] }
}

const CLAIMS: &str = r#"{"iss":"https://issuer/","aud":"https://cosmos.azure.com","exp":1700000600,"nbf":1700000000,"oid":"me","groups":["g1","g2"]}"#;

fn checked(signer: &Signer, token: &str) -> Result<Principal, AuthError> {
    check(&issuer(), &signer.set(), token, NOW_S)
}

#[test]
fn a_signed_token_names_its_principal_and_its_groups() {
    let signer = Signer::new("k1");
    let me = checked(&signer, &signer.token(CLAIMS)).unwrap();
    assert_eq!(me.ids().collect::<Vec<_>>(), ["me", "g1", "g2"]);
    let anonymous = signer.sign(r#"{"alg":"ES256"}"#, CLAIMS);
    assert_eq!(checked(&signer, &anonymous), Ok(me), "without a key id all keys are tried");
}

/// Each case replaces a part of the claims and expects a result.
#[test]
fn every_claim_is_checked() {
    let signer = Signer::new("k1");
    let outcome = |from: &str, to: &str| match checked(&signer, &signer.token(&CLAIMS.replace(from, to))) {
        Ok(_) => "fine",
        Err(AuthError::Bearer(why)) => why,
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(outcome("issuer/", "other/"), "it is from another issuer");
    assert_eq!(outcome("cosmos.azure", "storage.azure"), "it is for another audience");
    assert_eq!(outcome(r#""https://cosmos.azure.com""#, r#"["x","https://cosmos.azure.com/"]"#), "fine");
    assert_eq!(outcome(r#""https://cosmos.azure.com""#, "[]"), "it is for another audience");
    assert_eq!(outcome("1700000600", "1699999701"), "fine", "five minutes of clock skew are tolerated");
    assert_eq!(outcome("1700000600", "1699999700"), "it has expired");
    assert_eq!(outcome(r#""exp":1700000600,"#, ""), "it never expires: the claim 'exp' is missing");
    assert_eq!(outcome(r#""nbf":1700000000"#, r#""nbf":1700000300"#), "fine");
    assert_eq!(outcome(r#""nbf":1700000000"#, r#""nbf":1700000301"#), "it is not valid yet");
    assert_eq!(outcome(r#""nbf":1700000000"#, r#""nbf":"soon""#), "its claim 'nbf' is no time");
    assert_eq!(outcome(r#""oid":"me""#, r#""sub":"me""#), "it names no principal: the claim 'oid' is missing");
}

#[test]
fn only_the_issuers_keys_with_their_own_algorithm_verify() {
    let (signer, stranger) = (Signer::new("k1"), Signer::new("k1"));
    let not_signed = Err(AuthError::Bearer("its signature is not the issuer's"));
    assert_eq!(checked(&signer, &stranger.token(CLAIMS)), not_signed);
    for algorithm in ["none", "HS256", "RS256", "ES384", "es256", ""] {
        let header = format!(r#"{{"alg":"{algorithm}","kid":"k1"}}"#);
        assert_eq!(checked(&signer, &signer.sign(&header, CLAIMS)), not_signed, "{algorithm}");
    }
    let unsigned = signer.token(CLAIMS);
    let unsigned = &unsigned[..=unsigned.rfind('.').unwrap()];
    assert_eq!(checked(&signer, unsigned), not_signed);
    let other_key = signer.sign(r#"{"alg":"ES256","kid":"k2"}"#, CLAIMS);
    assert_eq!(checked(&signer, &other_key), Err(AuthError::UnknownKey));
    let critical = signer.sign(r#"{"alg":"ES256","kid":"k1","crit":["exp"]}"#, CLAIMS);
    assert_eq!(checked(&signer, &critical), Err(AuthError::Bearer("it has critical extensions")));
}

const MODULUS: &str = "2-YX2cOAK-CIiRds4Aad4MKZumLxfpYDP3XXpDLQsi0kGddRR3EL99J3PuTK6WEf9LuWaKOBnNIOup4HnoOb0wg5s5jhwcws4Q6NEMZEuEL6RnIV0nI7Y18sPM-DwPk_LpBOfTRrtvG_kPMeafDgxGUNcc8DwK04GAH-ztN_cIMUKHqbFzzr1OX6xSyRQH7mvSLmKsL7f_OGdxt8IpATYh3_z-BpH0AuvllQaE3QzDA6vgWUImOW66_Q-E5WMa1ZsBJ3w5XUxYN0JrRXFFPYMh3uGbDbarrACLub0KuNRKP_-ZHhtXc2AKUeCn_W8xjWPVEN0kdlq3v2QPkZCxC90Q";
const RS256: &str = "JSRtS7V9_S0jAWwbmwDv_fYlF-WfWGJr7mNbmjEMJaUBpFCosIUIEDp_p1484thsRAcXOINVq4PtaBZFpHeIyiifY7GcnFYZ8mhNmG2wtLL9ZJ-8VOPIwcdan5JN31LfP1DmBvTTn85o1z8bH401DuHoBbSY6AnLdX8fRm_XyxR5-pgmwQjNdkHfvaN4HKro29WfJ9mIbGnXq_qDBPrUO3foz0KpI0PpZdM8s06QEjc8BWcMTXv2YH5C5ORlcuyD2SuFg-ddQIAG1E2NvGp6D1hQ-LjW9bdH7-oZTtfeCAtER6ATTCS8GyYjcHi7MUl2p2cUmxtFElpeetcP7pEPrg";
const PS512: &str = "SO5xkv94lrmwbu7H-CHyjcOM-6V-77la4EtjKtRxwpLs_WJv3hk7fS0gnE3GA-o4RkNDAW75afcJkNMZigjvELjankDIuQEyOBRFpXmFcaBFH87PStRDXSBStrABEggiy_i7aG5CHOIzg6uIMf59Qj_GmVKwIs7RMHpWdN4GmVHKqVAN-ZfcdrydvO-344kCQUjqsx7h-mkri6OXeQQc_9fUvCYUqIYziEzBikKa4vMPAKrKm7-8Ko_QNCPiQkWDCE3vVeeFZsYpXx2UZMyRFyeycctRyivnAcWqvA4C6EArHVuY1Edv6NI0u07mrO2JlPU6I5zqR4aV81Jv39YVLA";

#[test]
fn rsa_keys_verify_both_paddings() {
    let rsa = |algorithm: &str| {
        let text =
            format!(r#"{{"keys":[{{"kty":"RSA","kid":"r","use":"sig","n":"{MODULUS}","e":"AQAB"{algorithm}}}]}}"#);
        JsonWebKeySet::parse(text.as_bytes()).unwrap()
    };
    let verdict = |set: &JsonWebKeySet, algorithm: &str, signature: &str| {
        set.verify(Some("r"), algorithm, b"header.claims", &decode_part(signature).unwrap())
    };
    use jwks::Verdict::{NotSigned, Signed};
    let any = rsa("");
    assert_eq!(verdict(&any, "RS256", RS256), Signed);
    assert_eq!(verdict(&any, "PS512", PS512), Signed);
    assert_eq!(verdict(&any, "RS512", PS512), NotSigned);
    assert_eq!(verdict(&any, "ES256", RS256), NotSigned);
    let bound = rsa(r#","alg":"RS256""#);
    assert_eq!(verdict(&bound, "RS256", RS256), Signed);
    assert_eq!(verdict(&bound, "PS512", PS512), NotSigned, "the set restricts the key to another algorithm");
}

#[test]
fn p384_keys_verify() {
    let rng = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &rng).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, key.as_ref(), &rng).unwrap();
    let (x, y) = pair.public_key().as_ref()[1..].split_at(48);
    let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
    let public = Object::new().with("kty", "EC").with("crv", "P-384").with("x", x).with("y", y);
    let set = JsonWebKeySet::parse(set_of(vec![public.into()]).as_bytes()).unwrap();
    let signature = pair.sign(&rng, b"text").unwrap();
    assert_eq!(set.verify(None, "ES384", b"text", signature.as_ref()), jwks::Verdict::Signed);
    assert_eq!(set.verify(None, "ES256", b"text", signature.as_ref()), jwks::Verdict::NotSigned);
}

#[test]
fn key_sets_are_parsed_as_the_standard_requires() {
    let mine: Value = Signer::new("k1").public().into();
    let parse = |keys: Vec<Value>| JsonWebKeySet::parse(set_of(keys).as_bytes());
    let other = |text: &str| json::parse(text.as_bytes()).unwrap();
    let strange = [r#"{"kty":"oct","k":"AAAA"}"#, r#"{"kty":"EC","crv":"P-521","x":"AA","y":"AA"}"#, "{}", "1"];
    let with_strange = strange.map(other).into_iter().chain([mine.clone()]).collect();
    assert!(parse(with_strange).is_ok(), "unknown keys are ignored");
    assert!(parse(strange.map(other).to_vec()).is_err(), "at least one key must be usable");
    let secret = Signer::new("k2").public().with("use", "enc");
    assert!(parse(vec![secret.into()]).is_err());
    assert!(parse(vec![mine.clone(); 100]).is_ok());
    assert!(parse(vec![mine; 101]).is_err());
    for wrong in ["", "[]", "{}", r#"{"keys":{}}"#] {
        assert!(JsonWebKeySet::parse(wrong.as_bytes()).is_err(), "{wrong:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_changed_token_is_rejected(at: prop::sample::Index, byte in "[A-Za-z0-9._-]") {
        let signer = Signer::new("k1");
        let token = signer.token(CLAIMS);
        let mut edited = token.clone();
        let at = at.index(token.len());
        edited.replace_range(at..=at, &byte);
        prop_assert!(edited == token || checked(&signer, &edited).is_err());
    }

    #[test]
    fn arbitrary_text_is_rejected(token in "\\PC{0,80}", parts in "[A-Za-z0-9_-]{0,20}(\\.[A-Za-z0-9_-]{0,20}){0,3}") {
        let signer = Signer::new("k1");
        prop_assert!(checked(&signer, &token).is_err());
        prop_assert!(checked(&signer, &parts).is_err());
    }
}
