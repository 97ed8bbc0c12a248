//! What evaluation may use besides the row: time and chance, room to build in, functions that users wrote.
//!
//! Promise: everything here is fixed for one run of a query, so that two rows see the same world; only
//! `env` moves, for the functions whose name says so.

use std::borrow::Cow;
use std::cell::Cell;

use pleiad_model::env::Env;
use pleiad_model::policy::Geospatial;
use pleiad_model::{Error, Kind, Result, Value};

use super::Term;

pub struct Context<'q> {
    pub env: &'q dyn Env,
    /// When the run began: what `GetCurrentDateTimeStatic()` answers for every row.
    pub started_ms: u64,
    /// Whether coordinates lie on the globe or in a plane.
    pub geospatial: Geospatial,
    pub user_functions: Option<&'q dyn UserFunctions>,
    pub room: Room,
}

/// Functions that clients stored in the container: `udf.name(…)`.
pub trait UserFunctions: Sync {
    /// `None` is undefined, as argument and as result.
    fn call(&self, name: &str, arguments: &[Term<'_>]) -> Result<Option<Value>>;
}

impl Context<'_> {
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

/// How many bytes may still be built for the row at hand. A short text can ask for a lot: `[@p, @p, @p, …]`.
#[derive(Debug)]
pub struct Room {
    bytes: usize,
    bytes_left: Cell<usize>,
    rows: Cell<u64>,
}

impl Room {
    pub fn new(bytes: usize) -> Self {
        Room { bytes, bytes_left: Cell::new(bytes), rows: Cell::new(0) }
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

    /// One more row that an item was multiplied to, in the query or in one of its subqueries.
    pub fn row(&self) -> Result<()> {
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
