//! The realms and compiled programs of one thread.
//!
//! Promise: after every call the engine is either as clean as a new one or gone; the next call makes another. A
//! runtime stays on its thread. It is fast because it keeps: a frozen realm, and each program's compiled function.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use pleiad_model::env::Env;
use rquickjs::{Ctx, Function};

use crate::call::ScriptCall;
use crate::exception;
use crate::host_state::HostState;
use crate::limits::ScriptLimits;
use crate::outcome::{Cause, ScriptError};
use crate::program::Program;
use crate::realm::{PersistentFn, Realm};
use crate::session::Session;

#[cfg(test)]
mod tests;

pub struct ScriptRuntime {
    desk: Rc<HostState>,
    engine: Option<JsEngine>,
}

/// Fields are dropped in this order: what lives in the engine before the engine.
pub(crate) struct JsEngine {
    programs: HashMap<u64, PersistentFn<Function<'static>>>,
    /// Functions that are as good as new after a call.
    instances: HashMap<u64, PersistentFn<Function<'static>>>,
    shared: Realm,
    pub js: rquickjs::Runtime,
    garbage_bytes_max: usize,
}

impl ScriptRuntime {
    pub fn new(limits: ScriptLimits, env: Arc<dyn Env>) -> Self {
        ScriptRuntime { desk: HostState::new(limits, env), engine: None }
    }

    /// Whether the text is a function, if that is not known yet. Running it will not compile it again.
    pub fn compile(&mut self, program: &Program) -> Result<(), ScriptError> {
        self.desk.open(None);
        let desk = Rc::clone(&self.desk);
        let engine = self.engine()?;
        if engine.programs.contains_key(&program.number()) {
            return Ok(());
        }
        let realm = &engine.shared;
        let made =
            realm.context.with(|ctx| compiled(&ctx, &desk, realm, program).map(|factory| (factory, realm.tidy(&ctx))));
        match made {
            Ok((factory, true)) if !program.has_own_realm() => {
                engine.remember(program, factory, desk.limits.programs_max)
            }
            Ok((_, true)) => {}
            Ok((_, false)) => self.discard(),
            Err(error) => {
                self.discard();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Begins a call. Nothing runs before the first step.
    pub fn start(&mut self, program: &Program, call: ScriptCall) -> Session<'_> {
        Session::new(self, program.clone(), call)
    }

    pub(crate) fn desk(&self) -> &Rc<HostState> {
        &self.desk
    }

    /// The engine, and a new one where the last call left none.
    pub(crate) fn engine(&mut self) -> Result<&mut JsEngine, ScriptError> {
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => {
                JsEngine::new(&self.desk).map_err(|_| ScriptError::out_of_memory(self.desk.limits.memory_bytes_max))?
            }
        };
        Ok(self.engine.insert(engine))
    }

    /// Forgets everything: realms, programs, and whatever a script left in them.
    pub(crate) fn discard(&mut self) {
        self.engine = None;
    }
}

impl JsEngine {
    fn new(desk: &Rc<HostState>) -> rquickjs::Result<JsEngine> {
        let js = rquickjs::Runtime::new()?;
        js.set_memory_limit(desk.limits.memory_bytes_max);
        js.set_max_stack_size(desk.limits.stack_bytes_max);
        let clock = Rc::clone(desk);
        js.set_interrupt_handler(Some(Box::new(move || clock.is_time_over())));
        let shared = Realm::shared(&js, desk)?;
        let engine = JsEngine {
            programs: HashMap::new(),
            instances: HashMap::new(),
            shared,
            js,
            garbage_bytes_max: desk.limits.memory_bytes_max / 8,
        };
        engine.expect_garbage();
        Ok(engine)
    }

    /// QuickJS collects when the heap has grown by half. Left alone, that point could lie beyond the memory that a
    /// script may have, and the next one would pay for this one's garbage.
    pub fn expect_garbage(&self) {
        self.js.set_gc_threshold(self.garbage_bytes_max);
    }

    pub fn shared(&self) -> &Realm {
        &self.shared
    }

    /// The compiled program of the shared realm; compiled now if it is new here.
    pub fn factory<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        desk: &HostState,
        program: &Program,
    ) -> Result<Function<'js>, ScriptError> {
        let kept = match self.programs.get(&program.number()) {
            Some(kept) => kept.clone(),
            None => {
                let made = compiled(ctx, desk, &self.shared, program)?;
                self.remember(program, made.clone(), desk.limits.programs_max);
                made
            }
        };
        kept.restore(ctx).map_err(|error| exception::caught(ctx, desk, program, &error))
    }

    /// The script's function: a fresh one, unless it cannot tell the difference.
    pub fn function<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        desk: &HostState,
        program: &Program,
    ) -> Result<Function<'js>, ScriptError> {
        let caught = |error| exception::caught(ctx, desk, program, &error);
        if let Some(kept) = self.instances.get(&program.number()) {
            return kept.clone().restore(ctx).map_err(caught);
        }
        let made: Function<'js> = self.factory(ctx, desk, program)?.call(()).map_err(caught)?;
        if program.is_stateless() {
            self.instances.insert(program.number(), PersistentFn::save(ctx, made.clone()));
        }
        Ok(made)
    }

    fn remember(&mut self, program: &Program, factory: PersistentFn<Function<'static>>, programs_max: usize) {
        if self.programs.len() >= programs_max {
            self.programs.clear();
            self.instances.clear();
        }
        self.programs.insert(program.number(), factory);
    }
}

/// The program in this realm: as an expression, else as declarations.
pub(crate) fn compiled(
    ctx: &Ctx<'_>,
    desk: &HostState,
    realm: &Realm,
    program: &Program,
) -> Result<PersistentFn<Function<'static>>, ScriptError> {
    let mut first = None;
    for text in program.factories() {
        match realm.compile(ctx, &text) {
            Ok(factory) => return Ok(factory),
            Err(error) => {
                let error = exception::caught(ctx, desk, program, &error);
                first.get_or_insert(error);
            }
        }
    }
    let error = first.unwrap_or_else(|| ScriptError::new(Cause::Syntax, "A script is one function."));
    let is_ours = matches!(error.cause, Cause::Thrown);
    Err(if is_ours { ScriptError { cause: Cause::Syntax, ..error } } else { error })
}
