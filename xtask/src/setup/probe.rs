//! Finds tools on this machine. Guarantees: it changes nothing and makes no network request.

use std::env;
use std::path::{Path, PathBuf};

use crate::shell;

pub fn cxx() -> bool {
    let chosen = env::var("CXX").ok();
    chosen.as_deref().into_iter().chain(["c++", "g++", "clang++"]).any(|program| shell::works(program, ["--version"]))
}

pub fn make() -> bool {
    on_path("make") || on_path("gmake")
}

pub fn python() -> bool {
    // Debian ships the module `venv` without ensurepip, which it needs to create an environment.
    shell::works("python3", ["-c", "import venv, ensurepip"])
}

pub fn node() -> bool {
    let version = shell::output(&mut shell::command("node", ["--version"])).unwrap_or_default();
    node_major(&version).is_some_and(|major| major >= 18) && on_path("npm")
}

fn node_major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

pub fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// The directory that contains all of PostgreSQL's programs that a comparison runs, the newest version first. Debian
/// does not have the server's programs on the PATH.
pub fn postgres_programs() -> Option<PathBuf> {
    let mut dirs = subdirs("/usr/lib/postgresql", |_| true, "bin");
    dirs.reverse();
    dirs.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let needed = ["initdb", "postgres", "psql", "pgbench"];
    dirs.into_iter().find(|dir| needed.iter().all(|program| dir.join(program).is_file()))
}

pub fn is_root() -> bool {
    shell::output(&mut shell::command("id", ["-u"])).is_ok_and(|id| id.trim() == "0")
}

/// The library alone is not enough: some packages contain it without the compiler's own headers (stddef.h), and the
/// build would fail minutes later with a message about those.
pub fn libclang() -> bool {
    let dirs = library_dirs();
    let library = dirs.iter().any(|dir| shell::list(dir).iter().any(|file| is_libclang(&shell::name(file))));
    library && (has_headers(&dirs) || env::var_os("BINDGEN_EXTRA_CLANG_ARGS").is_some())
}

fn has_headers(dirs: &[PathBuf]) -> bool {
    let versions = dirs.iter().flat_map(|dir| shell::list(&dir.join("clang")));
    let mut headers = versions.map(|version| version.join("include").join("stddef.h"));
    headers.any(|header| header.exists())
}

fn is_libclang(file: &str) -> bool {
    let library = file.starts_with("libclang.") || file.starts_with("libclang-");
    let shared = file.ends_with(".so") || file.contains(".so.") || file.ends_with(".dylib");
    library && shared && !file.starts_with("libclang-cpp")
}

/// Where the binding generator looks, in its order: the user's setting, llvm-config, the usual directories.
fn library_dirs() -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    if let Some(chosen) = env::var_os("LIBCLANG_PATH").map(PathBuf::from) {
        dirs.push(if chosen.is_file() { parent(&chosen) } else { chosen });
    }
    if let Ok(libdir) = shell::output(&mut shell::command("llvm-config", ["--libdir"])) {
        dirs.push(PathBuf::from(libdir.trim()));
    }
    dirs.extend(["/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"].map(PathBuf::from));
    dirs.extend(subdirs("/usr/lib", |name| name.contains("-linux-"), ""));
    for base in ["/usr/lib", "/usr/lib64", "/usr/local"] {
        dirs.extend(subdirs(base, |name| name.starts_with("llvm"), "lib"));
        dirs.extend(subdirs(base, |name| name.starts_with("llvm"), "lib64"));
    }
    dirs.extend(subdirs("/usr/lib64/llvm", |_| true, "lib64"));
    dirs.extend(MAC_DIRS.map(PathBuf::from));
    dirs
}

const MAC_DIRS: [&str; 4] = [
    "/opt/homebrew/opt/llvm/lib",
    "/usr/local/opt/llvm/lib",
    "/Library/Developer/CommandLineTools/usr/lib",
    "/Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib",
];

fn subdirs(base: &str, accept: impl Fn(&str) -> bool, inside: &str) -> Vec<PathBuf> {
    let entries = shell::list(Path::new(base)).into_iter().filter(|dir| accept(&shell::name(dir)));
    entries.map(|dir| dir.join(inside)).collect()
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libclang_is_distinguished_from_similar_libraries() {
        for yes in ["libclang.so", "libclang.so.1", "libclang-14.so", "libclang-14.so.14.0.6", "libclang.dylib"] {
            assert!(is_libclang(yes), "{yes}");
        }
        for no in ["libclang-cpp.so.14", "libclangAST.a", "libclang.a", "liblldb.so"] {
            assert!(!is_libclang(no), "{no}");
        }
    }

    #[test]
    fn node_versions_are_parsed() {
        assert_eq!(node_major("v20.20.2\n"), Some(20));
        assert_eq!(node_major(""), None);
    }
}
