//! Script limits: time, memory, stack, output and queues.
//!
//! Invariant: every limit on what a script may consume is a field here. Fixed limits of the host (error texts, the size
//! of translated queries, the pool's grace period) are constants in their modules.

const MIB: usize = 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptLimits {
    /// After this time the collection accepts no more operations, so that a script can return with a continuation.
    pub soft_ms: u64,
    /// After this time the call is aborted.
    pub hard_ms: u64,
    /// The heap of one runtime: the script's values, and the programs it has compiled.
    pub memory_bytes_max: usize,
    /// Native stack of one call. The thread needs about 256 KiB more.
    pub stack_bytes_max: usize,
    /// Body of a request or response.
    pub body_bytes_max: usize,
    /// Total output of `console.log`.
    pub log_bytes_max: usize,
    /// Operations queued at one time, and the bytes of their bodies, which do not count against the script's memory.
    pub queued_operations_max: usize,
    pub queued_bytes_max: usize,
    /// Compiled programs that a runtime caches.
    pub programs_max: usize,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        ScriptLimits {
            soft_ms: 4_000,
            hard_ms: 5_000,
            memory_bytes_max: 64 * MIB,
            stack_bytes_max: MIB / 2,
            body_bytes_max: 4 * MIB,
            log_bytes_max: 16 * 1024,
            queued_operations_max: 1_000,
            queued_bytes_max: 16 * MIB,
            programs_max: 128,
        }
    }
}
