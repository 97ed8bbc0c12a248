//! Clock watch: distrusts a clock that has jumped.
//!
//! An expired item that is only invisible comes back when the clock is set right; one that was purged does not. So
//! nothing is purged by a clock that is hours ahead for a moment.
//!
//! Guarantees: after a jump of more than `JUMP_MS` against the machine's steady clock, in either direction, and after a
//! start with a clock that is far ahead of the newest item, the clock is trusted again when it has run evenly for
//! `STABLE_MS`.

/// Corrections by a time service are smaller.
const JUMP_MS: u64 = 60_000;
const STABLE_MS: u64 = 10 * 60_000;
/// A server that was stopped for longer waits for `STABLE_MS` before it purges.
const GAP_S: u64 = 3_600;

#[derive(Default)]
pub(super) struct ClockWatch {
    /// The last times of the clock and of the steady clock.
    last_ms: Option<(u64, u64)>,
    /// By the steady clock.
    trusted_from_ms: u64,
}

impl ClockWatch {
    /// Whether the clock is trusted now. `steady_ms` is a time that never jumps.
    pub fn observe(&mut self, clock_ms: u64, steady_ms: u64) -> bool {
        if let Some((last_clock_ms, last_steady_ms)) = self.last_ms.replace((clock_ms, steady_ms)) {
            let expected_ms = last_clock_ms.saturating_add(steady_ms.saturating_sub(last_steady_ms));
            let jumped_ms = clock_ms.abs_diff(expected_ms);
            if jumped_ms > JUMP_MS {
                self.distrust(steady_ms);
                tracing::warn!(
                    seconds = jumped_ms / 1000,
                    forward = clock_ms > expected_ms,
                    "the clock has jumped; expired items are not purged until it has been stable for {} minutes",
                    STABLE_MS / 60_000
                );
            }
        }
        steady_ms >= self.trusted_from_ms
    }

    /// At the start: the clock may be ahead of the one that stamped the newest item.
    pub fn compare_with_newest(&mut self, newest_s: Option<u32>, now_s: u64, steady_ms: u64) {
        if let Some(ahead_s) = newest_s.map(|newest_s| now_s.saturating_sub(newest_s.into()))
            && ahead_s > GAP_S
        {
            self.distrust(steady_ms);
            tracing::info!(seconds = ahead_s, "the newest item is old; purging begins when the clock has been stable");
        }
    }

    fn distrust(&mut self, steady_ms: u64) {
        self.trusted_from_ms = steady_ms + STABLE_MS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    #[test]
    fn an_even_clock_is_trusted() {
        let mut clock = ClockWatch::default();
        assert!((0..10_000u64).all(|second| clock.observe(7 * HOUR_MS + second * 1_000 + second % 3, second * 1_000)));
    }

    /// The clock is five hours ahead for three seconds.
    #[test]
    fn a_clock_that_jumps_is_not_trusted_until_it_has_been_stable() {
        let mut clock = ClockWatch::default();
        let trusted: Vec<u64> = (0..2_000u64)
            .filter(|second| {
                let ahead_ms = if (100..103).contains(second) { 5 * HOUR_MS } else { 0 };
                clock.observe(second * 1_000 + ahead_ms, second * 1_000)
            })
            .collect();
        assert!(trusted.into_iter().eq((0..100).chain(103 + STABLE_MS / 1000..2_000)));
    }

    #[test]
    fn after_a_long_stop_the_clock_must_show_that_it_is_stable() {
        for (newest_s, now_s, is_trusted) in
            [(None, 90_000, true), (Some(89_000), 90_000, true), (Some(1), 90_000, false)]
        {
            let mut clock = ClockWatch::default();
            clock.compare_with_newest(newest_s, now_s, 5);
            assert_eq!(clock.observe(90_000_000, 5), is_trusted, "{newest_s:?}");
            assert!(clock.observe(90_000_000 + STABLE_MS, STABLE_MS + 5));
        }
    }
}
