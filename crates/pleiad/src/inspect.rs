//! `pleiad inspect`: lists the contents of a data directory and checks their consistency.
//!
//! Guarantees: nothing in the directory is changed; the write-ahead log is replayed in memory. If the check finds a
//! problem, the problem is printed and the exit code is 1. A log that has lost synced bytes is such a problem; a torn
//! tail, which every crash may leave, is only mentioned.
//!
//! ```text
//! shop
//!   orders  nosql, 3 partitions, 30 items, 1.2 KiB
//!     0  [, 05C1C9CD…)          shard 1, LSN 10, 10 keys, 10 items, 410 bytes, 40 index rows
//! nothing is wrong
//! ```

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use pleiad_engine::check::{AccountReport, ContainerReport};
use pleiad_engine::{Action, Engine, PartitionKeyRange, PartitionLimits, ServerAuthority, SyncPolicy};
use pleiad_model::env::SystemEnv;
use pleiad_model::{Error, Result};
use pleiad_storage::{AnyStore, RocksOptions, RocksStore};

use crate::config::{Settings, Storage};
use crate::print;

pub fn run(settings: &Settings) -> Result<()> {
    let Storage::Directory(directory) = &settings.storage else {
        return Err(Error::invalid("there is nothing to inspect in memory; say --data DIR."));
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| Error::unavailable(format!("cannot start the runtime: {error}")))?;
    let report = runtime.block_on(check(directory))?;
    print(&render_report(&report))?;
    match report.problem_count() {
        0 => Ok(()),
        count => Err(Error::internal(format!(
            "{count} problems in {}: keep a copy of the directory, then restore a backup or report them.",
            directory.display()
        ))),
    }
}

async fn check(directory: &Path) -> Result<AccountReport> {
    if !directory.join("FORMAT").exists() {
        return Err(Error::invalid(format!("{} is not a data directory of Pleiad.", directory.display())));
    }
    let opened = RocksStore::open_read_only(directory, RocksOptions::default())?;
    let store = AnyStore::Embedded(opened.store);
    let engine = Engine::open(store, SyncPolicy::Synced, PartitionLimits::default(), Arc::new(SystemEnv)).await?;
    let at = engine.authorize(&ServerAuthority, Action::Monitor)?;
    let report = engine.check(&at).await;
    engine.close().await;
    let mut report = report?;
    opened.problems.iter().for_each(|problem| report.problems.add(problem));
    if opened.torn_bytes > 0 {
        eprintln!("the log ends in {} bytes of an interrupted write, which the next start drops", opened.torn_bytes);
    }
    Ok(report)
}

fn render_report(report: &AccountReport) -> String {
    let mut out = String::new();
    for database in &report.databases {
        line(&mut out, format_args!("{}", database.id));
        database.containers.iter().for_each(|container| container_lines(&mut out, container));
    }
    problem_lines(&mut out, "", &report.problems);
    if report.problem_count() == 0 {
        line(&mut out, format_args!("nothing is wrong"));
    }
    out
}

fn container_lines(out: &mut String, container: &ContainerReport) {
    let (count, items, bytes) = (container.partitions.len(), container.items(), size(container.item_bytes()));
    let (id, kind) = (&container.id, container.kind.as_str());
    line(out, format_args!("  {id}  {kind}, {count} partitions, {items} items, {bytes}"));
    for (range, report) in &container.partitions {
        let bytes = size(report.item_bytes);
        line(
            out,
            format_args!(
                "    {}  {:<22}  shard {}, LSN {}, {} keys, {} items, {bytes}, {} index rows",
                range.id,
                bounds(range),
                range.shard,
                report.lsn,
                report.keys,
                report.items,
                report.index_rows
            ),
        );
        problem_lines(out, "      ", &report.problems);
    }
}

fn problem_lines(out: &mut String, indent: &str, problems: &pleiad_engine::check::Problems) {
    problems.messages.iter().for_each(|message| line(out, format_args!("{indent}problem: {message}")));
    let more = problems.count - problems.messages.len() as u64;
    if more > 0 {
        line(out, format_args!("{indent}and {more} more problems"));
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    _ = writeln!(out, "{text}");
}

/// The bounds of a range, truncated to eight hex digits each: enough to recognise the range.
fn bounds(range: &PartitionKeyRange) -> String {
    let short = |key: String| match key.get(..8) {
        Some(head) if key.len() > 8 => format!("{head}…"),
        _ => key,
    };
    format!("[{}, {})", short(range.keys.min.to_string()), short(range.keys.max.to_string()))
}

fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|&(unit, _)| bytes >= unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests;
