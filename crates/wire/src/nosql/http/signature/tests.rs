use std::sync::Arc;

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use ring::hmac;

use super::*;
use crate::account::TokenSigner;
use crate::nosql::address::{self, Address};

/// The key that emulators publish.
const PRIMARY: &str = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const SECONDARY: &str = "c2Vjb25kYXJ5";
const READ_ONLY: &str = "cmVhZCBvbmx5";
const DATE: &str = "Thu, 27 Apr 2017 00:51:12 GMT";
const DATE_MS: u64 = 1_493_254_272_000;

fn at(now_ms: u64) -> AuthTime {
    AuthTime { now_ms, wall_ms: now_ms }
}

fn tokens() -> TokenSigner {
    TokenSigner::new(&[7; 32])
}

fn access(emulator_tokens: bool) -> AccountAccess {
    AccountAccess { keys: keys(), tokens: Arc::new(tokens()), bearer: Arc::default(), emulator_tokens }
}

fn authenticate(presented: &Credentials<'_>, at: AuthTime) -> Result<Caller, AuthError> {
    super::authenticate(&access(true), presented, at)
}

fn keys() -> AccountKeyring {
    AccountKeyring::new(PRIMARY, Some(SECONDARY), Some(READ_ONLY), Some("cmVhZCBvbmx5IDI=")).unwrap()
}

fn presented<'a>(verb: &'a str, address: &'a Address, authorization: &'a str) -> Credentials<'a> {
    let is_read = verb == "GET";
    let signing = address.signing();
    Credentials { verb, signing, is_read, authorization: Some(authorization), x_ms_date: Some(DATE), date: None }
}

/// The header that a client with this key would send.
fn signed(key: &str, text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(key).unwrap());
    format!("type=master&ver=1.0&sig={}", STANDARD.encode(hmac::sign(&key, text.as_bytes())))
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|b| if b.is_ascii_alphanumeric() { char::from(b).into() } else { format!("%{b:02X}") }).collect()
}

fn authenticate_signed(key: &str, verb: &str, path: &str, text: &str) -> Result<Caller, AuthError> {
    let address = address::parse(path).unwrap();
    authenticate(&presented(verb, &address, &signed(key, text)), at(DATE_MS))
}

/// Percent-encoded, as SDKs send it, and unencoded.
#[track_caller]
fn check_vector(verb: &str, path: &str, signature: &str) {
    let address = address::parse(path).unwrap();
    let plain = format!("type=master&ver=1.0&sig={signature}");
    for header in [percent_encoded(&plain), plain] {
        let got = authenticate(&presented(verb, &address, &header), at(DATE_MS));
        assert_eq!(got, Ok(Caller::ReadWrite), "{verb} {path} {header}");
    }
}

#[test]
fn signatures_of_clients_are_accepted() {
    check_vector("GET", "/", "gFB1bRB/PLJTG3bCgMuoVgNzOyFvZAamzEtLuSITjRc=");
    check_vector("POST", "/dbs", "CHjhNtQltyEuPdWLf2/f+hSkSlYg+7UuFlwMyv8L7mI=");
    check_vector("POST", "/dbs/My%20Db/colls/c/docs/", "TNO0TdGvOKRJlzJCLBBitENSMvXu8d3IiDZwl96dshA=");
    check_vector("GET", "/dbs/db/colls/c/docs/ID%20%C3%A9", "7oTCbLO9d7ib8Vekib8HKi0LQygMiXI4e1uTXLH96VA=");
    check_vector("GET", "/dbs/db/colls/c/pkranges/", "wxAgDJ/KC0d8WlGLHOcIjpHQdf49UPcKmDejX+VblHw=");
    check_vector("PUT", "/offers/OOOO/", "o5XMpTntNV1L//QH9CBGyx2B9hK/dFnnm1UBke19Lig=");
    let operation = "/dbs/db/colls/c/operations/partitionkeydelete";
    check_vector("POST", operation, "Puf4MaRaLmKG8VI7cTlNtAEjzcyVuPJqpY7QWEXg0OI=");
}

