//! Evaluation context: clock and random numbers, memory budget, interrupt, user-defined functions.
//!
//! Invariant: the inputs of an evaluation are fixed for one run of a query, so that all rows are evaluated alike; only
//! `env` changes, for the functions that return the current time or a random number. The work for one item is bounded:
//! the bytes in memory at the same time, the number of rows, and through `Interrupt` the time.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use pleiad_model::env::Env;
use pleiad_model::policy::Geospatial;
use pleiad_model::{Error, Kind, Result, Value};

use super::Datum;

pub struct Context<'q> {
    pub env: &'q dyn Env,
    /// When the run began: what `GetCurrentDateTimeStatic()` returns for every row.
    pub started_ms: u64,
    /// Whether coordinates are on the globe or in a plane.
    pub geospatial: Geospatial,
    pub user_functions: Option<&'q dyn UserFunctions>,
    pub memory: MemoryBudget,
    /// Checked periodically; can end the run.
    pub interrupt: Option<&'q dyn Interrupt>,
}

/// User-defined functions of the container: `udf.name(…)`.
pub trait UserFunctions: Sync {
    /// `None` is undefined, as argument and as result.
    fn call(&self, name: &str, arguments: &[Datum<'_>]) -> Result<Option<Value>>;
}

/// Ends a run between two steps by returning an error: a deadline or a cancellation.
pub trait Interrupt: Sync {
    fn check(&self) -> Result<()>;
}

/// An interrupt after a fixed number of checks, independent of the clock: the same work always stops at the same step.
pub struct CheckLimit(AtomicU32);

impl CheckLimit {
    pub fn new(checks: u32) -> Self {
        CheckLimit(AtomicU32::new(checks))
    }
}

impl Interrupt for CheckLimit {
    fn check(&self) -> Result<()> {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(|_| ()).map_err(|_| Error::new(Kind::TimedOut, "The expression takes too long to work out."))
    }
}

impl Context<'_> {
    /// Counts steps of work, done or about to be done: bytes or elements to read, pairs to compare. Checks the
    /// interrupt when due.
    pub fn count_steps(&self, steps: usize) -> Result<()> {
        match self.interrupt {
            Some(interrupt) if self.memory.check_due(steps) => interrupt.check(),
            _ => Ok(()),
        }
    }

    /// Counts a row that JOINs produced from the current item, in the query or in a subquery, whether or not a filter
    /// keeps it.
    pub fn count_row(&self) -> Result<()> {
        self.memory.count_row()?;
        self.count_steps(ROW_STEPS)
    }

    /// Evaluates `make`, then releases its temporaries and charges only the result to the memory budget.
    pub fn charge_result<'a>(&self, make: impl FnOnce() -> Result<Datum<'a>>) -> Result<Datum<'a>> {
        let before = self.memory.mark();
        let result = make()?;
        self.memory.release_to(before);
        if let Some(Cow::Owned(value)) = &result {
            self.memory.reserve(memory_bytes(value))?;
        }
        Ok(result)
    }

    /// Like `charge_result`, but returns an owned value.
    pub fn charge_owned<'a>(&self, make: impl FnOnce() -> Result<Datum<'a>>) -> Result<Option<Value>> {
        self.charge_result(make)?.map(|value| self.own(value)).transpose()
    }

    /// The owned value; charges the copy of a borrowed one.
    pub fn own(&self, value: Cow<'_, Value>) -> Result<Value> {
        if let Cow::Borrowed(value) = value {
            self.memory.reserve(memory_bytes(value))?;
        }
        Ok(value.into_owned())
    }
}

/// The most rows that one item may produce: ten JOINs over long arrays could occupy a core for a year.
const ROWS_PER_ITEM_MAX: u64 = 50_000_000;

/// The steps that a row costs besides its filters and its projection.
const ROW_STEPS: usize = 64;
/// The number of steps between two interrupt checks: a few milliseconds.
const STEPS_BETWEEN_CHECKS: usize = 1 << 20;

/// The memory budget of the current item. A short query can need much memory: `[@p, @p, @p, …]`. Also counts the rows
/// of the item, and the steps until the next interrupt check.
#[derive(Debug)]
pub struct MemoryBudget {
    bytes: usize,
    bytes_left: Cell<usize>,
    rows: Cell<u64>,
    /// Steps since the last interrupt check.
    steps: Cell<usize>,
}

impl MemoryBudget {
    pub fn new(bytes: usize) -> Self {
        MemoryBudget { bytes, bytes_left: Cell::new(bytes), rows: Cell::new(0), steps: Cell::new(0) }
    }

    fn check_due(&self, steps: usize) -> bool {
        let total = self.steps.get().saturating_add(steps);
        let due = total >= STEPS_BETWEEN_CHECKS;
        self.steps.set(if due { 0 } else { total });
        due
    }

    /// The current position, for releasing everything that is reserved from now on.
    pub fn mark(&self) -> usize {
        self.bytes_left.get()
    }

    pub fn release_to(&self, mark: usize) {
        self.bytes_left.set(mark);
    }

    pub fn reserve(&self, bytes: usize) -> Result<()> {
        match self.bytes_left.get().checked_sub(bytes) {
            Some(left) => {
                self.bytes_left.set(left);
                Ok(())
            }
            None => {
                Err(Error::new(Kind::TooLarge, "The query's result is too large. Select fewer or smaller properties."))
            }
        }
    }

    fn count_row(&self) -> Result<()> {
        self.rows.set(self.rows.get() + 1);
        if self.rows.get() <= ROWS_PER_ITEM_MAX {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "JOINs and subqueries multiply one item to more than {ROWS_PER_ITEM_MAX} rows. Filter the arrays in subqueries before joining them."
        )))
    }

    /// Restores the full budget for the next item: the memory of the last one is free again.
    pub fn reset(&self) {
        self.bytes_left.set(self.bytes);
        self.rows.set(0);
    }
}

/// The approximate memory of a copy of the value.
pub fn memory_bytes(value: &Value) -> usize {
    let content = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(memory_bytes).sum(),
        Value::Object(object) => {
            object.iter().map(|(name, value)| size_of::<String>() + name.len() + memory_bytes(value)).sum()
        }
    };
    size_of::<Value>() + content
}
