//! Script outcome: the result of a call, with bodies, log, error and usage.

use std::fmt;

use crate::operation::ScriptOperation;

/// The result of one step of a session.
#[derive(Debug)]
pub enum ScriptStep {
    /// Execute these and step again with the replies. Empty while replies to earlier operations are missing.
    Execute(Vec<ScriptOperation>),
    Done(ScriptOutcome),
}

#[derive(Debug)]
pub struct ScriptOutcome {
    /// The argument of `response.setBody`, as JSON text.
    pub response_body: Option<String>,
    /// The argument of a pre-trigger's `request.setBody`.
    pub request_body: Option<String>,
    /// The output of `console.log`; also returned if the script fails.
    pub log: String,
    pub error: Option<ScriptError>,
    pub usage: ScriptUsage,
}

/// The basis of the request charge.
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
    /// `number` of the thrown error, if it has one.
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
    /// The script was still running at its deadline.
    TimedOut,
    /// The script exceeded its memory limit.
    OutOfMemory,
    /// The script's response is larger than the limit.
    TooLarge,
    /// No thread was available.
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

/// The message that clients of the service expect.
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
