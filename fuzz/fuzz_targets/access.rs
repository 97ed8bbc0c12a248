//! Files of roles, key sets and tokens: any bytes are read or refused. A token is also put together of a good header and any claims,
//! which chance would not find.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_wire::nosql::auth::bearer::{Issuer, JsonWebKeySet, check};
use pleiad_wire::nosql::roles;

fuzz_target!(|bytes: (&[u8], &str)| {
    let (file, token) = bytes;
    let _ = roles::parse(file);
    let issuer = Issuer { name: "i".to_owned(), audiences: vec!["a".to_owned()] };
    let keys = JsonWebKeySet::parse(file).unwrap_or_default();
    let _ = check(&issuer, &keys, token, 0);
    let _ = check(&issuer, &keys, &format!("eyJhbGciOiJFUzI1NiJ9.{token}"), 0);
});
