//! Shows: policy and options determine the metric, and mismatched vectors have no distance.

use pleiad_model::env::ManualEnv;
use pleiad_model::policy::{ContainerDefinition, Geospatial};
use pleiad_model::{Result, json};

use crate::Parameters;
use crate::check;
use crate::compile::{BindContext, compile};
use crate::document::SlotValue;
use crate::expr::{Context, MemoryBudget};
use crate::run::{PageSize, PageStart, RowPipeline};

const CONTAINER: &str = r#"{"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
    "vectorEmbeddingPolicy": {"vectorEmbeddings": [
        {"path": "/near", "dataType": "float32", "dimensions": 2, "distanceFunction": "euclidean"},
        {"path": "/o/dot", "dataType": "int8", "dimensions": 2, "distanceFunction": "dotproduct"}]}}"#;

const ITEMS: &str = r#"[
    {"id": "a", "near": [0, 3], "o": {"dot": [1, 2]}, "free": [1, 0]},
    {"id": "b", "near": [0, 1], "o": {"dot": [0.5, 2]}, "free": [1, 1, 1]},
    {"id": "c", "near": [1, 0, 0], "o": {"dot": [127, 127]}, "free": [0, 5]},
    {"id": "d", "near": "none", "o": {"dot": [[1, 2]]}},
    {"id": "e", "near": [0, 2]}]"#;

fn run(text: &str) -> Result<String> {
    let definition = ContainerDefinition::create(&json::parse(CONTAINER.as_bytes())?)?;
    let parameters = Parameters::from_value(Some(&json::parse(br#"[{"name": "@v", "value": [4, 0]}]"#)?))?;
    let (geospatial, embeddings) = (Geospatial::Geography, definition.vector_embeddings.as_slice());
    let block = compile(
        &check::parse_and_check(text)?,
        text,
        BindContext { parameters: &parameters, geospatial, embeddings, full_text: None, started_ms: None },
    )?;
    let env = ManualEnv::default();
    let cx = Context {
        env: &env,
        started_ms: 0,
        geospatial,
        user_functions: None,
        memory: MemoryBudget::new(1 << 20),
        interrupt: None,
    };
    let size = PageSize { rows: 100, bytes: 1 << 20 };
    let mut pipeline = RowPipeline::new(&block, cx, PageStart::beginning(block.offset, block.take), size);
    for (docnum, item) in (0..).zip(json::parse(ITEMS.as_bytes())?.as_array().unwrap_or_default()) {
        pipeline.add_item(docnum, SlotValue::Value(item))?;
    }
    let mut rows = Vec::new();
    pipeline.finish(None)?.rows.join(&mut rows);
    Ok(String::from_utf8_lossy(&rows).into_owned())
}

#[track_caller]
fn check(text: &str, want: &str) {
    assert_eq!(run(text).unwrap_or_else(|error| panic!("{text}: {error}")), want, "{text}");
}

#[track_caller]
fn check_error(text: &str, part: &str) {
    let error = run(text).expect_err(text);
    assert!(error.to_string().contains(part), "{text}: {error}");
}

#[test]
fn the_metric_comes_from_the_policy_of_the_path() {
    check("SELECT VALUE VectorDistance(c.near, @v) FROM c WHERE c.id = 'a'", "5");
    check("SELECT VALUE VectorDistance([4, 0], c.near) FROM c WHERE c.id = 'a'", "5");
    check("SELECT VALUE VectorDistance(c.o.dot, [3, 4]) FROM c WHERE c.id = 'a'", "11");
    check("SELECT VALUE VectorDistance(c['o']['dot'], [3, 4]) FROM c WHERE c.id = 'a'", "11");
    check("SELECT VALUE _VectorScore(c.near, c.near) FROM c WHERE c.id = 'a'", "0");
    check("SELECT VALUE VectorDistance(c.free, [0, 2]) FROM c", "0,1");
    check("SELECT VALUE VectorDistance([1, 0], [0, 1]) FROM c WHERE c.id = 'a'", "0");
}

#[test]
fn call_options_override_the_policy() {
    let euclidean = "{'distanceFunction': 'euclidean'}";
    check(&format!("SELECT VALUE VectorDistance(c.free, [4, 4], false, {euclidean}) FROM c WHERE c.id = 'a'"), "5");
    check(
        "SELECT VALUE VectorDistance(c.near, [4, 0], true, {'distanceFunction': 'Cosine'}) FROM c WHERE c.id = 'e'",
        "0",
    );
    check(
        "SELECT VALUE VectorDistance(c.o.dot, [3, 4], false, {'dataType': 'Float32', 'filterPriority': 0.5}) FROM c",
        "11,9.5,889",
    );
}

#[test]
fn mismatched_vectors_have_no_distance() {
    check("SELECT VALUE c.id FROM c WHERE IS_DEFINED(VectorDistance(c.near, @v))", r#""a","b","e""#);
    check("SELECT VALUE c.id FROM c WHERE IS_DEFINED(VectorDistance(c.o.dot, [1, 1]))", r#""a","c""#);
    for wrong in ["[1, 2, 3]", "[[1, 2]]", "'x'", "undefined", "[1, 'x']", "c.nothing"] {
        check(&format!("SELECT VALUE VectorDistance(c.near, {wrong}) FROM c"), "");
    }
}

#[test]
fn order_by_distance_returns_the_nearest_first_and_items_without_a_distance_last() {
    check("SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.near, [0, 0])", r#""b","e","a","d","c""#);
    check("SELECT TOP 1 VALUE c.id FROM c ORDER BY VectorDistance(c.o.dot, [1, 1])", r#""c""#);
    check("SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.free, [1, 0])", r#""a","c","e","d","b""#);
    check("SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.near, @v) OFFSET 1 LIMIT 1", r#""e""#);
    let cosine = "VectorDistance(c.near, [0, 1], false, {'distanceFunction': 'cosine'})";
    check(&format!("SELECT VALUE c.id FROM c WHERE c.id != 'a' ORDER BY {cosine}"), r#""e","b","d","c""#);
}

#[test]
fn option_limits_are_exact() {
    let call = |options: &str| {
        format!("SELECT VALUE VectorDistance(c.near, [0, 1], false, {options}) FROM c WHERE c.id = 'b'")
    };
    for good in
        ["{'searchListSizeMultiplier': 1, 'quantizedVectorListMultiplier': 100}", "{'filterPriority': 1.0}", "{}"]
    {
        check(&call(good), "0");
    }
    check_error(
        &call("{'searchListSizeMultiplier': -100}"),
        "The 'searchListSizeMultiplier' value -100 specified in the VectorDistance function is outside the supported range. \
         The value must be between 1 and 100.",
    );
    check_error(&call("{'searchListSizeMultiplier': 101}"), "SC2213");
    check_error(&call("{'quantizedVectorListMultiplier': 0}"), "between 1 and 100");
    check_error(&call("{'filterPriority': 1.1}"), "between 0 and 1");
    check_error(&call("{'distanceFunction': 'manhattan'}"), "cosine, dotproduct or euclidean");
    check_error(&call("{'dataType': 'double'}"), "Float32");
    check_error(&call("{'speed': 1}"), "'speed' is not a valid option name");
    check_error(&call("{'filterPriority': c.n}"), "an object of constants");
    check_error("SELECT VALUE VectorDistance(c.near, [0, 1], 1) FROM c", "true or false");
}
