//! Message memory: a budget for the requests that are being received and processed, shared by all connections of all
//! ports.
//!
//! Guarantees: a message is received after all of its bytes are reserved, in the order of the requests for them, so that
//! two messages never wait for each other half received. A message that is larger than the budget waits for all of it.
//! A protocol reserves memory for callers that it has authenticated: others could occupy it by sending nothing.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory is reserved in units of this size.
const UNIT_BYTES: usize = 1024;

pub struct MessageMemory {
    free_units: Arc<Semaphore>,
    units_max: u32,
}

/// The memory of one message; dropping it returns the memory.
#[must_use = "dropping it returns the memory"]
pub struct ReservedMemory {
    _units: Option<OwnedSemaphorePermit>,
}

impl MessageMemory {
    pub fn new(bytes_max: usize) -> MessageMemory {
        let units_max = u32::try_from(bytes_max.div_ceil(UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS));
        let units_max = units_max.unwrap_or(u32::MAX);
        MessageMemory { free_units: Arc::new(Semaphore::new(units_max as usize)), units_max }
    }

    /// Waits until the bytes are free. Cancel safe.
    pub async fn reserve(&self, bytes: usize) -> ReservedMemory {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(self.units_max);
        // The semaphore is never closed.
        ReservedMemory { _units: self.free_units.clone().acquire_many_owned(units).await.ok() }
    }
}
