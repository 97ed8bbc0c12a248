//! Metadata queries: over the few resources of an account, already encoded by a protocol.

use pleiad_model::{Result, Value};
use pleiad_sql::Parameters;
use pleiad_sql::run::RowSet;

use crate::Engine;

impl Engine {
    /// Filters and projects rows by a SQL text with parameters.
    pub fn filter(&self, text: &str, parameters: &Parameters, rows: &[Value]) -> Result<RowSet> {
        pleiad_sql::parse(text)?.run_over(parameters, self.env.as_ref(), rows.iter())
    }
}
