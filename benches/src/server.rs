//! The server under test: a `pleiad` process, started for a measurement and filled with items.
//!
//! Guarantees: it runs in a fresh directory on a free port; in `ServerMode::Serve` it acknowledges writes after they
//! are on disk. Dropping it removes the process and its data.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

use crate::load::{self, Until};
use crate::process::ChildProcess;
use crate::signed::{self, CONTAINER, CreateRequests, DATABASE, RequestSigner};
use crate::{Result, item};

pub struct ServerUnderTest {
    process: ChildProcess,
    pub address: SocketAddr,
    data: TempDir,
}

/// Enough for every load here, in one partition, also when rate limiting is on.
pub const RU_PER_S: u64 = 1_000_000;

/// The mode in which the program runs.
#[derive(Clone, Copy, Debug)]
pub enum ServerMode {
    Serve,
    Dev,
}

impl ServerUnderTest {
    pub fn start(pleiad: &Path, mode: ServerMode) -> Result<ServerUnderTest> {
        ServerUnderTest::start_with(pleiad, mode, &[])
    }

    /// Starts it with additional settings, given as environment variables.
    pub fn start_with(pleiad: &Path, mode: ServerMode, settings: &[(&str, &str)]) -> Result<ServerUnderTest> {
        let data = tempfile::tempdir().map_err(|e| format!("no directory for the data: {e}"))?;
        ServerUnderTest::start_on(data, pleiad, mode, settings)
    }

    /// Stops the server and starts it again on the same data.
    pub fn restart(self, pleiad: &Path, mode: ServerMode) -> Result<ServerUnderTest> {
        self.process.terminate()?;
        ServerUnderTest::start_on(self.data, pleiad, mode, &[])
    }

    fn start_on(data: TempDir, pleiad: &Path, mode: ServerMode, settings: &[(&str, &str)]) -> Result<ServerUnderTest> {
        let mut command = command(pleiad, mode, data.path());
        command.envs(settings.iter().copied());
        let process = ChildProcess::start(&mut command, |line| line.contains("\"ready\":true"))?;
        let ready: serde_json::Value =
            serde_json::from_str(&process.ready).map_err(|e| format!("the ready line: {e}"))?;
        let port =
            ready["port"].as_u64().and_then(|port| u16::try_from(port).ok()).ok_or("a ready line without port")?;
        Ok(ServerUnderTest { process, address: SocketAddr::from(([127, 0, 0, 1], port)), data })
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

fn command(pleiad: &Path, mode: ServerMode, data: &Path) -> Command {
    let mut command = Command::new(pleiad);
    match mode {
        ServerMode::Serve => command.args(["serve", "--durability", "synced"]).env("PLEIAD_RATE_LIMIT", "false"),
        ServerMode::Dev => command.arg("dev"),
    };
    command.args(["--port", "0", "--quiet", "--data"]).arg(data);
    command.env("PLEIAD_PRIMARY_KEY", signed::key());
    let ru_per_s = RU_PER_S.to_string();
    command.env("PLEIAD_PARTITION_MAX_RU", &ru_per_s).env("PLEIAD_PARTITION_INITIAL_RU", &ru_per_s);
    command.stderr(Stdio::null());
    command
}

/// Creates the database and the container over HTTP, which works for every server that implements the protocol.
pub fn create_container(to: SocketAddr, signer: &RequestSigner) -> Result {
    let database = format!(r#"{{"id":"{DATABASE}"}}"#);
    load::send_once(to, &signer.request("POST", "dbs", "dbs", "", "", &database))?;
    let container = format!(r#"{{"id":"{CONTAINER}","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}}}"#);
    let throughput = format!("x-ms-offer-throughput: {RU_PER_S}\r\n");
    let (path, link) = (format!("dbs/{DATABASE}/colls"), format!("dbs/{DATABASE}"));
    load::send_once(to, &signer.request("POST", &path, "colls", &link, &throughput, &container))?;
    Ok(())
}

/// Creates the items `0..count`.
pub fn fill(to: SocketAddr, signer: &RequestSigner, count: u64) -> Result {
    load::run(to, Arc::new(CreateRequests::sign(signer, 0)), 64, Until::Answered(count))?;
    Ok(())
}

/// The bytes of the server's response to a read of item 0.
pub fn sample_answer(to: SocketAddr, signer: &RequestSigner) -> Result<Vec<u8>> {
    let link = format!("dbs/{DATABASE}/colls/{CONTAINER}/docs/{}", item::id(0));
    let key = format!("x-ms-documentdb-partitionkey: [\"{}\"]\r\n", item::partition_key(0));
    load::send_once(to, &signer.request("GET", &link, "docs", &link, &key, ""))
}
