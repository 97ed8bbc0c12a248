//! Unity build of RocksDB: each compiler call compiles many of its sources, so that the headers are parsed about thirty
//! times instead of 343 times (docs/decisions/0016-unity-build-of-rocksdb.md).
//!
//! ```text
//! librocksdb-sys/rocksdb_lib_sources.txt  db/a.cc, db/b.cc, …     sources of one group, at most SOURCES_PER_UNIT
//!   → build/02_db.cc                      #include "db/a.cc" …
//!   → build/02_db.o                       as many compilers at a time as there are CPUs
//!   → librocksdb.a
//! ```
//!
//! On x86-64 CRC32c, which guards every record of the write-ahead log, uses SSE4.2 where the CPU has it (`crc32c.cc`);
//! `checksum` compares both implementations.

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

/// The flags that librocksdb-sys compiles with when it has the features that `storage` enables, without the level of
/// optimisation: `-O2`, as in RocksDB's own build, or what a group of sources says.
const FLAGS: [&str; 10] = [
    "-std=c++20",
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

const CRC32C: &str = "util/crc32c.cc";

/// What `CRC32C` becomes on x86-64: name, text and flags of each source. A function that a header defines and that is
/// compiled with the flags of SSE4.2 must not be shared with other sources: with C++17, unlike C++20, there are none.
const CRC32C_X86: [(&str, &str, &[&str]); 3] = [
    ("crc32c.cc", include_str!("crc32c.cc"), &[]),
    ("crc32c_portable.cc", "#define crc32c crc32c_portable\n#include \"util/crc32c.cc\"\n", &[]),
    (
        "crc32c_sse42.cc",
        "#define crc32c crc32c_sse42\n#include \"util/crc32c.cc\"\n",
        &["-std=c++17", "-msse4.2", "-mpclmul"],
    ),
];

/// Directories of the crates that contain the sources and the headers of the compression libraries.
pub struct CrateDirs {
    pub rocksdb: PathBuf,
    pub lz4: PathBuf,
    pub zstd: PathBuf,
}

/// One call of the compiler.
struct Unit {
    source: PathBuf,
    level: &'static str,
    flags: &'static [&'static str],
}

/// Compiles the library in `work` and returns its path.
pub fn build(crates: &CrateDirs, work: &Path, library: &str) -> Result<PathBuf> {
    fs::create_dir_all(work).map_err(|e| format!("{}: {e}", work.display()))?;
    let list = crates.rocksdb.join("rocksdb_lib_sources.txt");
    let list = fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
    let mut inputs = vec![Unit { source: crates.rocksdb.join("build_version.cc"), level: "-O2", flags: &[] }];
    let mut add = |name: &str, text: &str, level, flags| {
        let source = work.join(name);
        fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
        inputs.push(Unit { source, level, flags });
        Result::Ok(())
    };
    for (number, (group, sources)) in units(&list).iter().enumerate() {
        let text: String = sources.iter().map(|source| format!("#include \"{source}\"\n")).collect();
        add(&format!("{number:02}_{}.cc", group.name), &text, group.level, &[])?;
    }
    if std::env::consts::ARCH == "x86_64" {
        CRC32C_X86.iter().try_for_each(|(name, text, flags)| add(name, text, "-O2", flags))?;
    } else {
        add("crc32c.cc", &format!("#include \"{CRC32C}\"\n"), "-O2", &[])?;
    }
    compile(crates, platform(std::env::consts::OS)?, work, &inputs)?;
    let archive = work.join(library);
    let objects = inputs.iter().map(|input| object(work, &input.source));
    shell::run(Command::new(tool("AR", "ar")).arg("crs").arg(&archive).args(objects))?;
    Ok(archive)
}

/// A set of sources that may share a unit, and the level at which it is optimised.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Group {
    name: &'static str,
    level: &'static str,
}

