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
use crate::numbers::number;
use crate::operation::{OperationId, OperationReply, OperationResult};
use crate::outcome::{Cause, ScriptError, ScriptOutcome, ScriptStep, ScriptUsage};
use crate::program::Program;
use crate::realm::Realm;
use crate::runtime::{ScriptRuntime, compiled};

#[cfg(test)]
mod tests;

pub struct Session<'r> {
    runtime: &'r mut ScriptRuntime,
    desk: Rc<HostState>,
    program: Program,
    call: Rc<ScriptCall>,
    /// For programs that cannot run in the shared realm.
    own: Option<Realm>,
    phase: Phase,
    waiting: HashSet<OperationId>,
    steps: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Running,
    Over,
}

impl<'r> Session<'r> {
    pub(crate) fn new(runtime: &'r mut ScriptRuntime, program: Program, call: ScriptCall) -> Self {
        let desk = Rc::clone(runtime.desk());
        let (call, waiting) = (Rc::new(call), HashSet::new());
        Session { runtime, desk, program, call, own: None, phase: Phase::New, waiting, steps: 0 }
    }

    /// Runs the script until it requests operations or is done. The first step takes no replies; later ones take some
    /// or all of the missing replies. Replies with unknown ids are ignored.
    pub fn step(&mut self, answers: Vec<OperationReply>) -> ScriptStep {
        self.steps += 1;
        let ran = match self.phase {
            Phase::New => self.enter(),
            Phase::Running => self.resume(answers),
            Phase::Over => Err(ScriptError::new(Cause::Thrown, "The call is over.")),
        };
        match ran {
            Err(error) => self.end(Some(error)),
            Ok(()) => self.pause(),
        }
    }

    /// From now on the collection's functions return false, so that the script can finish.
    pub fn stop_accepting(&mut self) {
        self.desk.stop_accepting();
    }

    fn pause(&mut self) -> ScriptStep {
        let asked = self.desk.queued();
        self.waiting.extend(asked.iter().map(|operation| operation.ticket));
        if self.waiting.is_empty() { self.end(None) } else { ScriptStep::Ask(asked) }
    }

    fn enter(&mut self) -> Result<(), ScriptError> {
        self.phase = Phase::Running;
        self.desk.open(Some(Rc::clone(&self.call)));
        let (desk, program, call) = (Rc::clone(&self.desk), self.program.clone(), Rc::clone(&self.call));
        let engine = self.runtime.engine()?;
        if program.has_own_realm() {
            let realm = Realm::own(&engine.js, &desk);
            let realm = realm.map_err(|_| ScriptError::out_of_memory(desk.limits.memory_bytes_max))?;
            let context = self.own.insert(realm).context.clone();
            let realm = self.own.as_ref().unwrap_or(engine.shared());
            context.with(|ctx| {
                let kept = compiled(&ctx, &desk, realm, &program)?;
                let factory = kept.restore(&ctx).map_err(|e| exception::caught(&ctx, &desk, &program, &e))?;
                main(&ctx, realm, factory, &call).map_err(|e| exception::caught(&ctx, &desk, &program, &e))
            })?;
        } else {
            let context = engine.shared().context.clone();
            context.with(|ctx| {
                let factory = engine.factory(&ctx, &desk, &program)?;
                main(&ctx, engine.shared(), factory, &call).map_err(|e| exception::caught(&ctx, &desk, &program, &e))
            })?;
        }
        self.settle()
    }

    fn resume(&mut self, answers: Vec<OperationReply>) -> Result<(), ScriptError> {
        if self.desk.is_time_over() {
            return Err(ScriptError::timed_out(self.desk.limits.hard_ms));
        }
        for answer in answers {
            if self.waiting.remove(&answer.ticket) {
                self.in_realm(|realm, ctx| deliver(ctx, realm, &answer))?;
                self.settle()?;
            }
        }
        Ok(())
    }

    /// Runs the pending promise jobs, then rethrows if the script called `abort` and caught the error itself.
    fn settle(&mut self) -> Result<(), ScriptError> {
        let (desk, program) = (Rc::clone(&self.desk), self.program.clone());
        let engine = self.runtime.engine()?;
        loop {
            match engine.js.execute_pending_job() {
                Ok(true) if desk.is_time_over() => return Err(ScriptError::timed_out(desk.limits.hard_ms)),
                Ok(true) => {}
                Ok(false) => break,
                Err(job) => {
                    let error = rquickjs::Error::Exception;
                    return Err(job.0.with(|ctx| exception::caught(&ctx, &desk, &program, &error)));
                }
            }
        }
        if desk.is_aborted() { self.in_realm(|realm, ctx| realm.rethrow(ctx)) } else { Ok(()) }
    }

