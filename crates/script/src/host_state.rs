//! Host state of a script call: deadline, operation queue and log. Native functions write it, the session reads it.
//!
//! Invariant: queue and log are bounded. All access is on one thread, so a cell is enough.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use pleiad_model::env::Env;

use crate::call::ScriptCall;
use crate::limits::ScriptLimits;
use crate::operation::{Action, OperationId, ScriptOperation};

/// Shared between a runtime, its realms' native functions and its interrupt handler.
pub struct HostState {
    pub limits: ScriptLimits,
    pub env: Arc<dyn Env>,
    clock: Clock,
    papers: RefCell<CallState>,
}

#[derive(Default)]
struct Clock {
    started_ms: Cell<u64>,
    hard_ms: Cell<u64>,
    is_over: Cell<bool>,
}

#[derive(Default)]
struct CallState {
    call: Option<Rc<ScriptCall>>,
    queue: Vec<ScriptOperation>,
    queued_bytes: usize,
    tickets: u32,
    log: String,
    is_aborted: bool,
    is_closed: bool,
}

impl HostState {
    pub fn new(limits: ScriptLimits, env: Arc<dyn Env>) -> Rc<HostState> {
        Rc::new(HostState { limits, env, clock: Clock::default(), papers: RefCell::default() })
    }

    /// Clears the state and starts the clock. `None` is for a user-defined function or a compilation.
    pub fn open(&self, call: Option<Rc<ScriptCall>>) {
        let now_ms = self.env.now_ms();
        self.clock.started_ms.set(now_ms);
        self.clock.hard_ms.set(now_ms.saturating_add(self.limits.hard_ms));
        self.clock.is_over.set(false);
        if call.is_some() || self.papers.borrow().call.is_some() {
            self.papers.replace(CallState { call, ..CallState::default() });
        }
    }

    pub fn call(&self) -> Option<Rc<ScriptCall>> {
        self.papers.borrow().call.clone()
    }

    /// Called by the interrupt handler, every few thousand steps of the script.
    pub fn is_time_over(&self) -> bool {
        let is_over = self.env.now_ms() >= self.clock.hard_ms.get();
        self.clock.is_over.set(self.clock.is_over.get() || is_over);
        is_over
    }

    pub fn was_interrupted(&self) -> bool {
        self.clock.is_over.get()
    }

    pub fn elapsed_ms(&self) -> u64 {
        self.env.now_ms().saturating_sub(self.clock.started_ms.get())
    }

    /// Queues an operation. None if the soft limit has passed, the queue is full or the call accepts no more.
    pub fn take(&self, action: Action) -> Option<OperationId> {
        let bytes = body_bytes(&action);
        let is_late = self.elapsed_ms() >= self.limits.soft_ms;
        let mut papers = self.papers.borrow_mut();
        let is_full = papers.queue.len() >= self.limits.queued_operations_max
            || papers.queued_bytes + bytes > self.limits.queued_bytes_max;
        if is_late || is_full || papers.is_aborted || papers.is_closed || papers.call.is_none() {
            return None;
        }
        papers.tickets += 1;
        papers.queued_bytes += bytes;
        let ticket = OperationId(papers.tickets);
        papers.queue.push(ScriptOperation { ticket, action });
        Some(ticket)
    }

    pub fn queued(&self) -> Vec<ScriptOperation> {
        let mut papers = self.papers.borrow_mut();
        papers.queued_bytes = 0;
        std::mem::take(&mut papers.queue)
    }

    pub fn operations(&self) -> u32 {
        self.papers.borrow().tickets
    }

    /// The host accepts no more operations, for instance because its own budget is exhausted.
    pub fn stop_accepting(&self) {
        self.papers.borrow_mut().is_closed = true;
    }

    pub fn abort(&self) {
        self.papers.borrow_mut().is_aborted = true;
    }

    pub fn is_aborted(&self) -> bool {
        self.papers.borrow().is_aborted
    }

    /// False if the log is full; text that does not fit is dropped.
    pub fn log(&self, text: &str) -> bool {
        let mut papers = self.papers.borrow_mut();
        if !papers.call.as_ref().is_some_and(|call| call.is_logging) {
            return true;
        }
        let fits = papers.log.len() + text.len() <= self.limits.log_bytes_max;
        if fits {
            papers.log.push_str(text);
        }
        fits
    }

    pub fn take_log(&self) -> String {
        std::mem::take(&mut self.papers.borrow_mut().log)
    }
}

fn body_bytes(action: &Action) -> usize {
    match action {
        Action::Create { body, .. } | Action::Upsert { body, .. } | Action::Replace { body, .. } => body.len(),
        Action::Query { query, .. } => query.text.len(),
        Action::Read { .. } | Action::Delete { .. } | Action::ReadFeed { .. } => 0,
    }
}
