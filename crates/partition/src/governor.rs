//! Governor: admission control with one request-unit balance per partition, in fixed one-second windows.
//!
//! Guarantees: a request is admitted while the balance of the second is positive, and settles its real charge
//! afterwards. Debt is carried into the next seconds. So over any W whole seconds at most `share · W` is admitted, plus
//! burst credits and the requests in flight at the end; and clients that stay below the share in every second, and in
//! no capped bucket, are never throttled. One request leaves at most five seconds of the share owing: the rest of its
//! charge is forgiven and counted, and not part of the first guarantee.
//!
//! ```text
//! share 10        second 0      1           2           3
//! requests        6 6           1           12          1
//! balance         10 4 -2       8 7         10 -2       8 7        6 and 6 are admitted, the second on the 4 left
//! ```
//!
//! Plain arithmetic on a few atomic words of one cache line: no lock, no allocation, no clock of its own. The caller
//! passes the time. The engine decides how much throughput is provisioned and how it is divided; `price` computes
//! charges.

mod burst; // burst credits from idle seconds
mod buckets; // throughput buckets with caps
mod window; // the use of one second

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use pleiad_model::ExceededLimit;

use crate::usage::Usage;
use buckets::Buckets;
pub use buckets::{BUCKETS, BucketId, Caps};
use burst::BurstCredits;
use window::{Rolled, Window};

/// Balances are counted in hundredths of a request unit, the precision of reported charges.
const CENTI: f64 = 100.0;
/// Reserved when a request is admitted, and replaced by its charge when it settles. No request costs less, so
/// concurrent point reads cannot overdraw the balance together.
const RESERVED_CENTI: u64 = 100;

/// Which requests are throttled first when the budget is short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    #[default]
    High,
    Low,
}

/// The priority and throughput bucket that a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestClass {
    pub priority: Priority,
    pub bucket: Option<BucketId>,
}

/// A partition's budget and its rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GovernorConfig {
    pub share_ru: f64,
    /// Whether requests are ever throttled; if not, use is only counted.
    pub enforced: bool,
    /// Whether idle seconds earn burst credits.
    pub burst: bool,
    pub caps: Caps,
}

/// A rejected request (429), and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttled {
    /// Time until the balance is positive again.
    pub retry_after_ms: u64,
    pub share_ru: f64,
    /// Used in this second, including debt from before.
    pub used_ru: f64,
    pub exceeded: ExceededLimit,
}

/// What an admitted request holds of the balance until it is settled or cancelled.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a request that was admitted is settled or cancelled"]
pub struct Reservation {
    class: RequestClass,
}

#[derive(Debug, Default)]
pub struct Governor {
    hot: HotCounters,
    buckets: Buckets,
    usage: Usage,
    /// The shared budget of containers that share a database's throughput.
    pool: ArcSwapOption<Governor>,
}

/// The fields that every request touches, in one cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct HotCounters {
    window: AtomicU64,
    share_centi: AtomicU64,
    burst_credits: BurstCredits,
    /// What low priority used of the window.
    low_priority: AtomicU64,
    /// Demand of high priority in the previous second.
    high_demand_centi: AtomicU64,
    /// High priority was throttled in this second.
    starved: AtomicBool,
    enforced: AtomicBool,
}

impl Governor {
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    pub fn share_ru(&self) -> f64 {
        to_ru(self.hot.share_centi.load(Ordering::Relaxed))
    }

    /// Used in this second: charges, reservations of requests in flight, and debt from before.
    pub fn used_ru(&self, now_ms: u64) -> f64 {
        let share = self.hot.share_centi.load(Ordering::Relaxed).max(1);
        let window = Window::unpack(self.hot.window.load(Ordering::Relaxed));
        to_ru(window.roll(now_ms, share, self.hot.burst_credits.available(share)).window.used_centi)
    }

    pub fn is_enforced(&self) -> bool {
        self.hot.enforced.load(Ordering::Relaxed)
    }

