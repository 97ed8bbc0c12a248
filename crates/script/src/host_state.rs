//! Host state of a script call: deadline, operation queue and log. Native functions write it, the session reads it.
//!
//! Invariant: queue and log are bounded. All access is on one thread, so a cell is enough.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use pleiad_model::env::Env;

use crate::call::ScriptCall;
use crate::limits::ScriptLimits;
use crate::operation::{DocumentAction, OperationId, ScriptOperation};

/// Shared between a runtime, its realms' native functions and its interrupt handler.
pub struct HostState {
    pub limits: ScriptLimits,
    pub env: Arc<dyn Env>,
    clock: Clock,
    call_state: RefCell<CallState>,
}

#[derive(Default)]
struct Clock {
    started_ms: Cell<u64>,
    deadline_ms: Cell<u64>,
    is_expired: Cell<bool>,
}

#[derive(Default)]
struct CallState {
    call: Option<Rc<ScriptCall>>,
    queue: Vec<ScriptOperation>,
    queued_bytes: usize,
    operation_count: u32,
    log: String,
    is_aborted: bool,
    is_closed: bool,
}

impl HostState {
    pub fn new(limits: ScriptLimits, env: Arc<dyn Env>) -> Rc<HostState> {
        Rc::new(HostState { limits, env, clock: Clock::default(), call_state: RefCell::default() })
    }

    /// Clears the state and starts the clock. `None` is for a user-defined function or a compilation.
    pub fn begin(&self, call: Option<Rc<ScriptCall>>) {
        let now_ms = self.env.now_ms();
        self.clock.started_ms.set(now_ms);
        self.clock.deadline_ms.set(now_ms.saturating_add(self.limits.hard_ms));
        self.clock.is_expired.set(false);
        if call.is_some() || self.call_state.borrow().call.is_some() {
            self.call_state.replace(CallState { call, ..CallState::default() });
        }
    }

    pub fn call(&self) -> Option<Rc<ScriptCall>> {
        self.call_state.borrow().call.clone()
    }

    /// Called by the interrupt handler, every few thousand steps of the script.
    pub fn is_deadline_reached(&self) -> bool {
        let is_reached = self.env.now_ms() >= self.clock.deadline_ms.get();
        self.clock.is_expired.set(self.clock.is_expired.get() || is_reached);
        is_reached
    }

    pub fn was_interrupted(&self) -> bool {
        self.clock.is_expired.get()
    }

    pub fn elapsed_ms(&self) -> u64 {
        self.env.now_ms().saturating_sub(self.clock.started_ms.get())
    }

    /// Queues an operation. None if the soft limit has passed, the queue is full or the call accepts no more.
    pub fn enqueue(&self, action: DocumentAction) -> Option<OperationId> {
        let bytes = body_bytes(&action);
        let is_late = self.elapsed_ms() >= self.limits.soft_ms;
        let mut state = self.call_state.borrow_mut();
        let is_full = state.queue.len() >= self.limits.queued_operations_max
            || state.queued_bytes + bytes > self.limits.queued_bytes_max;
        if is_late || is_full || state.is_aborted || state.is_closed || state.call.is_none() {
            return None;
        }
        state.operation_count += 1;
        state.queued_bytes += bytes;
        let id = OperationId(state.operation_count);
        state.queue.push(ScriptOperation { id, action });
        Some(id)
    }

    pub fn drain_queue(&self) -> Vec<ScriptOperation> {
        let mut state = self.call_state.borrow_mut();
        state.queued_bytes = 0;
        std::mem::take(&mut state.queue)
    }

    pub fn operation_count(&self) -> u32 {
        self.call_state.borrow().operation_count
    }

    /// The host accepts no more operations, for instance because its own budget is exhausted.
    pub fn stop_accepting(&self) {
        self.call_state.borrow_mut().is_closed = true;
    }

    pub fn abort(&self) {
        self.call_state.borrow_mut().is_aborted = true;
    }

    pub fn is_aborted(&self) -> bool {
        self.call_state.borrow().is_aborted
    }

    /// False if the log is full; text that does not fit is dropped.
    pub fn log(&self, text: &str) -> bool {
        let mut state = self.call_state.borrow_mut();
        if !state.call.as_ref().is_some_and(|call| call.is_logging) {
            return true;
        }
        let fits = state.log.len() + text.len() <= self.limits.log_bytes_max;
        if fits {
            state.log.push_str(text);
        }
        fits
    }

    pub fn take_log(&self) -> String {
        std::mem::take(&mut self.call_state.borrow_mut().log)
    }
}

fn body_bytes(action: &DocumentAction) -> usize {
    match action {
        DocumentAction::Create { body, .. }
        | DocumentAction::Upsert { body, .. }
        | DocumentAction::Replace { body, .. } => body.len(),
        DocumentAction::Query { query, .. } => query.text.len(),
        DocumentAction::Read { .. } | DocumentAction::Delete { .. } | DocumentAction::ReadFeed { .. } => 0,
    }
}
