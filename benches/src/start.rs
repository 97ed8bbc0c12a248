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
const SETTLE: Duration = Duration::from_secs(2);
const WATCH: Duration = Duration::from_secs(5);

pub struct IdleCost {
    pub start_ms: f64,
    pub resident_mb: f64,
    /// Percentage of one core.
    pub idle_cpu_percent: f64,
}

pub fn measure(pleiad: &Path, face: ServerMode) -> Result<IdleCost> {
    let mut best = f64::INFINITY;
    for _ in 0..STARTS {
        best = best.min(start_ms(pleiad, face)?);
    }
    let subject = ServerUnderTest::start(pleiad, face)?;
    std::thread::sleep(SETTLE);
    let resident_mb = process::resident_kb(subject.pid())? as f64 / 1024.0;
    let before = process::cpu_ns_of_threads(subject.pid())?;
    std::thread::sleep(WATCH);
    let used = process::cpu_ns_of_threads(subject.pid())?.saturating_sub(before);
    Ok(IdleCost { start_ms: best, resident_mb, idle_cpu_percent: used as f64 / WATCH.as_nanos() as f64 * 100.0 })
}

fn start_ms(pleiad: &Path, face: ServerMode) -> Result<f64> {
    let request = RequestSigner::now().once("GET", "", "", "", "", "");
    let began = Instant::now();
    let subject = ServerUnderTest::start(pleiad, face)?;
    load::once(subject.address, &request)?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}
