//! Ready line: one line for machines, written when the server accepts requests.
//!
//! Guarantees: exactly one line of JSON, on standard output or on the file descriptor that the parent process left
//! open. The parent reads one line and has the endpoint to connect to.
//!
//! ```json
//! {"ready":true,"endpoint":"http://localhost:8081","https":"https://localhost:8081","port":8081,"pid":4242}
//! ```
//!
//! `https` is missing when HTTPS is off; when only HTTPS is on, `endpoint` is the HTTPS URL, too. Every protocol with a
//! port of its own adds a member with its name.

#[cfg(test)]
mod tests;

use std::fs::OpenOptions;
use std::io::Write;

use pleiad_model::{Error, Object, Result, Value, json};

use crate::endpoint::Endpoints;

pub fn announce(endpoints: &Endpoints, fd: Option<u32>) -> Result<()> {
    let line = line(endpoints, std::process::id());
    let written = match fd {
        None | Some(1) => write_line(std::io::stdout().lock(), &line),
        Some(2) => write_line(std::io::stderr().lock(), &line),
        Some(fd) => open(fd).and_then(|file| write_line(file, &line)),
    };
    written.map_err(|error| Error::invalid(format!("cannot write the ready line: {error}. Check --ready-fd.")))
}

/// Opens the descriptor by its path in `/dev/fd`, which is safe even if the number is not a descriptor of this process.
fn open(fd: u32) -> std::io::Result<std::fs::File> {
    OpenOptions::new().append(true).open(format!("/dev/fd/{fd}"))
}

fn write_line(mut out: impl Write, line: &str) -> std::io::Result<()> {
    out.write_all(line.as_bytes())?;
    out.flush()
}

fn line(endpoints: &Endpoints, pid: u32) -> String {
    let mut ready = Object::new().with("ready", true).with("endpoint", endpoints.preferred());
    if let Some(https) = &endpoints.https {
        ready.set("https", https.as_str());
    }
    ready.set("port", i64::from(endpoints.port));
    ready.set("pid", i64::from(pid));
    for endpoint in &endpoints.further {
        ready.set(endpoint.name, endpoint.address.as_str());
    }
    json::to_string(&Value::from(ready)) + "\n"
}
