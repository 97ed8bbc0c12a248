//! Usage statistics of a partition: request units by second and minute, throttled requests, and the busiest keys.
//!
//! Invariant: memory is bounded whatever the load; a request updates a few atomic words. Seconds and minutes that have
//! left the ring buffer read as idle. The busiest keys are found by sampling the request units, accurately enough to
//! name a hot key.

mod heavy_hitters;

use std::sync::atomic::{AtomicU64, Ordering};

use heavy_hitters::SpaceSaving;
use parking_lot::Mutex;

/// How many seconds, and how many minutes, are retained.
const RING: usize = 64;
const MINUTES_PER_HOUR: u64 = 60;
/// How many keys are reported.
pub const KEYS_REPORTED: usize = 3;

/// One ring entry: the second or minute, and its figure.
///
/// ```text
/// entry   time u28 │ figure u36
/// ```
const FIGURE_BITS: u32 = 36;
const FIGURE_MAX: u64 = (1 << FIGURE_BITS) - 1;
const TIME_MASK: u64 = (1 << (64 - FIGURE_BITS)) - 1;

/// The whole share, in the unit of the normalized use.
const SHARE_PARTS: u64 = 10_000;

#[derive(Debug)]
pub struct Usage {
    total_centi: AtomicU64,
    requests: AtomicU64,
    throttled: AtomicU64,
    /// Charges beyond what one request may leave owing.
    forgiven_centi: AtomicU64,
    seconds: Ring,
    /// The busiest second as a part of the share.
    minutes_peak: Ring,
    minutes_throttled: Ring,
    keys: Mutex<KeyUse>,
}

/// Figures of this minute and the one before.
#[derive(Debug, Default)]
struct KeyUse {
    minute: u64,
    current: SpaceSaving,
    previous: SpaceSaving,
}

/// A logical partition and the request units it used.
#[derive(Clone, Debug, PartialEq)]
pub struct BusyKey {
    /// Encoded for `PartitionKey::decode_components`.
    pub components: Vec<u8>,
    pub ru: f64,
}

impl Default for Usage {
    fn default() -> Self {
        let (total_centi, requests, throttled, forgiven_centi) = Default::default();
        let (seconds, minutes_peak, minutes_throttled) = Default::default();
        Usage {
            total_centi,
            requests,
            throttled,
            forgiven_centi,
            seconds,
            minutes_peak,
            minutes_throttled,
            keys: Mutex::default(),
        }
    }
}

impl Usage {
    pub(crate) fn record_served(&self, now_ms: u64, centi: u64, share_centi: u64, key: Option<&[u8]>) {
        let second = now_ms / 1000;
        self.requests.fetch_add(1, Ordering::Relaxed);
        let used = self.seconds.update(second, |used| used.saturating_add(centi));
        let part = used.saturating_mul(SHARE_PARTS) / share_centi.max(1);
        if part > self.minutes_peak.at(second / 60) {
            self.minutes_peak.update(second / 60, |peak| peak.max(part));
        }
        let before = self.total_centi.fetch_add(centi, Ordering::Relaxed);
        if let Some(key) = key {
            self.sample(second / 60, key, before, centi, share_centi);
        }
    }

    pub(crate) fn record_throttled(&self, now_ms: u64) {
        self.throttled.fetch_add(1, Ordering::Relaxed);
        self.minutes_throttled.update(now_ms / 60_000, |count| count + 1);
    }

    pub(crate) fn record_forgiven(&self, centi: u64) {
        self.forgiven_centi.fetch_add(centi, Ordering::Relaxed);
    }

    /// Samples the key that crosses each multiple of a thousandth of the share. A sample is skipped while another
    /// thread holds the lock, which affects busy and quiet keys alike.
    fn sample(&self, minute: u64, key: &[u8], before: u64, centi: u64, share_centi: u64) {
        let step = (share_centi / 1000).max(1);
        let crossed = (before.saturating_add(centi) / step).saturating_sub(before / step);
        if crossed == 0 {
            return;
        }
        let Some(mut keys) = self.keys.try_lock() else { return };
        keys.roll_to(minute);
        keys.current.add(key, crossed.saturating_mul(step));
    }

    pub fn total_ru(&self) -> f64 {
        self.total_centi.load(Ordering::Relaxed) as f64 / 100.0
    }

    pub fn forgiven_ru(&self) -> f64 {
        self.forgiven_centi.load(Ordering::Relaxed) as f64 / 100.0
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub fn requests_throttled(&self) -> u64 {
        self.throttled.load(Ordering::Relaxed)
    }

    pub fn throttled_in_minute(&self, minute: u64) -> u64 {
        self.minutes_throttled.at(minute)
    }

    /// Request units of one second.
    pub fn second_ru(&self, second: u64) -> f64 {
        self.seconds.at(second) as f64 / 100.0
    }

    /// The busiest second of a minute as a part of the share, capped at 1.
    pub fn normalized(&self, minute: u64) -> f64 {
        self.minutes_peak.at(minute).min(SHARE_PARTS) as f64 / SHARE_PARTS as f64
    }

    /// The busiest second of the hour up to now.
    pub fn normalized_in_hour(&self, now_ms: u64) -> f64 {
        let minute = now_ms / 60_000;
        let minutes = minute.saturating_sub(MINUTES_PER_HOUR - 1)..=minute;
        minutes.map(|minute| self.normalized(minute)).fold(0.0, f64::max)
    }

    /// The keys that used most in this minute and the one before, the busiest first.
    pub fn busiest_keys(&self, now_ms: u64, count: usize) -> Vec<BusyKey> {
        let mut keys = self.keys.lock();
        keys.roll_to(now_ms / 60_000);
        let mut both = keys.current.clone();
        both.merge(&keys.previous);
        drop(keys);
        both.top(count)
            .into_iter()
            .map(|(components, centi)| BusyKey { components, ru: centi as f64 / 100.0 })
            .collect()
    }
}

impl KeyUse {
    fn roll_to(&mut self, minute: u64) {
        if minute == self.minute {
            return;
        }
        let ended = std::mem::take(&mut self.current);
        self.previous = if self.minute + 1 == minute { ended } else { SpaceSaving::default() };
        self.minute = minute;
    }
}

/// Ring buffer of the latest figures, indexed by time.
#[derive(Debug)]
struct Ring([AtomicU64; RING]);

impl Default for Ring {
    fn default() -> Self {
        Ring([const { AtomicU64::new(0) }; RING])
    }
}

impl Ring {
    fn at(&self, time: u64) -> u64 {
        let entry = self.0[slot(time)].load(Ordering::Relaxed);
        if entry >> FIGURE_BITS == time & TIME_MASK { entry & FIGURE_MAX } else { 0 }
    }

    fn update(&self, time: u64, change: impl Fn(u64) -> u64) -> u64 {
        let next = |entry: u64| {
            let figure = if entry >> FIGURE_BITS == time & TIME_MASK { entry & FIGURE_MAX } else { 0 };
            change(figure).min(FIGURE_MAX)
        };
        let time_bits = (time & TIME_MASK) << FIGURE_BITS;
        let update = |entry| Some(time_bits | next(entry));
        // The closure always returns `Some`.
        let was = self.0[slot(time)].fetch_update(Ordering::Relaxed, Ordering::Relaxed, update).unwrap_or(0);
        next(was)
    }
}

fn slot(time: u64) -> usize {
    usize::try_from(time % RING as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests;
