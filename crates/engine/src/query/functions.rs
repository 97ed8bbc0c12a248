//! The user-defined functions of a page: `udf.name(…)`.
//!
//! Promise: a name that the container does not have, and a text that is no function, are told before the first row. The
//! functions are those of the container as the page found it, whatever is replaced meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

use pleiad_model::resource_id::ScriptKind;
use pleiad_model::{Error, Result, Value};
use pleiad_query::expr::{Term, UserFunctions};
use pleiad_query::language::{Fault, Span};
use pleiad_script::Udf;

use super::page::{Budget, Job};
use crate::script::failed;

pub struct UserDefined {
    /// At most ten.
    found: Vec<(String, Udf)>,
    calls: AtomicU64,
    /// Slow functions spend the page's time.
    budget: Budget,
}

impl UserDefined {
    pub fn find(named: &[(&str, Span)], job: &Job) -> Result<Self> {
        let mut found = Vec::with_capacity(named.len());
        for (name, span) in named {
            let script = job.at.container.scripts.named(ScriptKind::UserDefinedFunction, name);
            let script = script.ok_or_else(|| unknown(name, *span).into_error(&job.query.text))?;
            let function = job.scripts.functions.declare(&script.program).map_err(|error| failed(&error))?;
            found.push(((*name).to_owned(), function));
        }
        Ok(UserDefined { found, calls: AtomicU64::new(0), budget: job.budget.clone() })
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

impl UserFunctions for UserDefined {
    fn call(&self, name: &str, arguments: &[Term<'_>]) -> Result<Option<Value>> {
        let found = self.found.iter().find(|(known, _)| known == name);
        let (_, function) = found.ok_or_else(|| Error::internal("a query calls a function that was not looked up"))?;
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.budget.check()?;
        // None of them is undefined: then it would not be called.
        let arguments = arguments.iter().map(|argument| argument.as_deref().unwrap_or(&Value::Null));
        function.call(arguments).map_err(|error| failed(&error))
    }
}

fn unknown(name: &str, span: Span) -> Fault {
    let message = format!("User-defined function '{name}' could not be resolved.");
    Fault::plain(span, message).with_hint("Create it in this container first; names are case-sensitive.")
}