    /// A new configuration applies from the next request on; the balance stays as it is.
    pub fn set(&self, config: &GovernorConfig, pool: Option<Arc<Governor>>) {
        self.hot.share_centi.store(to_centi(config.share_ru).max(1), Ordering::Relaxed);
        self.hot.enforced.store(config.enforced, Ordering::Relaxed);
        self.hot.burst_credits.set_enabled(config.burst);
        self.buckets.set(config.caps);
        self.pool.store(pool);
    }

    pub fn admit(&self, now_ms: u64, class: RequestClass) -> Result<Reservation, Throttled> {
        let reserved = self.reserve_with_pool(now_ms, class);
        if reserved.is_err() {
            self.usage.record_throttled(now_ms);
        }
        reserved.map(|()| Reservation { class })
    }

    fn reserve_with_pool(&self, now_ms: u64, class: RequestClass) -> Result<(), Throttled> {
        let pool = self.pool.load();
        let Some(pool) = pool.as_deref() else { return self.reserve(now_ms, class) };
        pool.reserve(now_ms, class)?;
        self.reserve(now_ms, class).inspect_err(|_| {
            pool.charge(now_ms, class, 0);
        })
    }

    /// Replaces the reservation of an admitted request by its real charge.
    pub fn settle(&self, now_ms: u64, reservation: Reservation, charge_ru: f64, key: Option<&[u8]>) {
        let centi = to_centi(charge_ru);
        if let Some(pool) = self.pool.load().as_deref() {
            pool.charge(now_ms, reservation.class, centi);
        }
        let forgiven = self.charge(now_ms, reservation.class, centi);
        if forgiven > 0 && self.is_enforced() {
            self.usage.record_forgiven(forgiven);
        }
        self.usage.record_served(now_ms, centi, self.hot.share_centi.load(Ordering::Relaxed), key);
    }

    /// Releases the reservation of a request that did nothing here.
    pub fn cancel(&self, now_ms: u64, reservation: Reservation) {
        if let Some(pool) = self.pool.load().as_deref() {
            pool.charge(now_ms, reservation.class, 0);
        }
        self.charge(now_ms, reservation.class, 0);
    }

    fn reserve(&self, now_ms: u64, class: RequestClass) -> Result<(), Throttled> {
        let enforced = self.is_enforced();
        let share = self.hot.share_centi.load(Ordering::Relaxed).max(1);
        let bucket = class.bucket.or(self.buckets.default_bucket());
        if let Some(bucket) = bucket
            && let Err((cap, used)) = self.buckets.reserve(bucket, now_ms, share, RESERVED_CENTI)
            && enforced
        {
            return Err(throttled(now_ms, cap, used, ExceededLimit::Bucket));
        }
        let mut word = self.hot.window.load(Ordering::Relaxed);
        loop {
            let rolled = Window::unpack(word).roll(now_ms, share, self.hot.burst_credits.available(share));
            let used = rolled.window.used_centi;
            if enforced && !self.has_budget(&rolled, share, class.priority) {
                bucket.iter().for_each(|bucket| self.buckets.charge(*bucket, now_ms, share, 0, RESERVED_CENTI));
                // Records a clock that was set back even while all requests are throttled.
                let _ = self.advance(word, rolled, rolled.window);
                return Err(self.throttle(now_ms, share, used, class));
            }
            match self.advance(word, rolled, rolled.window.add(RESERVED_CENTI)) {
                Ok(()) => break,
                Err(newer) => word = newer,
            }
        }
        if class.priority == Priority::Low {
            self.count_low(now_ms, RESERVED_CENTI, 0);
        }
        Ok(())
    }

