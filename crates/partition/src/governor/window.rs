//! Usage window: the second and the units used in it, packed into one word so that they change together.
//!
//! ```text
//! window   second u28 │ used u36, hundredths of an RU
//!          700 (0x2BC), 12.34 RU → 2BC │ 4D2 → 0x0000_2BC0_0000_04D2
//! ```
//!
//! The second wraps around after eight years. A governor that was idle for exactly that long may take its last second
//! for the current one, which throttles a client for one second at most.

const USED_BITS: u32 = 36;
pub const USED_MAX: u64 = (1 << USED_BITS) - 1;
const SECOND_BITS: u32 = 64 - USED_BITS;
const SECOND_MASK: u64 = (1 << SECOND_BITS) - 1;

/// What one request may leave owing, in seconds of the share.
pub const DEBT_SECONDS_MAX: u64 = 5;

/// A smaller step back comes from two threads that read the clock just before and after a second began, and is ignored;
/// from here on the clock was set back.
const BACKWARD_S: u64 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub second: u64,
    /// Including debt from before.
    pub used_centi: u64,
}

/// A window advanced to the current second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rolled {
    pub window: Window,
    /// The window as it was when its second ended.
    pub ended: Window,
    /// Seconds since then; 0 if the second has not ended.
    pub passed: u64,
    /// Burst credits spent on the debt, and credits earned by unused share.
    pub paid_centi: u64,
    pub saved_centi: u64,
}

impl Window {
    pub fn pack(self) -> u64 {
        (self.second & SECOND_MASK) << USED_BITS | self.used_centi.min(USED_MAX)
    }

    pub fn unpack(word: u64) -> Self {
        Window { second: word >> USED_BITS, used_centi: word & USED_MAX }
    }

    pub fn add(self, centi: u64) -> Self {
        Window { used_centi: self.used_centi.saturating_add(centi).min(USED_MAX), ..self }
    }

    pub fn sub(self, centi: u64) -> Self {
        Window { used_centi: self.used_centi.saturating_sub(centi), ..self }
    }

    /// Replaces a reservation by the charge of its request, and returns what is forgiven of it: beyond the rest of
    /// `allowed`, one request leaves at most five seconds of `share` owing. The requests that would wait for the rest
    /// are those of other clients, and SDKs give up after 30 seconds.
    pub fn settle(self, centi: u64, reserved: u64, share: u64, allowed: u64) -> (Self, u64) {
        let left = allowed.saturating_sub(self.used_centi.saturating_sub(reserved));
        let kept = centi.min(left.saturating_add(share.saturating_mul(DEBT_SECONDS_MAX)));
        (self.add(kept).sub(reserved), centi - kept)
    }

    /// Every second that passed repays one share of debt; burst credits pay for the second that ended.
    pub fn roll(self, now_ms: u64, share: u64, credits: u64) -> Rolled {
        let second = (now_ms / 1000) & SECOND_MASK;
        let passed = second.wrapping_sub(self.second) & SECOND_MASK;
        let unchanged = Rolled { window: self, ended: self, passed: 0, paid_centi: 0, saved_centi: 0 };
        if passed == 0 {
            return unchanged;
        }
        if passed > SECOND_MASK / 2 {
            let back = SECOND_MASK + 1 - passed;
            let window = if back < BACKWARD_S { self } else { Window { second, ..self } };
            return Rolled { window, ..unchanged };
        }
        let overdrawn = self.used_centi.saturating_sub(share);
        let paid_centi = overdrawn.min(credits);
        let debt = overdrawn - paid_centi;
        let later = share.saturating_mul(passed - 1);
        let window = Window { second, used_centi: debt.saturating_sub(later) };
        let saved_centi = later.saturating_sub(debt).saturating_add(share.saturating_sub(self.used_centi));
        Rolled { window, ended: self, passed, paid_centi, saved_centi }
    }

    /// Empty if its second has passed.
    pub fn fresh(self, now_ms: u64) -> Self {
        let second = (now_ms / 1000) & SECOND_MASK;
        if second == self.second { self } else { Window { second, used_centi: 0 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_matches_the_documented_layout() {
        let window = Window { second: 700, used_centi: 1234 };
        assert_eq!(window.pack(), 0x0000_2BC0_0000_04D2);
        assert_eq!(Window::unpack(window.pack()), window);
    }

    #[test]
    fn debt_is_repaid_one_share_per_second() {
        let window = Window { second: 1, used_centi: 350 };
        let used = |now_ms| window.roll(now_ms, 100, 0).window.used_centi;
        assert_eq!([1_999, 2_000, 3_500, 4_000, 5_000].map(used), [350, 250, 150, 50, 0]);
    }

    #[test]
    fn one_request_leaves_at_most_five_seconds_owing() {
        let settle = |used_centi, centi| {
            let (window, forgiven) = Window { second: 1, used_centi }.settle(centi, 100, 1_000, 1_000);
            (window.used_centi, forgiven)
        };
        assert_eq!(settle(100, 300), (300, 0));
        assert_eq!(settle(600, 5_500), (6_000, 0), "500 left in this second, and five more");
        assert_eq!(settle(600, 5_600), (6_000, 100));
        assert_eq!(settle(3_100, 9_000), (8_000, 4_000), "the debt of other requests stays");
    }

    #[test]
    fn a_one_second_step_back_is_ignored_and_a_longer_one_is_followed() {
        let window = Window { second: 9, used_centi: 50 };
        assert_eq!(window.roll(8_999, 100, 0).window, window);
        assert_eq!(window.roll(3_000, 100, 0).window, Window { second: 3, used_centi: 50 });
    }
}
