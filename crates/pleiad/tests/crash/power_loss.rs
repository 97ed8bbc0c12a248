//! Simulated power failure: rebuilds the data directory from the journal of syncs that `tests/crash/unsynced.c` writes.
//!
//! Invariant: everything that was synced according to the journal is there afterwards. `UnsyncedData` decides about the
//! rest: the disk may have received none of it, or some.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::rng::SeededRng;
use crate::server::Site;

const SHIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/crash/unsynced.c");

/// What happens to bytes and directory entries that were not synced.
pub enum UnsyncedData<'c> {
    /// All are lost.
    Lost,
    /// Some directory entries survive; files keep some of their unsynced bytes, as written or as zeros.
    PartlyKept(&'c mut SeededRng),
}

/// What is on disk for certain.
#[derive(Default)]
struct Disk {
    /// Directory entries, by the directory's path below the root; the root itself is "".
    names: BTreeMap<PathBuf, Names>,
    /// Synced length, by inode.
    bytes: HashMap<u64, u64>,
}

type Names = BTreeMap<String, Entry>;

#[derive(Clone, Copy, Debug)]
struct Entry {
    inode: u64,
    is_dir: bool,
}

#[derive(Debug, Default)]
pub struct FileTotals {
    pub bytes: u64,
    pub files: u64,
}

pub struct PowerFailure {
    root: PathBuf,
    journal: PathBuf,
    /// Links to removed and replaced files: their removal may not have reached the disk.
    grave: PathBuf,
    disk: Disk,
}

impl PowerFailure {
    /// Compiles the shim and preloads it into every process that the site starts from now on.
    pub fn new(site: &mut Site) -> PowerFailure {
        let (shim, journal, grave) = (site.path("unsynced.so"), site.path("journal"), site.path("grave"));
        let flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"];
        let status = Command::new("cc").args(flags).arg(&shim).arg(SHIM).status();
        let status = status.expect("a C compiler, `cc`, is needed for this test");
        assert!(status.success(), "the shim does not compile");
        let root = site.path("root").canonicalize().unwrap();
        site.variables = vec![
            ("LD_PRELOAD", shim),
            ("UNSYNCED_ROOT", root.clone()),
            ("UNSYNCED_JOURNAL", journal.clone()),
            ("UNSYNCED_GRAVE", grave.clone()),
        ];
        let mut power = PowerFailure { root, journal, grave, disk: Disk::default() };
        power.start_journal();
        power
    }

    /// Empties the journal; everything that exists now counts as synced.
    fn start_journal(&mut self) {
        _ = fs::remove_dir_all(&self.grave);
        fs::create_dir(&self.grave).unwrap();
        fs::write(&self.journal, "").unwrap();
        self.disk = Disk::default();
        self.disk.read(&self.root, Path::new(""));
    }

    /// Rebuilds the tree as a power failure at this point would have left it, and starts a new journal.
    pub fn cut(&mut self, mut unsynced: UnsyncedData<'_>) -> FileTotals {
        self.disk.replay(&self.root, &fs::read_to_string(&self.journal).unwrap());
        let mut live = Disk::default();
        live.read(&self.root, Path::new(""));
        let sources = self.sources();
        let (after, mut kept) = (self.root.with_extension("after"), FileTotals::default());
        self.rebuild(Path::new(""), &after, &live, &sources, &mut unsynced, &mut kept);
        let before = live.total();
        fs::remove_dir_all(&self.root).unwrap();
        fs::rename(&after, &self.root).unwrap();
        self.start_journal();
        FileTotals { bytes: before.bytes.saturating_sub(kept.bytes), files: before.files.saturating_sub(kept.files) }
    }

