//! script: server-side JavaScript, boxed and stepwise.
//!
//! Promise: a script costs its caller one answer and nothing else, whatever it does. It gets time, memory, stack and
//! output up to its [`Limits`]; it sees no store and no other call; it never waits. When it wants something from its
//! collection it stops and says so:
//!
//! ```text
//! Program::new(name, source)
//! Runtime::start(program, call) ─▶ Session      step(answers) ─▶ Step::Ask(operations) │ Step::Done(outcome)
//! Pool::run(program, call, host)                the same on a thread that can be given up
//! Functions::declare(program) ─▶ Udf            call(arguments) ─▶ value, undefined or error, on the caller's thread
//! ```
//!
//! Carrying operations out, transactions, prices and status codes are the caller's. Read in this order.

mod limits; // how much of everything
mod program; // a script's text, and which kind of realm it needs
mod call; // what a script is called with
mod operation; // what it may ask for, and what comes back
mod outcome; // what it leaves
mod numbers; // `err.number`
mod host_state; // one call's paperwork, shared with the functions that scripts call
mod decode; // what a script hands over becomes an operation
mod realm; // a global scope with the API in it
mod convert; // values in and out, without text
mod exception; // what was thrown becomes an error
mod js_to_sql; // predicates become SQL
mod runtime; // realms and compiled programs of one thread
mod session; // one call, step by step
mod udf; // user-defined functions
mod pool; // threads for scripts

pub use call::{Collection, EntryPoint, OperationType, ScriptCall};
pub use limits::ScriptLimits;
pub use operation::{
    Action, DocumentLink, IndexingDirective, OperationId, OperationReply, OperationResult, PageOptions,
    ScriptOperation, ScriptQuery,
};
pub use outcome::{Cause, ScriptError, ScriptOutcome, ScriptStep, ScriptUsage};
pub use pool::{PooledCall, ScriptPool};
pub use program::Program;
pub use runtime::ScriptRuntime;
pub use session::Session;
pub use udf::{Functions, Udf};

#[cfg(test)]
mod testing; // a tiny collection for scripts under test
