//! Script pool: threads for scripts.
//!
//! Guarantees: a caller gets an outcome soon after the hard limit, even if the script's thread does not return: some
//! native loops do not check the clock. Such a thread is abandoned and replaced; there are never more than twice
//! `threads_max` threads, and if all of them are stuck, callers get `Cause::Busy`.
//!
//! ```text
//! caller                         worker
//! start ── program, call ──────▶ ScriptRuntime::start
//! step  ── replies ────────────▶ Session::step
//!       ◀─────────── ScriptStep ─
//! ```
//!
//! The caller executes the operations on its own thread, so a stuck script holds no resources of the store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pleiad_model::env::Env;

use crate::call::ScriptCall;
use crate::limits::ScriptLimits;
use crate::operation::{OperationReply, ScriptOperation};
use crate::outcome::{Cause, ScriptError, ScriptOutcome, ScriptStep, ScriptUsage};
use crate::program::Program;
use crate::runtime::ScriptRuntime;
use crate::session::Session;

#[cfg(test)]
mod tests;

/// How long a caller waits for a thread after the hard limit.
const GRACE_PERIOD: Duration = Duration::from_millis(250);

/// In addition to the script's stack: for Rust frames, and for what QuickJS uses before it checks the limit.
const EXTRA_STACK_BYTES: usize = 1024 * 1024;

/// Cheap to clone; all clones share the threads.
#[derive(Clone)]
pub struct ScriptPool {
    shared: Arc<PoolShared>,
}

struct PoolShared {
    limits: ScriptLimits,
    env: Arc<dyn Env>,
    threads_max: usize,
    state: Mutex<PoolState>,
    freed: Condvar,
}

#[derive(Default)]
struct PoolState {
    idle: Vec<ScriptWorker>,
    /// Running or idle.
    live: usize,
    /// Abandoned, and not yet returned.
    abandoned: usize,
}

/// The caller's end of a thread.
struct ScriptWorker {
    commands: Sender<WorkerCommand>,
    steps: Receiver<ScriptStep>,
    is_abandoned: Arc<AtomicBool>,
}

enum WorkerCommand {
    Start(Program, Box<ScriptCall>),
    Step(Vec<OperationReply>),
    StopAccepting,
}

/// One call on a thread of the pool.
pub struct PooledCall {
    shared: Arc<PoolShared>,
    worker: Option<ScriptWorker>,
    is_done: bool,
}

impl ScriptPool {
    pub fn new(limits: ScriptLimits, env: Arc<dyn Env>, threads_max: usize) -> Self {
        let (state, freed) = (Mutex::default(), Condvar::new());
        ScriptPool { shared: Arc::new(PoolShared { limits, env, threads_max: threads_max.max(1), state, freed }) }
    }

    /// Runs a call to its end. `host` executes the script's operations.
    pub fn run(
        &self,
        program: &Program,
        call: ScriptCall,
        mut host: impl FnMut(Vec<ScriptOperation>) -> Vec<OperationReply>,
    ) -> ScriptOutcome {
        let mut pooled_call = match self.start(program, call) {
            Ok(running) => running,
            Err(error) => return failed_outcome(error),
        };
        let mut replies = Vec::new();
        loop {
            match pooled_call.step(replies) {
                ScriptStep::Execute(operations) => replies = host(operations),
                ScriptStep::Done(outcome) => return outcome,
            }
        }
    }

    /// Acquires a thread, waiting at most as long as a script may run.
    pub fn start(&self, program: &Program, call: ScriptCall) -> Result<PooledCall, ScriptError> {
        let worker = self.shared.acquire_worker()?;
        // If the worker has ended, the first step reports it.
        let _ = worker.commands.send(WorkerCommand::Start(program.clone(), Box::new(call)));
        Ok(PooledCall { shared: Arc::clone(&self.shared), worker: Some(worker), is_done: false })
    }
}

impl PooledCall {
    /// As [`Session::step`], but returns even if the script's thread does not.
    pub fn step(&mut self, replies: Vec<OperationReply>) -> ScriptStep {
        let limit = Duration::from_millis(self.shared.limits.hard_ms) + GRACE_PERIOD;
        let Some(worker) = &self.worker else { return ScriptStep::Done(failed_outcome(thread_ended())) };
        let _ = worker.commands.send(WorkerCommand::Step(replies));
        match worker.steps.recv_timeout(limit) {
            Ok(step) => {
                self.is_done = matches!(step, ScriptStep::Done(_));
                step
            }
            Err(RecvTimeoutError::Timeout) => {
                self.abandon();
                ScriptStep::Done(failed_outcome(ScriptError::timed_out(self.shared.limits.hard_ms)))
            }
            Err(RecvTimeoutError::Disconnected) => ScriptStep::Done(failed_outcome(thread_ended())),
        }
    }

