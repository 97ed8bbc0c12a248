//! User-defined functions of a page: `udf.name(…)`.
//!
//! Guarantees: a text that is not a function is reported before the first row, an unknown name by the first row that
//! calls it: over no rows it is no error. The functions are those that the container had when the page began, even if
//! they are replaced meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pleiad_model::resource_id::ScriptKind;
use pleiad_model::{Error, Result, Value};
use pleiad_script::Udf;
use pleiad_sql::expr::{Datum, UserFunctions};
use pleiad_sql::parse::{Diagnostic, Span};

use super::page::{PageDeadline, PageTask};
use crate::script_runtime::script_error;

pub struct UserDefinedFunctions {
    /// At most ten: a linear search is fast enough.
    functions: Vec<(String, Callee)>,
    calls: AtomicU64,
    /// Time spent in calls, if timings were requested.
    elapsed_ns: Option<AtomicU64>,
    /// The deadline of the page: slow functions use up its time.
    deadline: PageDeadline,
}

/// What a name in the query refers to.
enum Callee {
    Function(Udf),
    /// The container has no such function: the message for a row that calls it.
    Unknown(String),
}

impl UserDefinedFunctions {
    pub fn find(named: &[(&str, Span)], task: &PageTask) -> Result<Self> {
        let mut found = Vec::with_capacity(named.len());
        for (name, span) in named {
            let script = task.at.container().scripts.named(ScriptKind::UserDefinedFunction, name);
            let callee = match script {
                Some(script) => {
                    let declared = task.scripts.functions.declare(&script.program);
                    Callee::Function(declared.map_err(|error| script_error(&error))?)
                }
                None => Callee::Unknown(unknown_function(name, *span).message_for(&task.query.text)),
            };
            found.push(((*name).to_owned(), callee));
        }
        let took_ns = task.query.report.times.then(AtomicU64::default);
        Ok(UserDefinedFunctions {
            functions: found,
            calls: AtomicU64::new(0),
            elapsed_ns: took_ns,
            deadline: task.deadline.clone(),
        })
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub fn elapsed(&self) -> Duration {
        self.elapsed_ns.as_ref().map_or(Duration::ZERO, |took| Duration::from_nanos(took.load(Ordering::Relaxed)))
    }
}

impl UserFunctions for UserDefinedFunctions {
    fn call(&self, name: &str, arguments: &[Datum<'_>]) -> Result<Option<Value>> {
        let found = self.functions.iter().find(|(known, _)| known == name);
        let function = match found {
            Some((_, Callee::Function(function))) => function,
            Some((_, Callee::Unknown(message))) => return Err(Error::invalid(message.as_str())),
            None => return Err(Error::internal("a query calls a function that was not looked up")),
        };
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.deadline.check()?;
        // No argument is undefined: the function would not be called then.
        let arguments = arguments.iter().map(|argument| argument.as_deref().unwrap_or(&Value::Null));
        let began = self.elapsed_ns.as_ref().map(|took| (took, Instant::now()));
        let answer = function.call(arguments).map_err(|error| script_error(&error));
        if let Some((took, began)) = began {
            took.fetch_add(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        answer
    }
}

fn unknown_function(name: &str, span: Span) -> Diagnostic {
    let message = format!("User-defined function '{name}' could not be resolved.");
    Diagnostic::plain(span, message).with_hint("Create it in this container first; names are case-sensitive.")
}
