//! Threads that may wait.
//!
//! Promise: a store that would move to another thread to wait for the disk waits on the spot when its caller says that
//! this thread is there for waiting. So work that reads a lot changes threads once, not once per read, and cannot
//! use up the threads that its own reads need.

use std::cell::Cell;

thread_local! {
    static MAY_WAIT: Cell<bool> = const { Cell::new(false) };
}

/// Does the work on this thread, disk or not. For threads that nothing else runs on.
pub fn waiting_here<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            MAY_WAIT.set(self.0);
        }
    }
    let _before = Before(MAY_WAIT.replace(true));
    work()
}

#[cfg_attr(not(feature = "embedded"), expect(dead_code, reason = "only the store on disk waits for one"))]
pub(crate) fn may_wait() -> bool {
    MAY_WAIT.get()
}
