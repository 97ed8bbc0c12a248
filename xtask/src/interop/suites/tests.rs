//! Environments are built only when necessary, and the working tree is only read.

use std::cell::Cell;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

/// The directory is removed when its handle is dropped.
fn place() -> (SuiteDirs, TempDir) {
    let base = tempfile::tempdir().unwrap();
    let place = SuiteDirs { source: base.path().join("source"), cache: base.path().join("cache") };
    fs::create_dir_all(&place.source).unwrap();
    fs::create_dir_all(&place.cache).unwrap();
    fs::write(place.source.join("pins"), "sdk==1").unwrap();
    (place, base)
}

fn installs(place: &SuiteDirs, toolchain: &str, outcome: Result) -> bool {
    let called = Cell::new(false);
    let _ = when_changed(place, &["pins"], toolchain, || {
        called.set(true);
        outcome.clone()
    });
    called.get()
}

#[test]
fn installs_again_only_when_pins_or_toolchain_change_or_it_failed() {
    let (place, _base) = place();
    assert!(installs(&place, "3.11", Err("no network".to_owned())));
    assert!(installs(&place, "3.11", Ok(())), "a failed installation is repeated");
    assert!(!installs(&place, "3.11", Ok(())));
    assert!(installs(&place, "3.12", Ok(())));
    fs::write(place.source.join("pins"), "sdk==2").unwrap();
    assert!(installs(&place, "3.12", Ok(())));
    assert!(!installs(&place, "3.12", Ok(())));
}

#[test]
fn a_copy_loses_what_the_source_lost_and_keeps_what_was_installed() {
    let (place, _base) = place();
    let copy = place.cache.join("suite");
    let write = |path: PathBuf| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    };
    write(place.source.join("helpers/a.mjs"));
    write(copy.join("gone.test.mjs"));
    write(copy.join("node_modules/sdk/index.js"));
    copy_fresh(&place.source, &copy, "node_modules").unwrap();
    assert!(has_file(&copy, "a.mjs") && !has_file(&copy, ".test.mjs"));
    assert!(copy.join("node_modules/sdk/index.js").exists());
}
