//! Queries over metadata: the few resources of an account, already shaped by a protocol.

use pleiad_model::{Result, Value};

/// Filters and projects rows by a SQL text with parameters.
pub fn filter(text: &str, parameters: Option<&Value>, rows: &[Value]) -> Result<Vec<Value>> {
    let query = pleiad_query::parse(text)?;
    query.run_over(&pleiad_query::Parameters::from_value(parameters)?, rows.iter())
}
