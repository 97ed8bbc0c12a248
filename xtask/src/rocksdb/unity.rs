//! Unity build of RocksDB: each compiler call compiles many of its sources, so that the headers are parsed about thirty
//! times instead of 343 times (docs/decisions/0016-unity-build-of-rocksdb.md).
//!
//! ```text
//! librocksdb-sys/rocksdb_lib_sources.txt  db/a.cc, db/b.cc, …     sources of one directory, at most SOURCES_PER_UNIT
//!   → build/unit07.cc                     #include "db/a.cc" …
//!   → build/unit07.o                      as many compilers at a time as there are CPUs
//!   → librocksdb.a
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use crate::shell::{self, Result};

/// More sources per unit take less time in total, but more memory at a time: about 1.5 GB per compiler.
const SOURCES_PER_UNIT: usize = 20;

/// Sources that Pleiad does not use and that no other source refers to.
const UNUSED: [&str; 13] = [
    "test_util/testharness",
    "tools/",
    "utilities/agg_merge/",
    "utilities/blob_db/",
    "utilities/cache_dump",
    "utilities/cassandra/",
    "utilities/env_mirror",
    "utilities/fault_injection",
    "utilities/leveldb_options/",
    "utilities/option_change_migration/",
    "utilities/persistent_cache/",
    "utilities/secondary_index/",
    "utilities/simulator_cache/",
];

/// The flags that librocksdb-sys compiles with when it has the features that `storage` enables, except `-O2` for `-O3`:
/// RocksDB's own build uses `-O2`.
const FLAGS: [&str; 11] = [
    "-std=c++20",
    "-O2",
    "-fPIC",
    "-ffunction-sections",
    "-fdata-sections",
    "-w",
    "-DNDEBUG=1",
    "-DLZ4=1",
    "-DZSTD=1",
    "-DHAVE_ALIGNED_NEW",
    "-DHAVE_UINT128_EXTENSION",
];

/// Directories of the crates that contain the sources and the headers of the compression libraries.
pub struct CrateDirs {
    pub rocksdb: PathBuf,
    pub lz4: PathBuf,
    pub zstd: PathBuf,
}

/// Compiles the library in `work` and returns its path.
pub fn build(crates: &CrateDirs, work: &Path, library: &str) -> Result<PathBuf> {
    fs::create_dir_all(work).map_err(|e| format!("{}: {e}", work.display()))?;
    let list = crates.rocksdb.join("rocksdb_lib_sources.txt");
    let list = fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
    let mut inputs = vec![crates.rocksdb.join("build_version.cc")];
    for (number, sources) in units(&list).iter().enumerate() {
        let unit = work.join(format!("unit{number:02}.cc"));
        let text: String = sources.iter().map(|source| format!("#include \"{source}\"\n")).collect();
        fs::write(&unit, text).map_err(|e| format!("{}: {e}", unit.display()))?;
        inputs.push(unit);
    }
    compile(crates, platform(std::env::consts::OS)?, work, &inputs)?;
    let archive = work.join(library);
    let objects = inputs.iter().map(|input| object(work, input));
    shell::run(Command::new(tool("AR", "ar")).arg("crs").arg(&archive).args(objects))?;
    Ok(archive)
}

/// The sources of each unit: consecutive ones of one directory.
fn units(list: &str) -> Vec<Vec<&str>> {
    let mut units: Vec<Vec<&str>> = Vec::new();
    let is_used =
        |source: &&str| *source != "util/build_version.cc" && !UNUSED.iter().any(|part| source.starts_with(part));
    for source in list.lines().map(str::trim).filter(|line| !line.is_empty()).filter(is_used) {
        match units.last_mut() {
            Some(unit) if unit.len() < SOURCES_PER_UNIT && directory(unit[0]) == directory(source) => unit.push(source),
            _ => units.push(vec![source]),
        }
    }
    units
}

/// Tables of different formats define the same names, so `table/` is divided further.
fn directory(source: &str) -> &str {
    let depth = if source.starts_with("table/") { 2 } else { 1 };
    let end = source.match_indices('/').nth(depth - 1).or_else(|| source.match_indices('/').next());
    end.map_or(source, |(at, _)| &source[..at])
}

