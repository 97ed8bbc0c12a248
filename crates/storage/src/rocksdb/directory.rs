//! Layout of the data directory.
//!
//! ```text
//! <dir>/FORMAT        format version, "5\n": synced before the first data that an older Pleiad would not understand
//! <dir>/LIVE          number of the current store, "2\n"; without this file, the store without a number
//! <dir>/SYNCED-2      how much of its write-ahead log was synced, see `synced_position`
//! <dir>/LOSS          an operator accepted a loss, and numbers that clients saw are not skipped yet, see `log_check`
//! <dir>/damaged-1/    the log files as they were then
//! <dir>/store-2/      RocksDB's files with its LOCK; stores with other numbers are leftovers and are deleted
//! <dir>/ingest-2/     files that are about to be ingested; leftovers of a crash are deleted
//! <dir>/snapshots/7/  a checkpoint, see `checkpoint_dir`
//! ```
//!
//! Guarantees: a directory of an older Pleiad is upgraded, and the older one will not open it again. A directory of a
//! newer Pleiad, or one in use, is rejected with an error that says so, and is not changed. So is one that has lost its
//! store, and one that has files but was not made by Pleiad. Later, other files in the directory are ignored.

mod lock; // one process at a time

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use pleiad_model::{Error, Result};

pub use lock::DirectoryLock;

/// Incremented when bytes on disk change their meaning. Older formats are understood: the layers above rewrite the
/// rows that they need.
///
/// 2: feed rows carry their item's docnum and effective key. 3: LIVE names the current store. 4: a container's row
/// names its kind, which an older Pleiad would drop. 5: the rows of full-text indexes have the version of the analyzer,
/// and an older Pleiad would not find them.
const FORMAT: u32 = 5;
const FORMAT_OLDEST: u32 = 1;

/// The location of one store in the data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreDir {
    pub dir: PathBuf,
    /// 0 is the first store.
    pub number: u64,
}

impl StoreDir {
    pub fn db_dir(&self) -> PathBuf {
        self.dir.join(numbered("store", self.number))
    }

    pub fn ingest_dir(&self) -> PathBuf {
        self.dir.join(numbered("ingest", self.number))
    }

    pub fn synced_file(&self) -> PathBuf {
        self.dir.join(numbered("SYNCED", self.number))
    }

    /// Whether RocksDB has a database here.
    pub fn has_data(&self) -> bool {
        self.db_dir().join("CURRENT").exists()
    }

    /// A location that is not in use: its number is larger than that of every store in the directory.
    pub fn next_unused(&self) -> Result<StoreDir> {
        let last_number = entries(&self.dir)?.iter().filter_map(|name| number_of(name)).max().unwrap_or(0);
        Ok(StoreDir { dir: self.dir.clone(), number: last_number.max(self.number) + 1 })
    }

    /// Makes this the current store. If that fails, the former one stays current, and this one will be deleted.
    pub fn declare_live(&self) -> Result<()> {
        self.declare_live_with(write_atomically)
    }

    pub(super) fn declare_live_with(&self, write: impl FnOnce(&Path, &str, &str) -> io::Result<()>) -> Result<()> {
        let before = live_number(&self.dir)?;
        let named = |number: u64| format!("{number}\n");
        let written = sync_dir(&self.db_dir()).and_then(|()| write(&self.dir, "LIVE", &named(self.number)));
        if written.is_err() && live_number(&self.dir)? != before {
            // LIVE was renamed, but the disk failed to sync the directory.
            write_atomically(&self.dir, "LIVE", &named(before)).map_err(|error| cannot_use(&self.dir, error))?;
        }
        written.map_err(|error| cannot_use(&self.dir, error))
    }

    /// Deletes all files of this store. What cannot be deleted now is deleted at the next start.
    pub fn clear(&self) {
        for dir in [self.db_dir(), self.ingest_dir()] {
            let _ = fs::remove_dir_all(dir); // it may not exist
        }
        let _ = fs::remove_file(self.synced_file());
    }

    /// Deletes what a crash left of other stores. At this point no other process can have the directory open.
    pub fn remove_leftovers(&self) -> Result<()> {
        if live_number(&self.dir)? != self.number {
            return Err(in_use(&self.dir));
        }
        let numbers = entries(&self.dir)?.into_iter().filter_map(|name| number_of(&name));
        numbers.filter(|number| *number != self.number).for_each(|number| StoreDir { number, ..self.clone() }.clear());
        Ok(())
    }
}

fn numbered(what: &str, number: u64) -> String {
    if number == 0 { what.to_owned() } else { format!("{what}-{number}") }
}

/// The number of the store that a directory entry belongs to, if it belongs to a store.
fn number_of(entry: &str) -> Option<u64> {
    match ["store", "ingest", "SYNCED"].iter().find_map(|what| entry.strip_prefix(what))? {
        "" => Some(0),
        rest => rest.strip_prefix('-')?.parse().ok(),
    }
}

