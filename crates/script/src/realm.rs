//! Realm (ECMA-262): a global object with the built-ins and the server-side API.
//!
//! Invariant: a shared realm is frozen before its first call and reset after every call that may have changed its
//! global object; `reset` returns true if the realm is as clean as a new one. A program's own realm is neither frozen
//! nor reset: it belongs to one call. The API itself is JavaScript (`api.js`, `query.js`), on top of the few native
//! functions below.

use std::rc::Rc;

use pleiad_model::Error;
use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::function::{Args, IntoArgs};
use rquickjs::{Array, Context, Ctx, FromJs, Function, Object, Persistent, Result, Runtime, Value};

use crate::host_state::HostState;
use crate::{decode, js_to_sql};

#[cfg(test)]
mod tests;

const BUILTINS: &str = include_str!("realm/builtins.js");
const API: &str = include_str!("realm/api.js");
const QUERY: &str = include_str!("realm/query.js");
const FREEZE: &str = include_str!("realm/freeze.js");

/// Internal files, whose frames are removed from the stack traces that authors see.
pub const INTERNAL_FILES: [&str; 4] = ["builtins.js", "api.js", "query.js", "freeze.js"];

/// No performance clock, no module loader and no finalizers; `builtins.js` replaces the clock of `Date`.
type Intrinsics = (
    intrinsic::Eval,
    intrinsic::Date,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
);

pub type PersistentFn<T> = Persistent<T>;

/// Fields are dropped in this order: values of the context before the context itself.
pub struct Realm {
    open: PersistentFn<Function<'static>>,
    close: PersistentFn<Function<'static>>,
    compile: PersistentFn<Function<'static>>,
    run: PersistentFn<Function<'static>>,
    deliver: PersistentFn<Function<'static>>,
    bodies: PersistentFn<Function<'static>>,
    rethrow: PersistentFn<Function<'static>>,
    reset: Option<PersistentFn<Function<'static>>>,
    pub context: Context,
}

impl Realm {
    /// For all calls of a thread, one after another.
    pub fn shared(runtime: &Runtime, host_state: &Rc<HostState>) -> Result<Realm> {
        Realm::build(runtime, host_state, true)
    }

    /// For one call.
    pub fn own(runtime: &Runtime, host_state: &Rc<HostState>) -> Result<Realm> {
        Realm::build(runtime, host_state, false)
    }

    fn build(runtime: &Runtime, host_state: &Rc<HostState>, is_shared: bool) -> Result<Realm> {
        let context = Context::builder().with::<(Intrinsics, intrinsic::Promise)>().build(runtime)?;
        let realm_context = context.clone();
        context.with(|ctx| {
            let host = host_functions(&ctx, host_state)?;
            eval_file(&ctx, "builtins.js", BUILTINS)?.call::<_, ()>((host.clone(),))?;
            let api: Object<'_> = eval_file(&ctx, "api.js", API)?.call((host.clone(),))?;
            eval_file(&ctx, "query.js", QUERY)?.call::<_, ()>((host, api.clone()))?;
            let reset = is_shared.then(|| eval_file(&ctx, "freeze.js", FREEZE)?.call((api.clone(),))).transpose()?;
            Realm::from_api(&ctx, &api, reset, realm_context)
        })
    }

    fn from_api<'js>(
        ctx: &Ctx<'js>,
        api: &Object<'js>,
        reset: Option<Function<'js>>,
        context: Context,
    ) -> Result<Realm> {
        let entry = |name: &str| api.get(name).map(|entry: Function<'js>| PersistentFn::save(ctx, entry));
        Ok(Realm {
            open: entry("open")?,
            close: entry("close")?,
            compile: entry("compile")?,
            run: entry("run")?,
            deliver: entry("deliver")?,
            bodies: entry("bodies")?,
            rethrow: entry("rethrow")?,
            reset: reset.map(|reset| PersistentFn::save(ctx, reset)),
            context,
        })
    }

    pub fn open(&self, ctx: &Ctx<'_>, mode: &str) -> Result<()> {
        call(ctx, &self.open, (mode,))
    }

    pub fn close(&self, ctx: &Ctx<'_>) -> Result<()> {
        call(ctx, &self.close, ())
    }

    /// Compiles the factory: the function that returns the script's function.
    pub fn compile(&self, ctx: &Ctx<'_>, text: &str) -> Result<PersistentFn<Function<'static>>> {
        let factory: Function<'_> = call(ctx, &self.compile, (text,))?;
        Ok(PersistentFn::save(ctx, factory))
    }

    pub fn run<'js>(&self, ctx: &Ctx<'js>, factory: Function<'js>, arguments: Array<'js>) -> Result<()> {
        call::<Value<'js>, _>(ctx, &self.run, (factory, arguments)).map(drop)
    }

    pub fn deliver<'js>(&self, ctx: &Ctx<'js>, arguments: impl IntoArgs<'js>) -> Result<()> {
        call::<Value<'js>, _>(ctx, &self.deliver, arguments).map(drop)
    }

    /// The bodies that the script set: the request's and the response's.
    pub fn bodies<'js>(&self, ctx: &Ctx<'js>) -> Result<Array<'js>> {
        call(ctx, &self.bodies, ())
    }

    /// Rethrows the error that the script passed to `abort`.
    pub fn rethrow<'js>(&self, ctx: &Ctx<'js>) -> Result<()> {
        call::<Value<'js>, _>(ctx, &self.rethrow, ()).map(drop)
    }

    /// Removes what the call left. True if the next call may use this realm.
    pub fn reset(&self, ctx: &Ctx<'_>) -> bool {
        let Some(reset) = &self.reset else { return false };
        call(ctx, reset, ()).unwrap_or(false)
    }
}

