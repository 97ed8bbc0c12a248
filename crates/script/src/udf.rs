//! User-defined functions: JavaScript functions that queries call.
//!
//! Guarantees: each call uses a fresh or stateless function and leaves no state behind, so the result depends only on
//! the arguments (and on time and randomness, if the function uses them). It runs on the caller's thread, in a runtime
//! that the thread caches, because a query calls it once per row. There is no context: `getContext` is undefined.
//!
//! Time is bounded wherever QuickJS checks its clock. `builtins.js` keeps native loops without such checks short; one
//! that it misses would be abandoned on a pool thread, but here it blocks the query's thread.
//!
//! The query executor decides which functions a query may call and passes no undefined arguments.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pleiad_model::Value;
use pleiad_model::env::Env;
use rquickjs::function::Args;
use rquickjs::{Ctx, Function};

use crate::convert::{from_js, to_js};
use crate::exception;
use crate::host_state::HostState;
use crate::limits::ScriptLimits;
use crate::outcome::ScriptError;
use crate::program::Program;
use crate::realm::Realm;
use crate::runtime::{JsEngine, ScriptRuntime, compile_program};

#[cfg(test)]
mod tests;

/// Declares functions: one per server.
#[derive(Clone)]
pub struct Functions {
    inner: Arc<FunctionsShared>,
}

struct FunctionsShared {
    number: u64,
    limits: ScriptLimits,
    env: Arc<dyn Env>,
}

/// One function, callable from any thread.
#[derive(Clone)]
pub struct Udf {
    functions: Functions,
    program: Program,
}

thread_local! {
    /// This thread's runtime, with the number of the `Functions` whose limits it has.
    static THREAD_RUNTIME: RefCell<Option<(u64, ScriptRuntime)>> = const { RefCell::new(None) };
}

impl Functions {
    pub fn new(limits: ScriptLimits, env: Arc<dyn Env>) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Functions { inner: Arc::new(FunctionsShared { number, limits, env }) }
    }

    /// Compiles the text, so that a syntax error is reported before the first row.
    pub fn declare(&self, program: &Program) -> Result<Udf, ScriptError> {
        self.with_thread_runtime(|runtime| runtime.compile(program))?;
        Ok(Udf { functions: self.clone(), program: program.clone() })
    }

    fn with_thread_runtime<T>(&self, work: impl FnOnce(&mut ScriptRuntime) -> T) -> T {
        THREAD_RUNTIME.with_borrow_mut(|slot| {
            let existing = slot.take().filter(|(number, _)| *number == self.inner.number);
            let new =
                || (self.inner.number, ScriptRuntime::new(self.inner.limits.clone(), Arc::clone(&self.inner.env)));
            work(&mut slot.insert(existing.unwrap_or_else(new)).1)
        })
    }
}

impl Udf {
    /// None is undefined.
    pub fn call<'v>(&self, arguments: impl ExactSizeIterator<Item = &'v Value>) -> Result<Option<Value>, ScriptError> {
        self.functions.with_thread_runtime(|runtime| {
            let result = self.call_on(runtime, arguments);
            // Timeout, exhausted memory, pending promises: rare enough to start with a new engine, which is clean.
            let is_reusable =
                !runtime.host_state().was_interrupted() && result.as_ref().is_ok_and(|(_, is_clean)| *is_clean);
            if !is_reusable {
                runtime.discard();
            }
            result.map(|(value, _)| value)
        })
    }

    fn call_on<'v>(
        &self,
        runtime: &mut ScriptRuntime,
        arguments: impl ExactSizeIterator<Item = &'v Value>,
    ) -> Result<(Option<Value>, bool), ScriptError> {
        let host_state = Rc::clone(runtime.host_state());
        host_state.begin(None);
        let engine = runtime.engine()?;
        let called = if self.program.has_own_realm() {
            self.call_in_own_realm(engine, &host_state, arguments).map(|value| (value, true))
        } else {
            self.call_in_shared_realm(engine, &host_state, arguments)
        };
        called.map(|(value, is_clean)| (value, is_clean && !engine.js.is_job_pending()))
    }

    fn call_in_shared_realm<'v>(
        &self,
        engine: &mut JsEngine,
        host_state: &HostState,
        arguments: impl ExactSizeIterator<Item = &'v Value>,
    ) -> Result<(Option<Value>, bool), ScriptError> {
        let context = engine.shared().context.clone();
        context.with(|ctx| {
            let function = engine.function(&ctx, host_state, &self.program)?;
            let value = apply(&ctx, &function, arguments);
            let value = value.map_err(|error| exception::script_error(&ctx, host_state, &self.program, &error))?;
            Ok((value, self.program.leaves_globals_unchanged() || engine.shared().reset(&ctx)))
        })
    }

    fn call_in_own_realm<'v>(
        &self,
        engine: &JsEngine,
        host_state: &Rc<HostState>,
        arguments: impl ExactSizeIterator<Item = &'v Value>,
    ) -> Result<Option<Value>, ScriptError> {
        let realm = Realm::own(&engine.js, host_state);
        let realm = realm.map_err(|_| ScriptError::out_of_memory(host_state.limits.memory_bytes_max))?;
        let value = realm.context.with(|ctx| {
            let to_script_error = |error| exception::script_error(&ctx, host_state, &self.program, &error);
            let factory =
                compile_program(&ctx, host_state, &realm, &self.program)?.restore(&ctx).map_err(to_script_error)?;
            let function: Function<'_> = factory.call(()).map_err(to_script_error)?;
            apply(&ctx, &function, arguments).map_err(to_script_error)
        });
        drop(realm);
        engine.js.run_gc();
        value
    }
}

fn apply<'js, 'v>(
    ctx: &Ctx<'js>,
    function: &Function<'js>,
    arguments: impl ExactSizeIterator<Item = &'v Value>,
) -> rquickjs::Result<Option<Value>> {
    let mut args = Args::new(ctx.clone(), arguments.len());
    for argument in arguments {
        args.push_arg(to_js(ctx, argument)?)?;
    }
    from_js(ctx, args.apply(function)?)
}
