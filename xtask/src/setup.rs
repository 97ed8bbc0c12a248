//! `cargo xtask setup`: checks that the tools for building and testing are installed, and installs missing ones.
//!
//! Guarantees: if nothing is missing it only checks, and starts no package manager. It installs a missing tool if it
//! has the permission (as root, with a sudo that needs no password, or with brew), after printing the command line;
//! otherwise, or with PLEIAD_NO_INSTALL set, it prints the exact command to type and stops.

mod probe;

pub use probe::{on_path, postgres_programs};

use std::env;
use std::process::Command;

use crate::shell::{self, Result};

/// What a tool is needed for; a step checks only its own scopes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetupScope {
    Build,
    Lint,
    Interop,
    Compare,
}

struct RequiredTool {
    scope: SetupScope,
    name: &'static str,
    reason: &'static str,
    is_installed: fn() -> bool,
    /// Package names for apt-get, dnf, apk, pacman, brew, in that order; empty: part of the system.
    packages: [&'static str; 5],
}

const TOOLS: [RequiredTool; 7] = [
    RequiredTool {
        scope: SetupScope::Build,
        name: "a C++ compiler",
        reason: "RocksDB is C++ and is compiled from source",
        is_installed: probe::cxx,
        packages: ["g++", "gcc-c++", "g++", "gcc", "llvm"],
    },
    RequiredTool {
        scope: SetupScope::Build,
        name: "libclang and its headers",
        reason: "RocksDB's bindings are generated while building (LIBCLANG_PATH names another directory)",
        is_installed: probe::libclang,
        packages: ["libclang-dev", "clang-devel", "clang-dev clang-libclang", "clang", "llvm"],
    },
    RequiredTool {
        scope: SetupScope::Build,
        name: "make",
        reason: "C dependencies use it",
        is_installed: probe::make,
        packages: ["make", "make", "make", "make", "make"],
    },
    RequiredTool {
        scope: SetupScope::Interop,
        name: "python3 with venv",
        reason: "the Python SDK is tested in its own environment",
        is_installed: probe::python,
        packages: ["python3 python3-venv", "python3", "python3", "python", "python"],
    },
    RequiredTool {
        scope: SetupScope::Interop,
        name: "node 18 or newer, with npm",
        reason: "the JavaScript SDK is tested with it",
        is_installed: probe::node,
        packages: ["nodejs npm", "nodejs npm", "nodejs npm", "nodejs npm", "node"],
    },
    RequiredTool {
        scope: SetupScope::Compare,
        name: "node 18 or newer, with npm",
        reason: "one of the systems in the comparison runs on it",
        is_installed: probe::node,
        packages: ["nodejs npm", "nodejs npm", "nodejs npm", "nodejs npm", "node"],
    },
    RequiredTool {
        scope: SetupScope::Compare,
        name: "PostgreSQL with pgbench",
        reason: "one of the systems in the comparison",
        is_installed: || probe::postgres_programs().is_some(),
        packages: ["postgresql", "postgresql-server postgresql-contrib", "postgresql", "postgresql", "postgresql"],
    },
];

/// Parts of the Rust toolchain that a minimal installation omits.
const COMPONENTS: [(&str, &str); 2] = [("rustfmt", "fmt"), ("clippy", "clippy")];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manager {
    Apt,
    Dnf,
    Apk,
    Pacman,
    Brew,
}

const MANAGERS: [(Manager, &str); 5] = [
    (Manager::Apt, "apt-get"),
    (Manager::Dnf, "dnf"),
    (Manager::Apk, "apk"),
    (Manager::Pacman, "pacman"),
    (Manager::Brew, "brew"),
];

pub fn run() -> Result {
    ensure(&[SetupScope::Build, SetupScope::Lint, SetupScope::Interop])?;
    println!("{} all tools for building and testing are installed", shell::green("setup:"));
    Ok(())
}

/// Ensures that the tools of these scopes are installed, or returns an error that says what to do.
pub fn ensure(scopes: &[SetupScope]) -> Result {
    if scopes.contains(&SetupScope::Lint) {
        ensure_components()?;
    }
    let missing = missing(scopes);
    if missing.is_empty() {
        return Ok(());
    }
    for tool in &missing {
        println!("{} {} is missing: {}", shell::yellow("setup:"), tool.name, tool.reason);
    }
    install(&missing)?;
    match self::missing(scopes).first() {
        None => Ok(()),
        Some(tool) => Err(format!("{} is still not found after installing it; {}", tool.name, tool.reason)),
    }
}

fn missing(scopes: &[SetupScope]) -> Vec<&'static RequiredTool> {
    TOOLS.iter().filter(|tool| scopes.contains(&tool.scope) && !(tool.is_installed)()).collect()
}

fn ensure_components() -> Result {
    for (component, subcommand) in COMPONENTS {
        if !shell::works("cargo", [subcommand, "--version"]) {
            println!("{} {component} is missing, installing it with rustup", shell::yellow("setup:"));
            let mut rustup = shell::command("rustup", ["component", "add", component]);
            shell::run(&mut rustup).map_err(|e| format!("{e}\ninstall {component} for your Rust toolchain"))?;
        }
    }
    Ok(())
}

fn install(missing: &[&RequiredTool]) -> Result {
    let Some(manager) = MANAGERS.iter().find(|(_, program)| probe::on_path(program)).map(|(manager, _)| *manager)
    else {
        return Err("no supported package manager was found; install the above by hand, then run this again".to_owned());
    };
    let lines = install_lines(manager, missing);
    let Some(prefix) = privilege(manager).filter(|_| env::var_os("PLEIAD_NO_INSTALL").is_none()) else {
        return Err(format!("run this, then try again:\n{}", manual_lines(manager, &lines)));
    };
    for line in &lines {
        run_line(&prefix, line)?;
    }
    Ok(())
}

/// The prefix of the install command, or None without the permission to install.
fn privilege(manager: Manager) -> Option<Vec<&'static str>> {
    match manager {
        Manager::Brew => Some(vec![]),
        _ if probe::is_root() => Some(vec![]),
        _ if shell::works("sudo", ["-n", "true"]) => Some(vec!["sudo", "-n"]),
        _ => None,
    }
}

fn run_line(prefix: &[&str], line: &str) -> Result {
    let words: Vec<&str> = prefix.iter().copied().chain(line.split(' ')).collect();
    println!("{} {}", shell::yellow("setup:"), words.join(" "));
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive");
    shell::run(&mut command).map_err(|e| format!("{e}\ninstall what is missing by hand, then run this again"))
}

fn install_lines(manager: Manager, missing: &[&RequiredTool]) -> Vec<String> {
    let mut packages: Vec<&str> = missing.iter().flat_map(|tool| tool.packages[manager as usize].split(' ')).collect();
    packages.sort_unstable();
    packages.dedup();
    let packages = packages.join(" ");
    match manager {
        Manager::Apt => {
            vec!["apt-get update".to_owned(), format!("apt-get install -y --no-install-recommends {packages}")]
        }
        Manager::Dnf => vec![format!("dnf install -y {packages}")],
        Manager::Apk => vec![format!("apk add {packages}")],
        Manager::Pacman => vec![format!("pacman -Sy --noconfirm --needed {packages}")],
        Manager::Brew => vec![format!("brew install {packages}")],
    }
}

/// The lines for a user to type, usually not as root.
fn manual_lines(manager: Manager, lines: &[String]) -> String {
    let sudo = if manager == Manager::Brew || probe::is_root() { "" } else { "sudo " };
    lines.iter().map(|line| format!("  {sudo}{line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
