//! Start-up time, and the memory and CPU use of an idle server.
//!
//! Guarantees: each start uses its own, empty directory and is measured until a signed request is answered.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::Result;
use crate::load;
use crate::process;
use crate::server::{ServerMode, ServerUnderTest};
use crate::signed::RequestSigner;

const STARTS: usize = 5;
const SETTLE_TIME: Duration = Duration::from_secs(2);
const IDLE_WINDOW: Duration = Duration::from_secs(5);

pub struct IdleCost {
    pub start_ms: f64,
    pub resident_mb: f64,
    /// Percentage of one core.
    pub idle_cpu_percent: f64,
}

pub fn measure(pleiad: &Path, mode: ServerMode) -> Result<IdleCost> {
    let mut best = f64::INFINITY;
    for _ in 0..STARTS {
        best = best.min(start_ms(pleiad, mode)?);
    }
    let subject = ServerUnderTest::start(pleiad, mode)?;
    std::thread::sleep(SETTLE_TIME);
    let resident_mb = process::resident_kb(subject.pid())? as f64 / 1024.0;
    let before = process::cpu_ns_of_threads(subject.pid())?;
    std::thread::sleep(IDLE_WINDOW);
    let used = process::cpu_ns_of_threads(subject.pid())?.saturating_sub(before);
    Ok(IdleCost { start_ms: best, resident_mb, idle_cpu_percent: used as f64 / IDLE_WINDOW.as_nanos() as f64 * 100.0 })
}

fn start_ms(pleiad: &Path, mode: ServerMode) -> Result<f64> {
    let request = RequestSigner::now().request("GET", "", "", "", "", "");
    let started = Instant::now();
    let subject = ServerUnderTest::start(pleiad, mode)?;
    load::send_once(subject.address, &request)?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}
