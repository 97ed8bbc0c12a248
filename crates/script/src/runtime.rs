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
    host_state: Rc<HostState>,
    engine: Option<JsEngine>,
}

/// Fields are dropped in this order: values of the engine before the engine itself.
pub(crate) struct JsEngine {
    programs: HashMap<u64, PersistentFn<Function<'static>>>,
    /// Functions of stateless programs, reused by every call.
    instances: HashMap<u64, PersistentFn<Function<'static>>>,
    shared: Realm,
    pub js: rquickjs::Runtime,
    gc_threshold_bytes: usize,
}

impl ScriptRuntime {
    pub fn new(limits: ScriptLimits, env: Arc<dyn Env>) -> Self {
        ScriptRuntime { host_state: HostState::new(limits, env), engine: None }
    }

    /// Checks that the text is a function, unless it is compiled already. Running it will not compile it again.
    pub fn compile(&mut self, program: &Program) -> Result<(), ScriptError> {
        self.host_state.begin(None);
        let host_state = Rc::clone(&self.host_state);
        let engine = self.engine()?;
        if engine.programs.contains_key(&program.number()) {
            return Ok(());
        }
        let realm = &engine.shared;
        let compiled = realm
            .context
            .with(|ctx| compile_program(&ctx, &host_state, realm, program).map(|factory| (factory, realm.reset(&ctx))));
        match compiled {
            Ok((factory, true)) if !program.has_own_realm() => {
                engine.cache_program(program, factory, host_state.limits.programs_max)
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

    pub(crate) fn host_state(&self) -> &Rc<HostState> {
        &self.host_state
    }

    /// The engine; a new one if the last call discarded it.
    pub(crate) fn engine(&mut self) -> Result<&mut JsEngine, ScriptError> {
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => JsEngine::new(&self.host_state)
                .map_err(|_| ScriptError::out_of_memory(self.host_state.limits.memory_bytes_max))?,
        };
        Ok(self.engine.insert(engine))
    }

    /// Drops everything: realms, programs, and all state that a script left in them.
    pub(crate) fn discard(&mut self) {
        self.engine = None;
    }
}

impl JsEngine {
    fn new(host_state: &Rc<HostState>) -> rquickjs::Result<JsEngine> {
        let js = rquickjs::Runtime::new()?;
        js.set_memory_limit(host_state.limits.memory_bytes_max);
        js.set_max_stack_size(host_state.limits.stack_bytes_max);
        let state = Rc::clone(host_state);
        js.set_interrupt_handler(Some(Box::new(move || state.is_deadline_reached())));
        let shared = Realm::shared(&js, host_state)?;
        let engine = JsEngine {
            programs: HashMap::new(),
            instances: HashMap::new(),
            shared,
            js,
            gc_threshold_bytes: host_state.limits.memory_bytes_max / 8,
        };
        engine.reset_gc_threshold();
        Ok(engine)
    }

    /// QuickJS collects garbage when the heap has grown by half. Without a reset that threshold could exceed the memory
    /// limit of a script, and this call's garbage would count against the next call.
    pub fn reset_gc_threshold(&self) {
        self.js.set_gc_threshold(self.gc_threshold_bytes);
    }

    pub fn shared(&self) -> &Realm {
        &self.shared
    }

    /// The program compiled in the shared realm; compiled now if it is not cached.
    pub fn factory<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        host_state: &HostState,
        program: &Program,
    ) -> Result<Function<'js>, ScriptError> {
        let cached = match self.programs.get(&program.number()) {
            Some(compiled) => compiled.clone(),
            None => {
                let compiled = compile_program(ctx, host_state, &self.shared, program)?;
                self.cache_program(program, compiled.clone(), host_state.limits.programs_max);
                compiled
            }
        };
        cached.restore(ctx).map_err(|error| exception::script_error(ctx, host_state, program, &error))
    }

    /// The script's function: a fresh one, unless the program is stateless.
    pub fn function<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        host_state: &HostState,
        program: &Program,
    ) -> Result<Function<'js>, ScriptError> {
        let caught = |error| exception::script_error(ctx, host_state, program, &error);
        if let Some(cached) = self.instances.get(&program.number()) {
            return cached.clone().restore(ctx).map_err(caught);
        }
        let instance: Function<'js> = self.factory(ctx, host_state, program)?.call(()).map_err(caught)?;
        if program.is_stateless() {
            self.instances.insert(program.number(), PersistentFn::save(ctx, instance.clone()));
        }
        Ok(instance)
    }

    fn cache_program(&mut self, program: &Program, factory: PersistentFn<Function<'static>>, programs_max: usize) {
        if self.programs.len() >= programs_max {
            self.programs.clear();
            self.instances.clear();
        }
        self.programs.insert(program.number(), factory);
    }
}

/// Compiles the program in this realm: as an expression, or else as declarations.
pub(crate) fn compile_program(
    ctx: &Ctx<'_>,
    host_state: &HostState,
    realm: &Realm,
    program: &Program,
) -> Result<PersistentFn<Function<'static>>, ScriptError> {
    let mut first = None;
    for text in program.factories() {
        match realm.compile(ctx, &text) {
            Ok(factory) => return Ok(factory),
            Err(error) => {
                let error = exception::script_error(ctx, host_state, program, &error);
                first.get_or_insert(error);
            }
        }
    }
    let error = first.unwrap_or_else(|| ScriptError::new(Cause::Syntax, "A script is one function."));
    let is_thrown = matches!(error.cause, Cause::Thrown);
    Err(if is_thrown { ScriptError { cause: Cause::Syntax, ..error } } else { error })
}
