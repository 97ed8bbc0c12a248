//! The synced position: how far the write-ahead log was on the disk when it was last synced.
//!
//! A log tells nothing about its own end: a file that was cut, or one that is missing, looks like one that was never
//! longer. So the position up to which everything was synced is also written to a file of its own, which the next start
//! compares with the log (`log_check`).
//!
//! ```text
//! SYNCED   two lines of 77 bytes, overwritten in turn; the one with the higher number counts
//! line     number, 16 hex digits │ ' ' │ log file, 16 │ ' ' │ bytes of it, 16 │ ' ' │ boot, 16 │ ' ' │ CRC-32C, 8 │ '\n'
//!          boot   0, or the machine's boot in which writes were acknowledged that were not synced yet
//!
//! 0000000000000003 000000000000000c 0000000000009c40 0000000000000000 5ea29c58      40,000 bytes of 000012.log
//! ```
//!
//! Guarantees: the log is synced before the file says so; therefore the file may be old after a crash, but never ahead.
//! It is at most `WRITE_INTERVAL` older than the last sync. The boot is on the disk before the first write that is not
//! synced is acknowledged, and 0 again after a shutdown that has synced everything. The file is written by a thread of
//! its own, which sleeps while nothing is synced; a commit costs one `fstat` more.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::directory::write_atomically;
use super::log_file::checksum;

/// The shortest time between two writes of the file.
const WRITE_INTERVAL: Duration = Duration::from_millis(200);
const LINE_BYTES: usize = 77;
/// The part of a line that the checksum covers.
const FIELDS_BYTES: usize = 68;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SyncedPosition {
    /// The number of the log file; all earlier ones are synced completely.
    pub log: u64,
    pub bytes: u64,
}

/// What the file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncedState {
    pub position: SyncedPosition,
    /// The boot in which writes were acknowledged that were not synced yet.
    unsynced_boot: u64,
}

impl SyncedState {
    /// Whether the machine has stopped while acknowledged writes were not synced.
    pub fn has_lost_unsynced(&self) -> bool {
        self.unsynced_boot != 0 && self.unsynced_boot != current_boot()
    }
}

/// Identifies the time since the machine started, in which a killed process loses nothing that it has written.
fn current_boot() -> u64 {
    match fs::read("/proc/sys/kernel/random/boot_id") {
        Ok(id) => u64::from(checksum(&id)) | 1 << 32,
        // Each process counts as a boot: numbers are skipped more often than necessary.
        Err(_) => u64::from(std::process::id()) | 1 << 33,
    }
}

/// The contents of the file; `None` if there is no file.
pub fn read(path: &Path) -> io::Result<Option<SyncedState>> {
    Ok(read_newest(path)?.map(|(_, state)| state))
}

fn read_newest(path: &Path) -> io::Result<Option<(u64, SyncedState)>> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let newest = text.chunks(LINE_BYTES).filter_map(decode).max_by_key(|(number, _)| *number);
    newest.map(Some).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "no line is whole"))
}

fn encode(number: u64, SyncedState { position, unsynced_boot }: SyncedState) -> String {
    let fields = format!("{number:016x} {:016x} {:016x} {unsynced_boot:016x} ", position.log, position.bytes);
    format!("{fields}{:08x}\n", checksum(fields.as_bytes()))
}

fn decode(line: &[u8]) -> Option<(u64, SyncedState)> {
    let text = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (fields, crc) = text.split_at_checked(FIELDS_BYTES)?;
    if crc != format!("{:08x}", checksum(fields.as_bytes())) {
        return None;
    }
    let mut numbers = fields.split(' ').map(|field| u64::from_str_radix(field, 16).ok());
    let mut next = || numbers.next().flatten();
    let (number, log, bytes, unsynced_boot) = (next()?, next()?, next()?, next()?);
    Some((number, SyncedState { position: SyncedPosition { log, bytes }, unsynced_boot }))
}

/// The end of the newest log file.
pub struct LogEnd {
    db_dir: PathBuf,
    log: u64,
    file: Option<File>,
    bytes: u64,
}

impl LogEnd {
    pub fn new(db_dir: PathBuf) -> LogEnd {
        LogEnd { db_dir, log: 0, file: None, bytes: 0 }
    }

    /// Call it after a write to the log, while no other write can run.
    pub fn find(&mut self) -> io::Result<SyncedPosition> {
        let bytes = self.file.as_ref().map(|file| file.metadata().map(|file| file.len())).transpose()?;
        match bytes {
            Some(bytes) if bytes > self.bytes => self.bytes = bytes,
            // A write makes the newest file longer: there is a newer one.
            _ => self.open_newest()?,
        }
        Ok(SyncedPosition { log: self.log, bytes: self.bytes })
    }

    fn open_newest(&mut self) -> io::Result<()> {
        let newest = log_numbers(&self.db_dir)?.into_iter().max();
        let newest = newest.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "there is no log file"))?;
        let file = File::open(log_path(&self.db_dir, newest))?;
        (self.log, self.bytes, self.file) = (newest, file.metadata()?.len(), Some(file));
        Ok(())
    }
}

