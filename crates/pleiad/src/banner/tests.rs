//! The banner contains everything needed to connect, and the key only in dev.

use super::*;
use crate::config::{Environment, FlagValues};
use crate::endpoint::ProtocolEndpoint;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";

fn banner(mode: RunMode, flags: &[(&'static str, &str)]) -> String {
    let flags: FlagValues = flags.iter().map(|(name, word)| (*name, vec![(*word).to_owned()])).collect();
    let environment = Environment::from([("HOME", "/home/ada"), ("PLEIAD_PRIMARY_KEY", KEY)]);
    let settings = Settings::resolve(mode, &flags, &environment).unwrap();
    let echo = ProtocolEndpoint { name: "echo", address: "echo://localhost:7".to_owned() };
    text(&settings, &Endpoints::new(&settings, 8082, vec![echo]), Some(Path::new("/d/ca.pem")))
}

#[test]
fn dev_shows_endpoint_key_connection_string_data_and_how_to_stop() {
    let banner = banner(RunMode::Dev, &[("data", "/d")]);
    for wanted in [
        "http://localhost:8082  https://localhost:8082",
        &format!("AccountEndpoint=http://localhost:8082/;AccountKey={KEY};"),
        "echo      echo://localhost:7\n",
        "data      /d\n",
        "`pleiad trust` makes clients trust /d/ca.pem",
        "stop      Ctrl-C",
    ] {
        assert!(banner.contains(wanted), "{wanted}\n{banner}");
    }
}

#[test]
fn serve_never_shows_its_key() {
    let banner = banner(RunMode::Serve, &[("data", "/d")]);
    assert!(banner.contains("http://localhost:8082\n") && !banner.contains(&KEY[..20]), "{banner}");
}

#[test]
fn ephemeral_data_is_shown_as_in_memory() {
    assert!(banner(RunMode::Dev, &[("ephemeral", "true")]).contains("in memory"));
}
