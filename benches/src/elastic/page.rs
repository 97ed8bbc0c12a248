//! The results of the elasticity benchmark as a table and as JSON; the goals, and whether they hold.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{ElasticFindings, Latency, Versus};

/// The lowest accepted rate of point reads with rate limiting, relative to a server without it.
const GOVERNED_RATE_MIN: f64 = 0.98;
/// The lowest accepted rate, relative to a container with one partition.
const PARTITIONS_RATE_MIN: f64 = 0.90;
/// How much a split may add to the longest latency.
const ADDED_MS_MAX: f64 = 250.0;

pub fn table(findings: &ElasticFindings) -> String {
    let mut out = String::new();
    governed(&mut out, &findings.governed);
    partitions(&mut out, &findings.partitions);
    split(&mut out, findings);
    goals(&mut out, findings);
    out
}

fn governed(out: &mut String, versus: &Versus) {
    let _ = writeln!(out, "\npoint reads                         ops/s    share of rate    share of CPU"); // into a String
    line(out, "with rate limiting", versus);
}

fn partitions(out: &mut String, rows: &[(u64, Versus, Versus)]) {
    let _ = writeln!(out, "\npartitions                          ops/s    share of rate    share of CPU");
    for (count, reads, creates) in rows {
        line(out, &format!("{count:>3}, point reads"), reads);
        line(out, &format!("{count:>3}, durable creates"), creates);
    }
}

fn line(out: &mut String, what: &str, versus: &Versus) {
    let Versus { figures, rate_share, cpu_share } = versus;
    let _ = writeln!(out, "  {what:<28} {:>10.0} {rate_share:>15.2}x {cpu_share:>14.2}x", figures.per_second);
}

fn split(out: &mut String, findings: &ElasticFindings) {
    let split = &findings.split;
    let _ = writeln!(out, "\na split of {} items of 1 KB: {:.1} s", split.items, split.seconds);
    let _ = writeln!(out, "                                    ops/s       p50 µs       p99 µs       max ms");
    for (what, [before, during]) in [("point reads", split.reads), ("durable creates", split.creates)] {
        latency(out, &format!("{what}, before"), before);
        latency(out, &format!("{what}, during"), during);
    }
}

fn latency(out: &mut String, what: &str, latency: Latency) {
    let Latency { per_second, p50_us, p99_us, max_us } = latency;
    let _ = writeln!(out, "  {what:<28} {per_second:>10.0} {p50_us:>12.0} {p99_us:>12.0} {:>12.1}", max_us / 1e3);
}

fn goals(out: &mut String, findings: &ElasticFindings) {
    let rate_shares = findings.partitions.iter().flat_map(|(_, reads, creates)| [reads.rate_share, creates.rate_share]);
    let lowest = rate_shares.fold(f64::INFINITY, f64::min);
    let [before_us, during_us] =
        [0, 1].map(|at| findings.split.reads[at].max_us.max(findings.split.creates[at].max_us));
    let added_ms = (during_us - before_us).max(0.0) / 1e3;
    let _ = writeln!(out, "\ngoals");
    let mut goal = |holds: bool, what: &str, found: String| {
        let _ = writeln!(out, "  {:<7} {what:<46} {found}", if holds { "holds" } else { "MISSED" });
    };
    let rate = findings.governed.rate_share;
    goal(rate >= GOVERNED_RATE_MIN, "rate limiting, rate of point reads", share(rate, GOVERNED_RATE_MIN));
    goal(lowest >= PARTITIONS_RATE_MIN, "many partitions, lowest rate", share(lowest, PARTITIONS_RATE_MIN));
    let added = format!("{added_ms:.0} ms (want ≤ {ADDED_MS_MAX} ms)");
    goal(added_ms <= ADDED_MS_MAX, "split, added to the longest latency", added);
}

fn share(found: f64, limit: f64) -> String {
    format!("{found:.2}x (want ≥ {limit}x)")
}

pub fn json(findings: &ElasticFindings) -> Value {
    let versus = |versus: &Versus| json!({"figures": versus.figures.json(), "rate_share": versus.rate_share, "cpu_share": versus.cpu_share});
    let latency = |latency: &Latency| {
        json!({"per_second": latency.per_second, "p50_us": latency.p50_us, "p99_us": latency.p99_us,
            "max_us": latency.max_us})
    };
    let both = |[before, during]: &[Latency; 2]| json!({"before": latency(before), "during": latency(during)});
    let partitions: Vec<Value> = findings
        .partitions
        .iter()
        .map(|(count, reads, creates)| json!({"partitions": count, "reads": versus(reads), "creates": versus(creates)}))
        .collect();
    let split = &findings.split;
    json!({
        "governed": versus(&findings.governed), "partitions": partitions,
        "split": {"items": split.items, "seconds": split.seconds, "reads": both(&split.reads),
            "creates": both(&split.creates)},
    })
}