    /// As [`Session::stop_accepting`], from the next step on.
    pub fn stop_accepting(&mut self) {
        if let Some(worker) = &self.worker {
            let _ = worker.commands.send(WorkerCommand::StopAccepting);
        }
    }

    fn abandon(&mut self) {
        let Some(worker) = self.worker.take() else { return };
        let mut state = self.shared.lock();
        worker.is_abandoned.store(true, Ordering::Relaxed);
        state.live -= 1;
        state.abandoned += 1;
        drop(state);
        self.shared.freed.notify_one();
    }
}

impl Drop for PooledCall {
    /// Returns the thread to the pool if its call is done; otherwise the thread ends, because its channels are closed.
    fn drop(&mut self) {
        let Some(worker) = self.worker.take() else { return };
        let mut state = self.shared.lock();
        if self.is_done {
            state.idle.push(worker);
        } else {
            state.live -= 1;
        }
        drop(state);
        self.shared.freed.notify_one();
    }
}

impl PoolShared {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acquire_worker(self: &Arc<Self>) -> Result<ScriptWorker, ScriptError> {
        let wait = Duration::from_millis(self.limits.hard_ms);
        let state = self.lock();
        let is_full = |state: &mut PoolState| state.idle.is_empty() && !self.may_spawn(state);
        let waited = self.freed.wait_timeout_while(state, wait, is_full);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(worker) = state.idle.pop() {
            return Ok(worker);
        }
        if !self.may_spawn(&state) {
            return Err(all_busy());
        }
        state.live += 1;
        drop(state);
        self.spawn().inspect_err(|_| self.lock().live -= 1)
    }

    fn may_spawn(&self, state: &PoolState) -> bool {
        state.live < self.threads_max && state.live + state.abandoned < 2 * self.threads_max
    }

    fn spawn(self: &Arc<Self>) -> Result<ScriptWorker, ScriptError> {
        let ((commands, inbox), (outbox, steps)) = (channel(), channel());
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let runtime = (self.limits.clone(), Arc::clone(&self.env));
        // Weak: idle threads must not keep their own pool alive.
        let (pool, abandoned_flag) = (Arc::downgrade(self), Arc::clone(&is_abandoned));
        let stack_bytes = self.limits.stack_bytes_max + EXTRA_STACK_BYTES;
        let builder = thread::Builder::new().name("script".to_owned()).stack_size(stack_bytes);
        let thread_main = move || {
            worker_loop(ScriptRuntime::new(runtime.0, runtime.1), &inbox, &outbox);
            if let Some(pool) = pool.upgrade() {
                pool.worker_ended(&abandoned_flag);
            }
        };
        builder.spawn(thread_main).map_err(|_| all_busy())?;
        Ok(ScriptWorker { commands, steps, is_abandoned })
    }

    /// Called by a worker that ends, for instance after it was abandoned.
    fn worker_ended(&self, is_abandoned: &AtomicBool) {
        let mut state = self.lock();
        if is_abandoned.load(Ordering::Relaxed) {
            state.abandoned -= 1;
        }
        drop(state);
        self.freed.notify_one();
    }
}

/// A worker's main loop: one call after another, until the pool drops its end of the channel.
fn worker_loop(mut runtime: ScriptRuntime, inbox: &Receiver<WorkerCommand>, outbox: &Sender<ScriptStep>) {
    let mut is_connected = true;
    while is_connected && let Ok(command) = inbox.recv() {
        if let WorkerCommand::Start(program, call) = command {
            is_connected = run_call(runtime.start(&program, *call), inbox, outbox);
        }
    }
}

/// Runs one call. False if the caller dropped its end of the channel.
fn run_call(mut session: Session<'_>, inbox: &Receiver<WorkerCommand>, outbox: &Sender<ScriptStep>) -> bool {
    while let Ok(command) = inbox.recv() {
        let step = match command {
            WorkerCommand::Step(replies) => session.step(replies),
            WorkerCommand::StopAccepting => {
                session.stop_accepting();
                continue;
            }
            WorkerCommand::Start(..) => continue,
        };
        let is_done = matches!(step, ScriptStep::Done(_));
        if outbox.send(step).is_err() {
            return false;
        }
        if is_done {
            return true;
        }
    }
    false
}

fn all_busy() -> ScriptError {
    ScriptError::new(Cause::Busy, "All threads for scripts are at work.")
}

fn thread_ended() -> ScriptError {
    ScriptError::new(Cause::Busy, "The script's thread has ended.")
}

fn failed_outcome(error: ScriptError) -> ScriptOutcome {
    ScriptOutcome {
        response_body: None,
        request_body: None,
        log: String::new(),
        error: Some(error),
        usage: ScriptUsage::default(),
    }
}
