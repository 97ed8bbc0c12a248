//! The results of the query benchmark as a table, goals and JSON.
//!
//! Guarantees: a figure is the best of its rounds, with the median in parentheses. Goals are judged on one core; a goal
//! that could not be measured is missed, and the reason is shown.

use std::fmt::Write;

use serde_json::{Value, json};

use super::answer::{QueryAnswer, TimedAnswer};
use super::questions::{BenchQuestion, QuestionKind};
use super::{BenchSystem, QUICK_MS, REPEATS_IF_VERY_QUICK, ROUNDS, ROUNDS_IF_QUICK, VERY_QUICK_MS};
use crate::Result;
use crate::measure::median;

/// Items per second through a filter, on one core.
const SCAN_PER_S_MIN: f64 = 1_000_000.0;
/// How much longer than PostgreSQL a scan or a join may take, and than DuckDB a grouping.
const SLOWER_MAX: f64 = 1.5;
/// The same for queries that an index serves.
const INDEX_SLOWER_MAX: f64 = 1.0;

pub struct QueryFindings {
    pub items: u64,
    /// PostgreSQL's and DuckDB's versions.
    pub versions: (String, String),
    pub rows: Vec<ResultRow>,
}

pub struct ResultRow {
    pub question: &'static BenchQuestion,
    /// In the order of `BenchSystem`.
    pub cells: [ResultCell; 4],
}

/// One question on one system: its times, or why there are none.
pub struct ResultCell {
    warm: Result<TimedAnswer>,
    times_ms: Vec<f64>,
}

impl ResultCell {
    pub fn new(warm: Result<Vec<TimedAnswer>>) -> ResultCell {
        let warm = warm.and_then(|taken| taken.first().copied().ok_or("no answer".to_owned()));
        ResultCell { warm, times_ms: Vec::new() }
    }

    pub fn answer(&self) -> Result<QueryAnswer> {
        self.warm.as_ref().map(|warm| warm.answer).map_err(Clone::clone)
    }

    pub fn compare(&mut self, expected: &QueryAnswer) {
        if let Ok(TimedAnswer { answer, .. }) = &self.warm
            && !answer.is_like(expected)
        {
            self.warm = Err(format!(
                "another answer: {} rows, sum {}; expected {} rows, sum {}",
                answer.rows, answer.sum, expected.rows, expected.sum
            ));
        }
    }

    /// How often the question runs in this round.
    pub fn repeats(&self, round: usize) -> usize {
        let Ok(warm) = &self.warm else { return 0 };
        match self.best_ms().map_or(warm.ms, |best| best.min(warm.ms)) {
            ..VERY_QUICK_MS if round < ROUNDS_IF_QUICK => REPEATS_IF_VERY_QUICK,
            ..QUICK_MS if round < ROUNDS_IF_QUICK => 1,
            _ if round < ROUNDS => 1,
            _ => 0,
        }
    }

    pub fn add(&mut self, taken: Result<Vec<TimedAnswer>>) {
        match taken {
            Ok(taken) => self.times_ms.extend(taken.iter().map(|taken| taken.ms)),
            Err(error) => self.warm = Err(error),
        }
    }

    fn best_ms(&self) -> Option<f64> {
        self.warm.as_ref().ok()?;
        self.times_ms.iter().copied().min_by(f64::total_cmp)
    }

    fn show(&self) -> String {
        match self.best_ms() {
            Some(best) => format!("{} ({})", ms(best), ms(median(self.times_ms.clone()))),
            None => "-".to_owned(),
        }
    }

    fn json(&self) -> Value {
        match (&self.warm, self.best_ms()) {
            (Ok(_), Some(best)) => json!({"best_ms": best, "median_ms": median(self.times_ms.clone())}),
            (Err(error), _) => json!({"error": error}),
            _ => Value::Null,
        }
    }
}

