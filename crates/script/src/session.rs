//! Script session: one call, step by step.
//!
//! Guarantees: `step` never blocks. Callbacks run in the order of the replies, each followed by the jobs of the
//! promises that it settled. After `Done` the runtime is ready for the next call and holds no state of this one.
//!
//! ```text
//! step([])        main(…arguments)              ─▶ Execute([1: create, 2: query])
//! step([1, 2])    callback of 1, callback of 2  ─▶ Execute([3: replace])
//! step([3])       callback of 3                 ─▶ Done
//! ```

use std::collections::HashSet;
use std::rc::Rc;

use rquickjs::{Array, Context, Ctx, Undefined};

use crate::call::ScriptCall;
use crate::exception;
use crate::host_state::HostState;
use crate::numbers::error_number;
use crate::operation::{OperationId, OperationReply, OperationResult};
use crate::outcome::{Cause, ScriptError, ScriptOutcome, ScriptStep, ScriptUsage};
use crate::program::Program;
use crate::realm::Realm;
use crate::runtime::{ScriptRuntime, compile_program};

#[cfg(test)]
mod tests;

pub struct Session<'r> {
    runtime: &'r mut ScriptRuntime,
    host_state: Rc<HostState>,
    program: Program,
    call: Rc<ScriptCall>,
    /// For programs that cannot run in the shared realm.
    own_realm: Option<Realm>,
    phase: Phase,
    pending: HashSet<OperationId>,
    steps: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Running,
    Done,
}

impl<'r> Session<'r> {
    pub(crate) fn new(runtime: &'r mut ScriptRuntime, program: Program, call: ScriptCall) -> Self {
        let host_state = Rc::clone(runtime.host_state());
        let (call, pending) = (Rc::new(call), HashSet::new());
        Session { runtime, host_state, program, call, own_realm: None, phase: Phase::New, pending, steps: 0 }
    }

    /// Runs the script until it requests operations or is done. The first step takes no replies; later ones take some
    /// or all of the missing replies. Replies with unknown ids are ignored.
    pub fn step(&mut self, replies: Vec<OperationReply>) -> ScriptStep {
        self.steps += 1;
        let result = match self.phase {
            Phase::New => self.run_main(),
            Phase::Running => self.resume(replies),
            Phase::Done => Err(ScriptError::new(Cause::Thrown, "The call is over.")),
        };
        match result {
            Err(error) => self.finish(Some(error)),
            Ok(()) => self.yield_or_finish(),
        }
    }

    /// From now on the collection's functions return false, so that the script can finish.
    pub fn stop_accepting(&mut self) {
        self.host_state.stop_accepting();
    }

    fn yield_or_finish(&mut self) -> ScriptStep {
        let operations = self.host_state.drain_queue();
        self.pending.extend(operations.iter().map(|operation| operation.id));
        if self.pending.is_empty() { self.finish(None) } else { ScriptStep::Execute(operations) }
    }

    fn run_main(&mut self) -> Result<(), ScriptError> {
        self.phase = Phase::Running;
        self.host_state.begin(Some(Rc::clone(&self.call)));
        let (host_state, program, call) = (Rc::clone(&self.host_state), self.program.clone(), Rc::clone(&self.call));
        let engine = self.runtime.engine()?;
        if program.has_own_realm() {
            let realm = Realm::own(&engine.js, &host_state);
            let realm = realm.map_err(|_| ScriptError::out_of_memory(host_state.limits.memory_bytes_max))?;
            let context = self.own_realm.insert(realm).context.clone();
            let realm = self.own_realm.as_ref().unwrap_or(engine.shared());
            context.with(|ctx| {
                let compiled = compile_program(&ctx, &host_state, realm, &program)?;
                let factory =
                    compiled.restore(&ctx).map_err(|e| exception::script_error(&ctx, &host_state, &program, &e))?;
                call_main(&ctx, realm, factory, &call)
                    .map_err(|e| exception::script_error(&ctx, &host_state, &program, &e))
            })?;
        } else {
            let context = engine.shared().context.clone();
            context.with(|ctx| {
                let factory = engine.factory(&ctx, &host_state, &program)?;
                call_main(&ctx, engine.shared(), factory, &call)
                    .map_err(|e| exception::script_error(&ctx, &host_state, &program, &e))
            })?;
        }
        self.run_pending_jobs()
    }

    fn resume(&mut self, replies: Vec<OperationReply>) -> Result<(), ScriptError> {
        if self.host_state.is_deadline_reached() {
            return Err(ScriptError::timed_out(self.host_state.limits.hard_ms));
        }
        for reply in replies {
            if self.pending.remove(&reply.id) {
                self.in_realm(|realm, ctx| deliver(ctx, realm, &reply))?;
                self.run_pending_jobs()?;
            }
        }
        Ok(())
    }

    /// Runs the pending promise jobs, then rethrows if the script called `abort` and caught the error itself.
    fn run_pending_jobs(&mut self) -> Result<(), ScriptError> {
        let (host_state, program) = (Rc::clone(&self.host_state), self.program.clone());
        let engine = self.runtime.engine()?;
        loop {
            match engine.js.execute_pending_job() {
                Ok(true) if host_state.is_deadline_reached() => {
                    return Err(ScriptError::timed_out(host_state.limits.hard_ms));
                }
                Ok(true) => {}
                Ok(false) => break,
                Err(job) => {
                    let error = rquickjs::Error::Exception;
                    return Err(job.0.with(|ctx| exception::script_error(&ctx, &host_state, &program, &error)));
                }
            }
        }
        if host_state.is_aborted() { self.in_realm(|realm, ctx| realm.rethrow(ctx)) } else { Ok(()) }
    }

