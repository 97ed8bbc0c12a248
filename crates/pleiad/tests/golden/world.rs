//! A world: the real binary with a store and a number of partitions, started before its pages and stopped after them.
//!
//! A container without explicit throughput has the world's number of partitions. A page with `settings` chooses its own
//! flags and runs once per store. In one more world, the current container is split between requests.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use pleiad_model::json;
use tempfile::TempDir;

use crate::Result;
use crate::client::{Client, EMULATOR_KEY, READ_ONLY_KEY};
use crate::line::Words;

/// The throughput of a container without an explicit one; divided by `partition-initial-ru`, it gives the number of
/// partitions.
const RU_UNSPECIFIED: u32 = 400;
const PARTITIONS: [u32; 3] = [1, 3, 16];
/// Access paths, metrics and charges depend on the number of partitions: pages state them for this number.
const PARTITIONS_STATED: u32 = 3;

/// The `name=value`s of a page's `settings` line.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Settings(Vec<String>);

#[derive(Clone, Debug)]
pub struct World {
    store: Store,
    flags: Vec<String>,
    name: String,
    shows_plans: bool,
    /// The current container is split between requests.
    splits: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Store {
    Memory,
    RocksDb,
}

pub struct Server {
    world: World,
    child: Child,
    pub client: Client,
    /// Deleted with the server.
    data: TempDir,
    pages: u32,
    pub shows_plans: bool,
    pub splits: bool,
}

impl Settings {
    pub fn of<'a>(lines: impl Iterator<Item = &'a Words>) -> Settings {
        Settings(lines.flat_map(|line| line.rest.iter().map(|word| format!("--{word}"))).collect())
    }
}

impl World {
    pub fn all(settings: &Settings) -> Vec<World> {
        let in_store = |store| match settings.0.as_slice() {
            [] => PARTITIONS.map(|partitions| World::with_partitions(store, partitions)).to_vec(),
            flags => {
                vec![World { store, flags: flags.to_vec(), name: flags.join(" "), shows_plans: true, splits: false }]
            }
        };
        let splitting = settings.0.is_empty().then(World::splitting);
        [Store::Memory, Store::RocksDb].into_iter().flat_map(in_store).chain(splitting).collect()
    }

    /// The world whose access paths, metrics and charges a page states.
    pub fn stated(settings: &Settings) -> Option<World> {
        World::all(settings).into_iter().find(|world| world.shows_plans)
    }

    /// Starts with one partition per container, which is split between requests.
    fn splitting() -> World {
        World { name: "splitting".to_owned(), splits: true, ..World::with_partitions(Store::RocksDb, 1) }
    }

    fn with_partitions(store: Store, partitions: u32) -> World {
        let initial_ru = RU_UNSPECIFIED.div_ceil(partitions);
        World {
            store,
            flags: vec![format!("--partition-initial-ru={initial_ru}")],
            name: format!("{partitions} partitions"),
            shows_plans: partitions == PARTITIONS_STATED,
            splits: false,
        }
    }

    pub fn start(&self) -> Result<Server> {
        let data = TempDir::new().map_err(|e| e.to_string())?;
        let (child, client) = self.start_process(&data)?;
        let (shows_plans, splits) = (self.shows_plans, self.splits);
        Ok(Server { world: self.clone(), child, client, data, pages: 0, shows_plans, splits })
    }

    /// Starts the process and waits for the ready line, which contains the port.
    fn start_process(&self, data: &TempDir) -> Result<(Child, Client)> {
        let mut child = self.spawn(data)?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line).map_err(|e| e.to_string())?;
        let port = json::parse(line.as_bytes()).ok().and_then(|ready| ready.get("port")?.as_i64());
        match port.and_then(|port| u16::try_from(port).ok()) {
            Some(port) => Ok((child, Client::new(port))),
            None => {
                let _ = child.kill(); // fails if it has exited already
                let _ = child.wait();
                Err(format!("no ready line but {line:?}"))
            }
        }
    }

    fn spawn(&self, data: &TempDir) -> Result<Child> {
        let mut pleiad = Command::new(env!("CARGO_BIN_EXE_pleiad"));
        pleiad.args(["dev", "--quiet", "--port=0", "--tls=off", "--log-level=error"]).args(&self.flags);
        match self.store {
            Store::Memory => pleiad.arg("--ephemeral"),
            Store::RocksDb => pleiad.arg("--data").arg(data.path()),
        };
        // The environment of the test run must not change the settings.
        pleiad.env_clear().env("PLEIAD_PRIMARY_KEY", EMULATOR_KEY).env("PLEIAD_PRIMARY_READ_ONLY_KEY", READ_ONLY_KEY);
        pleiad.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(|e| e.to_string())
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {}", self.store, self.name)
    }
}

impl Server {
    /// Kills the server and starts it again on the same data. An in-memory store would be empty then, so it keeps
    /// running.
    pub fn restart(&mut self) -> Result<()> {
        if self.world.store == Store::Memory {
            return Ok(());
        }
        let _ = self.child.kill(); // fails if it has exited already
        let _ = self.child.wait();
        (self.child, self.client) = self.world.start_process(&self.data)?;
        Ok(())
    }

    /// A database name that no page has used before.
    pub fn next_database(&mut self) -> String {
        self.pages += 1;
        format!("golden{}", self.pages)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill(); // fails if it has exited already
        let _ = self.child.wait();
    }
}
