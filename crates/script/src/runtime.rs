//! Script runtime: the realms and compiled programs of one thread.
//!
//! Invariant: after every call the engine is either as clean as a new one or discarded; the next call then creates
//! another. A runtime stays on its thread. It is fast because it caches a frozen realm and each program's compiled
//! function.

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

/// Fields are dropped in this order: values of the engine before the engine itself.
pub(crate) struct JsEngine {
    programs: HashMap<u64, PersistentFn<Function<'static>>>,
    /// Functions of stateless programs, reused by every call.
    instances: HashMap<u64, PersistentFn<Function<'static>>>,
    shared: Realm,
    pub js: rquickjs::Runtime,
    garbage_bytes_max: usize,
}

impl ScriptRuntime {
    pub fn new(limits: ScriptLimits, env: Arc<dyn Env>) -> Self {
        ScriptRuntime { desk: HostState::new(limits, env), engine: None }
    }

    /// Checks that the text is a function, unless it is compiled already. Running it will not compile it again.
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

    /// Starts a call. Nothing runs before the first step.
    pub fn start(&mut self, program: &Program, call: ScriptCall) -> Session<'_> {
        Session::new(self, program.clone(), call)
    }

    pub(crate) fn desk(&self) -> &Rc<HostState> {
        &self.desk
    }

    /// The engine; a new one if the last call discarded it.
    pub(crate) fn engine(&mut self) -> Result<&mut JsEngine, ScriptError> {
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => {
                JsEngine::new(&self.desk).map_err(|_| ScriptError::out_of_memory(self.desk.limits.memory_bytes_max))?
            }
        };
        Ok(self.engine.insert(engine))
    }

    /// Drops everything: realms, programs, and all state that a script left in them.
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

    /// QuickJS collects garbage when the heap has grown by half. Without a reset that threshold could exceed the memory
    /// limit of a script, and this call's garbage would count against the next call.
    pub fn expect_garbage(&self) {
        self.js.set_gc_threshold(self.garbage_bytes_max);
    }

    pub fn shared(&self) -> &Realm {
        &self.shared
    }

    /// The program compiled in the shared realm; compiled now if it is not cached.
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

    /// The script's function: a fresh one, unless the program is stateless.
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

/// Compiles the program in this realm: as an expression, or else as declarations.
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