#[test]
fn a_resource_id_is_signed_in_lower_case() {
    let path = "/dbs/ZZZZAA==/colls/ZZZZAIZZZZY=/docs/ZZZZAIZZZZZBAAAAAAAAAA==/";
    check_vector("GET", path, "ZvR+/c822Ojgvi0BlhwD43iURLuwJobhZ8+VM0sVcxg=");
}

#[test]
fn every_account_key_grants_its_access() {
    let text = format!("get\ndbs\ndbs/d\n{}\n\n", DATE.to_lowercase());
    assert_eq!(authenticate_signed(PRIMARY, "GET", "/dbs/d", &text), Ok(Caller::ReadWrite));
    assert_eq!(authenticate_signed(SECONDARY, "GET", "/dbs/d", &text), Ok(Caller::ReadWrite));
    assert_eq!(authenticate_signed(READ_ONLY, "GET", "/dbs/d", &text), Ok(Caller::ReadOnly));
    assert_eq!(authenticate_signed("cmVhZCBvbmx5IDI=", "GET", "/dbs/d", &text), Ok(Caller::ReadOnly));
}

#[test]
fn a_read_only_key_does_not_write() {
    let text = format!("delete\ndbs\ndbs/d\n{}\n\n", DATE.to_lowercase());
    assert_eq!(authenticate_signed(READ_ONLY, "DELETE", "/dbs/d", &text), Err(AuthError::ReadOnlyKey));
}

#[test]
fn a_query_is_a_read_although_it_is_posted() {
    let address = address::parse("/dbs/d/colls/c/docs").unwrap();
    let header = signed(READ_ONLY, &format!("post\ndocs\ndbs/d/colls/c\n{}\n\n", DATE.to_lowercase()));
    let query = Credentials { is_read: true, ..presented("POST", &address, &header) };
    assert_eq!(authenticate(&query, at(DATE_MS)), Ok(Caller::ReadOnly));
}

#[test]
fn a_bad_signature_reports_the_string_to_sign() {
    let string_to_sign = format!("get\ndbs\ndbs/D\n{}\n\n", DATE.to_lowercase());
    let got = authenticate_signed("b3RoZXI=", "GET", "/dbs/D", &string_to_sign);
    assert_eq!(got, Err(AuthError::BadSignature { string_to_sign }));
}

#[test]
fn a_signature_is_valid_for_its_own_request_only() {
    let text = format!("get\ndbs\ndbs/d\n{}\n\n", DATE.to_lowercase());
    for (verb, path) in [("DELETE", "/dbs/d"), ("GET", "/dbs/D"), ("GET", "/dbs/d/colls"), ("GET", "/dbs")] {
        let got = authenticate_signed(PRIMARY, verb, path, &text);
        assert!(matches!(got, Err(AuthError::BadSignature { .. })), "{verb} {path}: {got:?}");
    }
}

#[test]
fn a_clock_skew_of_fifteen_minutes_is_accepted() {
    let address = address::parse("/").unwrap();
    let header = signed(PRIMARY, &format!("get\n\n\n{}\n\n", DATE.to_lowercase()));
    let at = |now_ms| authenticate(&presented("GET", &address, &header), at(now_ms));
    assert_eq!(at(DATE_MS + SKEW_MS_MAX), Ok(Caller::ReadWrite));
    assert_eq!(at(DATE_MS - SKEW_MS_MAX), Ok(Caller::ReadWrite));
    assert_eq!(at(DATE_MS + SKEW_MS_MAX + 1), Err(AuthError::Skewed));
    assert_eq!(at(DATE_MS - SKEW_MS_MAX - 1), Err(AuthError::Skewed));
}

