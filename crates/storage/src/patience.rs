//! Threads that may wait, and work that must not.
//!
//! Promise: a store that would move to another thread to wait for the disk waits on the spot when its caller says that
//! this thread is there for waiting. So work that reads a lot changes threads once, not once per read, and cannot
//! use up the threads that its own reads need. Work that is tried where nobody may wait is given up as soon as it would have to,
//! so that its caller can do it again elsewhere.

use std::cell::Cell;

use pleiad_model::{Error, Result};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// What would wait moves to a thread.
    Moves,
    /// This is the thread.
    Waits,
    /// What would wait, or take long, is not done.
    GivesUp { has: bool },
}

thread_local! {
    static PATIENCE: Cell<Patience> = const { Cell::new(Patience::Moves) };
}

/// Puts back what was before, however the work ends.
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

/// Does the work on this thread, disk or not. For threads that nothing else runs on.
pub fn waiting_here<T>(work: impl FnOnce() -> T) -> T {
    let _before = Before::now(Patience::Waits);
    work()
}

/// Does the work with what is at hand; `None` if that was not enough, whatever it came to.
pub fn at_hand<T>(work: impl FnOnce() -> T) -> Option<T> {
    let _before = Before::now(Patience::GivesUp { has: false });
    let done = work();
    (PATIENCE.get() == Patience::GivesUp { has: false }).then_some(done)
}

/// Something that takes long is about to happen: work that is tried [`at_hand`] ends here.
pub fn not_at_hand() -> Result<()> {
    if !is_at_hand() {
        return Ok(());
    }
    PATIENCE.set(Patience::GivesUp { has: true });
    Err(Error::internal("given up, to be done on another thread"))
}

/// Whether what is done here will be done again elsewhere.
pub fn has_given_up() -> bool {
    PATIENCE.get() == Patience::GivesUp { has: true }
}

/// Whether this is work that is given up rather than waited for.
pub(crate) fn is_at_hand() -> bool {
    matches!(PATIENCE.get(), Patience::GivesUp { .. })
}

#[cfg_attr(not(feature = "embedded"), expect(dead_code, reason = "only the store on disk waits for one"))]
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
