//! Named checkpoints of a store: take one, open it as a second store, and make that the current one.
//!
//! Guarantees: taking a checkpoint takes milliseconds and blocks no reader or writer; a checkpoint never changes and
//! survives a restart if the store does. A store that is opened from a checkpoint has exactly its rows. The next
//! start opens the store that was made current last: if the process ends in between, that is either the former store
//! or the new one, each complete.
//!
//! ```text
//! create_checkpoint "clean" ── more writes ── open_checkpoint "clean" ──▶ a second store ── rows are added ─┐
//!                                                     retire the first store ◀── make_current the second ◀──┘
//! ```

use std::future::Future;

use pleiad_model::Result;

use super::Store;

/// Description of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointInfo {
    pub name: String,
    /// Milliseconds since 1970, as given by the caller that created it.
    pub taken_ms: u64,
    /// Its size, including what it shares with the store and with other checkpoints.
    pub bytes: u64,
}

pub trait Checkpoints: Store + Sized {
    /// Saves everything committed so far. A checkpoint of the same name is replaced atomically.
    fn create_checkpoint(&self, name: &str, taken_ms: u64) -> impl Future<Output = Result<CheckpointInfo>> + Send;

    /// All checkpoints, in the order of their names.
    fn list_checkpoints(&self) -> impl Future<Output = Result<Vec<CheckpointInfo>>> + Send;

    /// Returns true if there was one of this name.
    fn delete_checkpoint(&self, name: &str) -> impl Future<Output = Result<bool>> + Send;

    /// Opens a second store with the rows of the checkpoint; `None` if there is none of this name. The next start
    /// does not open it unless it was made current.
    fn open_checkpoint(&self, name: &str) -> impl Future<Output = Result<Option<Self>>> + Send;

    /// Opens a second store with everything that this one has committed: for a store that accepts no more writes because
    /// one has failed. Fails while the disk does. A failed commit is in the copy completely or not at all.
    fn open_copy(&self) -> impl Future<Output = Result<Self>> + Send;

    /// From now on the next start opens this store, with everything that was synced to it.
    fn make_current(&self) -> impl Future<Output = Result<()>> + Send;

    /// Marks the store for deletion: its space is freed when its last user has closed it.
    fn retire(&self);
}
