//! Environment: the only source of time and randomness, so that a simulation can control both.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub trait Env: Send + Sync + 'static {
    /// Milliseconds since 1970-01-01 UTC.
    fn now_ms(&self) -> u64;
    /// The time on clients' clocks: the same, unless the server's clock has an offset.
    fn wall_ms(&self) -> u64 {
        self.now_ms()
    }
    /// 64 unpredictable bits.
    fn random_u64(&self) -> u64;
}

/// The machine's clock and the operating system's randomness.
#[derive(Debug, Default)]
pub struct SystemEnv;

impl Env for SystemEnv {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    #[expect(clippy::expect_used, reason = "without randomness no secret and no id is safe: stop, do not guess")]
    fn random_u64(&self) -> u64 {
        getrandom::u64().expect("the operating system has no randomness")
    }
}

/// The machine's clock, set forward by an offset that tests control.
#[derive(Debug, Default)]
pub struct OffsetEnv {
    offset_ms: AtomicU64,
}

impl OffsetEnv {
    /// The clock cannot be set back: rows with later timestamps remain stored.
    pub fn advance_ms(&self, by_ms: u64) {
        let later = |ahead: u64| Some(ahead.saturating_add(by_ms).min(OFFSET_MS_MAX));
        let _ = self.offset_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later); // the closure never fails
    }

    pub fn offset_ms(&self) -> u64 {
        self.offset_ms.load(Ordering::Relaxed)
    }
}

/// Fifty years: seconds since 1970 then still fit the 32 bits in which they are stored.
const OFFSET_MS_MAX: u64 = 50 * 365 * 24 * 3600 * 1000;

impl Env for OffsetEnv {
    fn now_ms(&self) -> u64 {
        SystemEnv.now_ms().saturating_add(self.offset_ms())
    }

    fn wall_ms(&self) -> u64 {
        SystemEnv.now_ms()
    }

    fn random_u64(&self) -> u64 {
        SystemEnv.random_u64()
    }
}

/// A clock that only the test advances, and a seeded random number generator.
#[derive(Debug, Default)]
pub struct ManualEnv {
    now_ms: AtomicU64,
    rng_state: AtomicU64,
}

impl ManualEnv {
    pub fn at(now_ms: u64, seed: u64) -> Self {
        ManualEnv { now_ms: AtomicU64::new(now_ms), rng_state: AtomicU64::new(seed) }
    }

    pub fn advance_ms(&self, by_ms: u64) {
        self.now_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Env for ManualEnv {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    fn random_u64(&self) -> u64 {
        // SplitMix64: one addition and a mix, the same sequence for the same seed.
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.rng_state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