/// The numbers of the log files in RocksDB's directory, in order.
pub fn log_numbers(db_dir: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for file in fs::read_dir(db_dir)? {
        let name = file?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.strip_suffix(".log")?.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

pub fn log_path(db_dir: &Path, log: u64) -> PathBuf {
    db_dir.join(format!("{log:06}.log"))
}

/// Writes the file while the store is open.
pub struct SyncedFileWriter {
    shared: Arc<WriterShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct WriterShared {
    state: Mutex<WriterState>,
    wake: Condvar,
    written: Condvar,
}

#[derive(Default)]
struct WriterState {
    newest: SyncedState,
    /// Whether the file is behind.
    is_behind: bool,
    /// The boot that the file names.
    file_boot: u64,
    /// Whether the log has records that are not synced.
    is_unsynced: bool,
    closing: bool,
}

impl SyncedFileWriter {
    /// Creates the file or continues that of the previous run, and starts the thread.
    pub fn start(path: &Path, position: SyncedPosition) -> io::Result<SyncedFileWriter> {
        let newest = SyncedState { position, unsynced_boot: 0 };
        let number = match read_newest(path) {
            Ok(Some((number, _))) => number,
            _ => {
                let (dir, name) = (path.parent().unwrap_or(Path::new(".")), path.file_name().unwrap_or_default());
                write_atomically(dir, &name.to_string_lossy(), &(encode(0, newest) + &encode(1, newest)))?;
                1
            }
        };
        let mut file = SyncedFile { file: OpenOptions::new().write(true).open(path)?, number };
        // Without a sync, which a start need not wait for: until then the file names logs that are not needed any more.
        file.overwrite(newest)?;
        let shared = Arc::new(WriterShared::default());
        shared.state.lock().newest = newest;
        let thread_shared = shared.clone();
        let builder = std::thread::Builder::new().name("synced position".into());
        let thread = builder.spawn(move || serve(&thread_shared, file))?;
        Ok(SyncedFileWriter { shared, thread: Some(thread) })
    }

    /// Everything up to here is synced.
    pub fn note(&self, position: SyncedPosition) {
        let mut state = self.shared.state.lock();
        (state.newest.position, state.is_unsynced) = (position, false);
        if !std::mem::replace(&mut state.is_behind, true) {
            self.shared.wake.notify_one();
        }
    }

    /// A write is about to be acknowledged that is not synced. The first one waits until the file says so.
    pub fn note_unsynced(&self) {
        let mut state = self.shared.state.lock();
        state.is_unsynced = true;
        if state.newest.unsynced_boot != 0 {
            return;
        }
        (state.newest.unsynced_boot, state.is_behind) = (current_boot(), true);
        self.shared.wake.notify_one();
        self.shared.written.wait_while(&mut state, |state| state.file_boot != state.newest.unsynced_boot);
    }
}

impl Drop for SyncedFileWriter {
    /// Waits until the last state is in the file.
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        if !state.is_unsynced && state.newest.unsynced_boot != 0 {
            (state.newest.unsynced_boot, state.is_behind) = (0, true);
        }
        state.closing = true;
        drop(state);
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic was reported where it happened
        }
    }
}

fn serve(shared: &WriterShared, mut file: SyncedFile) {
    while let Some(newest) = next_state(shared) {
        if let Err(error) = file.overwrite(newest).and_then(|()| file.file.sync_data()) {
            tracing::warn!(%error, "the synced position cannot be written");
        }
        // After an error, too: the write goes on, protected by less.
        shared.state.lock().file_boot = newest.unsynced_boot;
        shared.written.notify_all();
        wait_for_interval(shared, newest.unsynced_boot);
    }
}

/// `None` when the store is closed and everything is written.
fn next_state(shared: &WriterShared) -> Option<SyncedState> {
    let mut state = shared.state.lock();
    loop {
        if std::mem::take(&mut state.is_behind) {
            return Some(state.newest);
        }
        if state.closing {
            return None;
        }
        shared.wake.wait(&mut state);
    }
}

/// A write that waits for its boot to be in the file does not wait for this.
fn wait_for_interval(shared: &WriterShared, boot: u64) {
    let until = Instant::now() + WRITE_INTERVAL;
    let mut state = shared.state.lock();
    while !state.closing && state.newest.unsynced_boot == boot {
        if shared.wake.wait_until(&mut state, until).timed_out() {
            return;
        }
    }
}

struct SyncedFile {
    file: File,
    /// That of the newest line.
    number: u64,
}

impl SyncedFile {
    /// The other line stays, so that there is a whole one whatever happens to this one.
    fn overwrite(&mut self, newest: SyncedState) -> io::Result<()> {
        let number = self.number + 1;
        self.file.seek(SeekFrom::Start(number % 2 * LINE_BYTES as u64))?;
        self.file.write_all(encode(number, newest).as_bytes())?;
        self.number = number;
        Ok(())
    }
}

#[cfg(test)]
pub mod tests;
