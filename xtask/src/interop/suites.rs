//! The suites: required tools, installation of the SDK, test command.
//!
//! Guarantees: the installed versions are those that a suite's files pin. An environment is built again only when those
//! files or the toolchain change (a stamp file contains their hash); cargo, go and maven have their own caches and need
//! no stamp.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::SuiteDirs;
use crate::shell::{self, Result};

pub struct Suite {
    pub name: &'static str,
    /// Programs without which the suite is skipped. Python and node are not here: `setup` installs them.
    pub toolchain: &'static [&'static str],
    /// The suffix of file names with tests: most runners accept a suite without tests; xtask skips it.
    pub tests: &'static str,
    pub prepare: fn(&SuiteDirs) -> Result,
    /// One command per version of the SDK.
    pub tests_of: fn(&SuiteDirs) -> Vec<Command>,
}

pub const SUITES: [Suite; 6] = [
    Suite { name: "python", toolchain: &[], tests: ".py", prepare: python_prepare, tests_of: python_test },
    Suite { name: "js", toolchain: &[], tests: ".test.js", prepare: js_prepare, tests_of: js_test },
    Suite { name: "rust", toolchain: &[], tests: ".rs", prepare: rust_prepare, tests_of: rust_test },
    Suite { name: "java", toolchain: &["java", "mvn"], tests: "Test.java", prepare: java_prepare, tests_of: java_test },
    Suite { name: "go", toolchain: &["go"], tests: "_test.go", prepare: go_prepare, tests_of: go_test },
    Suite { name: "dotnet", toolchain: &["dotnet"], tests: "Tests.cs", prepare: dotnet_prepare, tests_of: dotnet_test },
];

// ---- python ---------------------------------------------------------------------------------------------

fn python_prepare(dirs: &SuiteDirs) -> Result {
    let version = shell::output(&mut shell::command("python3", ["--version"]))?;
    install_if_changed(dirs, &["requirements.txt"], &version, || {
        let venv = dirs.cache.join("venv");
        remove_dir(&venv)?;
        shell::run(shell::command("python3", ["-m", "venv"]).arg(&venv))?;
        let requirements = dirs.source.join("requirements.txt");
        let mut pip = shell::command(venv.join("bin/python"), ["-m", "pip", "install", "--quiet", "-r"]);
        shell::run(pip.arg(requirements))
    })
}