/// At least three significant digits.
fn ms(value: f64) -> String {
    match value {
        ..1.0 => format!("{value:.3}"),
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

impl ResultRow {
    fn cell(&self, system: BenchSystem) -> &ResultCell {
        &self.cells[system as usize]
    }

    /// The ratio of Pleiad's time on one core to the time of `reference`.
    fn time_ratio(&self, reference: BenchSystem) -> Option<f64> {
        Some(self.cell(BenchSystem::PleiadOnOne).best_ms()? / self.cell(reference).best_ms()?)
    }
}

struct QueryGoal {
    what: String,
    found: Option<f64>,
    wanted: String,
    holds: bool,
}

impl QueryGoal {
    fn at_most(row: &ResultRow, reference: BenchSystem, limit: f64) -> QueryGoal {
        let found = row.time_ratio(reference);
        let reference_name = if reference == BenchSystem::Duckdb { "DuckDB" } else { "PostgreSQL" };
        QueryGoal {
            what: format!("{}: time against {reference_name}", row.question.name),
            found,
            wanted: format!("≤ {limit}x"),
            holds: found.is_some_and(|found| found <= limit),
        }
    }

    fn scanned(row: &ResultRow, items: u64) -> QueryGoal {
        let per_s = row.cell(BenchSystem::PleiadOnOne).best_ms().map(|ms| items as f64 / ms * 1e3);
        QueryGoal {
            what: format!("{}: million items a second", row.question.name),
            found: per_s.map(|per_s| per_s / 1e6),
            wanted: format!("≥ {}", SCAN_PER_S_MIN / 1e6),
            holds: per_s.is_some_and(|per_s| per_s >= SCAN_PER_S_MIN),
        }
    }
}

fn goals(findings: &QueryFindings) -> Vec<QueryGoal> {
    let of = |row: &ResultRow| match row.question.kind {
        QuestionKind::Scan => {
            vec![QueryGoal::scanned(row, findings.items), QueryGoal::at_most(row, BenchSystem::Postgres, SLOWER_MAX)]
        }
        QuestionKind::Join => vec![QueryGoal::at_most(row, BenchSystem::Postgres, SLOWER_MAX)],
        QuestionKind::Index => vec![QueryGoal::at_most(row, BenchSystem::Postgres, INDEX_SLOWER_MAX)],
        QuestionKind::Group => vec![QueryGoal::at_most(row, BenchSystem::Duckdb, SLOWER_MAX)],
    };
    findings.rows.iter().flat_map(of).collect()
}

pub fn text(findings: &QueryFindings) -> String {
    let (postgres, duckdb) = &findings.versions;
    let mut out = format!(
        "\n{} items of 1 KB in one partition; milliseconds, best (median)\nPostgreSQL {postgres}, DuckDB {duckdb}\n\n",
        with_separators(findings.items)
    );
    out.push_str(&line("", ["Pleiad", "Pleiad", "PostgreSQL", "DuckDB", "Pleiad to", "Pleiad to"]));
    out.push_str(&line("", ["one core", "all cores", "one core", "one core", "PostgreSQL", "DuckDB"]));
    findings.rows.iter().for_each(|row| out.push_str(&row_line(row)));
    out.push_str(&failures(findings));
    out.push_str(&goal_lines(&goals(findings)));
    out
}

fn row_line(row: &ResultRow) -> String {
    let [one, all, postgres, duckdb] = row.cells.each_ref().map(ResultCell::show);
    let [to_postgres, to_duckdb] = [BenchSystem::Postgres, BenchSystem::Duckdb]
        .map(|reference| row.time_ratio(reference).map_or("-".to_owned(), |ratio| format!("{ratio:.2}x")));
    line(row.question.name, [&one, &all, &postgres, &duckdb, &to_postgres, &to_duckdb])
}

fn line(name: &str, [one, all, postgres, duckdb, to_postgres, to_duckdb]: [&str; 6]) -> String {
    format!("{name:<34} {one:>13} {all:>13} {postgres:>13} {duckdb:>13} {to_postgres:>11} {to_duckdb:>10}\n")
}

/// The questions that could not be measured, with the error.
fn failures(findings: &QueryFindings) -> String {
    let mut out = String::new();
    for row in &findings.rows {
        for (system, cell) in BenchSystem::ALL.into_iter().zip(&row.cells) {
            if let Err(error) = &cell.warm {
                let _ = writeln!(out, "  {}, {system:?}: {error}", row.question.name); // into a String: cannot fail
            }
        }
    }
    if out.is_empty() { out } else { format!("\nnot measured\n{out}") }
}

fn goal_lines(goals: &[QueryGoal]) -> String {
    let mut out = "\ngoals, on one core\n".to_owned();
    for goal in goals {
        let mark = if goal.holds { "holds" } else { "MISSED" };
        let found = goal.found.map_or("not measured".to_owned(), |found| format!("{found:.2}"));
        let _ = writeln!(out, "  {mark:<7} {:<64} {found} (want {})", goal.what, goal.wanted);
    }
    out
}

/// 1000000 becomes 1,000,000.
fn with_separators(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub fn json(findings: &QueryFindings) -> Value {
    let row = |row: &ResultRow| {
        let [one, all, postgres, duckdb] = &row.cells;
        json!({"question": row.question.name, "sql": row.question.pleiad, "pleiad_one_core": one.json(),
            "pleiad_all_cores": all.json(), "postgres": postgres.json(), "duckdb": duckdb.json()})
    };
    let goal =
        |goal: &QueryGoal| json!({"goal": goal.what, "found": goal.found, "wanted": goal.wanted, "holds": goal.holds});
    json!({
        "items": findings.items,
        "postgres": findings.versions.0,
        "duckdb": findings.versions.1,
        "questions": findings.rows.iter().map(row).collect::<Vec<_>>(),
        "goals": goals(findings).iter().map(goal).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::questions::QUESTIONS;
    use super::*;

    fn cell(times_ms: &[f64]) -> ResultCell {
        ResultCell { warm: Ok(TimedAnswer { ms: 1.0, answer: QueryAnswer::default() }), times_ms: times_ms.to_vec() }
    }

    #[test]
    fn a_figure_is_the_best_with_the_median_in_parentheses() {
        assert_eq!(cell(&[12.34, 150.0, 9.0]).show(), "9.00 (12.3)");
        assert_eq!(with_separators(1_000_000), "1,000,000");
        assert_eq!(with_separators(100), "100");
    }

    #[test]
    fn goals_are_judged_on_one_core_and_missed_without_a_figure() {
        let row = |cells| QueryFindings {
            items: 1_000_000,
            versions: Default::default(),
            rows: vec![ResultRow { question: &QUESTIONS[0], cells }],
        };
        let judged = |findings: QueryFindings| goals(&findings).iter().map(|goal| goal.holds).collect::<Vec<_>>();
        let found = row([cell(&[900.0]), cell(&[1.0]), cell(&[500.0]), cell(&[500.0])]);
        assert_eq!(judged(found), [true, false], "fast enough, but not compared with PostgreSQL");
        let refused = ResultCell::new(Err("refused".to_owned()));
        let found = row([refused, cell(&[1.0]), cell(&[500.0]), cell(&[500.0])]);
        assert!(text(&found).contains("PleiadOnOne: refused"));
        assert_eq!(judged(found), [false, false]);
    }

    #[test]
    fn an_answer_that_differs_from_the_expected_one_has_no_figure() {
        let mut wrong = cell(&[1.0]);
        wrong.compare(&QueryAnswer { rows: 1, sum: 7.0 });
        assert_eq!((wrong.show().as_str(), wrong.repeats(0)), ("-", 0));
    }
}
