//! Follows jobs until they end: progress bars on a terminal, otherwise a line per change.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use pleiad_model::{Error, Result, Value, json};

use super::client::Client;
use super::table::{job, rows, text};

const INTERVAL: Duration = Duration::from_millis(300);

/// Follows all jobs until none is running.
pub async fn all(client: &Client, as_json: bool) -> Result<()> {
    let mut view = ProgressView::new(as_json);
    loop {
        let answer = client.send("GET", "jobs", None).await?;
        let jobs = rows(&answer, "jobs");
        jobs.iter().try_for_each(|job| view.show(job))?;
        if !jobs.iter().any(is_running) {
            return view.end(&answer);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Follows one job until it ends; a failed job is an error.
pub async fn one(client: &Client, started: &Value, as_json: bool) -> Result<()> {
    let mut view = ProgressView::new(as_json);
    let path = format!("jobs/{}", text(started, "id"));
    let mut now = started.clone();
    while is_running(&now) {
        view.show(&now)?;
        tokio::time::sleep(INTERVAL).await;
        now = client.send("GET", &path, None).await?;
    }
    view.show(&now)?;
    view.end(&now)?;
    match now.get("error").and_then(Value::as_str) {
        Some(why) => Err(Error::unavailable(format!("the {} failed: {why}", text(&now, "kind")))),
        None => Ok(()),
    }
}

fn is_running(job: &Value) -> bool {
    text(job, "status") == "running"
}

/// The progress output.
struct ProgressView {
    as_json: bool,
    /// `None` if the output is not a terminal.
    bars: Option<MultiProgress>,
    bars_by_job: BTreeMap<String, ProgressBar>,
    last_lines: BTreeMap<String, String>,
}

impl ProgressView {
    fn new(as_json: bool) -> Self {
        let bars = (!as_json && std::io::stderr().is_terminal()).then(MultiProgress::new);
        ProgressView { as_json, bars, bars_by_job: BTreeMap::new(), last_lines: BTreeMap::new() }
    }

    fn show(&mut self, one: &Value) -> Result<()> {
        let (id, line) = (text(one, "id"), job(one));
        if self.as_json || self.last_lines.get(&id) == Some(&line) {
            return Ok(());
        }
        self.last_lines.insert(id.clone(), line.clone());
        match &self.bars {
            Some(bars) => {
                let bar = self.bars_by_job.entry(id).or_insert_with(|| bars.add(new_bar()));
                draw(bar, one, line);
                Ok(())
            }
            None => crate::print(&(line + "\n")),
        }
    }

    fn end(&self, last: &Value) -> Result<()> {
        match self.as_json {
            true => crate::print(&(json::to_string(last) + "\n")),
            false if self.last_lines.is_empty() => crate::print("no jobs\n"),
            false => Ok(()),
        }
    }
}

fn new_bar() -> ProgressBar {
    // An invalid template would be a bug; the default bar is good enough then.
    let style = ProgressStyle::with_template("{bar:24} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(100).with_style(style)
}

fn draw(bar: &ProgressBar, one: &Value, line: String) {
    bar.set_position(one.get("percent").and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok()).unwrap_or(0));
    match is_running(one) {
        true => bar.set_message(line),
        false => bar.finish_with_message(line),
    }
}
