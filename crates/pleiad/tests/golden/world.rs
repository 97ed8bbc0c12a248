//! A world: the real binary with a store and a number of partitions, started for the pages and stopped after them.
//!
//! Promise: a container that reserves nothing in particular has as many partitions as the world says. A page that
//! says `settings` fixes that itself, and is run once per store.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use pleiad_model::json;
use tempfile::TempDir;

use crate::Result;
use crate::client::{Client, EMULATOR_KEY, READ_ONLY_KEY};
use crate::words::Words;

/// What an unspecified container reserves; divided by what a partition starts with, it is the number of partitions.
const RU_UNSPECIFIED: u32 = 400;
const PARTITIONS: [u32; 3] = [1, 3, 16];

/// The `name=value`s of a page's `settings` line.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Settings(Vec<String>);

#[derive(Clone, Debug)]
pub struct World {
    store: Store,
    flags: Vec<String>,
    name: String,
}

#[derive(Clone, Copy, Debug)]
enum Store {
    Memory,
    Embedded,
}

pub struct Server {
    child: Child,
    pub client: Client,
    /// Gone with the server.
    _data: TempDir,
    pages: u32,
}

impl Settings {
    pub fn of<'a>(lines: impl Iterator<Item = &'a Words>) -> Settings {
        Settings(lines.flat_map(|line| line.rest.iter().map(|word| format!("--{word}"))).collect())
    }
}

impl World {
    pub fn all(settings: &Settings) -> Vec<World> {
        let in_store = |store| match settings.0.as_slice() {
            [] => PARTITIONS.map(|partitions| World::divided(store, partitions)).to_vec(),
            flags => vec![World { store, flags: flags.to_vec(), name: flags.join(" ") }],
        };
        [Store::Memory, Store::Embedded].into_iter().flat_map(in_store).collect()
    }

    fn divided(store: Store, partitions: u32) -> World {
        let initial_ru = RU_UNSPECIFIED.div_ceil(partitions);
        World {
            store,
            flags: vec![format!("--partition-initial-ru={initial_ru}")],
            name: format!("{partitions} partitions"),
        }
    }

    pub fn start(&self) -> Result<Server> {
        let data = TempDir::new().map_err(|e| e.to_string())?;
        let mut pleiad = Command::new(env!("CARGO_BIN_EXE_pleiad"));
        pleiad.args(["dev", "--quiet", "--port=0", "--tls=off", "--log-level=error"]).args(&self.flags);
        match self.store {
            Store::Memory => pleiad.arg("--ephemeral"),
            Store::Embedded => pleiad.arg("--data").arg(data.path()),
        };
        // Settings of whoever runs the tests are none of ours.
        pleiad.env_clear().env("PLEIAD_PRIMARY_KEY", EMULATOR_KEY).env("PLEIAD_PRIMARY_READ_ONLY_KEY", READ_ONLY_KEY);
        let child = pleiad.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(|e| e.to_string())?;
        Server::greet(child, data)
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {}", self.store, self.name)
    }
}

impl Server {
    /// Waits for the ready line, which tells the port.
    fn greet(mut child: Child, data: TempDir) -> Result<Server> {
        let stdout = child.stdout.take();
        let mut server = Server { child, client: Client::new(0), _data: data, pages: 0 };
        let mut line = String::new();
        BufReader::new(stdout.ok_or("no output")?).read_line(&mut line).map_err(|e| e.to_string())?;
        let ready = json::parse(line.as_bytes()).map_err(|e| format!("no ready line but {line:?}: {e}"))?;
        let port = ready.get("port").and_then(|port| port.as_i64()).and_then(|port| u16::try_from(port).ok());
        server.client = Client::new(port.ok_or("the ready line tells no port")?);
        Ok(server)
    }

    /// A name that no page had before.
    pub fn next_database(&mut self) -> String {
        self.pages += 1;
        format!("golden{}", self.pages)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill(); // ended by itself already
        let _ = self.child.wait();
    }
}
