//! How a page was made, in the forms that SDKs read.
//!
//! ```text
//! x-ms-documentdb-query-metrics    totalExecutionTimeInMs=0.52;…;retrievedDocumentCount=7;…;indexUtilizationRatio=1.00
//! x-ms-cosmos-index-utilization    base64 of {"UtilizedSingleIndexes":[…],…}
//!                        version 2  percent-encoded {"UtilizedIndexes":{"SingleIndexes":[…],…},…}
//! x-pleiad-query-plan              index /price/? on 2 partitions
//! ```

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use pleiad_engine::{IndexUse, Report};
use pleiad_model::{Object, Value, json};

/// Built-in functions are not measured apart: they count into `VMExecutionTimeInMs`. There is one step from the text to what is run.
pub fn metrics(report: &Report, took: Duration, wrote: Duration) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let running = took.saturating_sub(report.compiling + report.looking_up + wrote);
    let (loading, calling, wrote) = (ms(report.loading), ms(report.calling), ms(wrote));
    let (total, compiling, looking_up, running) = (ms(took), ms(report.compiling), ms(report.looking_up), ms(running));
    // The share of loaded items that the filter kept; a query that loads none wastes none.
    let ratio = if report.items == 0 { 1.0 } else { (report.rows as f64 / report.items as f64).min(1.0) };
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

pub fn index_utilization(report: &Report) -> String {
    let pick = |list: &[IndexUse], utilized: bool, shape: fn(&IndexUse) -> Value| -> Value {
        list.iter().filter(|index| index.utilized == utilized).map(shape).collect::<Vec<_>>().into()
    };
    let object = Object::new()
        .with("UtilizedSingleIndexes", pick(&report.single, true, single))
        .with("PotentialSingleIndexes", pick(&report.single, false, single))
        .with("UtilizedCompositeIndexes", pick(&report.composite, true, composite))
        .with("PotentialCompositeIndexes", pick(&report.composite, false, composite));
    STANDARD.encode(json::to_string(&object.into()))
}

/// The newer form, for clients that ask for it: less is said of each index, and base64 is not used.
pub fn index_utilization_v2(report: &Report) -> String {
    let pick = |list: &[IndexUse], utilized: bool, shape: fn(&IndexUse) -> Object| -> Value {
        let chosen = list.iter().filter(|index| index.utilized == utilized);
        chosen.map(|index| shape(index).with("IndexImpactScore", impact(index)).into()).collect::<Vec<Value>>().into()
    };
    let indexes = |utilized| {
        Object::new()
            .with("SingleIndexes", pick(&report.single, utilized, single_spec))
            .with("CompositeIndexes", pick(&report.composite, utilized, composite_specs))
    };
    let object = Object::new().with("UtilizedIndexes", indexes(true)).with("PotentialIndexes", indexes(false));
    utf8_percent_encode(&json::to_string(&object.into()), NON_ALPHANUMERIC).to_string()
}

fn single(index: &IndexUse) -> Value {
    let spec = index.specs.first().map_or("", String::as_str);
    described(Object::new().with("FilterExpression", "").with("IndexSpec", spec), index)
}

fn single_spec(index: &IndexUse) -> Object {
    Object::new().with("IndexSpec", index.specs.first().map_or("", String::as_str))
}

fn composite(index: &IndexUse) -> Value {
    described(composite_specs(index), index)
}

fn composite_specs(index: &IndexUse) -> Object {
    let specs: Vec<Value> = index.specs.iter().map(|spec| spec.as_str().into()).collect();
    Object::new().with("IndexSpecs", specs)
}

fn described(object: Object, index: &IndexUse) -> Value {
    let object = object.with("FilterPreciseSet", index.precise).with("IndexPreciseSet", index.precise);
    object.with("IndexImpactScore", impact(index)).into()
}

fn impact(index: &IndexUse) -> &'static str {
    if index.impact_is_high { "High" } else { "Low" }
}

/// `scan on 3 partitions; index /a/? on 1 partition`
pub fn plan(report: &Report) -> String {
    let way = |(way, partitions): &(String, usize)| {
        let noun = if *partitions == 1 { "partition" } else { "partitions" };
        format!("{way} on {partitions} {noun}")
    };
    report.ways.iter().map(way).collect::<Vec<_>>().join("; ")
}
