//! PostgreSQL: one table of `jsonb` with the ID as primary key and a GIN index over the body.
//!
//! Guarantees: a separate cluster in a temporary directory, run by a user that is not root (PostgreSQL refuses to run
//! as root). `pgbench` produces the load, with prepared statements over TCP; an insert is acknowledged when it is on
//! disk (`synchronous_commit = on`, the default). Documents have the same members and size as for the other systems.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::load::LoadOutcome;
use crate::measure::LoadFigures;
use crate::process::{self, ChildProcess};
use crate::{Result, item};

const SCHEMA: &str = "
CREATE TABLE items (id text PRIMARY KEY, body jsonb NOT NULL);
CREATE INDEX items_body ON items USING gin (body);
CREATE SEQUENCE fresh;";

pub struct PostgresServer {
    process: ChildProcess,
    programs: PathBuf,
    scripts: TempDir,
    port: u16,
    /// From the start of the server to its readiness; the cluster's directory exists before.
    pub start_ms: f64,
    _data: TempDir,
}

/// The user that runs the server: the current one, or an unprivileged one if the current user is root.
#[derive(Clone, Copy)]
pub struct ServerUser(Option<(u32, u32)>);

impl PostgresServer {
    /// `programs` is the directory of `initdb`, `postgres`, `psql` and `pgbench`.
    pub fn start(programs: &Path) -> Result<PostgresServer> {
        let user = ServerUser::find()?;
        let (data, scripts) = (temp_dir()?, temp_dir()?);
        user.chown(data.path())?;
        let cluster = data.path().join("cluster");
        let mut initdb = Command::new(programs.join("initdb"));
        initdb.args(["--auth", "trust", "--username", "bench", "--encoding", "UTF8", "--pgdata"]).arg(&cluster);
        run_to_end(user.run_as(&mut initdb))?;
        let port = free_port()?;
        let started = Instant::now();
        let process = ChildProcess::start(user.run_as(&mut server_command(programs, &cluster, port)), |line| {
            line.contains("ready to accept")
        })?;
        let start_ms = started.elapsed().as_secs_f64() * 1e3;
        let postgres = PostgresServer { process, programs: programs.to_owned(), scripts, port, start_ms, _data: data };
        postgres.psql(SCHEMA)?;
        Ok(postgres)
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Loads the items `0..count` and updates the statistics.
    pub fn fill(&self, count: u64) -> Result {
        let file = self.scripts.path().join("items.tsv");
        let mut rows = String::new();
        for n in 0..count {
            rows.push_str(&format!("{}\t", item::id(n)));
            item::write_body(n, &mut rows);
            rows.push('\n');
        }
        fs::write(&file, rows).map_err(|e| e.to_string())?;
        self.psql(&format!("\\copy items FROM '{}'", file.display()))?;
        self.psql("VACUUM ANALYZE items")?;
        self.psql("CHECKPOINT")
    }

    pub fn reads(&self, connections: usize, length: Duration, count: u64) -> Result<LoadFigures> {
        let last = count - 1;
        self.pgbench(
            &format!(
                "\\set n random(0, {last})\nSELECT body FROM items WHERE id = 'item-' || lpad(:n::text, 12, '0');\n"
            ),
            connections,
            length,
        )
    }

    pub fn creates(&self, connections: usize, length: Duration) -> Result<LoadFigures> {
        self.pgbench(&insert_script(), connections, length)
    }

    fn pgbench(&self, script: &str, connections: usize, length: Duration) -> Result<LoadFigures> {
        let (file, log) = (self.scripts.path().join("script.sql"), self.scripts.path().join("log"));
        fs::write(&file, script).map_err(|e| e.to_string())?;
        let mut pgbench = self.client("pgbench");
        pgbench.args(["--no-vacuum", "--protocol", "prepared", "--jobs", "1", "--log", "--time"]);
        pgbench.arg(length.as_secs().max(1).to_string()).args(["--client", &connections.to_string()]);
        pgbench.arg("--log-prefix").arg(&log).arg("--file").arg(&file).arg("bench");
        let before = process::cpu_us(self.pid())?;
        run_to_end(&mut pgbench)?;
        let used = process::cpu_us(self.pid())? - before;
        let outcome =
            LoadOutcome { elapsed: Duration::from_secs(length.as_secs().max(1)), latencies: self.latencies()? };
        Ok(LoadFigures::of(&outcome, used))
    }

    /// The third field of each log line is a transaction's time in microseconds.
    fn latencies(&self) -> Result<Vec<Duration>> {
        let mut latencies = Vec::new();
        for entry in fs::read_dir(self.scripts.path()).map_err(|e| e.to_string())?.flatten() {
            if entry.file_name().to_string_lossy().starts_with("log.") {
                let text = fs::read_to_string(entry.path()).map_err(|e| e.to_string())?;
                let times = text.lines().filter_map(|line| line.split(' ').nth(2)?.parse().ok());
                latencies.extend(times.map(Duration::from_micros));
                fs::remove_file(entry.path()).map_err(|e| e.to_string())?;
            }
        }
        latencies.sort_unstable();
        Ok(latencies)
    }

    fn psql(&self, statements: &str) -> Result {
        let database = if statements == SCHEMA { self.create_database()? } else { "bench" };
        run_to_end(self.client("psql").args([
            "--quiet",
            "--set",
            "ON_ERROR_STOP=1",
            "--dbname",
            database,
            "--command",
            statements,
        ]))
    }

    fn create_database(&self) -> Result<&'static str> {
        run_to_end(self.client("psql").args([
            "--quiet",
            "--dbname",
            "postgres",
            "--command",
            "CREATE DATABASE bench",
        ]))?;
        Ok("bench")
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.args(["--host", "127.0.0.1", "--username", "bench", "--port", &self.port.to_string()]);
        command
    }
}