#[test]
fn the_date_header_is_accepted_instead_of_x_ms_date() {
    let address = address::parse("/").unwrap();
    let lower = DATE.to_lowercase();
    let with = |text: &str, x_ms_date, date| {
        let header = signed(PRIMARY, text);
        authenticate(&Credentials { x_ms_date, date, ..presented("GET", &address, &header) }, at(DATE_MS))
    };
    assert_eq!(with(&format!("get\n\n\n\n{lower}\n"), None, Some(DATE)), Ok(Caller::ReadWrite));
    assert_eq!(with(&format!("get\n\n\n{lower}\n{lower}\n"), Some(DATE), Some(DATE)), Ok(Caller::ReadWrite));
    // A proxy or an HTTP library added `date`; the client signed without it.
    assert_eq!(with(&format!("get\n\n\n{lower}\n\n"), Some(DATE), Some(DATE)), Ok(Caller::ReadWrite));
    assert!(matches!(with("get\n\n\n\n\n", None, None), Err(AuthError::Malformed(_))));
}

#[test]
fn malformed_headers_are_reported() {
    let address = address::parse("/").unwrap();
    let got = |header| authenticate(&presented("GET", &address, header), at(DATE_MS));
    for header in ["", "Bearer x", "type=master", "type=master&ver=1.0&sig=", "type=master&ver=1.0&sig=AAAA", "%"] {
        assert!(matches!(got(header), Err(AuthError::Malformed(_))), "{header}");
    }
    for header in ["type=other&ver=1.0&sig=x", "type=master&ver=2.0&sig=x", "ver=1.0&type=master&sig=x", "%ff"] {
        assert!(matches!(got(header), Err(AuthError::Malformed(_))), "{header}");
    }
    assert_eq!(got("type%3Dresource%26ver%3D1%26sig%3Dabc"), Err(AuthError::BadToken));
    let missing = Credentials { authorization: None, ..presented("GET", &address, "") };
    assert_eq!(authenticate(&missing, at(DATE_MS)), Err(AuthError::Missing));
}

#[test]
fn keys_are_not_printed_and_must_be_base64() {
    assert_eq!(format!("{:?}", keys()), "AccountKeyring(not shown)");
    let error = AccountKeyring::new("not base64!", None, None, None).unwrap_err();
    assert!(!error.to_string().contains("not base64!"), "{error}");
    assert!(AccountKeyring::new("", None, None, None).is_err());
}

const TOKEN_HEADER: &str =
    r#"{"typ":"JWT","alg":"RS256","x5t":"CosmosEmulatorPrimaryMaster","kid":"CosmosEmulatorPrimaryMaster"}"#;
const TOKEN_CLAIMS: &str = r#"{"aud":"https://localhost.localhost","iss":"https://sts.fake-issuer.net/7b1999a1-dfd7-440e-8204-00170979b984","iat":1493254272,"nbf":1493254272,"exp":1493257872,"tid":"EmulatorFederation"}"#;

fn with_token(header: &str, claims: &str, secret: &str, now_ms: u64) -> Result<Caller, AuthError> {
    with_token_at(header, claims, secret, at(now_ms))
}

#[test]
fn emulator_tokens_are_accepted_by_dev_only() {
    let token = emulator_token(TOKEN_HEADER, TOKEN_CLAIMS, PRIMARY);
    let address = address::parse("/dbs/d/colls/c/docs").unwrap();
    let got = |dev| super::authenticate(&access(dev), &presented("POST", &address, &token), at(DATE_MS));
    assert_eq!(got(true), Ok(Caller::Data));
    assert_eq!(got(false), Err(AuthError::AadNotAccepted));
}

fn emulator_token(header: &str, claims: &str, secret: &str) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("type=aad&ver=1.0&sig={}.{}.{}", part(header), part(claims), part(secret))
}

fn with_token_at(header: &str, claims: &str, secret: &str, at: AuthTime) -> Result<Caller, AuthError> {
    let authorization = emulator_token(header, claims, secret);
    let address = address::parse("/dbs/d/colls/c/docs").unwrap();
    let presented = Credentials { x_ms_date: None, ..presented("POST", &address, &authorization) };
    authenticate(&presented, at)
}

#[test]
fn an_emulator_token_with_the_primary_key_grants_data_access() {
    assert_eq!(with_token(TOKEN_HEADER, TOKEN_CLAIMS, PRIMARY, DATE_MS), Ok(Caller::Data));
}

