//! script: sandboxed, stepwise execution of server-side JavaScript.
//!
//! Guarantees: whatever a script does, its caller gets one outcome and no other effect. A script has time, memory,
//! stack and output up to its [`ScriptLimits`]; it has no access to the store or to other calls; it never blocks. When
//! it needs its collection it suspends and returns the operations:
//!
//! ```text
//! Program::new(name, source)
//! ScriptRuntime::start(program, call) ─▶ Session   step(replies) ─▶ ScriptStep::Execute(operations)
//!                                                                │ ScriptStep::Done(outcome)
//! ScriptPool::run(program, call, host)             the same on a thread that can be abandoned
//! Functions::declare(program) ─▶ Udf   call(arguments) ─▶ value, undefined or error, on the caller's thread
//! ```
//!
//! The caller executes the operations and handles transactions, charges and status codes. Read in this order.

mod limits; // limits of time, memory, output and queues
mod program; // a script's text, and the kind of realm it needs
mod call; // the input of a call
mod operation; // operations that a script requests, and their results
mod outcome; // the result of a call
mod numbers; // `err.number`
mod convert; // values into and out of a realm
mod host_state; // deadline, operation queue and log of a call, shared with the native functions
mod decode; // decodes a script's request into an operation
mod js_to_sql; // compiles JavaScript predicates to SQL
mod realm; // a global scope with the server-side API
mod exception; // JavaScript exceptions to script errors
mod runtime; // realms and compiled programs of one thread
mod session; // one call, step by step
mod udf; // user-defined functions
mod pool; // threads for scripts

pub use call::{Collection, EntryPoint, OperationType, ScriptCall};
pub use limits::ScriptLimits;
pub use operation::{
    DocumentAction, DocumentLink, IndexingDirective, OperationId, OperationReply, OperationResult, PageOptions,
    ScriptOperation, ScriptQuery,
};
pub use outcome::{Cause, ScriptError, ScriptOutcome, ScriptStep, ScriptUsage};
pub use pool::{PooledCall, ScriptPool};
pub use program::Program;
pub use runtime::ScriptRuntime;
pub use session::Session;
pub use udf::{Functions, Udf};

#[cfg(test)]
mod testing; // an in-memory collection for scripts under test
