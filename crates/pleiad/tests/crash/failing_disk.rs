//! A disk that fails and works again, by the library `tests/crash/failing_disk.c`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::server::Site;

const SHIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/crash/failing_disk.c");

pub struct FailingDisk {
    control: PathBuf,
}

impl FailingDisk {
    /// Compiles the library and preloads it into every process that the site starts from now on.
    pub fn new(site: &mut Site) -> FailingDisk {
        let (shim, control) = (site.path("failing.so"), site.path("failure"));
        let flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"];
        let status = Command::new("cc").args(flags).arg(&shim).arg(SHIM).status();
        assert!(status.expect("a C compiler, `cc`, is needed for this test").success(), "the shim does not compile");
        let root = site.path("root").canonicalize().unwrap();
        site.variables = vec![("LD_PRELOAD", shim), ("FAILING_ROOT", root), ("FAILING_CONTROL", control.clone())];
        FailingDisk { control }
    }

    pub fn fail(&self, error: &str) {
        fs::write(&self.control, error).unwrap();
    }

    pub fn work(&self) {
        fs::remove_file(&self.control).unwrap();
    }
}