/// The names in a directory; none if it does not exist.
pub fn entries(dir: &Path) -> Result<Vec<String>> {
    let found = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        found => found.and_then(Iterator::collect::<io::Result<Vec<_>>>),
    };
    let found = found.map_err(|error| cannot_use(dir, error))?;
    Ok(found.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

/// Creates the directory or checks its format, locks it, and returns the location of the current store.
pub fn prepare(dir: &Path) -> Result<(StoreDir, DirectoryLock)> {
    create_dir_durably(dir).map_err(|error| cannot_use(dir, error))?;
    let lock = DirectoryLock::take(dir)?;
    let store_dir = StoreDir { dir: dir.to_owned(), number: live_number(dir)? };
    match fs::read_to_string(dir.join("FORMAT")) {
        Ok(text) => {
            check_format(dir, &text)?;
            check_store_is_there(&store_dir)?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => init(&store_dir)?,
        Err(error) => return Err(cannot_use(dir, error)),
    }
    Ok((store_dir, lock))
}

/// Locks an existing directory and returns the location of the current store; changes nothing.
pub fn find(dir: &Path) -> Result<(StoreDir, DirectoryLock)> {
    let lock = DirectoryLock::take(dir)?;
    let store_dir = StoreDir { dir: dir.to_owned(), number: live_number(dir)? };
    let format = fs::read_to_string(dir.join("FORMAT")).map_err(|error| cannot_use(dir, error))?;
    check_format(dir, &format)?;
    check_store_is_there(&store_dir)?;
    if !store_dir.has_data() {
        return Err(Error::invalid(format!("{} has no data yet", dir.display())));
    }
    Ok((store_dir, lock))
}

/// A directory with FORMAT has had a store, and one with SYNCED has had data in it. A new store in its place would look
/// like an account that was always empty.
fn check_store_is_there(store_dir: &StoreDir) -> Result<()> {
    let (dir, files) = (store_dir.dir.display(), store_dir.db_dir());
    if store_dir.number > 0 && !files.is_dir() {
        return Err(Error::invalid(format!("{dir}/LIVE names {}, which is not there", files.display())));
    }
    if !files.is_dir() || store_dir.synced_file().exists() && !store_dir.has_data() {
        return Err(Error::invalid(format!(
            "{dir} has lost its data: {} is missing or empty; restore a backup, or choose another directory",
            files.display()
        )));
    }
    Ok(())
}

/// The number of the current store.
fn live_number(dir: &Path) -> Result<u64> {
    match fs::read_to_string(dir.join("LIVE")) {
        Ok(text) => text.trim().parse().map_err(|_| {
            Error::invalid(format!("{}/LIVE is not ours: it must be a number; choose another directory", dir.display()))
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(cannot_use(dir, error)),
    }
}

/// Upgrades an older directory to this version; at this point no other process can have it open.
pub fn upgrade_format(dir: &Path) -> Result<()> {
    match fs::read_to_string(dir.join("FORMAT")) {
        Ok(text) if text.trim() == FORMAT.to_string() => Ok(()),
        _ => write_format(dir).map_err(|error| cannot_use(dir, error)),
    }
}

/// A new directory is durable only after its parent was synced; RocksDB syncs what is below `store`. The mode is
/// 0700: other users cannot read the data.
pub fn create_dir_durably(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = dir.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_dir_durably(parent)?;
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => File::open(parent)?.sync_all(),
    }
}

fn check_format(dir: &Path, text: &str) -> Result<()> {
    let dir = dir.display();
    match text.trim().parse::<u32>() {
        Ok(FORMAT_OLDEST..=FORMAT) => Ok(()),
        Ok(found) if found > FORMAT => Err(Error::invalid(format!(
            "{dir} was written by a newer Pleiad (format {found}; this one knows {FORMAT}): upgrade, or choose another directory"
        ))),
        _ => Err(Error::invalid(format!("{dir}/FORMAT is not ours: it must be a number; choose another directory"))),
    }
}

/// What a new directory may contain: what a file system or an interrupted start of Pleiad puts there.
const NOT_FOREIGN: [&str; 3] = ["lost+found", "certificates", "FORMAT.new"];

/// There is no FORMAT file: the directory is new, unless it has data, which is never written before FORMAT, or the
/// files of another program. The store's directory comes first: FORMAT without it tells of a loss.
fn init(store_dir: &StoreDir) -> Result<()> {
    let dir = &store_dir.dir;
    if store_dir.has_data() {
        return Err(Error::invalid(format!(
            "{} has data but no FORMAT file: restore that file, or choose another directory",
            dir.display()
        )));
    }
    let is_foreign = |name: &String| !NOT_FOREIGN.contains(&name.as_str()) && number_of(name).is_none();
    if let Some(name) = entries(dir)?.into_iter().find(is_foreign) {
        return Err(Error::invalid(format!(
            "{} is not a data directory of Pleiad: it has no FORMAT file, but contains \"{name}\"; choose an empty directory",
            dir.display()
        )));
    }
    let made = create_dir_durably(&store_dir.db_dir()).and_then(|()| write_format(dir));
    made.map_err(|error| cannot_use(dir, error))
}

fn write_format(dir: &Path) -> io::Result<()> {
    write_atomically(dir, "FORMAT", &format!("{FORMAT}\n"))
}

/// Writes the file atomically: after a crash there is at worst a leftover `.new` file, which the next start
/// overwrites.
pub fn write_atomically(dir: &Path, name: &str, text: &str) -> io::Result<()> {
    let draft = dir.join(format!("{name}.new"));
    let mut file = File::create(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, dir.join(name))?;
    sync_dir(dir)
}

/// Makes the names in a directory survive a power failure.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

pub fn cannot_open(dir: &Path, error: rocksdb::Error) -> Error {
    let text = error.as_ref();
    // The first text is for a lock of another process, the second for one of this process.
    if text.contains("While lock file") || text.contains("lock hold by current process") {
        return in_use(dir);
    }
    Error::unavailable(format!("cannot open the store in {}: {text}", dir.display()))
}

pub fn cannot_use(dir: &Path, error: io::Error) -> Error {
    Error::unavailable(format!("cannot use {} as the data directory: {error}", dir.display()))
}

pub fn in_use(dir: &Path) -> Error {
    let dir = dir.display();
    Error::unavailable(format!("another Pleiad uses this directory: {dir}; stop it, or choose another directory"))
}
