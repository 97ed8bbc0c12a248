//! The server process: start and kill the real binary, and run `pleiad inspect` on its data.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pleiad_model::{Value, json};

use crate::client::Client;

const BINARY: &str = env!("CARGO_BIN_EXE_pleiad");
const WELL_KNOWN_KEY: &str = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    Dev,
    Serve,
}

/// The data directory of a server, and how the server is started.
pub struct Site {
    /// Contains all files of this test; deleted at its end.
    directory: tempfile::TempDir,
    key: String,
    /// Additional flags and environment variables of every start.
    pub flags: Vec<String>,
    pub variables: Vec<(&'static str, PathBuf)>,
}

pub struct Server {
    child: Child,
    port: u16,
    key: String,
}

impl Site {
    pub fn new() -> Site {
        // Not in /tmp, which may be in memory: the tests need a disk, and the build directory is on one.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let key = Command::new(BINARY).args(["config", "--new-key"]).output().unwrap();
        let key = String::from_utf8(key.stdout).unwrap().trim().to_owned();
        fs::write(directory.path().join("key"), &key).unwrap();
        fs::create_dir(directory.path().join("root")).unwrap();
        Site { directory, key, flags: Vec::new(), variables: Vec::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn data(&self) -> PathBuf {
        self.path("root/data")
    }

    fn command(&self, mode: RunMode) -> Command {
        let mut command = Command::new(BINARY);
        match mode {
            RunMode::Dev => command.arg("dev"),
            RunMode::Serve => command.args(["serve", "--rate-limit=false", "--key-file"]).arg(self.path("key")),
        };
        command.args(["--port", "0", "--quiet", "--log-level", "warn", "--data"]).arg(self.data()).args(&self.flags);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdout(Stdio::piped()).stderr(File::create(self.path("stderr")).unwrap());
        command
    }

    /// Starts the server and waits for the ready line.
    #[track_caller]
    pub fn start(&self, mode: RunMode) -> Server {
        let mut child = self.command(mode).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = json::parse(line.as_bytes()).ok().and_then(|ready| ready.get("port").and_then(Value::as_i64));
        let Some(port) = port else {
            let status = child.wait().unwrap();
            panic!("{mode:?} did not start ({status}): {}", fs::read_to_string(self.path("stderr")).unwrap());
        };
        let key = if mode == RunMode::Dev { WELL_KNOWN_KEY.to_owned() } else { self.key.clone() };
        Server { child, port: u16::try_from(port).unwrap(), key }
    }

    /// A start that ends by itself, before the server is ready; returns its message.
    #[track_caller]
    pub fn fail_to_start(&self, mode: RunMode) -> String {
        let mut child = self.command(mode).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let message = fs::read_to_string(self.path("stderr")).unwrap();
        if !line.is_empty() {
            _ = child.kill();
        }
        let status = child.wait().unwrap();
        assert!(line.is_empty() && !status.success(), "{mode:?} started: {line}{message}");
        message
    }

    /// Runs a command on the data directory; returns whether it succeeded, and what it printed.
    pub fn run(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new(BINARY).args(arguments).arg("--data").arg(self.data()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text.into_owned())
    }

    /// Starts the server and kills it so early that it may not have finished starting.
    pub fn kill_during_start(&self, mode: RunMode, after: Duration) {
        let mut child = self.command(mode).spawn().unwrap();
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// `pleiad inspect` finds no problem. It runs on a copy, because the next server must find the directory as the
    /// crash left it.
    #[track_caller]
    pub fn inspect(&self) {
        let copy = self.path("copy");
        copy_tree(&self.data(), &copy);
        let output = Command::new(BINARY).arg("inspect").arg("--data").arg(&copy).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "inspect found a problem ({}):\n{text}", output.status);
        fs::remove_dir_all(&copy).unwrap();
    }
}

impl Server {
    pub fn client(&self) -> Client {
        Client::connect(self.port, &self.key).unwrap()
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    /// Also when a test fails.
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}
