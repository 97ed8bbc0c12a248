//! Burst capacity: credits from idle seconds, spent on top of the share.
//!
//! Invariant: at most five minutes of the share are saved, and with them a partition provides at most 3,000 RU/s; one
//! whose share is that large already saves nothing. Credits are accounted when a second ends: overuse within a second
//! first becomes debt.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const SAVED_SECONDS_MAX: u64 = 300;
const BURST_CENTI_MAX: u64 = 3_000 * 100;

#[derive(Debug, Default)]
pub struct BurstCredits {
    saved_centi: AtomicU64,
    is_enabled: AtomicBool,
}

impl BurstCredits {
    pub fn set_enabled(&self, is_enabled: bool) {
        self.is_enabled.store(is_enabled, Ordering::Relaxed);
        if !is_enabled {
            self.saved_centi.store(0, Ordering::Relaxed);
        }
    }

    /// The credits that one second may use beyond the share.
    pub fn available(&self, share: u64) -> u64 {
        if !self.is_enabled.load(Ordering::Relaxed) {
            return 0;
        }
        self.saved_centi.load(Ordering::Relaxed).min(BURST_CENTI_MAX.saturating_sub(share))
    }

    pub fn end_second(&self, paid: u64, saved: u64, share: u64) {
        if !self.is_enabled.load(Ordering::Relaxed) {
            return;
        }
        let most = if share < BURST_CENTI_MAX { share.saturating_mul(SAVED_SECONDS_MAX) } else { 0 };
        let next = |was: u64| Some(was.saturating_sub(paid).saturating_add(saved).min(most));
        let _ = self.saved_centi.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }
}