/// By the start of a source's path; the first match counts, and a source without one belongs to `DEFAULT`. Tables of
/// different formats define the same names, so each has its own group. What runs only when a store is opened is
/// compiled for size: its tables of options take 40 s with `-O2`, 12 s with `-O1`.
const GROUPS: [(&str, Group); 9] = [
    ("db/", Group { name: "db", level: "-O2" }),
    ("options/", Group { name: "options", level: "-O1" }),
    ("table/adaptive/", Group { name: "cuckoo", level: "-O1" }),
    ("table/block_based/", Group { name: "block_based", level: "-O2" }),
    ("table/cuckoo/", Group { name: "cuckoo", level: "-O1" }),
    ("table/plain/", Group { name: "plain", level: "-O1" }),
    ("table/", Group { name: "table", level: "-O2" }),
    ("util/", Group { name: "util", level: "-O2" }),
    ("utilities/", Group { name: "utilities", level: "-O1" }),
];
const DEFAULT: Group = Group { name: "default", level: "-O2" };

/// The sources of each unit, all of one group.
fn units(list: &str) -> Vec<(Group, Vec<&str>)> {
    let is_used = |source: &&str| {
        !["util/build_version.cc", CRC32C].contains(source) && !UNUSED.iter().any(|part| source.starts_with(part))
    };
    let mut units: Vec<(Group, Vec<&str>)> = Vec::new();
    for source in list.lines().map(str::trim).filter(|line| !line.is_empty()).filter(is_used) {
        let group = GROUPS.iter().find(|(start, _)| source.starts_with(start)).map_or(DEFAULT, |(_, group)| *group);
        match units.iter_mut().find(|(of, unit)| *of == group && unit.len() < SOURCES_PER_UNIT) {
            Some((_, unit)) => unit.push(source),
            None => units.push((group, vec![source])),
        }
    }
    units
}

/// The inputs that are not compiled yet, and the result so far.
struct CompileQueue<'a> {
    pending: std::slice::Iter<'a, Unit>,
    done: usize,
    result: Result,
}

/// Compiles all inputs, as many at a time as there are CPUs. After an error no further one is started.
fn compile(crates: &CrateDirs, platform: &[&str], work: &Path, inputs: &[Unit]) -> Result {
    let (started, total) = (Instant::now(), inputs.len());
    let queue = Mutex::new(CompileQueue { pending: inputs.iter(), done: 0, result: Ok(()) });
    let next =
        || queue.lock().ok().and_then(|mut queue| if queue.result.is_ok() { queue.pending.next() } else { None });
    let worker = || {
        while let Some(input) = next() {
            let compiled = shell::run(&mut compiler(crates, platform, input, &object(work, &input.source)));
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

fn compiler(crates: &CrateDirs, platform: &[&str], input: &Unit, object: &Path) -> Command {
    let mut compiler = Command::new(tool("CXX", "c++"));
    compiler.args(FLAGS).arg(input.level).args(platform).args(input.flags).args(["-include", "cstdint"]);
    compiler.arg("-c").arg(&input.source).arg("-o").arg(object);
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

pub fn tool(variable: &str, default: &str) -> std::ffi::OsString {
    std::env::var_os(variable).unwrap_or_else(|| default.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stay_within_a_group_and_leave_out_unused_sources() {
        let list = "cache/a.cc\ndb/b.cc\ndb/x/c.cc\nfile/d.cc\ntable/cuckoo/e.cc\ntable/plain/f.cc\ntools/g.cc\n\
                    util/build_version.cc\nutil/crc32c.cc\nutil/h.cc\n";
        let units_of = |list| units(list).into_iter().map(|(group, unit)| (group.name, unit)).collect::<Vec<_>>();
        let expected = [
            ("default", vec!["cache/a.cc", "file/d.cc"]),
            ("db", vec!["db/b.cc", "db/x/c.cc"]),
            ("cuckoo", vec!["table/cuckoo/e.cc"]),
            ("plain", vec!["table/plain/f.cc"]),
            ("util", vec!["util/h.cc"]),
        ];
        assert_eq!(units_of(list), expected);
        let many: String = (0..SOURCES_PER_UNIT + 1).map(|n| format!("db/{n}.cc\n")).collect();
        assert_eq!(units(&many).iter().map(|(_, unit)| unit.len()).collect::<Vec<_>>(), [SOURCES_PER_UNIT, 1]);
    }

    #[test]
    fn a_platform_without_a_recipe_is_an_error() {
        assert!(platform("linux").is_ok() && platform("macos").is_ok());
        assert!(platform("freebsd").is_err_and(|message| message.contains("freebsd")));
    }
}
