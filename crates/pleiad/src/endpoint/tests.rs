//! A connection string with a private key must not reach ready line, banner or log.

use super::*;
use crate::config::{Environment, FlagValues};

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";

fn endpoints(mode: RunMode, address: &str) -> Endpoints {
    let flags: FlagValues = [("data", vec!["/d".to_owned()])].into();
    let environment = Environment::from([("HOME", "/home/ada"), ("PLEIAD_PRIMARY_KEY", KEY)]);
    let settings = Settings::resolve(mode, &flags, &environment).unwrap();
    Endpoints::new(&settings, 8081, vec![ProtocolEndpoint { name: "echo", address: address.to_owned() }])
}

#[test]
fn further_endpoints_are_kept_as_their_protocols_write_them() {
    for (mode, address) in
        [(RunMode::Serve, "echo://localhost:7"), (RunMode::Dev, &format!("echo://{KEY}@localhost:7"))]
    {
        assert_eq!(endpoints(mode, address).further[0].address, address);
    }
}

#[test]
#[should_panic(expected = "contains the account's key")]
fn serve_shows_no_key_in_an_endpoint() {
    endpoints(RunMode::Serve, &format!("echo://{KEY}@localhost:7"));
}
