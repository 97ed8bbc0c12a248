//! Query metrics: how a page was produced, in the headers that SDKs read.
//!
//! ```text
//! x-ms-documentdb-query-metrics    totalExecutionTimeInMs=0.52;…;retrievedDocumentCount=7;…;indexUtilizationRatio=1.00
//! x-ms-cosmos-index-utilization    base64 of {"UtilizedSingleIndexes":[…],…}
//!                        version 2  percent-encoded {"UtilizedIndexes":{"SingleIndexes":[…],…},…}
//! x-ms-cosmos-query-advice         percent-encoded [{"Id":"QA1002","Params":[]},{"Id":"PL1000","Params":["@min"]}]
//! x-pleiad-query-plan              index /price/? on 2 partitions
//! ```

use std::fmt::{Display, Formatter};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use pleiad_engine::{Advice, IndexMetric, QueryReport};
use pleiad_model::{Object, Value, json};

/// Clients take the time of the query engine to be `VMExecutionTimeInMs` without index lookups, loading and writing, so
/// it includes them, although they are sums over all threads. Building the plans and optimization are steps of
/// compilation and shown as its shortest parts. Built-in functions are not measured separately.
///
/// Guarantees: a step that was executed does not take 0.00, and the total is not less than its parts.
pub fn metrics(report: &QueryReport, took: Duration, wrote: Duration) -> String {
    let (looking_up, loading) = (Hundredths::of(report.looking_up), Hundredths::of(report.loading));
    let (calling, wrote) = (Hundredths::of(report.calling), Hundredths::of(wrote));
    let planning = Hundredths(1);
    let compiling = Hundredths(Hundredths::of(report.compiling).0.saturating_sub(3 * planning.0).max(1));
    let parts = looking_up.0 + loading.0 + wrote.0;
    let running = Hundredths(Hundredths::of(took.saturating_sub(report.compiling)).0.max(parts + 1));
    let total = Hundredths(Hundredths::of(took).0.max(compiling.0 + 3 * planning.0 + running.0));
    // The fraction of loaded items that passed the filter; it is 1 for a query that loads none.
    let ratio = if report.items == 0 { 1.0 } else { report.items_matched as f64 / report.items as f64 };
    format!(
        "totalExecutionTimeInMs={total};queryCompileTimeInMs={compiling};queryLogicalPlanBuildTimeInMs={planning};\
         queryPhysicalPlanBuildTimeInMs={planning};queryOptimizationTimeInMs={planning};VMExecutionTimeInMs={running};\
         indexLookupTimeInMs={looking_up};instructionCount={};documentLoadTimeInMs={loading};systemFunctionExecuteTimeInMs=0.00;\
         userFunctionExecuteTimeInMs={calling};retrievedDocumentCount={};retrievedDocumentSize={};outputDocumentCount={};\
         outputDocumentSize={};writeOutputTimeInMs={wrote};indexUtilizationRatio={ratio:.2}",
        report.items + report.index_rows,
        report.items,
        report.item_bytes,
        report.rows,
        report.row_bytes,
    )
}

/// A time in hundredths of a millisecond, which the header shows.
#[derive(Clone, Copy)]
struct Hundredths(u64);

impl Hundredths {
    /// Rounded, but not down to nothing.
    fn of(time: Duration) -> Self {
        let rounded = (time.as_secs_f64() * 100_000.0).round() as u64;
        Hundredths(if time.is_zero() { 0 } else { rounded.max(1) })
    }
}