    fn in_realm<T>(&mut self, work: impl FnOnce(&Realm, &Ctx<'_>) -> rquickjs::Result<T>) -> Result<T, ScriptError> {
        let (desk, program) = (&self.desk, &self.program);
        let engine = self.runtime.engine()?;
        let realm = self.own.as_ref().unwrap_or(engine.shared());
        let context: &Context = &realm.context;
        context.with(|ctx| work(realm, &ctx).map_err(|e| exception::caught(&ctx, desk, program, &e)))
    }

    fn end(&mut self, error: Option<ScriptError>) -> ScriptStep {
        let (bodies, error) = match error {
            Some(error) => (Bodies::default(), Some(error)),
            None => match self.bodies() {
                Ok(bodies) => (bodies, None),
                Err(error) => (Bodies::default(), Some(error)),
            },
        };
        let work =
            ScriptUsage { steps: self.steps, operations: self.desk.operations(), elapsed_ms: self.desk.elapsed_ms() };
        let log = self.desk.take_log();
        let is_spent = error.as_ref().is_some_and(|error| error.cause == Cause::OutOfMemory);
        self.leave(is_spent);
        ScriptStep::Done(ScriptOutcome {
            response_body: bodies.response,
            request_body: bodies.request,
            log,
            error,
            work,
        })
    }

    fn bodies(&mut self) -> Result<Bodies, ScriptError> {
        let bytes_max = self.desk.limits.body_bytes_max;
        let bodies = self.in_realm(|realm, ctx| {
            let both = realm.bodies(ctx)?;
            Ok(Bodies { request: body(ctx, &both, 0)?, response: body(ctx, &both, 1)? })
        })?;
        let is_large =
            [&bodies.request, &bodies.response].iter().any(|b| b.as_ref().is_some_and(|b| b.len() > bytes_max));
        if is_large { Err(too_large(bytes_max)) } else { Ok(bodies) }
    }

    /// Returns the runtime clean, or without its engine.
    fn leave(&mut self, is_spent: bool) {
        self.phase = Phase::Over;
        let is_clean = !is_spent && !self.desk.was_interrupted() && self.tidy();
        let own = self.own.take();
        match self.runtime.engine() {
            Ok(engine) if is_clean && !engine.js.is_job_pending() => {
                // Without a garbage collection the realm's cycles would count against the next call's memory.
                if own.is_some() {
                    drop(own);
                    engine.js.run_gc();
                }
                engine.expect_garbage();
            }
            _ => {
                drop(own);
                self.runtime.discard();
            }
        }
        self.desk.open(None);
    }

    fn tidy(&mut self) -> bool {
        if self.own.is_some() {
            return true; // the realm is discarded anyway
        }
        self.in_realm(|realm, ctx| realm.close(ctx).map(|()| realm.tidy(ctx))).unwrap_or(false)
    }
}

impl Drop for Session<'_> {
    /// An unfinished call leaves callbacks behind, so the engine is discarded.
    fn drop(&mut self) {
        if self.phase == Phase::Running {
            self.own = None;
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

fn main<'js>(
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

fn deliver<'js>(ctx: &Ctx<'js>, realm: &Realm, answer: &OperationReply) -> rquickjs::Result<()> {
    let ticket = answer.ticket.0;
    match &answer.reply {
        OperationResult::Resource(text) => realm.deliver(ctx, (ticket, 0, "resource", text.as_str(), Undefined)),
        OperationResult::NotModified => realm.deliver(ctx, (ticket, 0, "notModified", "null", Undefined)),
        OperationResult::Deleted => realm.deliver(ctx, (ticket, 0, "deleted", "null", Undefined)),
        OperationResult::Feed { documents, continuation } => {
            realm.deliver(ctx, (ticket, 0, "feed", documents.as_str(), continuation.as_deref()))
        }
        OperationResult::Failed(error) => {
            realm.deliver(ctx, (ticket, number(error.kind), "failed", error.message.as_str(), Undefined))
        }
    }
}
