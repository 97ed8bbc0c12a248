//! What the data directory looks like.
//!
//! ```text
//! <dir>/FORMAT   the version of our layout, "2\n": synced before the first data that an older Pleiad would not know
//! <dir>/store/   RocksDB's files, its LOCK among them
//! <dir>/ingest/  files on their way into the store; what a crash left here is thrown away
//! ```
//!
//! Promise: a directory of an older Pleiad becomes ours, and the older one will not open it again. One of a newer
//! Pleiad, or one in use, is refused with a sentence that says so, and is left as it was. Other files in the directory are nobody's business.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pleiad_model::{Error, Result};

/// Raised when bytes on disk change their meaning. What is older is understood: the layers above rewrite what they need.
///
/// 2: feed rows carry their item's number and effective key.
const FORMAT: u32 = 2;
const FORMAT_OLDEST: u32 = 1;

/// Makes the directory ours and says where RocksDB lives.
pub fn prepare(dir: &Path) -> Result<PathBuf> {
    let home = dir.join("store");
    make(dir).map_err(|error| cannot_use(dir, error))?;
    match fs::read_to_string(dir.join("FORMAT")) {
        Ok(text) => check(dir, &text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => found(dir, &home)?,
        Err(error) => return Err(cannot_use(dir, error)),
    }
    make(&home).map_err(|error| cannot_use(dir, error))?;
    Ok(home)
}

/// Makes an older directory one of this version; by now nobody else can have it open.
pub fn adopt(dir: &Path) -> Result<()> {
    match fs::read_to_string(dir.join("FORMAT")) {
        Ok(text) if text.trim() == FORMAT.to_string() => Ok(()),
        _ => write_format(dir).map_err(|error| cannot_use(dir, error)),
    }
}

/// A directory is there for certain only when the one above it was synced; RocksDB syncs what is
/// below `store`. Data is its owner's business: what we make, nobody else can look into.
fn make(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let above = dir.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make(above)?;
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => File::open(above)?.sync_all(),
    }
}

fn check(dir: &Path, text: &str) -> Result<()> {
    let dir = dir.display();
    match text.trim().parse::<u32>() {
        Ok(FORMAT_OLDEST..=FORMAT) => Ok(()),
        Ok(found) if found > FORMAT => Err(Error::invalid(format!(
            "{dir} was written by a newer Pleiad (format {found}; this one knows {FORMAT}): upgrade, or choose another directory"
        ))),
        _ => Err(Error::invalid(format!("{dir}/FORMAT is not ours: it must be a number; choose another directory"))),
    }
}

/// No FORMAT: a new directory, unless there is data that cannot be younger than its FORMAT.
fn found(dir: &Path, home: &Path) -> Result<()> {
    if home.join("CURRENT").exists() {
        let dir = dir.display();
        return Err(Error::invalid(format!(
            "{dir} has data but no FORMAT file: restore that file, or choose another directory"
        )));
    }
    write_format(dir).map_err(|error| cannot_use(dir, error))
}

/// Whole or not at all: a crash leaves FORMAT.new behind at worst, which the next start writes over.
fn write_format(dir: &Path) -> io::Result<()> {
    let draft = dir.join("FORMAT.new");
    let mut file = File::create(&draft)?;
    file.write_all(format!("{FORMAT}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, dir.join("FORMAT"))?;
    File::open(dir)?.sync_all()
}

pub fn cannot_open(dir: &Path, error: rocksdb::Error) -> Error {
    let text = error.as_ref();
    // The first is another process, the second this one.
    if text.contains("While lock file") || text.contains("lock hold by current process") {
        return Error::unavailable(format!(
            "another Pleiad uses this directory: {}; stop it, or choose another directory",
            dir.display()
        ));
    }
    Error::unavailable(format!("cannot open the store in {}: {text}", dir.display()))
}

pub fn cannot_use(dir: &Path, error: io::Error) -> Error {
    Error::unavailable(format!("cannot use {} as the data directory: {error}", dir.display()))
}