impl Display for Hundredths {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

/// Size limit of the index metrics header together with the continuation token. Clients read 16 KB of headers in total.
const INDEXES_BYTES_MAX: usize = 14 << 10;
/// Longer specs are shortened if not all of them fit.
const SPEC_CHARS_MAX: usize = 256;
/// Size limit of the parameters of a rule, before they are encoded.
const ADVICE_BYTES_MAX: usize = 512;
/// Size limit of the plan header.
const PLAN_BYTES_MAX: usize = 2 << 10;

pub fn index_utilization(report: &QueryReport, token_bytes: usize) -> String {
    fit_to_header(report, token_bytes, encode_v1)
}

/// The newer form, for clients that ask for it: fewer details per index, percent-encoding instead of base64.
pub fn index_utilization_v2(report: &QueryReport, token_bytes: usize) -> String {
    fit_to_header(report, token_bytes, encode_v2)
}

/// As many entries as fit into the header, with their names shortened if necessary: composite indexes are dropped first,
/// then single ones, in both cases from the end.
fn fit_to_header(
    report: &QueryReport,
    token_bytes: usize,
    form: fn(&[IndexMetric], &[IndexMetric]) -> String,
) -> String {
    let bytes_max = INDEXES_BYTES_MAX.saturating_sub(token_bytes);
    let text = form(&report.single, &report.composite);
    if text.len() <= bytes_max {
        return text;
    }
    let short = |list: &[IndexMetric]| list.iter().map(shortened).collect::<Vec<_>>();
    let (single, composite) = (short(&report.single), short(&report.composite));
    let (mut single, mut composite) = (single.as_slice(), composite.as_slice());
    loop {
        let text = form(single, composite);
        match (single, composite) {
            _ if text.len() <= bytes_max => return text,
            (_, [rest @ .., _]) => composite = rest,
            ([rest @ .., _], []) => single = rest,
            ([], []) => return text,
        }
    }
}

/// `/xxx…/?`, `/xxx… ASC`: the beginning and the end of each spec.
fn shortened(index: &IndexMetric) -> IndexMetric {
    let short = |spec: &String| match spec.char_indices().nth(SPEC_CHARS_MAX) {
        None => spec.clone(),
        Some((cut, _)) => {
            let end = spec.rfind(['/', ' ']).filter(|end| *end >= cut).map_or("", |end| &spec[end..]);
            format!("{}…{}", &spec[..cut], if end.len() <= " DESC".len() { end } else { "" })
        }
    };
    IndexMetric { specs: index.specs.iter().map(short).collect(), ..index.clone() }
}

fn encode_v1(single_indexes: &[IndexMetric], composite_indexes: &[IndexMetric]) -> String {
    let pick = |list: &[IndexMetric], utilized: bool, shape: fn(&IndexMetric) -> Value| -> Value {
        list.iter().filter(|index| index.utilized == utilized).map(shape).collect::<Vec<_>>().into()
    };
    let object = Object::new()
        .with("UtilizedSingleIndexes", pick(single_indexes, true, single))
        .with("PotentialSingleIndexes", pick(single_indexes, false, single))
        .with("UtilizedCompositeIndexes", pick(composite_indexes, true, composite))
        .with("PotentialCompositeIndexes", pick(composite_indexes, false, composite));
    STANDARD.encode(json::to_string(&object.into()))
}

fn encode_v2(single_indexes: &[IndexMetric], composite_indexes: &[IndexMetric]) -> String {
    let scored = |index: &IndexMetric, shape: Object| match index.utilized {
        true => shape,
        false => shape.with("IndexImpactScore", impact(index)),
    };
    let pick = |list: &[IndexMetric], utilized: bool, shape: fn(&IndexMetric) -> Object| -> Value {
        let chosen = list.iter().filter(|index| index.utilized == utilized);
        chosen.map(|index| scored(index, shape(index)).into()).collect::<Vec<Value>>().into()
    };
    let indexes = |utilized| {
        Object::new()
            .with("SingleIndexes", pick(single_indexes, utilized, single_spec))
            .with("CompositeIndexes", pick(composite_indexes, utilized, composite_specs))
    };
    let object = Object::new().with("UtilizedIndexes", indexes(true)).with("PotentialIndexes", indexes(false));
    utf8_percent_encode(&json::to_string(&object.into()), NON_ALPHANUMERIC).to_string()
}

/// Rule ids and their parameters, as far as they fit: clients know the text of each rule.
pub fn advice(report: &QueryReport) -> String {
    let entry = |advice: &Advice| {
        let mut bytes = 0;
        let fitting = advice.parameters.iter().take_while(|name| {
            bytes += name.len();
            bytes <= ADVICE_BYTES_MAX
        });
        let parameters: Vec<Value> = fitting.map(|name| name.as_str().into()).collect();
        Object::new().with("Id", advice.rule).with("Params", parameters).into()
    };
    let entries: Vec<Value> = report.advice.iter().map(entry).collect();
    utf8_percent_encode(&json::to_string(&entries.into()), NON_ALPHANUMERIC).to_string()
}

fn single(index: &IndexMetric) -> Value {
    let spec = index.specs.first().map_or("", String::as_str);
    described(Object::new().with("FilterExpression", "").with("IndexSpec", spec), index)
}

fn single_spec(index: &IndexMetric) -> Object {
    Object::new().with("IndexSpec", index.specs.first().map_or("", String::as_str))
}

fn composite(index: &IndexMetric) -> Value {
    described(composite_specs(index), index)
}

fn composite_specs(index: &IndexMetric) -> Object {
    let specs: Vec<Value> = index.specs.iter().map(|spec| spec.as_str().into()).collect();
    Object::new().with("IndexSpecs", specs)
}

fn described(object: Object, index: &IndexMetric) -> Value {
    let object = object.with("FilterPreciseSet", index.precise).with("IndexPreciseSet", index.precise);
    object.with("IndexImpactScore", impact(index)).into()
}

fn impact(index: &IndexMetric) -> &'static str {
    if index.impact_is_high { "High" } else { "Low" }
}

/// `scan on 3 partitions; index /a/? on 1 partition`
pub fn plan(report: &QueryReport) -> String {
    let describe = |(way, partitions): &(String, usize)| {
        let noun = if *partitions == 1 { "partition" } else { "partitions" };
        format!("{way} on {partitions} {noun}")
    };
    let text = report.access_paths.iter().map(describe).collect::<Vec<_>>().join("; ");
    let is_plain = |c: char| c.is_ascii_graphic() || c == ' ';
    // Headers are ASCII; paths need not be.
    let mut plan: String =
        text.chars().map(|c| if is_plain(c) { c.to_string() } else { c.escape_unicode().to_string() }).collect();
    plan.truncate(PLAN_BYTES_MAX);
    plan
}

#[cfg(test)]
mod tests;