/// The inputs that are not compiled yet, and the result so far.
struct CompileQueue<'a> {
    pending: std::slice::Iter<'a, PathBuf>,
    done: usize,
    result: Result,
}

/// Compiles all inputs, as many at a time as there are CPUs. After an error no further one is started.
fn compile(crates: &CrateDirs, platform: &[&str], work: &Path, inputs: &[PathBuf]) -> Result {
    let (started, total) = (Instant::now(), inputs.len());
    let queue = Mutex::new(CompileQueue { pending: inputs.iter(), done: 0, result: Ok(()) });
    let next =
        || queue.lock().ok().and_then(|mut queue| if queue.result.is_ok() { queue.pending.next() } else { None });
    let worker = || {
        while let Some(input) = next() {
            let compiled = shell::run(&mut compiler(crates, platform, input, &object(work, input)));
            let Ok(mut queue) = queue.lock() else { return };
            if compiled.is_err() {
                queue.result = compiled;
                return;
            }
            queue.done += 1;
            println!("RocksDB: {} of {total} parts compiled, {} s", queue.done, started.elapsed().as_secs());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
    queue.into_inner().map_err(|_| "a compiler thread panicked")?.result
}

fn compiler(crates: &CrateDirs, platform: &[&str], input: &Path, object: &Path) -> Command {
    let mut compiler = Command::new(tool("CXX", "c++"));
    compiler.args(FLAGS).args(platform).args(["-include", "cstdint", "-c"]).arg(input).arg("-o").arg(object);
    let sources = crates.rocksdb.join("rocksdb");
    let headers = [crates.lz4.join("liblz4/lib"), crates.zstd.join("zstd/lib")];
    for include in [sources.join("include"), sources, crates.rocksdb.clone()].iter().chain(&headers) {
        compiler.arg("-I").arg(include);
    }
    compiler
}

/// The definitions by which RocksDB chooses the functions of the operating system.
fn platform(os: &str) -> Result<&'static [&'static str]> {
    match os {
        "linux" => Ok(&[
            "-DOS_LINUX",
            "-DROCKSDB_PLATFORM_POSIX",
            "-DROCKSDB_LIB_IO_POSIX",
            "-DROCKSDB_SCHED_GETCPU_PRESENT",
            "-DROCKSDB_AUXV_GETAUXVAL_PRESENT",
            "-DROCKSDB_FALLOCATE_PRESENT",
            "-DROCKSDB_RANGESYNC_PRESENT",
        ]),
        "macos" => Ok(&["-DOS_MACOSX", "-DROCKSDB_PLATFORM_POSIX", "-DROCKSDB_LIB_IO_POSIX"]),
        other => Err(format!(
            "xtask compiles RocksDB on Linux and macOS only, not on {other}. Run `cargo build --release`, which compiles \
             it as librocksdb-sys does, or set ROCKSDB_LIB_DIR to the directory of a static library."
        )),
    }
}

fn object(work: &Path, source: &Path) -> PathBuf {
    work.join(Path::new(&shell::name(source)).with_extension("o"))
}

fn tool(variable: &str, default: &str) -> std::ffi::OsString {
    std::env::var_os(variable).unwrap_or_else(|| default.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stay_within_a_directory_and_leave_out_unused_sources() {
        let list = "db/a.cc\ndb/x/b.cc\ntable/p/c.cc\ntable/q/d.cc\ntools/e.cc\nutil/build_version.cc\nutil/f.cc\n";
        let expected = [vec!["db/a.cc", "db/x/b.cc"], vec!["table/p/c.cc"], vec!["table/q/d.cc"], vec!["util/f.cc"]];
        assert_eq!(units(list), expected);
        let many: String = (0..SOURCES_PER_UNIT + 1).map(|n| format!("db/{n}.cc\n")).collect();
        assert_eq!(units(&many).iter().map(Vec::len).collect::<Vec<_>>(), [SOURCES_PER_UNIT, 1]);
    }
    #[test]
    fn a_platform_without_a_recipe_is_an_error() {
        assert!(platform("linux").is_ok() && platform("macos").is_ok());
        assert!(platform("freebsd").is_err_and(|message| message.contains("freebsd")));
    }
}