    fn in_realm<T>(&mut self, work: impl FnOnce(&Realm, &Ctx<'_>) -> rquickjs::Result<T>) -> Result<T, ScriptError> {
        let (host_state, program) = (&self.host_state, &self.program);
        let engine = self.runtime.engine()?;
        let realm = self.own_realm.as_ref().unwrap_or(engine.shared());
        let context: &Context = &realm.context;
        context.with(|ctx| work(realm, &ctx).map_err(|e| exception::script_error(&ctx, host_state, program, &e)))
    }

    fn finish(&mut self, error: Option<ScriptError>) -> ScriptStep {
        let (bodies, error) = match error {
            Some(error) => (Bodies::default(), Some(error)),
            None => match self.bodies() {
                Ok(bodies) => (bodies, None),
                Err(error) => (Bodies::default(), Some(error)),
            },
        };
        let usage = ScriptUsage {
            steps: self.steps,
            operations: self.host_state.operation_count(),
            elapsed_ms: self.host_state.elapsed_ms(),
        };
        let log = self.host_state.take_log();
        let is_out_of_memory = error.as_ref().is_some_and(|error| error.cause == Cause::OutOfMemory);
        self.release_runtime(is_out_of_memory);
        ScriptStep::Done(ScriptOutcome {
            response_body: bodies.response,
            request_body: bodies.request,
            log,
            error,
            usage,
        })
    }

    fn bodies(&mut self) -> Result<Bodies, ScriptError> {
        let bytes_max = self.host_state.limits.body_bytes_max;
        let bodies = self.in_realm(|realm, ctx| {
            let both = realm.bodies(ctx)?;
            Ok(Bodies { request: body(ctx, &both, 0)?, response: body(ctx, &both, 1)? })
        })?;
        let is_large =
            [&bodies.request, &bodies.response].iter().any(|b| b.as_ref().is_some_and(|b| b.len() > bytes_max));
        if is_large { Err(too_large(bytes_max)) } else { Ok(bodies) }
    }

    /// Returns the runtime clean, or without its engine.
    fn release_runtime(&mut self, is_out_of_memory: bool) {
        self.phase = Phase::Done;
        let is_clean = !is_out_of_memory && !self.host_state.was_interrupted() && self.reset_realm();
        let own = self.own_realm.take();
        match self.runtime.engine() {
            Ok(engine) if is_clean && !engine.js.is_job_pending() => {
                // Without a garbage collection the realm's cycles would count against the next call's memory.
                if own.is_some() {
                    drop(own);
                    engine.js.run_gc();
                }
                engine.reset_gc_threshold();
            }
            _ => {
                drop(own);
                self.runtime.discard();
            }
        }
        self.host_state.begin(None);
    }

    fn reset_realm(&mut self) -> bool {
        if self.own_realm.is_some() {
            return true; // the realm is discarded anyway
        }
        self.in_realm(|realm, ctx| realm.close(ctx).map(|()| realm.reset(ctx))).unwrap_or(false)
    }
}

impl Drop for Session<'_> {
    /// An unfinished call leaves callbacks behind, so the engine is discarded.
    fn drop(&mut self) {
        if self.phase == Phase::Running {
            self.own_realm = None;
            self.runtime.discard();
        }
    }
}

#[derive(Default)]
struct Bodies {
    request: Option<String>,
    response: Option<String>,
}

fn body<'js>(ctx: &Ctx<'js>, both: &Array<'js>, at: usize) -> rquickjs::Result<Option<String>> {
    let value: rquickjs::Value<'js> = both.get(at)?;
    ctx.json_stringify(value)?.map(|text| text.to_string()).transpose()
}

fn too_large(bytes_max: usize) -> ScriptError {
    let message = format!("The script's response is larger than {bytes_max} bytes.");
    ScriptError { number: Some(413), ..ScriptError::new(Cause::TooLarge, message) }
}

fn call_main<'js>(
    ctx: &Ctx<'js>,
    realm: &Realm,
    factory: rquickjs::Function<'js>,
    call: &ScriptCall,
) -> rquickjs::Result<()> {
    realm.open(ctx, call.entry.mode())?;
    let arguments = Array::new(ctx.clone())?;
    for (at, text) in call.entry.arguments().iter().enumerate() {
        arguments.set(at, ctx.json_parse(text.as_str())?)?;
    }
    realm.run(ctx, factory, arguments)
}

fn deliver<'js>(ctx: &Ctx<'js>, realm: &Realm, reply: &OperationReply) -> rquickjs::Result<()> {
    let id = reply.id.0;
    match &reply.result {
        OperationResult::Resource(text) => realm.deliver(ctx, (id, 0, "resource", text.as_str(), Undefined)),
        OperationResult::NotModified => realm.deliver(ctx, (id, 0, "notModified", "null", Undefined)),
        OperationResult::Deleted => realm.deliver(ctx, (id, 0, "deleted", "null", Undefined)),
        OperationResult::Feed { documents, continuation } => {
            realm.deliver(ctx, (id, 0, "feed", documents.as_str(), continuation.as_deref()))
        }
        OperationResult::Failed { kind, message } => {
            realm.deliver(ctx, (id, error_number(*kind), "failed", message.as_str(), Undefined))
        }
    }
}
