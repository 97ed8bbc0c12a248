//! Environments are built only when necessary, and the working tree is only read.

use std::cell::Cell;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

/// The directory is removed when its handle is dropped.
fn suite_dirs() -> (SuiteDirs, TempDir) {
    let base = tempfile::tempdir().unwrap();
    let dirs = SuiteDirs { source: base.path().join("source"), cache: base.path().join("cache") };
    fs::create_dir_all(&dirs.source).unwrap();
    fs::create_dir_all(&dirs.cache).unwrap();
    fs::write(dirs.source.join("pins"), "sdk==1").unwrap();
    (dirs, base)
}

fn installs(dirs: &SuiteDirs, toolchain: &str, outcome: Result) -> bool {
    let called = Cell::new(false);
    let _ = install_if_changed(dirs, &["pins"], toolchain, || {
        called.set(true);
        outcome.clone()
    });
    called.get()
}

#[test]
fn installs_again_only_when_pins_or_toolchain_change_or_it_failed() {
    let (dirs, _base) = suite_dirs();
    assert!(installs(&dirs, "3.11", Err("no network".to_owned())));
    assert!(installs(&dirs, "3.11", Ok(())), "a failed installation is repeated");
    assert!(!installs(&dirs, "3.11", Ok(())));
    assert!(installs(&dirs, "3.12", Ok(())));
    fs::write(dirs.source.join("pins"), "sdk==2").unwrap();
    assert!(installs(&dirs, "3.12", Ok(())));
    assert!(!installs(&dirs, "3.12", Ok(())));
}

#[test]
fn a_copy_drops_removed_files_and_keeps_installed_modules() {
    let (dirs, _base) = suite_dirs();
    let copy = dirs.cache.join("suite");
    let write = |path: PathBuf| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    };
    write(dirs.source.join("helpers/a.mjs"));
    write(copy.join("gone.test.mjs"));
    write(copy.join("node_modules/sdk/index.js"));
    update_copy(&dirs.source, &copy, "node_modules").unwrap();
    assert!(has_file(&copy, "a.mjs") && !has_file(&copy, ".test.mjs"));
    assert!(copy.join("node_modules/sdk/index.js").exists());
}
