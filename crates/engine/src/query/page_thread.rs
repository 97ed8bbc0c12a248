//! The thread of a page: an async worker, which must not block, or a blocking thread.
//!
//! Guarantee: an inline page does not wait and does no long work; it stops with `WouldBlock` instead.

use std::pin::pin;

use pleiad_model::Result;
use pleiad_storage::{Blocking, WouldBlock, try_inline};
use tokio::runtime::Handle;

use super::stop::Stop;

#[derive(Clone)]
pub struct PageThread {
    /// Drives the futures that a blocking thread waits for.
    pub runtime: Handle,
    /// `Thread` or `Inline`.
    pub blocking: Blocking,
}

impl PageThread {
    /// Call it before work that takes long.
    pub fn check_may_block(&self) -> Result<(), WouldBlock> {
        self.blocking.check_may_block()
    }

    /// Runs the work on this thread. The future of a local store is ready at the first poll; a blocking thread waits only
    /// for other stores.
    pub fn wait_for<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T, Stop> {
        let mut work = pin!(work);
        let done = match try_inline(work.as_mut()) {
            Ok(done) => done,
            Err(would_block) if self.blocking == Blocking::Inline => return Err(would_block.into()),
            Err(_) => self.runtime.block_on(work),
        };
        Ok(done?)
    }
}
