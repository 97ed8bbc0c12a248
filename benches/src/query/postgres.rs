//! PostgreSQL with the same items: a `jsonb` column with the indexes that its users would add.
//!
//! Guarantees: its data is in its own buffers; it runs on one core, without parallel workers and without JIT, and
//! answers from one session. The times are psql's own (`\timing`): from sending the text to having the rows.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::answer::{QueryAnswer, TimedAnswer};
use super::dataset_cache::DatasetCache;
use super::pinned;
use super::piped::PipedProcess;
use crate::Result;
use crate::process::ChildProcess;
use crate::rival::postgres::{ServerUser, free_port, run_to_end};

const END: &str = "-- end of the answer";
/// The prefix of psql's line with the time.
const TIME: &str = "Time: ";

/// Created after the rows are loaded. The GIN index serves containment, at any depth and in arrays; ranges and orders
/// need a separate index for each path. Without statistics PostgreSQL expects as many categories as items, and sorts.
const INDEXES: &str = "
CREATE INDEX items_doc ON items USING gin (doc jsonb_path_ops);
CREATE INDEX items_price ON items (((doc->>'price')::float8));
CREATE STATISTICS items_category ON (doc->>'category') FROM items;
VACUUM (ANALYZE, FREEZE) items;
CHECKPOINT;";

/// Durability does not affect the time of a query, so loading runs without it.
const SETTINGS: [&str; 13] = [
    "shared_buffers=6GB", // a scan of a table larger than a quarter of them bypasses them
    "listen_addresses=127.0.0.1",
    "max_parallel_workers_per_gather=0",
    "jit=off",
    "work_mem=256MB",
    "maintenance_work_mem=1GB",
    "effective_cache_size=8GB",
    "random_page_cost=1.1",
    "max_wal_size=8GB",
    "wal_level=minimal",
    "max_wal_senders=0",
    "fsync=off",
    "autovacuum=off",
];

pub struct PostgresSubject {
    session: PipedProcess,
    _server: PostgresProcess,
    pub version: String,
}

struct PostgresProcess {
    _running: ChildProcess,
    user: ServerUser,
    programs: PathBuf,
    cluster: PathBuf,
    port: u16,
}

impl PostgresSubject {
    pub fn open(programs: &Path, root: &Path, items: u64) -> Result<PostgresSubject> {
        let cache = &DatasetCache::open(&accessible_root(root)?, items)?;
        let version = version(programs)?;
        let recipe = format!("{version}{INDEXES}{SETTINGS:?}");
        let cluster = cache.load_once("postgres", &recipe, |dir| load(programs, dir, cache))?;
        let server = PostgresProcess::start(programs, &cluster)?;
        let mut psql = server.client("psql");
        psql.args(["--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--field-separator", "\t"]);
        let session = PipedProcess::start(psql.args(["--set", "ON_ERROR_STOP=1", "--dbname", "bench"]))?;
        Ok(PostgresSubject { session, _server: server, version })
    }

    pub fn run_query(&mut self, sql: &str, times: usize) -> Result<Vec<TimedAnswer>> {
        let statements = format!("{sql};\n").repeat(times);
        let lines = self.session.exchange(&format!("\\timing on\n{statements}\\timing off\nSELECT '{END}';\n"), END)?;
        let answers = lines.split_inclusive(|line| line.starts_with(TIME));
        answers.map(parse_answer).collect()
    }
}

/// The rows of one answer, followed by the line with its time.
fn parse_answer(lines: &[String]) -> Result<TimedAnswer> {
    let (time, rows) = lines.split_last().ok_or("no output from psql")?;
    let ms = time.strip_prefix(TIME).and_then(|rest| rest.split(' ').next()?.parse().ok());
    let ms = ms.ok_or_else(|| format!("no time from psql: {time}"))?;
    Ok(TimedAnswer { ms, answer: QueryAnswer::of_lines(rows.iter().map(String::as_str)) })
}

/// A directory that the user that runs the server can access: other users have no access to root's home.
fn accessible_root(root: &Path) -> Result<PathBuf> {
    Ok(if ServerUser::find()?.is_other_user() { PathBuf::from("/var/tmp/pleiad/bench-query") } else { root.to_owned() })
}

fn version(programs: &Path) -> Result<String> {
    let output = Command::new(programs.join("postgres")).arg("--version").output();
    let output = output.map_err(|e| format!("cannot get PostgreSQL's version: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.split_ascii_whitespace().nth(2).unwrap_or_default().to_owned())
}

fn load(programs: &Path, dir: &Path, cache: &DatasetCache) -> Result {
    let user = ServerUser::find()?;
    user.chown(dir)?;
    let mut initdb = Command::new(programs.join("initdb"));
    initdb.args(["--auth", "trust", "--username", "bench", "--encoding", "UTF8", "--locale", "C", "--pgdata"]).arg(dir);
    run_to_end(user.run_as(&mut initdb))?;
    let server = PostgresProcess::start(programs, dir)?;
    server.psql("postgres", "CREATE DATABASE bench")?;
    let lines = cache.write_lines()?;
    server.psql("bench", "CREATE TABLE items (doc jsonb NOT NULL)")?;
    server.psql("bench", &format!("\\copy items FROM '{}'", lines.path().display()))?;
    INDEXES.split_terminator(';').try_for_each(|statement| server.psql("bench", statement))
}

impl PostgresProcess {
    fn start(programs: &Path, cluster: &Path) -> Result<PostgresProcess> {
        let (user, port) = (ServerUser::find()?, free_port()?);
        let mut postgres = pinned(Path::new("sh"));
        // PostgreSQL reports readiness on standard error.
        postgres.args(["-c", r#"exec "$0" "$@" 2>&1"#]).arg(programs.join("postgres"));
        postgres.arg("-D").arg(cluster).args(["-p", &port.to_string(), "-c", "unix_socket_directories="]);
        postgres.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        let running = ChildProcess::start(user.run_as(&mut postgres), |line| line.contains("ready to accept"))?;
        Ok(PostgresProcess {
            _running: running,
            user,
            programs: programs.to_owned(),
            cluster: cluster.to_owned(),
            port,
        })
    }

    fn client(&self, program: &str) -> Command {
        let mut command = pinned(&self.programs.join(program));
        command.args(["--host", "127.0.0.1", "--username", "bench", "--port", &self.port.to_string()]);
        command
    }

    fn psql(&self, database: &str, statement: &str) -> Result {
        let mut psql = self.client("psql");
        run_to_end(psql.args(["--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", database, "--command", statement]))
    }
}

/// The data is cached, so the server must shut down cleanly.
impl Drop for PostgresProcess {
    fn drop(&mut self) {
        let mut stop = Command::new(self.programs.join("pg_ctl"));
        stop.args(["--mode", "fast", "--wait", "stop", "--pgdata"]).arg(&self.cluster);
        if let Err(error) = run_to_end(self.user.run_as(&mut stop)) {
            eprintln!("PostgreSQL did not stop: {error}");
        }
    }
}
