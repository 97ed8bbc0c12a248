//! What evaluation may use besides the row: time and chance, room to build in, functions that users wrote.
//!
//! Promise: everything here is fixed for one run of a query, so that two rows see the same world; only
//! `env` moves, for the functions whose name says so. What one item makes us do is bounded: in bytes that are held at the same
//! time, in rows, and by whoever watches in time.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use pleiad_model::env::Env;
use pleiad_model::policy::Geospatial;
use pleiad_model::{Error, Kind, Result, Value};

use super::Datum;

pub struct Context<'q> {
    pub env: &'q dyn Env,
    /// When the run began: what `GetCurrentDateTimeStatic()` answers for every row.
    pub started_ms: u64,
    /// Whether coordinates lie on the globe or in a plane.
    pub geospatial: Geospatial,
    pub user_functions: Option<&'q dyn UserFunctions>,
    pub room: MemoryBudget,
    /// Asked now and then whether to go on.
    pub watch: Option<&'q dyn Interrupt>,
}

/// Functions that clients stored in the container: `udf.name(…)`.
pub trait UserFunctions: Sync {
    /// `None` is undefined, as argument and as result.
    fn call(&self, name: &str, arguments: &[Datum<'_>]) -> Result<Option<Value>>;
}

/// Whoever can end a run between two steps.
pub trait Interrupt: Sync {
    fn check(&self) -> Result<()>;
}

/// Lets so many checks pass, whatever the time: the same work always ends at the same place.
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
    /// So many steps were made, or will be: bytes or elements to look at, pairs to compare.
    pub fn work(&self, steps: usize) -> Result<()> {
        match self.watch {
            Some(watch) if self.room.is_tired(steps) => watch.check(),
            _ => Ok(()),
        }
    }

    /// One more row that an item was multiplied to, in the query or in one of its subqueries, whether or not it stays.
    pub fn row(&self) -> Result<()> {
        self.room.row()?;
        self.work(ROW_STEPS)
    }

    /// What `make` gives: of all that it built only that stays, and is paid for.
    pub fn hold<'a>(&self, make: impl FnOnce() -> Result<Datum<'a>>) -> Result<Datum<'a>> {
        let before = self.room.mark();
        let made = make()?;
        self.room.back_to(before);
        if let Some(Cow::Owned(value)) = &made {
            self.room.take(bytes(value))?;
        }
        Ok(made)
    }

    /// The same as our own.
    pub fn keep<'a>(&self, make: impl FnOnce() -> Result<Datum<'a>>) -> Result<Option<Value>> {
        self.hold(make)?.map(|value| self.own(value)).transpose()
    }

    /// The value itself; pays for the copy when it is someone else's.
    pub fn own(&self, value: Cow<'_, Value>) -> Result<Value> {
        if let Cow::Borrowed(value) = value {
            self.room.take(bytes(value))?;
        }
        Ok(value.into_owned())
    }
}

/// The most rows that one item may be multiplied to: ten JOINs over long arrays could keep a core for a year.
const ROWS_PER_ITEM_MAX: u64 = 50_000_000;

/// What a row takes beside its filters and its projection.
const ROW_STEPS: usize = 64;
/// So many steps are made between two looks at the clock: a few milliseconds.
const STEPS_BETWEEN_CHECKS: usize = 1 << 20;

/// How many bytes may still be built for the row at hand. A short text can ask for a lot: `[@p, @p, @p, …]`.
#[derive(Debug)]
pub struct MemoryBudget {
    bytes: usize,
    bytes_left: Cell<usize>,
    rows: Cell<u64>,
    /// Since the last check.
    steps: Cell<usize>,
}

impl MemoryBudget {
    pub fn new(bytes: usize) -> Self {
        MemoryBudget { bytes, bytes_left: Cell::new(bytes), rows: Cell::new(0), steps: Cell::new(0) }
    }

    fn is_tired(&self, steps: usize) -> bool {
        let made = self.steps.get().saturating_add(steps);
        let is_tired = made >= STEPS_BETWEEN_CHECKS;
        self.steps.set(if is_tired { 0 } else { made });
        is_tired
    }

    /// Where to go back to when what is built from now on is gone.
    pub fn mark(&self) -> usize {
        self.bytes_left.get()
    }

    pub fn back_to(&self, mark: usize) {
        self.bytes_left.set(mark);
    }

    pub fn take(&self, bytes: usize) -> Result<()> {
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

    fn row(&self) -> Result<()> {
        self.rows.set(self.rows.get() + 1);
        if self.rows.get() <= ROWS_PER_ITEM_MAX {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "JOINs and subqueries multiply one item to more than {ROWS_PER_ITEM_MAX} rows. Filter the arrays in subqueries before joining them."
        )))
    }

    /// For the next row: what the last one built is gone.
    pub fn refill(&self) {
        self.bytes_left.set(self.bytes);
        self.rows.set(0);
    }
}

/// About what a copy of the value takes in memory.
pub fn bytes(value: &Value) -> usize {
    let content = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(object) => {
            object.iter().map(|(name, value)| size_of::<String>() + name.len() + bytes(value)).sum()
        }
    };
    size_of::<Value>() + content
}
