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
use crate::runtime::{JsEngine, ScriptRuntime, compiled};

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
    home: Functions,
    program: Program,
}

thread_local! {
    /// This thread's runtime, with the number of the `Functions` whose limits it has.
    static ENGINE: RefCell<Option<(u64, ScriptRuntime)>> = const { RefCell::new(None) };
}

impl Functions {
    pub fn new(limits: ScriptLimits, env: Arc<dyn Env>) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Functions { inner: Arc::new(FunctionsShared { number, limits, env }) }
    }

    /// Compiles the text, so that a syntax error is reported before the first row.
    pub fn declare(&self, program: &Program) -> Result<Udf, ScriptError> {
        self.on_this_thread(|runtime| runtime.compile(program))?;
        Ok(Udf { home: self.clone(), program: program.clone() })
    }

    fn on_this_thread<T>(&self, work: impl FnOnce(&mut ScriptRuntime) -> T) -> T {
        ENGINE.with_borrow_mut(|slot| {
            let ours = slot.take().filter(|(number, _)| *number == self.inner.number);
            let new =
                || (self.inner.number, ScriptRuntime::new(self.inner.limits.clone(), Arc::clone(&self.inner.env)));
            work(&mut slot.insert(ours.unwrap_or_else(new)).1)
        })
    }
}

impl Udf {
    /// None is undefined.
    pub fn call<'v>(&self, arguments: impl ExactSizeIterator<Item = &'v Value>) -> Result<Option<Value>, ScriptError> {
        self.home.on_this_thread(|runtime| {
            let result = self.call_on(runtime, arguments);
            // Timeout, exhausted memory, pending promises: rare enough to start with a new engine, which is clean.
            let is_sound = !runtime.desk().was_interrupted() && result.as_ref().is_ok_and(|(_, is_clean)| *is_clean);
            if !is_sound {
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
        let desk = Rc::clone(runtime.desk());
        desk.open(None);
        let engine = runtime.engine()?;
        let called = if self.program.has_own_realm() {
            self.call_alone(engine, &desk, arguments).map(|value| (value, true))
        } else {
            self.call_shared(engine, &desk, arguments)
        };
        called.map(|(value, is_clean)| (value, is_clean && !engine.js.is_job_pending()))
    }

    fn call_shared<'v>(
        &self,
        engine: &mut JsEngine,
        desk: &HostState,
        arguments: impl ExactSizeIterator<Item = &'v Value>,
    ) -> Result<(Option<Value>, bool), ScriptError> {
        let context = engine.shared().context.clone();
        context.with(|ctx| {
            let function = engine.function(&ctx, desk, &self.program)?;
            let value = applied(&ctx, &function, arguments);
            let value = value.map_err(|error| exception::caught(&ctx, desk, &self.program, &error))?;
            Ok((value, self.program.is_plain() || engine.shared().tidy(&ctx)))
        })
    }

    fn call_alone<'v>(
        &self,
        engine: &JsEngine,
        desk: &Rc<HostState>,
        arguments: impl ExactSizeIterator<Item = &'v Value>,
    ) -> Result<Option<Value>, ScriptError> {
        let realm = Realm::own(&engine.js, desk);
        let realm = realm.map_err(|_| ScriptError::out_of_memory(desk.limits.memory_bytes_max))?;
        let value = realm.context.with(|ctx| {
            let raised = |error| exception::caught(&ctx, desk, &self.program, &error);
            let factory = compiled(&ctx, desk, &realm, &self.program)?.restore(&ctx).map_err(raised)?;
            let function: Function<'_> = factory.call(()).map_err(raised)?;
            applied(&ctx, &function, arguments).map_err(raised)
        });
        drop(realm);
        engine.js.run_gc();
        value
    }
}

fn applied<'js, 'v>(
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
