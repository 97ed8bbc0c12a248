//! The binary, started for a test and stopped after it.
//!
//! Guarantees: `start` returns a server that accepts requests (it has printed its ready line), on a free port, with
//! data in memory; dropping it leaves no process behind.
//!
//! The ready line is one line of JSON on stdout:
//!   {"ready":true,"endpoint":"http://localhost:40117","https":"https://localhost:40117","port":40117,"pid":4711}

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::shell::{self, Result};

/// The well-known key of the Cosmos emulators; public, and in the documentation of every SDK.
pub const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const READY_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

pub struct TestServer {
    child: Child,
    log: PathBuf,
    pub endpoint: String,
    pub endpoint_https: String,
    pub port: u16,
}

impl TestServer {
    /// Starts `pleiad` as an emulator with these flags; its stderr goes to `log`.
    pub fn start(mut pleiad: Command, flags: &[&str], log: PathBuf) -> Result<TestServer> {
        let stderr = File::create(&log).map_err(|e| format!("cannot write {}: {e}", log.display()))?;
        pleiad.args(["dev", "--port", "0", "--ephemeral"]).args(flags);
        pleiad.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = pleiad.spawn().map_err(|e| format!("cannot start `{}`: {e}", shell::command_line(&pleiad)))?;
        let stdout = child.stdout.take();
        let mut server = TestServer { child, log, endpoint: String::new(), endpoint_https: String::new(), port: 0 };
        let ready = stdout.and_then(wait_for_ready).ok_or_else(|| server.error_with_log("did not report readiness"))?;
        match server.read_ready(&ready) {
            Some(()) => Ok(server),
            None => Err(server.error_with_log(&format!("printed a ready line that cannot be parsed: {ready}"))),
        }
    }

    fn read_ready(&mut self, line: &str) -> Option<()> {
        self.endpoint = json_text(line, "endpoint")?;
        self.endpoint_https = json_text(line, "https")?;
        self.port = json_number(line, "port")?.try_into().ok()?;
        Some(())
    }

    /// The certificate that a client must trust to use HTTPS, as PEM.
    pub fn certificate(&self) -> Result<Vec<u8>> {
        http_get(self.port, "/_explorer/emulator.pem")
    }

    /// Sends SIGTERM and waits; returns an error if the process had already ended, which no suite should cause.
    pub fn stop(mut self) -> Result {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(self.error_with_log(&format!("ended while the suite was running ({status})")));
        }
        shell::works("kill", ["-TERM", &self.child.id().to_string()]);
        let start = Instant::now();
        while start.elapsed() < STOP_TIMEOUT {
            if let Ok(Some(_)) = self.child.try_wait() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(self.error_with_log(&format!("did not stop within {} s of SIGTERM", STOP_TIMEOUT.as_secs())))
    }

    fn error_with_log(&self, what: &str) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(20)..].join("\n  ");
        format!("the server {what}; the end of {}:\n  {tail}", self.log.display())
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended already, which is fine
        let _ = self.child.wait();
    }
}

/// The ready line, or None if the server ends or times out. A thread keeps reading, so that the server never blocks on
/// a full pipe.
fn wait_for_ready(stdout: ChildStdout) -> Option<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(|line| line.ok()) {
            let _ = send.send(line); // the receiver is dropped after the ready line
        }
    });
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        let line = receive.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
        if line.starts_with('{') && line.contains("\"ready\":true") {
            return Some(line);
        }
    }
}

/// The value of a string member in one line of flat JSON without escapes, such as a ready line.
fn json_text(line: &str, name: &str) -> Option<String> {
    let rest = after_name(line, name)?.strip_prefix('"')?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

fn json_number(line: &str, name: &str) -> Option<u64> {
    let rest = after_name(line, name)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn after_name<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{name}\""))?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

/// HTTP/1.0, so that the response ends with the connection and has no chunks.
fn http_get(port: u16, path: &str) -> Result<Vec<u8>> {
    let wrong = |what: String| format!("GET {path} on port {port}: {what}");
    let mut stream = TcpStream::connect(("localhost", port)).map_err(|e| wrong(e.to_string()))?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(|e| wrong(e.to_string()))?;
    stream.write_all(request.as_bytes()).map_err(|e| wrong(e.to_string()))?;
    stream.read_to_end(&mut answer).map_err(|e| wrong(e.to_string()))?;
    body_of(&answer).map_err(wrong)
}

fn body_of(answer: &[u8]) -> std::result::Result<Vec<u8>, String> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or("incomplete response")?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some("200") => Ok(answer[end + 4..].to_vec()),
        _ => Err(format!("the server returned `{status}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &str = r#"{"ready":true,"endpoint":"http://localhost:40117","https": "https://localhost:40117","port":40117,"pid":4711}"#;

    #[test]
    fn a_ready_line_is_parsed() {
        assert_eq!(json_text(READY, "endpoint").as_deref(), Some("http://localhost:40117"));
        assert_eq!(json_text(READY, "https").as_deref(), Some("https://localhost:40117"));
        assert_eq!(json_number(READY, "port"), Some(40117));
        assert_eq!(json_text(READY, "absent"), None);
    }

    /// A shell script in place of the server; it ignores the server's arguments.
    fn start_script(script: &str) -> Result<TestServer> {
        let (dir, mut shell) = (tempfile::tempdir().unwrap(), Command::new("sh"));
        shell.args(["-c", script]);
        TestServer::start(shell, &[], dir.path().join("server.log"))
    }

    #[test]
    fn a_server_is_started_and_stopped() {
        let server = start_script(&format!("echo starting; echo '{READY}'; exec sleep 60")).unwrap();
        assert_eq!((server.endpoint.as_str(), server.port), ("http://localhost:40117", 40117));
        server.stop().unwrap();
    }

    #[test]
    fn an_error_at_start_contains_the_log() {
        let error = start_script("echo the port is taken >&2; exit 1").err().unwrap();
        assert!(error.contains("did not report readiness") && error.contains("the port is taken"), "{error}");
    }

    #[test]
    fn only_a_complete_200_has_a_body() {
        assert_eq!(body_of(b"HTTP/1.0 200 OK\r\nA: b\r\n\r\npem").unwrap(), b"pem");
        assert!(body_of(b"HTTP/1.1 404 Not Found\r\n\r\n").unwrap_err().contains("404"));
        assert!(body_of(b"HTTP/1.0 200 OK\r\n").is_err());
    }
}
