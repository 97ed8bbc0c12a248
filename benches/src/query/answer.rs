//! An answer, reduced to what can be compared between systems that format it differently.
//!
//! Guarantees: two answers are alike if they have the same number of rows and their numbers have the same sum. Names
//! and order of columns, white space and the last digit of a floating-point sum do not matter.

use serde_json::Value;

#[derive(Clone, Copy, Debug, Default)]
pub struct QueryAnswer {
    pub rows: usize,
    pub sum: f64,
}

/// The time and answer of one run of a query.
#[derive(Clone, Copy, Debug)]
pub struct TimedAnswer {
    pub ms: f64,
    pub answer: QueryAnswer,
}

impl QueryAnswer {
    /// From rows of JSON.
    pub fn of_json<'a>(rows: impl IntoIterator<Item = &'a Value>) -> QueryAnswer {
        let mut answer = QueryAnswer::default();
        for row in rows {
            answer.rows += 1;
            answer.sum += numbers(row);
        }
        answer
    }

    /// From lines with tabs between the fields.
    pub fn of_lines<'a>(rows: impl IntoIterator<Item = &'a str>) -> QueryAnswer {
        let mut answer = QueryAnswer::default();
        for row in rows {
            answer.rows += 1;
            answer.sum += row.split('\t').filter_map(|field| field.parse::<f64>().ok()).sum::<f64>();
        }
        answer
    }

    pub fn is_like(&self, other: &QueryAnswer) -> bool {
        self.rows == other.rows && (self.sum - other.sum).abs() <= 1e-6 * self.sum.abs().max(1.0)
    }
}

fn numbers(value: &Value) -> f64 {
    match value {
        Value::Number(number) => number.as_f64().unwrap_or_default(),
        Value::Array(values) => values.iter().map(numbers).sum(),
        Value::Object(members) => members.values().map(numbers).sum(),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_rows_are_alike_in_every_notation() {
        let answer = QueryAnswer::of_json(&[json!({"id": "a", "n": 0.1, "m": 2}), json!([0.2])]);
        assert!(answer.is_like(&QueryAnswer::of_lines(["a\t2\t0.1", "0.20000000001"])));
        assert!(!answer.is_like(&QueryAnswer::of_lines(["2.3"])), "one row is missing");
        assert!(!answer.is_like(&QueryAnswer::of_lines(["2.1", "0.3"])));
    }
}
