//! Shared by all commands: directories of the repository and its caches, running programs, coloured output.
//!
//! Invariant: every cargo call that compiles the product goes through `rocksdb::cargo`, so that it uses one target
//! directory and links one RocksDB (docs/decisions/0002-shared-target-directory.md, 0005-rocksdb-built-once.md).

use std::env;
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The error is a message for the person at the keyboard; no code matches on it.
pub type Result<T = ()> = std::result::Result<T, String>;

// ---- directories ----------------------------------------------------------------------------------------

pub fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let manifest = PathBuf::from(manifest);
    manifest.parent().map(Path::to_path_buf).unwrap_or(manifest)
}

/// `~/.cache/pleiad`: survives `git clean` and is shared by all checkouts of one user.
pub fn cache() -> PathBuf {
    let home = env::var_os("HOME").or_else(|| env::var_os("USERPROFILE"));
    home.map(PathBuf::from).unwrap_or_else(env::temp_dir).join(".cache").join("pleiad")
}

/// Cargo's target directory for the product: CARGO_TARGET_DIR if the user has set it, else the shared directory.
pub fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR").filter(|set| !set.is_empty()) {
        // Cargo resolves a relative path against the user's current directory.
        Some(set) => env::current_dir().unwrap_or_default().join(set),
        None => cache().join("target"),
    }
}

pub fn binary() -> PathBuf {
    target().join("release").join(format!("pleiad{}", env::consts::EXE_SUFFIX))
}

/// The entries of a directory, sorted; none if it cannot be read.
pub fn list(dir: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(dir).into_iter().flatten().filter_map(|entry| entry.ok().map(|e| e.path())).collect();
    entries.sort();
    entries
}

pub fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

// ---- running programs -----------------------------------------------------------------------------------

pub fn command<I: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = I>) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    if !colours() {
        command.env("CARGO_TERM_COLOR", "never").env("NO_COLOR", "1");
    }
    command
}

/// Cargo without a target directory: for other workspaces.
pub fn bare_cargo<I: AsRef<OsStr>>(args: impl IntoIterator<Item = I>) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = command(program, args);
    let of_xtask = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_xtask)) {
        cargo.env_remove(name);
    }
    cargo
}

/// Runs the command with inherited output; an error contains the command line.
pub fn run(command: &mut Command) -> Result {
    let status = command.status().map_err(|e| format!("cannot start `{}`: {e}", command_line(command)))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("`{}` failed ({status})", command_line(command))),
    }
}

/// Runs the command and returns its standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|e| format!("cannot start `{}`: {e}", command_line(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{}` failed ({})\n{}", command_line(command), output.status, stderr.trim_end()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns true if the program runs and succeeds. Prints nothing.
pub fn works<I: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = I>) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The command line as a user would type it.
pub fn command_line(command: &Command) -> String {
    let program = name(Path::new(command.get_program()));
    let words = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

// ---- coloured output------------------------------------------------------------------------------------

pub fn colours() -> bool {
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty() && value != "false");
    !cfg!(test) && !set("CI") && !set("NO_COLOR") && std::io::stdout().is_terminal()
}

pub fn bold(text: &str) -> String {
    paint("1", text)
}

pub fn green(text: &str) -> String {
    paint("32", text)
}

pub fn yellow(text: &str) -> String {
    paint("33", text)
}

pub fn red(text: &str) -> String {
    paint("31", text)
}

fn paint(code: &str, text: &str) -> String {
    match colours() {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}
