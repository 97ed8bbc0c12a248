//! Role files, key sets and bearer tokens: arbitrary bytes are parsed or rejected. The input is also used as the claims
//! of a token with a valid header, which random input would not reach.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_wire::account::bearer::{Issuer, JsonWebKeySet, check};
use pleiad_wire::account::roles;

fuzz_target!(|bytes: (&[u8], &str)| {
    let (file, token) = bytes;
    let _ = roles::parse(file);
    let issuer = Issuer { name: "i".to_owned(), audiences: vec!["a".to_owned()] };
    let keys = JsonWebKeySet::parse(file).unwrap_or_default();
    let _ = check(&issuer, &keys, token, 0);
    let _ = check(&issuer, &keys, &format!("eyJhbGciOiJFUzI1NiJ9.{token}"), 0);
});
