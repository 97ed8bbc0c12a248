//! Governor: admission control with one request-unit balance per partition, in fixed one-second windows.
//!
//! Guarantees: a request is admitted while the balance of the second is positive, and settles its real charge
//! afterwards. Debt is carried into the next seconds. So over any W whole seconds at most `share · W` is admitted, plus
//! the requests in flight at the end; and clients that stay below the share in every second are never throttled.
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
const HOLD_CENTI: u64 = 100;

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
    pub over: ExceededLimit,
}

/// The reservation of an admitted request, to be settled or cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a request that was admitted is settled"]
pub struct Admission {
    class: RequestClass,
}

#[derive(Debug, Default)]
pub struct Governor {
    hot: HotPartition,
    buckets: Buckets,
    usage: Usage,
    /// The shared budget of containers that share a database's throughput.
    pool: ArcSwapOption<Governor>,
}

/// The fields that every request touches, in one cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct HotPartition {
    window: AtomicU64,
    share_centi: AtomicU64,
    bank: BurstCredits,
    /// What low priority used of the window.
    low: AtomicU64,
    /// Demand of high priority in the previous second.
    need_centi: AtomicU64,
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

    pub fn is_enforced(&self) -> bool {
        self.hot.enforced.load(Ordering::Relaxed)
    }

    /// A new configuration applies from the next request on; the balance stays as it is.
    pub fn set(&self, terms: &GovernorConfig, pool: Option<Arc<Governor>>) {
        self.hot.share_centi.store(to_centi(terms.share_ru).max(1), Ordering::Relaxed);
        self.hot.enforced.store(terms.enforced, Ordering::Relaxed);
        self.hot.bank.open(terms.burst);
        self.buckets.set(terms.caps);
        self.pool.store(pool);
    }

    pub fn admit(&self, now_ms: u64, class: RequestClass) -> Result<Admission, Throttled> {
        let taken = self.take_with_pool(now_ms, class);
        if taken.is_err() {
            self.usage.refused(now_ms);
        }
        taken.map(|()| Admission { class })
    }

    fn take_with_pool(&self, now_ms: u64, class: RequestClass) -> Result<(), Throttled> {
        let pool = self.pool.load();
        let Some(pool) = pool.as_deref() else { return self.take(now_ms, class) };
        pool.take(now_ms, class)?;
        self.take(now_ms, class).inspect_err(|_| pool.give(now_ms, class, 0))
    }

    /// Replaces the reservation of an admitted request by its real charge.
    pub fn settle(&self, now_ms: u64, admission: Admission, charge_ru: f64, key: Option<&[u8]>) {
        let centi = to_centi(charge_ru);
        if let Some(pool) = self.pool.load().as_deref() {
            pool.give(now_ms, admission.class, centi);
        }
        self.give(now_ms, admission.class, centi);
        self.usage.served(now_ms, centi, self.hot.share_centi.load(Ordering::Relaxed), key);
    }

    /// Releases the reservation: the request did nothing, because another partition throttled it.
    pub fn cancel(&self, now_ms: u64, admission: Admission) {
        if let Some(pool) = self.pool.load().as_deref() {
            pool.give(now_ms, admission.class, 0);
        }
        self.give(now_ms, admission.class, 0);
    }

    fn take(&self, now_ms: u64, class: RequestClass) -> Result<(), Throttled> {
        let enforced = self.is_enforced();
        let share = self.hot.share_centi.load(Ordering::Relaxed).max(1);
        let bucket = class.bucket.or(self.buckets.default_bucket());
        if let Some(bucket) = bucket
            && let Err((cap, used)) = self.buckets.take(bucket, now_ms, share, HOLD_CENTI)
            && enforced
        {
            return Err(refusal(now_ms, cap, used, ExceededLimit::Bucket));
        }
        let mut word = self.hot.window.load(Ordering::Relaxed);
        loop {
            let rolled = Window::unpack(word).roll(now_ms, share, self.hot.bank.may_pay(share));
            let used = rolled.window.used_centi;
            if enforced && !self.has_room(&rolled, share, class.priority) {
                bucket.iter().for_each(|bucket| self.buckets.give(*bucket, now_ms, share, 0, HOLD_CENTI));
                // Records a clock that was set back even while all requests are throttled.
                let _ = self.advance(word, rolled, rolled.window);
                return Err(self.refuse(now_ms, share, used, class));
            }
            match self.advance(word, rolled, rolled.window.add(HOLD_CENTI)) {
                Ok(()) => break,
                Err(newer) => word = newer,
            }
        }
        if class.priority == Priority::Low {
            self.count_low(now_ms, HOLD_CENTI, 0);
        }
        Ok(())
    }

    /// Replaces the reservation by the charge.
    fn give(&self, now_ms: u64, class: RequestClass, centi: u64) {
        let share = self.hot.share_centi.load(Ordering::Relaxed).max(1);
        let mut word = self.hot.window.load(Ordering::Relaxed);
        loop {
            let rolled = Window::unpack(word).roll(now_ms, share, self.hot.bank.may_pay(share));
            let settled = rolled.window.add(centi).sub(HOLD_CENTI);
            match self.advance(word, rolled, settled) {
                Ok(()) => break,
                Err(newer) => word = newer,
            }
        }
        if let Some(bucket) = class.bucket.or(self.buckets.default_bucket()) {
            self.buckets.give(bucket, now_ms, share, centi, HOLD_CENTI);
        }
        if class.priority == Priority::Low {
            self.count_low(now_ms, centi, HOLD_CENTI);
        }
    }

    /// Low priority may use what high priority did not demand in the previous second.
    fn has_room(&self, rolled: &Rolled, share: u64, priority: Priority) -> bool {
        let used = rolled.window.used_centi;
        let allowed = share.saturating_add(self.hot.bank.may_pay(share));
        match priority {
            Priority::High => used < allowed,
            Priority::Low => {
                let low = Window::unpack(self.hot.low.load(Ordering::Relaxed));
                let low_used = if low.second == rolled.window.second { low.used_centi } else { 0 };
                let need = match rolled.passed {
                    0 => self.hot.need_centi.load(Ordering::Relaxed),
                    _ => self.wanted(rolled, share),
                };
                low_used.saturating_add(need.max(used.saturating_sub(low_used))) < allowed
            }
        }
    }

    /// Demand of high priority in the second that ended.
    fn wanted(&self, rolled: &Rolled, share: u64) -> u64 {
        let low = Window::unpack(self.hot.low.load(Ordering::Relaxed));
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
            self.hot.need_centi.store(self.wanted(&rolled, share), Ordering::Relaxed);
            self.hot.starved.store(false, Ordering::Relaxed);
            self.hot.bank.close_second(rolled.paid_centi, rolled.saved_centi, share);
        }
        Ok(())
    }

    fn refuse(&self, now_ms: u64, share: u64, used: u64, class: RequestClass) -> Throttled {
        if class.priority == Priority::High {
            self.hot.starved.store(true, Ordering::Relaxed);
        }
        refusal(now_ms, share, used, ExceededLimit::Share)
    }

    fn count_low(&self, now_ms: u64, add: u64, sub: u64) {
        // No debt is carried here: what low priority overdraws is debt of the whole window.
        let fresh = |word| Some(Window::unpack(word).fresh(now_ms).add(add).sub(sub).pack());
        let _ = self.hot.low.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fresh);
    }
}

/// With the time until the debt is repaid and the balance is positive.
fn refusal(now_ms: u64, share: u64, used: u64, over: ExceededLimit) -> Throttled {
    let seconds = (used / share).max(1);
    let retry_after_ms = seconds.saturating_mul(1000).saturating_sub(now_ms % 1000);
    Throttled { retry_after_ms, share_ru: to_ru(share), used_ru: to_ru(used), over }
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
