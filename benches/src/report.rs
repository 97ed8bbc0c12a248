//! Tables, JSON and documentation pages with the results.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::Result;
use crate::measure::{LoadFigures, share};
use crate::start::IdleCost;

/// One load at one number of connections: figures of Pleiad and of the ceiling.
pub struct LoadRow {
    pub connections: usize,
    pub pleiad: LoadFigures,
    pub ceiling: LoadFigures,
    pub rate_share: f64,
    pub cpu_share: f64,
}

/// The results of one run.
pub struct LoadFindings {
    pub reads: Vec<LoadRow>,
    pub creates: Vec<LoadRow>,
    pub serve: IdleCost,
    pub dev: IdleCost,
}

/// A goal and the value that was measured.
struct LoadGoal {
    what: &'static str,
    found: f64,
    unit: &'static str,
    limit: f64,
    /// True: at most the limit; false: at least the limit.
    at_most: bool,
}

const READ_CPU_RATIO_MAX: f64 = 2.0;
const CREATE_RATE_RATIO_MIN: f64 = 0.60;
const START_MS_MAX: f64 = 50.0;
const RESIDENT_MB_MAX: f64 = 30.0;
/// The number of connections at which the goals are judged: enough to saturate the machine.
const JUDGED_AT: usize = 64;

impl LoadRow {
    pub fn new(connections: usize, ours: &[LoadFigures], ceiling: &[LoadFigures]) -> LoadRow {
        LoadRow {
            connections,
            pleiad: LoadFigures::median(ours),
            ceiling: LoadFigures::median(ceiling),
            rate_share: share(ours, ceiling, |figures| figures.per_second),
            cpu_share: share(ours, ceiling, |figures| figures.cpu_us),
        }
    }
}

impl LoadGoal {
    fn holds(&self) -> bool {
        if self.at_most { self.found <= self.limit } else { self.found >= self.limit }
    }
}

fn goals(findings: &LoadFindings) -> Vec<LoadGoal> {
    let judged = |rows: &[LoadRow], ratio: fn(&LoadRow) -> f64| {
        rows.iter().find(|row| row.connections == JUDGED_AT).map_or(f64::NAN, ratio)
    };
    let at_most = |what, found, unit, limit| LoadGoal { what, found, unit, limit, at_most: true };
    vec![
        at_most(
            "point read, CPU against the bare server",
            judged(&findings.reads, |row| row.cpu_share),
            "x",
            READ_CPU_RATIO_MAX,
        ),
        LoadGoal {
            what: "durable create, rate against the bare store",
            found: judged(&findings.creates, |row| row.rate_share),
            unit: "x",
            limit: CREATE_RATE_RATIO_MIN,
            at_most: false,
        },
        at_most("start of `serve`", findings.serve.start_ms, " ms", START_MS_MAX),
        at_most("start of `dev`", findings.dev.start_ms, " ms", START_MS_MAX),
        at_most("idle memory of `serve`", findings.serve.resident_mb, " MB", RESIDENT_MB_MAX),
        at_most("idle memory of `dev`", findings.dev.resident_mb, " MB", RESIDENT_MB_MAX),
    ]
}

pub fn table(findings: &LoadFindings) -> String {
    let mut out = String::new();
    let lines = [
        loads("point reads", "bare HTTP", &findings.reads),
        loads("durable creates", "bare store", &findings.creates),
        idle_costs(&[("serve", &findings.serve), ("dev", &findings.dev)]),
        goal_lines(&goals(findings)),
    ];
    lines.iter().for_each(|text| out.push_str(text));
    out
}

fn loads(what: &str, ceiling: &str, rows: &[LoadRow]) -> String {
    let mut out = format!("\n{what:<17} conns      ops/s    p50 µs    p99 µs   CPU µs/op\n");
    for row in rows {
        for (system, figures) in [("pleiad", &row.pleiad), (ceiling, &row.ceiling)] {
            let LoadFigures { per_second, p50_us, p99_us, cpu_us } = figures;
            let _ = write!(out, "  {system:<15} {:>5} {per_second:>10.0} {p50_us:>9.0} {p99_us:>9.0}", row.connections);
            let _ = writeln!(out, " {cpu_us:>11.1}");
        }
        let _ = writeln!(out, "  {:<21} {:>9.2}x {:>31.2}x", "  share", row.rate_share, row.cpu_share);
    }
    out
}

