//! Whole states of a store, kept under names, and going back to one of them.
//!
//! Promise: keeping takes milliseconds and stops nobody; what is kept never changes and outlives a restart if the store does.
//! A revived store has exactly the rows that were kept. The next start finds the store that took over last, all of it:
//! whenever the process ends, that is either the former one or the revived one.
//!
//! ```text
//! keep "clean" ── writes go on ── revive "clean" ──▶ a second store ── rows are added ── take_over ── retire the first
//! ```

use std::future::Future;

use pleiad_model::Result;

use super::Store;

/// What is known of a kept state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointInfo {
    pub name: String,
    /// Milliseconds since 1970, as whoever kept it said.
    pub taken_ms: u64,
    /// How large it is, counting what it shares with the store and with others.
    pub bytes: u64,
}

pub trait Checkpoints: Store + Sized {
    /// Keeps everything committed so far. What was kept under this name gives way, all at once.
    fn keep(&self, name: &str, taken_ms: u64) -> impl Future<Output = Result<CheckpointInfo>> + Send;

    /// In the order of their names.
    fn kept(&self) -> impl Future<Output = Result<Vec<CheckpointInfo>>> + Send;

    /// Tells whether there was one.
    fn forget(&self, name: &str) -> impl Future<Output = Result<bool>> + Send;

    /// A second store that holds what was kept; `None` if there is no such name. Nobody finds it at the next start until it
    /// takes over.
    fn revive(&self, name: &str) -> impl Future<Output = Result<Option<Self>>> + Send;

    /// From here on the next start finds this store, with all that was synced into it.
    fn take_over(&self) -> impl Future<Output = Result<()>> + Send;

    /// This store has had its time: its space is given back as soon as nobody uses it any more.
    fn retire(&self);
}
