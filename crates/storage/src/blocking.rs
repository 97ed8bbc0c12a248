//! Blocking mode: what happens to a read that would block on the disk, or on a network.
//!
//! The caller passes the mode when it takes a snapshot, and all reads of the snapshot follow it.
//!
//! ```text
//!           in memory    not in memory
//! Suspend   on the spot  on a blocking thread of the runtime; the caller's task suspends
//! Thread    on the spot  on the spot; the caller's thread waits
//! Inline    on the spot  not done: `try_inline` drops the read and returns `WouldBlock`
//! ```
//!
//! Guarantee: a refused read has done nothing, and no error tells of it. It is a future that is not ready, so that code
//! between the store and `try_inline` can neither handle the refusal as a failure nor lose it.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {
    /// For async tasks: a read that would block moves to a blocking thread.
    Suspend,
    /// For blocking threads. Work that reads a lot changes threads once, not once per read, and cannot use up the
    /// blocking threads that its own reads need.
    Thread,
    /// For short work on an async worker: a read that would block is refused, and the caller runs the work again on a
    /// blocking thread. Every read goes through [`try_inline`].
    Inline,
}

/// The refusal of an inline caller's work, which would block or take long. Not an error: the work runs again on a
/// blocking thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WouldBlock;

impl Blocking {
    /// Call it before synchronous work that blocks or takes long.
    pub fn check_may_block(self) -> Result<(), WouldBlock> {
        if self == Blocking::Inline { Err(WouldBlock) } else { Ok(()) }
    }

    /// Await it before asynchronous work that blocks or takes long: inline, the work ends here.
    pub async fn before_blocking(self) {
        if self == Blocking::Inline {
            refuse().await;
        }
    }
}

/// The result of the work if it does not have to wait; otherwise the work is dropped where it would wait.
pub fn try_inline<T>(work: impl Future<Output = T>) -> Result<T, WouldBlock> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Ok(done),
        Poll::Pending => Err(WouldBlock),
    }
}

/// Ends an inline read. An executor that polls it again shows a caller that awaits the read instead of trying it.
async fn refuse() {
    let mut is_refused = false;
    poll_fn(|context| {
        assert!(!is_refused, "an inline read goes through `try_inline`");
        is_refused = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_inline_work_is_refused_and_it_ends_before_it_blocks() {
        for blocking in [Blocking::Suspend, Blocking::Thread, Blocking::Inline] {
            let mut has_blocked = false;
            let done = try_inline(async {
                blocking.before_blocking().await;
                has_blocked = true;
            });
            assert_eq!((done, has_blocked), (blocking.check_may_block(), blocking != Blocking::Inline));
        }
    }

    #[test]
    #[should_panic(expected = "goes through `try_inline`")]
    fn an_inline_read_that_is_awaited_panics_instead_of_hanging() {
        crate::testing::block_on(Blocking::Inline.before_blocking());
    }
}