fn idle_costs(costs: &[(&str, &IdleCost)]) -> String {
    let mut out = "\nat rest            start ms    memory MB    idle CPU %\n".to_owned();
    for (mode, rest) in costs {
        let IdleCost { start_ms, resident_mb, idle_cpu_percent } = rest;
        let _ = writeln!(out, "  {mode:<15} {start_ms:>9.1} {resident_mb:>12.1} {idle_cpu_percent:>13.3}");
    }
    out
}

fn goal_lines(goals: &[LoadGoal]) -> String {
    let mut out = "\ngoals\n".to_owned();
    for goal in goals {
        let (mark, sign) = (if goal.holds() { "holds" } else { "MISSED" }, if goal.at_most { "≤" } else { "≥" });
        let _ = writeln!(
            out,
            "  {mark:<7} {:<46} {:.2}{u} (want {sign} {}{u})",
            goal.what,
            goal.found,
            goal.limit,
            u = goal.unit
        );
    }
    out
}

pub fn json(findings: &LoadFindings) -> Value {
    let rows = |rows: &[LoadRow]| -> Vec<Value> {
        let one = |row: &LoadRow| {
            json!({"connections": row.connections, "ours": row.pleiad.json(), "ceiling": row.ceiling.json(),
                "rate_share": row.rate_share, "cpu_share": row.cpu_share})
        };
        rows.iter().map(one).collect()
    };
    let rest = |rest: &IdleCost| json!({"start_ms": rest.start_ms, "resident_mb": rest.resident_mb, "idle_cpu_percent": rest.idle_cpu_percent});
    let goals: Vec<Value> = goals(findings)
        .iter()
        .map(|goal| json!({"goal": goal.what, "found": goal.found, "limit": goal.limit, "holds": goal.holds()}))
        .collect();
    json!({
        "reads": rows(&findings.reads), "creates": rows(&findings.creates),
        "serve": rest(&findings.serve), "dev": rest(&findings.dev), "goals": goals,
    })
}

// ---- pages ----------------------------------------------------------------------------------------------

pub fn load_page(title: &str, rows: &[(usize, &'static str, LoadFigures)]) -> String {
    let mut out = format!(
        "\n| {title} | connections | per second | p50 ms | p99 ms | server CPU µs each |\n|---|--:|--:|--:|--:|--:|\n"
    );
    for (connections, name, figures) in rows {
        let LoadFigures { per_second, p50_us, p99_us, cpu_us } = figures;
        let (p50_ms, p99_ms) = (p50_us / 1e3, p99_us / 1e3);
        let _ = writeln!(out, "| {name} | {connections} | {per_second:.0} | {p50_ms:.2} | {p99_ms:.2} | {cpu_us:.0} |");
    }
    out
}

pub fn idle_page(rows: &[(&'static str, f64, f64)]) -> String {
    let mut out = "\n| At rest | start ms | memory MB |\n|---|--:|--:|\n".to_owned();
    for (name, start_ms, resident_mb) in rows {
        let _ = writeln!(out, "| {name} | {start_ms:.0} | {resident_mb:.0} |");
    }
    out
}

/// The machine on which the figures were measured; without it they mean nothing.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let major = kernel.trim().split('-').next().unwrap_or_default();
    format!("{} cores of {}, Linux {major}.", cores, model.trim_start_matches([':', '\t', ' ']))
}

/// Replaces the text between `<!-- name -->` and `<!-- /name -->`.
pub fn write_between(page: &Path, name: &str, text: &str) -> Result {
    let old = fs::read_to_string(page).map_err(|e| format!("cannot read {}: {e}", page.display()))?;
    let new = replace_between(&old, name, text).ok_or_else(|| format!("{} has no section `{name}`", page.display()))?;
    fs::write(page, new).map_err(|e| format!("cannot write {}: {e}", page.display()))
}

fn replace_between(page: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n\n{end}{after}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_only_the_text_between_its_markers() {
        let page = "a\n<!-- t -->\nold\n<!-- /t -->\nb\n";
        assert_eq!(replace_between(page, "t", "new\n").unwrap(), "a\n<!-- t -->\n\nnew\n\n<!-- /t -->\nb\n");
        assert_eq!(replace_between(page, "u", "new"), None);
    }
}
