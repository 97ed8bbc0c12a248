//! Checkouts that share a target directory.
//!
//! Cargo names the crates of a workspace by their place in it, and compiles them again when a file is newer than what it
//! compiled last. So crates of one checkout look up to date in another whose files are older, whatever they contain.
//!
//! Invariant: cargo finds up to date only what it compiled from this checkout, unless another one builds meanwhile.

use std::fs;
use std::path::Path;

use crate::shell::{self, Result};

/// In a target directory: the path of the checkout that built last.
const STAMP: &str = "checkout";
/// The names of all packages of the workspace begin with one of these.
const PACKAGES: [&str; 2] = ["pleiad", "xtask"];

/// Makes cargo compile the workspace's own crates again if another checkout was the last to build.
pub fn claim(target: &Path, root: &Path) -> Result {
    let (stamp, root) = (target.join(STAMP), root.display().to_string());
    if fs::read_to_string(&stamp).is_ok_and(|last| last == root) {
        return Ok(());
    }
    for profile in shell::list(target) {
        let is_own = |fingerprint: &Path| PACKAGES.iter().any(|package| shell::name(fingerprint).starts_with(package));
        for fingerprint in shell::list(&profile.join(".fingerprint")).iter().filter(|path| is_own(path)) {
            fs::remove_dir_all(fingerprint).map_err(|e| format!("cannot remove {}: {e}", fingerprint.display()))?;
        }
    }
    fs::create_dir_all(target).map_err(|e| format!("cannot create {}: {e}", target.display()))?;
    fs::write(&stamp, root).map_err(|e| format!("cannot write {}: {e}", stamp.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_checkout_compiles_its_own_crates_again() {
        let target = tempfile::tempdir().unwrap();
        let fingerprints = target.path().join("release/.fingerprint");
        let left = || shell::list(&fingerprints).iter().map(|path| shell::name(path)).collect::<Vec<_>>();
        let build = || {
            for package in ["pleiad-abc", "pleiad-sql-abc", "tokio-abc", "xtask-abc"] {
                fs::create_dir_all(fingerprints.join(package)).unwrap();
            }
        };
        claim(target.path(), Path::new("/one")).unwrap();
        build();
        claim(target.path(), Path::new("/one")).unwrap();
        assert_eq!(left().len(), 4);
        claim(target.path(), Path::new("/two")).unwrap();
        assert_eq!(left(), ["tokio-abc"]);
        build();
        claim(target.path(), Path::new("/two")).unwrap();
        assert_eq!(left().len(), 4);
    }
}
