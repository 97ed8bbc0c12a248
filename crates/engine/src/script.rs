//! Where scripts run, and how their failures are told.
//!
//! Promise: user-defined functions run on the query's own thread, everything else on threads that can be given up; none
//! of them on the threads that serve requests. A script that fails costs its request an error that has its message.

use std::sync::Arc;

use pleiad_model::env::Env;
use pleiad_model::{Error, Kind};
use pleiad_script::{Cause, Functions, Limits, ScriptError};

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Interpreters {
    pub functions: Functions,
}

impl Interpreters {
    pub fn new(env: Arc<dyn Env>) -> Self {
        Interpreters { functions: Functions::new(Limits::default(), env) }
    }
}

pub(crate) fn failed(error: &ScriptError) -> Error {
    let kind = match error.cause {
        Cause::Syntax | Cause::Thrown | Cause::OutOfMemory => Kind::Invalid,
        Cause::TimedOut => Kind::TimedOut,
        Cause::TooLarge => Kind::TooLarge,
        Cause::Busy => Kind::Unavailable,
    };
    Error::new(kind, error.to_string())
}
