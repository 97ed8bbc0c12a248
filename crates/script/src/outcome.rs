//! What a call leaves: a value, a log, or an error, and how much work it was.

use std::fmt;

use crate::operation::ScriptOperation;

/// What a session says after each step.
#[derive(Debug)]
pub enum ScriptStep {
    /// Carry these out and step again with the answers. Empty while answers to earlier ones are missing.
    Ask(Vec<ScriptOperation>),
    Done(ScriptOutcome),
}

#[derive(Debug)]
pub struct ScriptOutcome {
    /// What the script gave to `response.setBody`, as JSON text.
    pub response_body: Option<String>,
    /// What a pre-trigger gave to `request.setBody`.
    pub request_body: Option<String>,
    /// Everything it said with `console.log`; kept when it fails, too.
    pub log: String,
    pub error: Option<ScriptError>,
    pub work: ScriptUsage,
}

/// For the one who sets the price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptUsage {
    pub steps: u32,
    pub operations: u32,
    pub elapsed_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    pub cause: Cause,
    /// The exception as text: `Error: out of stock`.
    pub message: String,
    /// `number` of the thrown error, when it has one.
    pub number: Option<u16>,
    pub line: Option<u32>,
    pub column: Option<u32>,
    pub stack: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The text is not a function.
    Syntax,
    /// The script threw, or called `abort`.
    Thrown,
    /// It was still running when its time was over.
    TimedOut,
    /// It wanted more memory than it may have.
    OutOfMemory,
    /// What it answers with is larger than the limit.
    TooLarge,
    /// No thread was free for it.
    Busy,
}

impl ScriptError {
    pub(crate) fn new(cause: Cause, message: impl Into<String>) -> Self {
        ScriptError { cause, message: message.into(), number: None, line: None, column: None, stack: String::new() }
    }

    pub(crate) fn timed_out(hard_ms: u64) -> Self {
        ScriptError::new(Cause::TimedOut, format!("The script did not return within {hard_ms} ms and was stopped."))
    }

    pub(crate) fn out_of_memory(bytes: usize) -> Self {
        ScriptError::new(
            Cause::OutOfMemory,
            format!("The script needs more than its {bytes} bytes of memory, or threw null."),
        )
    }
}

/// The sentence that clients of the service know.
impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            Cause::Syntax => {
                write!(f, "Encountered exception while compiling Javascript. Exception = {}", self.message)?
            }
            Cause::Thrown => write!(f, "Encountered exception while executing function. Exception = {}", self.message)?,
            Cause::TimedOut | Cause::OutOfMemory | Cause::TooLarge | Cause::Busy => f.write_str(&self.message)?,
        }
        if self.stack.is_empty() { Ok(()) } else { write!(f, "\r\nStack trace: {}\n{}", self.message, self.stack) }
    }
}

impl std::error::Error for ScriptError {}