    /// Replaces the reservation by the charge. Returns what is forgiven of the charge.
    fn charge(&self, now_ms: u64, class: RequestClass, centi: u64) -> u64 {
        let share = self.hot.share_centi.load(Ordering::Relaxed).max(1);
        let mut word = self.hot.window.load(Ordering::Relaxed);
        let forgiven = loop {
            let credits = self.hot.burst_credits.available(share);
            let rolled = Window::unpack(word).roll(now_ms, share, credits);
            let (settled, forgiven) = rolled.window.settle(centi, RESERVED_CENTI, share, share.saturating_add(credits));
            match self.advance(word, rolled, settled) {
                Ok(()) => break forgiven,
                Err(newer) => word = newer,
            }
        };
        if let Some(bucket) = class.bucket.or(self.buckets.default_bucket()) {
            self.buckets.charge(bucket, now_ms, share, centi, RESERVED_CENTI);
        }
        if class.priority == Priority::Low {
            self.count_low(now_ms, centi, RESERVED_CENTI);
        }
        forgiven
    }

    /// Low priority may use what high priority did not demand in the previous second.
    fn has_budget(&self, rolled: &Rolled, share: u64, priority: Priority) -> bool {
        let used = rolled.window.used_centi;
        let allowed = share.saturating_add(self.hot.burst_credits.available(share));
        match priority {
            Priority::High => used < allowed,
            Priority::Low => {
                let low = Window::unpack(self.hot.low_priority.load(Ordering::Relaxed));
                let low_used = if low.second == rolled.window.second { low.used_centi } else { 0 };
                let need = match rolled.passed {
                    0 => self.hot.high_demand_centi.load(Ordering::Relaxed),
                    _ => self.high_demand(rolled, share),
                };
                low_used.saturating_add(need.max(used.saturating_sub(low_used))) < allowed
            }
        }
    }

    /// Demand of high priority in the second that ended.
    fn high_demand(&self, rolled: &Rolled, share: u64) -> u64 {
        let low = Window::unpack(self.hot.low_priority.load(Ordering::Relaxed));
        match (self.hot.starved.load(Ordering::Relaxed), rolled.passed) {
            (true, 1) => share,
            (false, 1) if low.second == rolled.ended.second => rolled.ended.used_centi.saturating_sub(low.used_centi),
            (false, 1) => rolled.ended.used_centi,
            _ => 0,
        }
    }

    /// Swaps in the next window. Of all requests that see a second end, the one that succeeds does the accounting for
    /// it.
    fn advance(&self, seen: u64, rolled: Rolled, next: Window) -> Result<(), u64> {
        let word = next.pack();
        self.hot.window.compare_exchange_weak(seen, word, Ordering::Relaxed, Ordering::Relaxed)?;
        if rolled.passed > 0 {
            let share = self.hot.share_centi.load(Ordering::Relaxed).max(1);
            self.hot.high_demand_centi.store(self.high_demand(&rolled, share), Ordering::Relaxed);
            self.hot.starved.store(false, Ordering::Relaxed);
            self.hot.burst_credits.end_second(rolled.paid_centi, rolled.saved_centi, share);
        }
        Ok(())
    }

    fn throttle(&self, now_ms: u64, share: u64, used: u64, class: RequestClass) -> Throttled {
        if class.priority == Priority::High {
            self.hot.starved.store(true, Ordering::Relaxed);
        }
        throttled(now_ms, share, used, ExceededLimit::Share)
    }

    fn count_low(&self, now_ms: u64, add: u64, sub: u64) {
        // No debt is carried here: what low priority overdraws is debt of the whole window.
        let fresh = |word| Some(Window::unpack(word).fresh(now_ms).add(add).sub(sub).pack());
        let _ = self.hot.low_priority.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fresh);
    }
}

/// With the time until the debt is repaid and the balance is positive.
fn throttled(now_ms: u64, share: u64, used: u64, exceeded: ExceededLimit) -> Throttled {
    let seconds = (used / share).max(1);
    let retry_after_ms = seconds.saturating_mul(1000).saturating_sub(now_ms % 1000);
    Throttled { retry_after_ms, share_ru: to_ru(share), used_ru: to_ru(used), exceeded }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded on both sides first")]
fn to_centi(ru: f64) -> u64 {
    (ru * CENTI).round().clamp(0.0, window::USED_MAX as f64) as u64
}

fn to_ru(centi: u64) -> f64 {
    centi as f64 / CENTI
}

#[cfg(test)]
mod tests;