fn call<'js, R: FromJs<'js>, A: IntoArgs<'js>>(
    ctx: &Ctx<'js>,
    function: &PersistentFn<Function<'static>>,
    arguments: A,
) -> Result<R> {
    let mut args = Args::new(ctx.clone(), arguments.num_args());
    arguments.into_args(&mut args)?;
    args.apply(&function.clone().restore(ctx)?)
}

fn eval_file<'js>(ctx: &Ctx<'js>, file: &str, text: &str) -> Result<Function<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some(file.to_owned());
    ctx.eval_with_options(text, options)
}

/// The native functions, held by the API and not reachable by scripts.
fn host_functions<'js>(ctx: &Ctx<'js>, host_state: &Rc<HostState>) -> Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    let function = HostBound { ctx, host_state };
    host.set(
        "ask",
        function.with_argument(|host_state, object: Object<'js>| decode::decode_and_enqueue(host_state, &object))?,
    )?;
    host.set("fact", function.with_argument(|host_state, name: String| Ok(call_property(host_state, &name)))?)?;
    host.set("log", function.with_argument(|host_state, text: String| Ok(host_state.log(&text)))?)?;
    host.set(
        "translate",
        function.with_argument(|_, stages: Vec<Vec<Option<String>>>| Ok(js_to_sql::translate_prefix(&stages)))?,
    )?;
    host.set("refused", function.with_argument(|_, name: String| Ok(Error::unsupported(name).to_string()))?)?;
    host.set("now", function.without_argument(|host_state| host_state.env.now_ms() as f64)?)?;
    host.set("random", function.without_argument(|host_state| fraction(host_state.env.random_u64()))?)?;
    host.set(
        "guid",
        function.without_argument(|host_state| guid(host_state.env.random_u64(), host_state.env.random_u64()))?,
    )?;
    host.set("abort", function.without_argument(HostState::abort)?)?;
    host.set("bodyMax", host_state.limits.body_bytes_max as f64)?;
    Ok(host)
}

/// Creates native functions that share the host state.
struct HostBound<'a, 'js> {
    ctx: &'a Ctx<'js>,
    host_state: &'a Rc<HostState>,
}

impl<'js> HostBound<'_, 'js> {
    fn with_argument<A, R>(&self, work: impl Fn(&HostState, A) -> Result<R> + 'js) -> Result<Function<'js>>
    where
        A: rquickjs::function::FromParam<'js> + 'js,
        R: rquickjs::IntoJs<'js> + 'js,
    {
        let host_state = Rc::clone(self.host_state);
        Function::new(self.ctx.clone(), move |argument: A| work(&host_state, argument))
    }

    fn without_argument<R: rquickjs::IntoJs<'js> + 'js>(
        &self,
        work: impl Fn(&HostState) -> R + 'js,
    ) -> Result<Function<'js>> {
        let host_state = Rc::clone(self.host_state);
        Function::new(self.ctx.clone(), move || work(&host_state))
    }
}

fn call_property(host_state: &HostState, name: &str) -> Option<String> {
    host_state.call()?.property(name).map(str::to_owned)
}

/// 53 random bits as a number below 1.
fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx
fn guid(high: u64, low: u64) -> String {
    let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0xfff);
    let (d, e) = (low >> 48 & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
    format!("{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
}
