//! Atomic file writes, private or public.
//!
//! Guarantees: a file appears completely or not at all, and a private file is created with its restricted permissions.
//! The contents are opaque here.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use pleiad_model::{Error, Result};

const PRIVATE: u32 = 0o600;
const PUBLIC: u32 = 0o644;

pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| Error::invalid(format!("cannot read {}: {error}", path.display())))
}

/// Creates the directory if it is missing; fails if it is not writable.
pub fn make_private_directory(directory: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)?;
    let probe = directory.join(format!(".probe-{}", std::process::id()));
    File::create(&probe)?;
    fs::remove_file(probe)
}

pub fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    write(path, bytes, PRIVATE, |fresh| fs::rename(fresh, path))
}

pub fn write_public(path: &Path, bytes: &[u8]) -> Result<()> {
    write(path, bytes, PUBLIC, |fresh| fs::rename(fresh, path))
}

/// Writes the file unless it exists; returns true if it was written.
pub fn write_private_once(path: &Path, bytes: &[u8]) -> Result<bool> {
    write(path, bytes, PRIVATE, |fresh| match fs::hard_link(fresh, path) {
        Ok(()) => fs::remove_file(fresh).map(|()| true),
        Err(_) if path.exists() => fs::remove_file(fresh).map(|()| false),
        // A file system without hard links: two processes that write at the same time both count as the first.
        Err(_) => fs::rename(fresh, path).map(|()| true),
    })
}

fn write<T>(path: &Path, bytes: &[u8], mode: u32, publish: impl Fn(&Path) -> std::io::Result<T>) -> Result<T> {
    let fresh = path.with_extension(format!("new-{}", std::process::id()));
    let written = create(&fresh, mode).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        publish(&fresh)
    });
    written.map_err(|error| {
        _ = fs::remove_file(&fresh);
        Error::unavailable(format!("cannot write {}: {error}", path.display()))
    })
}

fn create(path: &Path, mode: u32) -> std::io::Result<File> {
    // A file left by a crash might have other permissions; `create_new` below must create it.
    _ = fs::remove_file(path);
    let mut options = OpenOptions::new();
    set_mode(options.write(true).create_new(true), mode);
    options.open(path)
}

#[cfg(unix)]
fn set_mode(options: &mut OpenOptions, mode: u32) {
    std::os::unix::fs::OpenOptionsExt::mode(options, mode);
}

/// The user's profile directory is private already.
#[cfg(not(unix))]
fn set_mode(_options: &mut OpenOptions, _mode: u32) {}
