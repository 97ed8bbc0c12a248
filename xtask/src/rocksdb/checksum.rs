//! Checks the CRC32c of a compiled library, which guards every record of the write-ahead log and is chosen when the
//! program runs: all implementations in the library against each other, on this machine's CPU.
//!
//! ```text
//! librocksdb.a ── ar x ──▶ crc32c.o, crc32c_portable.o, crc32c_sse42.o ─┐
//! crc32c_check.cc ──────────────────────────────────────────────────────┴─▶ a program; exit status 0 if all agree
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::unity::tool;
use crate::shell::{self, Result};

const CHECK: &str = include_str!("crc32c_check.cc");

/// `work` is a directory for the parts of the check.
pub fn check(library: &Path, work: &Path) -> Result {
    fs::create_dir_all(work).map_err(|e| format!("{}: {e}", work.display()))?;
    let objects = extract(library, work)?;
    let (source, program) = (work.join("crc32c_check.cc"), work.join("crc32c_check"));
    fs::write(&source, CHECK).map_err(|e| format!("{}: {e}", source.display()))?;
    let mut compiler = Command::new(tool("CXX", "c++"));
    shell::run(compiler.args(["-std=c++17", "-O2"]).arg(&source).args(objects).arg("-o").arg(&program))?;
    shell::run(&mut Command::new(program)).map_err(|e| format!("CRC32c of {}: {e}", library.display()))
}

/// The objects that compute CRC32c. Linking the whole library would need the compression libraries as well.
fn extract(library: &Path, work: &Path) -> Result<Vec<PathBuf>> {
    let ar = |operation: &str| {
        let mut ar = Command::new(tool("AR", "ar"));
        ar.arg(operation).arg(library).current_dir(work);
        ar
    };
    let members = shell::output(&mut ar("t"))?;
    let members: Vec<&str> = members.lines().filter(|member| member.starts_with("crc32c")).collect();
    shell::run(ar("x").args(&members))?;
    Ok(members.iter().map(|member| work.join(member)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::{LIBRARY, library_dir};
    use super::*;

    /// Without the library there is nothing to check: it was built in another way.
    fn library() -> Option<PathBuf> {
        library_dir().map(|dir| dir.join(LIBRARY)).filter(|library| library.exists())
    }

    #[test]
    fn all_implementations_in_the_library_agree() {
        let Some(library) = library() else { return };
        let work = tempfile::tempdir().unwrap();
        check(&library, work.path()).unwrap();
    }

    /// An implementation that is wrong for long inputs only.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_wrong_implementation_is_found() {
        let Some(library) = library() else { return };
        let work = tempfile::tempdir().unwrap();
        extract(&library, work.path()).unwrap();
        let wrong = "#include <cstdint>\n#include <cstddef>\n\
            namespace rocksdb { namespace crc32c_portable { uint32_t Extend(uint32_t, const char*, size_t); }\n\
            namespace crc32c_sse42 { uint32_t Extend(uint32_t crc, const char* data, size_t size) {\n\
            return crc32c_portable::Extend(crc, data, size) ^ (size > 1000); } } }\n";
        fs::write(work.path().join("wrong.cc"), wrong).unwrap();
        let run = |program: &str, args: &[&str]| shell::run(Command::new(program).args(args).current_dir(work.path()));
        run("c++", &["-c", "wrong.cc", "-o", "crc32c_sse42.o"]).unwrap();
        run("ar", &["crs", "wrong.a", "crc32c.o", "crc32c_portable.o", "crc32c_sse42.o"]).unwrap();
        assert!(check(&work.path().join("wrong.a"), &work.path().join("check")).is_err());
    }
}
