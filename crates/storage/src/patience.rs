//! Blocking policy of the current thread: what happens to a call that would block on the disk.
//!
//! Guarantees: by default, a store moves a call that would block to a blocking thread. If the caller declares its
//! thread a blocking thread, the store waits on the spot; so work that reads a lot changes threads once, not once per
//! read, and cannot use up the blocking threads that its own reads need. Work that is tried without blocking is
//! abandoned as soon as it would block, so that its caller can run it again on a blocking thread.

use std::cell::Cell;

use pleiad_model::{Error, Result};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// A call that would block moves to a blocking thread.
    Moves,
    /// This is a blocking thread.
    Waits,
    /// Work that would block, or take long, is not done. `has`: whether that has happened.
    GivesUp { has: bool },
}

thread_local! {
    static PATIENCE: Cell<Patience> = const { Cell::new(Patience::Moves) };
}

/// Restores the former policy, also when the work panics.
struct Before(Patience);

impl Before {
    fn now(patience: Patience) -> Before {
        Before(PATIENCE.replace(patience))
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        PATIENCE.set(self.0);
    }
}

/// Runs the work on this thread, which may block. For threads that run nothing else.
pub fn waiting_here<T>(work: impl FnOnce() -> T) -> T {
    let _before = Before::now(Patience::Waits);
    work()
}

/// Runs the work without blocking; `None` if some of it would have blocked, whatever the result.
pub fn at_hand<T>(work: impl FnOnce() -> T) -> Option<T> {
    let _before = Before::now(Patience::GivesUp { has: false });
    let done = work();
    (PATIENCE.get() == Patience::GivesUp { has: false }).then_some(done)
}

/// Announces work that blocks or takes long: work that is tried [`at_hand`] ends here with an error.
pub fn not_at_hand() -> Result<()> {
    if !is_at_hand() {
        return Ok(());
    }
    PATIENCE.set(Patience::GivesUp { has: true });
    Err(Error::internal("given up, to be done on another thread"))
}

/// Whether the current work has been abandoned and will run again on a blocking thread.
pub fn has_given_up() -> bool {
    PATIENCE.get() == Patience::GivesUp { has: true }
}

/// Whether the current work is tried without blocking.
pub(crate) fn is_at_hand() -> bool {
    matches!(PATIENCE.get(), Patience::GivesUp { .. })
}

#[cfg_attr(not(feature = "embedded"), expect(dead_code, reason = "only the store on disk blocks"))]
pub(crate) fn may_wait() -> bool {
    PATIENCE.get() == Patience::Waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_would_take_long_is_given_up_and_leaves_no_trace() {
        assert_eq!(at_hand(|| 1), Some(1));
        assert_eq!(at_hand(|| not_at_hand().is_err()), None);
        assert_eq!(at_hand(|| 2), Some(2));
        assert!(waiting_here(|| not_at_hand().is_ok() && may_wait()) && !may_wait() && not_at_hand().is_ok());
    }
}