/// Inserts what `item::write_body` builds, as one SQL expression: a text that is parsed like a document. In pgbench a
/// colon before a letter or digit starts a variable, hence the space and the time of day without colons.
fn insert_script() -> String {
    let mut sample = String::new();
    item::write_body(0, &mut sample);
    let notes: String = (0..256).map(|n| format!("{:016x}", item::scramble(n))).collect();
    let note_bytes = item::ITEM_BYTES - sample.find("\"note\":\"").unwrap_or(0) - 10;
    format!(
        r#"\set a random(0, 9999)
\set b random(0, 49999)
\set c random(0, 255)
\set d random(1, 3000)
INSERT INTO items SELECT id, ('{{"id":"' || id || '","pk":"key-' || lpad(:a::text, 6, '0') || '","customer":"customer-' || lpad(:b::text, 5, '0') || '","kind":"order","status":"paid","country":"DE","count":' || :c::text || ',"total":' || :b::text || '.5,"active": true,"createdAt":"2024-03-' || (10 + :c::int % 16) || 'T102030Z","rating":' || (:c::int % 5) || ',"note":"' || substr('{notes}', :d::int, {note_bytes}) || '"}}')::jsonb FROM (SELECT 'item-' || lpad((1000000000 + nextval('fresh'))::text, 12, '0') AS id) AS made;
"#
    )
}

fn server_command(programs: &Path, cluster: &Path, port: u16) -> Command {
    let mut command = Command::new("sh");
    // PostgreSQL reports readiness on standard error.
    let line = r#"exec "$0" -D "$1" -p "$2" -k "$1" -c listen_addresses=127.0.0.1 -c synchronous_commit=on 2>&1"#;
    command.args(["-c", line]).arg(programs.join("postgres")).arg(cluster).arg(port.to_string());
    command
}

impl ServerUser {
    pub fn find() -> Result<ServerUser> {
        let numeric_id = |args: &[&str]| -> Option<u32> {
            let output = Command::new("id").args(args).stderr(Stdio::null()).output().ok()?;
            String::from_utf8_lossy(&output.stdout).trim().parse().ok()
        };
        if numeric_id(&["-u"]) != Some(0) {
            return Ok(ServerUser(None));
        }
        let other = ["postgres", "nobody"]
            .iter()
            .find_map(|name| Some((numeric_id(&["-u", name])?, numeric_id(&["-g", name])?)));
        other
            .map(|ids| ServerUser(Some(ids)))
            .ok_or_else(|| "PostgreSQL does not run as root, and no other user was found".to_owned())
    }

    pub fn is_other_user(self) -> bool {
        self.0.is_some()
    }

    pub fn chown(self, dir: &Path) -> Result {
        let Some((uid, gid)) = self.0 else { return Ok(()) };
        std::os::unix::fs::chown(dir, Some(uid), Some(gid)).map_err(|e| format!("chown: {e}"))
    }

    pub fn run_as(self, command: &mut Command) -> &mut Command {
        match self.0 {
            Some((uid, gid)) => command.uid(uid).gid(gid).current_dir("/"),
            None => command,
        }
    }
}

pub fn run_to_end(command: &mut Command) -> Result {
    let output =
        command.stdin(Stdio::null()).output().map_err(|e| format!("cannot start {:?}: {e}", command.get_program()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{:?} failed: {}", command.get_program(), String::from_utf8_lossy(&output.stderr))),
    }
}

fn temp_dir() -> Result<TempDir> {
    tempfile::tempdir().map_err(|e| format!("cannot create a temporary directory: {e}"))
}

pub fn free_port() -> Result<u16> {
    let socket = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    socket.map(|address| address.port()).map_err(|e| format!("no free port: {e}"))
}
