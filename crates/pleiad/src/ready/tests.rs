//! Tests of the ready line, which test harnesses wait for.

use super::*;
use crate::endpoint::ProtocolEndpoint;

fn endpoints(http: bool, https: bool) -> Endpoints {
    let at = |scheme: &str| format!("{scheme}://localhost:8081");
    Endpoints { port: 8081, http: http.then(|| at("http")), https: https.then(|| at("https")), further: Vec::new() }
}

#[test]
fn the_ready_line_is_one_json_object_with_all_endpoints() {
    assert_eq!(
        line(&endpoints(true, true), 4242),
        "{\"ready\":true,\"endpoint\":\"http://localhost:8081\",\"https\":\"https://localhost:8081\",\"port\":8081,\"pid\":4242}\n"
    );
}

#[test]
fn protocols_with_their_own_ports_add_members() {
    let echo = ProtocolEndpoint { name: "echo", address: "echo://localhost:7".to_owned() };
    assert_eq!(
        line(&Endpoints { further: vec![echo], ..endpoints(true, false) }, 4242),
        "{\"ready\":true,\"endpoint\":\"http://localhost:8081\",\"port\":8081,\"pid\":4242,\"echo\":\"echo://localhost:7\"}\n"
    );
}

#[test]
fn only_enabled_protocols_are_listed() {
    assert!(!line(&endpoints(true, false), 1).contains("https"));
    assert!(line(&endpoints(false, true), 1).contains("\"endpoint\":\"https://localhost:8081\""));
}

#[cfg(unix)]
#[test]
fn the_ready_line_is_written_to_the_given_descriptor() {
    use std::io::{Read, Seek};
    use std::os::fd::AsRawFd;
    let mut file = tempfile::tempfile().unwrap();
    announce(&endpoints(true, true), Some(u32::try_from(file.as_raw_fd()).unwrap())).unwrap();
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("{\"ready\":true") && text.ends_with("}\n"), "{text}");
    assert!(announce(&endpoints(true, true), Some(987_654)).unwrap_err().to_string().contains("--ready-fd"));
}
