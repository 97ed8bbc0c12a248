//! Query metrics: how a page was produced, in the headers that SDKs read.
//!
//! ```text
//! x-ms-documentdb-query-metrics    totalExecutionTimeInMs=0.52;…;retrievedDocumentCount=7;…;indexUtilizationRatio=1.00
//! x-ms-cosmos-index-utilization    base64 of {"UtilizedSingleIndexes":[…],…}
//!                        version 2  percent-encoded {"UtilizedIndexes":{"SingleIndexes":[…],…},…}
//! x-ms-cosmos-query-advice         percent-encoded [{"Id":"QA1002","Params":[]}]
//! x-pleiad-query-plan              index /price/? on 2 partitions
//! ```

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use pleiad_engine::{IndexMetric, QueryReport};
use pleiad_model::{Object, Value, json};

/// Built-in functions are not measured separately: they count towards `VMExecutionTimeInMs`. Compilation is a single
/// step, so the times for plans and optimization are zero.
pub fn metrics(report: &QueryReport, took: Duration, wrote: Duration) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let running = took.saturating_sub(report.compiling + report.looking_up + wrote);
    let (loading, calling, wrote) = (ms(report.loading), ms(report.calling), ms(wrote));
    let (total, compiling, looking_up, running) = (ms(took), ms(report.compiling), ms(report.looking_up), ms(running));
    // The fraction of loaded items that passed the filter; it is 1 for a query that loads none.
    let ratio = if report.items == 0 { 1.0 } else { report.items_matched as f64 / report.items as f64 };
    format!(
        "totalExecutionTimeInMs={total:.2};queryCompileTimeInMs={compiling:.2};queryLogicalPlanBuildTimeInMs=0.00;\
         queryPhysicalPlanBuildTimeInMs=0.00;queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs={running:.2};\
         indexLookupTimeInMs={looking_up:.2};instructionCount={};documentLoadTimeInMs={loading:.2};systemFunctionExecuteTimeInMs=0.00;\
         userFunctionExecuteTimeInMs={calling:.2};retrievedDocumentCount={};retrievedDocumentSize={};outputDocumentCount={};\
         outputDocumentSize={};writeOutputTimeInMs={wrote:.2};indexUtilizationRatio={ratio:.2}",
        report.items + report.index_rows,
        report.items,
        report.item_bytes,
        report.rows,
        report.row_bytes,
    )
}

/// Size limit of the index metrics header. Clients read 16 KB of headers in total.
const INDEXES_BYTES_MAX: usize = 8 << 10;
/// Size limit of the plan header.
const PLAN_BYTES_MAX: usize = 2 << 10;

pub fn index_utilization(report: &QueryReport) -> String {
    fit_to_header(report, encode_v1)
}

/// The newer form, for clients that ask for it: fewer details per index, percent-encoding instead of base64.
pub fn index_utilization_v2(report: &QueryReport) -> String {
    fit_to_header(report, encode_v2)
}

/// As many entries as fit into the header: composite indexes are dropped first, then single ones, in both cases from
/// the end.
fn fit_to_header(report: &QueryReport, form: fn(&[IndexMetric], &[IndexMetric]) -> String) -> String {
    let (mut single, mut composite) = (report.single.as_slice(), report.composite.as_slice());
    loop {
        let text = form(single, composite);
        match (single, composite) {
            _ if text.len() <= INDEXES_BYTES_MAX => return text,
            (_, [rest @ .., _]) => composite = rest,
            ([rest @ .., _], []) => single = rest,
            ([], []) => return text,
        }
    }
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

/// Rule ids only: clients know the text of each rule.
pub fn advice(report: &QueryReport) -> String {
    let entry = |rule: &&str| Object::new().with("Id", *rule).with("Params", Vec::<Value>::new()).into();
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
