//! `pleiad salvage`: writes out whatever can be read of a damaged data directory.
//!
//! Guarantees: the data directory is not changed. All records of the write-ahead log that can be read count, also those
//! behind damage, which a start would drop. If something could not be read, the report says what, and the exit code
//! is 1.
//!
//! ```text
//! <out>/shop/orders.ndjson    its items, one per line: a `seed` file of the configuration
//! <out>/shop/orders.json      its definition
//! <out>/shard-7.ndjson        items whose container is not known
//! <out>/report.txt            what was found, and what could not be read
//! ```

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pleiad_engine::salvage::{SalvageOrigin, SalvageOutput, SalvageReport, salvage};
use pleiad_model::env::SystemEnv;
use pleiad_model::{Error, Result, json};
use pleiad_storage::{AnyStore, RocksOptions, RocksStore};

use crate::config::{Settings, Storage};
use crate::print;

pub fn run(settings: &Settings, output: &Path) -> Result<()> {
    let Storage::Directory(directory) = &settings.storage else {
        return Err(Error::invalid("there is nothing to salvage in memory; say --data DIR."));
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| Error::unavailable(format!("cannot start the runtime: {error}")))?;
    let report = runtime.block_on(write_out(directory, output))?;
    let text = render(&report);
    fs::write(output.join("report.txt"), &text).map_err(|error| cannot_write(output, error))?;
    print(&text)?;
    match report.problems.len() {
        0 => Ok(()),
        count => Err(Error::internal(format!("{count} problems; what could be read is in {}.", output.display()))),
    }
}

async fn write_out(directory: &Path, output: &Path) -> Result<SalvageReport> {
    if output.exists() {
        return Err(Error::invalid(format!("{} exists already; --out is a new directory.", output.display())));
    }
    let copy = output.join("copy");
    let opened = RocksStore::open_salvaged(directory, &copy, RocksOptions::default())?;
    let mut files = OutputFiles { output: output.to_owned(), items: None };
    let mut report = salvage(AnyStore::Embedded(opened.store), Arc::new(SystemEnv), &mut files).await?;
    files.finish()?;
    fs::remove_dir_all(&copy).map_err(|error| cannot_write(&copy, error))?;
    let skipped = (opened.skipped_bytes > 0)
        .then(|| format!("{} bytes of the write-ahead log cannot be read", opened.skipped_bytes));
    report.problems = opened.problems.into_iter().chain(skipped).chain(report.problems).collect();
    Ok(report)
}

fn render(report: &SalvageReport) -> String {
    let mut text = format!("{} items of {} containers were written\n", report.items, report.containers);
    for problem in &report.problems {
        _ = writeln!(text, "problem: {problem}"); // writing to a `String` cannot fail
    }
    text
}

struct OutputFiles {
    output: PathBuf,
    /// The file that the next items go to.
    items: Option<BufWriter<File>>,
}

impl OutputFiles {
    fn finish(&mut self) -> Result<()> {
        let flushed = self.items.take().map_or(Ok(()), |mut items| items.flush());
        flushed.map_err(|error| cannot_write(&self.output, error))
    }

    fn create(&mut self, origin: &SalvageOrigin) -> io::Result<()> {
        let items = match origin {
            SalvageOrigin::Container { database, container, definition } => {
                let directory = self.output.join(file_name(database));
                fs::create_dir_all(&directory)?;
                let mut text = Vec::new();
                json::write(&definition.clone().into(), &mut text);
                fs::write(directory.join(file_name(container) + ".json"), text)?;
                directory.join(file_name(container) + ".ndjson")
            }
            SalvageOrigin::Shard(shard) => self.output.join(format!("shard-{shard}.ndjson")),
        };
        self.items = Some(BufWriter::new(File::create_new(items)?));
        Ok(())
    }
}

impl SalvageOutput for OutputFiles {
    fn begin(&mut self, origin: &SalvageOrigin) -> Result<()> {
        self.finish()?;
        self.create(origin).map_err(|error| cannot_write(&self.output, error))
    }

    fn item(&mut self, text: &[u8]) -> Result<()> {
        let Some(items) = &mut self.items else { return Ok(()) };
        let written = items.write_all(text).and_then(|()| items.write_all(b"\n"));
        written.map_err(|error| cannot_write(&self.output, error))
    }
}

/// A resource's name as a file name: letters, digits, `-` and `_` as they are, every other byte as `%` and two digits.
fn file_name(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let encode = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let encoded: String = name.bytes().map(encode).collect();
    match encoded.get(..FILE_NAME_BYTES_MAX) {
        // A name of 255 characters may be longer than a file name can be.
        Some(start) if encoded.len() > FILE_NAME_BYTES_MAX => format!("{start}~{:08x}", short_hash(name)),
        _ => encoded,
    }
}

const FILE_NAME_BYTES_MAX: usize = 200;

fn short_hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)) // FNV-1a
}

fn cannot_write(path: &Path, error: io::Error) -> Error {
    Error::unavailable(format!("cannot write to {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_says_what_it_holds_and_leaves_its_directory_never() {
        assert_eq!(file_name("orders-2_b"), "orders-2_b");
        assert_eq!(file_name("../a b"), "%2E%2E%2Fa%20b");
        let long = file_name(&"é".repeat(255));
        assert!(long.len() < 220 && long != file_name(&("é".repeat(254) + "è")));
    }
}