fn python_test(dirs: &SuiteDirs) -> Vec<Command> {
    // Neither byte code nor pytest's cache may appear in the working tree.
    let python = dirs.cache.join("venv/bin/python");
    let mut test = shell::command(python, ["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    test.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(&dirs.source);
    vec![test]
}

// ---- js -------------------------------------------------------------------------------------------------

/// Node resolves modules from the directory of the importing file, so the suite runs as a copy next to its
/// node_modules.
fn js_prepare(dirs: &SuiteDirs) -> Result {
    let copy = dirs.cache.join("suite");
    update_copy(&dirs.source, &copy, "node_modules")?;
    let version = shell::output(&mut shell::command("node", ["--version"]))?;
    install_if_changed(dirs, &["package.json", "package-lock.json"], &version, || {
        shell::run(shell::command("npm", ["ci", "--no-audit", "--no-fund"]).current_dir(&copy))
    })
}

fn js_test(dirs: &SuiteDirs) -> Vec<Command> {
    let mut test = shell::command("node", ["--test"]);
    test.current_dir(dirs.cache.join("suite"));
    vec![test]
}

// ---- rust -----------------------------------------------------------------------------------------------

fn rust_prepare(dirs: &SuiteDirs) -> Result {
    shell::run(&mut rust_cargo(dirs, &["test", "--locked", "--no-run"]))
}

fn rust_test(dirs: &SuiteDirs) -> Vec<Command> {
    vec![rust_cargo(dirs, &["test", "--locked"])]
}

/// A separate workspace and target directory: feature unification must not mix the SDK's dependencies with the
/// product's. The debug profile, because only the compile time matters here.
fn rust_cargo(dirs: &SuiteDirs, args: &[&str]) -> Command {
    let mut cargo = shell::bare_cargo(args);
    cargo.env("CARGO_TARGET_DIR", dirs.cache.join("target")).current_dir(&dirs.source);
    cargo
}

// ---- java -----------------------------------------------------------------------------------------------

/// Maven writes next to its pom.xml, so the suite runs as a copy; compiled classes stay in its `target`.
fn java_prepare(dirs: &SuiteDirs) -> Result {
    update_copy(&dirs.source, &dirs.cache.join("suite"), "target")?;
    shell::run(&mut maven(dirs, "test-compile"))
}

fn java_test(dirs: &SuiteDirs) -> Vec<Command> {
    vec![maven(dirs, "test")]
}

fn maven(dirs: &SuiteDirs, goal: &str) -> Command {
    let repository = format!("-Dmaven.repo.local={}", dirs.cache.join("repository").display());
    let mut maven = shell::command("mvn", ["--batch-mode", "--quiet", &repository, goal]);
    if !shell::colours() {
        maven.arg("-Dstyle.color=never");
    }
    maven.current_dir(dirs.cache.join("suite"));
    maven
}

// ---- go -------------------------------------------------------------------------------------------------

fn go_prepare(dirs: &SuiteDirs) -> Result {
    shell::run(&mut go(dirs, &["mod", "download"]))
}

fn go_test(dirs: &SuiteDirs) -> Vec<Command> {
    vec![go(dirs, &["test", "-count=1", "./..."])] // count=1: do not accept cached results
}

fn go(dirs: &SuiteDirs, args: &[&str]) -> Command {
    let mut go = shell::command("go", args);
    go.env("GOMODCACHE", dirs.cache.join("mod")).env("GOCACHE", dirs.cache.join("build"));
    go.env("GOFLAGS", "-mod=readonly").current_dir(&dirs.source);
    go
}

// ---- dotnet ---------------------------------------------------------------------------------------------

/// A program of the suite, compiled for one version of its SDK.
struct DotnetProgram {
    project: &'static str,
    assembly: &'static str,
    sdk: &'static str,
}

/// The versions of the Cosmos SDK resume queries differently; DocumentClient is what the oldest applications use.
const DOTNET_PROGRAMS: [DotnetProgram; 3] = [
    DotnetProgram { project: "cosmos", assembly: "Cosmos.dll", sdk: "3.64.0" },
    DotnetProgram { project: "cosmos", assembly: "Cosmos.dll", sdk: "3.37.0" },
    DotnetProgram { project: "documentdb", assembly: "DocumentDB.dll", sdk: "2.11.6" },
];

impl DotnetProgram {
    /// Where this program is compiled.
    fn output(&self, dirs: &SuiteDirs) -> PathBuf {
        dirs.cache.join(format!("{}-{}", self.project, self.sdk))
    }

    /// Compiles in the cache; the compiler would otherwise write next to the project's file.
    fn build(&self, dirs: &SuiteDirs) -> Result {
        let version = format!("-p:SdkVersion={}", self.sdk);
        let objects = format!("-p:BaseIntermediateOutputPath={}/", self.output(dirs).join("obj").display());
        let mut build = shell::command(
            "dotnet",
            ["build", "--nologo", "-v", "quiet", "-clp:ErrorsOnly", "--disable-build-servers", "-o"],
        );
        build.arg(self.output(dirs).join("bin")).args([version, objects]);
        shell::run(build.current_dir(dirs.source.join(self.project)))
    }

    fn command(&self, dirs: &SuiteDirs) -> Command {
        let mut test = shell::command("dotnet", [self.output(dirs).join("bin").join(self.assembly)]);
        test.current_dir(&dirs.cache);
        test
    }
}

fn dotnet_prepare(dirs: &SuiteDirs) -> Result {
    DOTNET_PROGRAMS.iter().try_for_each(|program| program.build(dirs))
}

fn dotnet_test(dirs: &SuiteDirs) -> Vec<Command> {
    DOTNET_PROGRAMS.iter().map(|program| program.command(dirs)).collect()
}

// ---- shared ---------------------------------------------------------------------------------------------

/// Runs `install` unless it has succeeded before with the same pinned files and toolchain.
fn install_if_changed(dirs: &SuiteDirs, pinned: &[&str], toolchain: &str, install: impl Fn() -> Result) -> Result {
    let stamp = dirs.cache.join("installed");
    let expected = fingerprint(&dirs.source, pinned, toolchain)?;
    if fs::read_to_string(&stamp).is_ok_and(|have| have == expected) {
        return Ok(());
    }
    let _ = fs::remove_file(&stamp); // an incomplete installation must not look complete
    println!("installing {} …", pinned.join(", "));
    install()?;
    fs::write(&stamp, expected).map_err(|e| format!("cannot write {}: {e}", stamp.display()))
}

fn fingerprint(source: &Path, pinned: &[&str], toolchain: &str) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    toolchain.hash(&mut hasher);
    for file in pinned {
        let path = source.join(file);
        fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// Returns true if a file below `dir` has a name with this suffix.
pub fn has_file(dir: &Path, end: &str) -> bool {
    shell::list(dir)
        .iter()
        .any(|path| if path.is_dir() { has_file(path, end) } else { shell::name(path).ends_with(end) })
}

/// Makes `to` a copy of `from`, except for the directory `keep`, which is not copied and stays unchanged in `to`.
fn update_copy(from: &Path, to: &Path, keep: &str) -> Result {
    for old in shell::list(to).iter().filter(|old| shell::name(old) != keep) {
        let removed = if old.is_dir() { fs::remove_dir_all(old) } else { fs::remove_file(old) };
        removed.map_err(|e| format!("cannot remove {}: {e}", old.display()))?;
    }
    copy_into(from, to, keep)
}

fn copy_into(from: &Path, to: &Path, skip: &str) -> Result {
    fs::create_dir_all(to).map_err(|e| format!("cannot create {}: {e}", to.display()))?;
    for path in shell::list(from).iter().filter(|path| shell::name(path) != skip) {
        let target = to.join(shell::name(path));
        match path.is_dir() {
            true => copy_into(path, &target, skip)?,
            false => copy_file(path, &target)?,
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result {
    fs::copy(from, to).map(|_| ()).map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), to.display()))
}

fn remove_dir(dir: &Path) -> Result {
    match dir.exists() {
        true => fs::remove_dir_all(dir).map_err(|e| format!("cannot remove {}: {e}", dir.display())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