#[test]
fn other_bearer_tokens_are_rejected() {
    let rejected = Err(AuthError::AadNotAccepted);
    assert_eq!(with_token(TOKEN_HEADER, TOKEN_CLAIMS, SECONDARY, DATE_MS), rejected);
    assert_eq!(with_token(TOKEN_HEADER, TOKEN_CLAIMS, "", DATE_MS), rejected);
    assert_eq!(with_token("{}", TOKEN_CLAIMS, PRIMARY, DATE_MS), rejected);
    assert_eq!(with_token("not json", TOKEN_CLAIMS, PRIMARY, DATE_MS), rejected);
    let foreign = TOKEN_CLAIMS.replace("EmulatorFederation", "contoso");
    assert_eq!(with_token(TOKEN_HEADER, &foreign, PRIMARY, DATE_MS), rejected);
    assert_eq!(with_token(TOKEN_HEADER, TOKEN_CLAIMS, PRIMARY, DATE_MS + 2 * 3600 * 1000), rejected);
    let address = address::parse("/").unwrap();
    let got = authenticate(&presented("GET", &address, "type=aad&ver=1.0&sig=a.b.c.d"), at(DATE_MS));
    assert_eq!(got, rejected);
}

#[test]
fn dates_are_parsed_case_insensitively() {
    let ms = |text| date::parse_ms(text);
    assert_eq!(ms(DATE), Some(DATE_MS));
    assert_eq!(ms("thu, 27 apr 2017 00:51:12 gmt"), Some(DATE_MS));
    assert_eq!(ms("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    assert_eq!(ms("Sat, 29 Feb 2020 23:59:59 GMT"), Some(1_583_020_799_000));
    assert_eq!(ms("Fri, 31 Dec 2100 00:00:00 GMT"), Some(4_133_894_400_000));
    for text in
        ["", "27 Apr 2017", "Thu, 27 Foo 2017 00:51:12 GMT", "Thu, 27 Apr 2017 24:00:00 GMT", "2017-04-27T00:51:12Z"]
    {
        assert_eq!(ms(text), None, "{text}");
    }
    for text in ["Thu, 27 Apr 2017 00:51:12 PST", "Thu, 27 Apr 2017 00:51:12 GMT x", "Thu, 0 Apr 2017 00:51:12 GMT"] {
        assert_eq!(ms(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn no_header_panics(header in "(type=|master|aad|resource|&|ver=1.0|sig=|%|=|\\.|[A-Za-z0-9+/é]){0,12}", date in "\\PC{0,40}") {
        let address = address::parse("/dbs/d").unwrap();
        let presented = Credentials { x_ms_date: Some(&date), ..presented("GET", &address, &header) };
        prop_assert!(authenticate(&presented, at(0)).is_err());
    }

    #[test]
    fn dates_follow_the_calendar(days in 0_u64..40_000, seconds in 0_u64..86_400) {
        let text = rfc_1123(days, seconds);
        prop_assert_eq!(date::parse_ms(&text), Some((days * 86_400 + seconds) * 1000), "{}", text);
    }
}

/// A slow reference implementation: subtracts years and months one by one.
fn rfc_1123(mut days: u64, seconds: u64) -> String {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let name = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][month];
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("Mon, {:02} {name} {year} {hour:02}:{minute:02}:{second:02} GMT", days + 1)
}

#[test]
fn an_advanced_test_clock_does_not_affect_signatures_and_bearer_tokens() {
    let address = address::parse("/dbs/d").unwrap();
    let text = format!("get\ndbs\ndbs/d\n{}\n\n", DATE.to_lowercase());
    let header = signed(PRIMARY, &text);
    let moved = AuthTime { now_ms: DATE_MS + 10 * SKEW_MS_MAX, wall_ms: DATE_MS };
    assert_eq!(authenticate(&presented("GET", &address, &header), moved), Ok(Caller::ReadWrite));
    assert_eq!(with_token_at(TOKEN_HEADER, TOKEN_CLAIMS, PRIMARY, moved), Ok(Caller::Data));
}