    /// The path from which each inode's bytes can be read.
    fn sources(&self) -> HashMap<u64, PathBuf> {
        let mut sources = HashMap::new();
        let mut pending = vec![self.grave.clone(), self.root.clone()];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let meta = entry.metadata().unwrap();
                if meta.is_dir() {
                    pending.push(entry.path());
                } else {
                    sources.insert(meta.ino(), entry.path());
                }
            }
        }
        sources
    }

    fn rebuild(
        &self,
        at: &Path,
        to: &Path,
        live: &Disk,
        sources: &HashMap<u64, PathBuf>,
        unsynced: &mut UnsyncedData<'_>,
        kept: &mut FileTotals,
    ) {
        fs::create_dir(to).unwrap();
        let disk = if unsynced.keeps_names() { live } else { &self.disk };
        for (name, entry) in disk.names.get(at).into_iter().flatten() {
            if entry.is_dir {
                self.rebuild(&at.join(name), &to.join(name), live, sources, unsynced, kept);
                continue;
            }
            // A file that stdio removed has no source; it was never synced, either.
            let Some(source) = sources.get(&entry.inode) else { continue };
            let bytes = self.surviving(entry.inode, fs::read(source).unwrap(), unsynced);
            kept.bytes += bytes.len() as u64;
            kept.files += 1;
            fs::write(to.join(name), bytes).unwrap();
        }
    }

    fn surviving(&self, inode: u64, mut bytes: Vec<u8>, unsynced: &mut UnsyncedData<'_>) -> Vec<u8> {
        let synced = self.disk.bytes.get(&inode).copied().unwrap_or(0).min(bytes.len() as u64);
        let more = match unsynced {
            UnsyncedData::Lost => 0,
            UnsyncedData::PartlyKept(rng) => rng.between(0, bytes.len() as u64 - synced),
        };
        bytes.truncate(usize::try_from(synced + more).unwrap());
        if let UnsyncedData::PartlyKept(rng) = unsynced
            && rng.one_in(3)
        {
            // The length reached the disk before the bytes.
            bytes[usize::try_from(synced).unwrap()..].fill(0);
        }
        bytes
    }
}

impl UnsyncedData<'_> {
    fn keeps_names(&mut self) -> bool {
        match self {
            UnsyncedData::Lost => false,
            UnsyncedData::PartlyKept(rng) => rng.one_in(2),
        }
    }
}

impl Disk {
    fn read(&mut self, root: &Path, at: &Path) {
        let mut names = Names::new();
        for entry in fs::read_dir(root.join(at)).unwrap().map(Result::unwrap) {
            let (meta, name) = (entry.metadata().unwrap(), entry.file_name().into_string().unwrap());
            if meta.is_dir() {
                self.read(root, &at.join(&name));
            } else {
                self.bytes.insert(meta.ino(), meta.len());
            }
            names.insert(name, Entry { inode: meta.ino(), is_dir: meta.is_dir() });
        }
        self.names.insert(at.to_owned(), names);
    }

    fn replay(&mut self, root: &Path, journal: &str) {
        let mut lines = journal.lines();
        while let Some(line) = lines.next() {
            match line.split_at(2) {
                ("D ", path) => {
                    let names = lines.by_ref().take_while(|line| *line != ".").map(entry).collect();
                    self.names.insert(Path::new(path).strip_prefix(root).unwrap().to_owned(), names);
                }
                ("S ", rest) => self.length(rest, Ord::max),
                ("T ", rest) => self.length(rest, Ord::min),
                _ => panic!("not a line of the journal: {line}"),
            }
        }
    }

    fn length(&mut self, rest: &str, join: fn(u64, u64) -> u64) {
        let (inode, bytes) = rest.split_once(' ').unwrap();
        let known = self.bytes.entry(inode.parse().unwrap()).or_default();
        *known = join(*known, bytes.parse().unwrap());
    }

    fn total(&self) -> FileTotals {
        FileTotals { bytes: self.bytes.values().sum(), files: self.bytes.len() as u64 }
    }
}

fn entry(line: &str) -> (String, Entry) {
    let mut words = line.splitn(4, ' ').skip(1);
    let mut word = || words.next().unwrap();
    let (inode, is_dir) = (word().parse().unwrap(), word() == "d");
    (word().to_owned(), Entry { inode, is_dir })
}
