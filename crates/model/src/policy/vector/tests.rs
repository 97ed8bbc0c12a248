//! The messages here are the ones that the SDKs' own tests compare.

use super::super::testing::{array, body, check_invalid, check_rejected, check_returned, create};
use super::*;

const EMBEDDINGS: &str = r#"{"vectorEmbeddings":[{"path":"/v1","dataType":"float32","dimensions":256,"distanceFunction":"euclidean"},{"path":"/v2","dataType":"int8","dimensions":200,"distanceFunction":"dotproduct"},{"path":"/v3","dataType":"uint8","dimensions":550,"distanceFunction":"cosine"}]}"#;

fn members(indexes: &str) -> String {
    format!(r#""vectorEmbeddingPolicy":{EMBEDDINGS},"indexingPolicy":{{"vectorIndexes":{indexes}}}"#)
}

#[track_caller]
fn check_index_rejected(index: &str, message: &str) {
    check_rejected(&members(&format!("[{index}]")), message);
}

/// One embedding with these members besides its path.
fn embedding(members: &str) -> String {
    format!(r#""vectorEmbeddingPolicy":{{"vectorEmbeddings":[{{"path":"/v1"{members}}}]}}"#)
}

#[test]
fn policies_are_returned_as_sent() {
    let indexes = r#"[{"path":"/v1","type":"flat"},{"path":"/v2","type":"quantizedFlat","quantizationByteSize":8,"vectorIndexShardKey":["/city"]},{"path":"/v3","type":"diskANN","quantizationByteSize":64,"indexingSearchListSize":50,"quantizerType":"spherical","vectorIndexShardKey":["/country/city"]}]"#;
    check_returned(&members(indexes), "vectorEmbeddingPolicy", EMBEDDINGS);
    let policy = create(&members(indexes)).indexing.to_value();
    assert_eq!(policy.get("vectorIndexes"), Some(&super::super::testing::value(indexes)));
}

#[test]
fn an_embedding_has_defaults() {
    let wanted =
        r#"{"vectorEmbeddings":[{"path":"/v1","dataType":"float32","dimensions":1536,"distanceFunction":"cosine"}]}"#;
    check_returned(&embedding(""), "vectorEmbeddingPolicy", wanted);
}

#[test]
fn embeddings_are_validated() {
    check_rejected(&embedding(r#","dataType":"float33""#), "The Vector Embedding Policy has an invalid DataType");
    let distance = "The Vector Embedding Policy has an invalid DistanceFunction:handMeasured";
    check_rejected(&embedding(r#","distanceFunction":"handMeasured""#), distance);
    let source = "The auth type provided in the embedding source of vector policy is invalid.";
    check_rejected(&embedding(r#","embeddingSource":{"authType":"guess"}"#), source);
    check_rejected(&embedding(r#","dimensions":"many""#), "One of the specified inputs is invalid");
    check_rejected(r#""vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"v1"}]}"#, "invalid Path:v1");
    check_rejected(r#""vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v/[]/x"}]}"#, "invalid Path:/v/[]/x");
    check_rejected(r#""vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v"},{"path":"/v"}]}"#, "twice");
}

#[test]
fn dimension_limits_are_exact() {
    create(&embedding(r#","dimensions":1"#));
    create(&embedding(r#","dimensions":4096"#));
    check_rejected(&embedding(r#","dimensions":0"#), "The Vector Embedding Policy has Dimensions:0");
    check_rejected(&embedding(r#","dimensions":-1"#), "The Vector Embedding Policy has Dimensions:-1");
    let too_many = "The Vector Embedding Policy has Dimensions:8000 which is more than the maximum supported value";
    check_rejected(&embedding(r#","dimensions":8000"#), too_many);
    check_rejected(&embedding(r#","dimensions":4097"#), "Dimensions:4097 which is more than the maximum");
    check_rejected(&embedding(r#","dimensions":99999999999"#), "Dimensions:99999999999 which is more than the maximum");
}

#[test]
fn a_flat_index_has_a_lower_dimension_limit() {
    let flat = |count| {
        let policy = embedding(&format!(r#","dimensions":{count}"#));
        format!(r#"{policy},"indexingPolicy":{{"vectorIndexes":[{{"path":"/v1","type":"flat"}}]}}"#)
    };
    create(&flat(FLAT_DIMENSIONS_MAX));
    check_rejected(
        &flat(FLAT_DIMENSIONS_MAX + 1),
        "Dimensions:506 which is more than the maximum supported value: 505",
    );
    create(&flat(FLAT_DIMENSIONS_MAX + 1).replace("flat", "diskANN"));
}

#[test]
fn an_index_needs_an_embedding() {
    let nowhere = "The Vector Indexing Policy's path::/v9 not matching in Embedding's path.";
    check_index_rejected(r#"{"path":"/v9","type":"flat"}"#, nowhere);
    let alone = r#""indexingPolicy":{"vectorIndexes":[{"path":"/v1","type":"flat"}]}"#;
    check_rejected(alone, "v1 not matching in Embedding's path");
    check_index_rejected(r#"{"path":"/v1","type":"flat"},{"path":"/v1","type":"diskANN"}"#, "twice");
}

#[test]
fn index_parameters_are_validated() {
    check_index_rejected(r#"{"path":"/v1","type":"notFlat"}"#, "Index Type::notFlat is invalid");
    check_index_rejected(r#"{"path":"/v1"}"#, "One of the specified inputs is invalid");
    check_index_rejected(r#"{"path":"/v1","type":"diskANN","quantizerType":"cubic"}"#, "invalid QuantizerType:cubic");
    let shard = |key: &str| format!(r#"{{"path":"/v2","type":"diskANN","vectorIndexShardKey":{key}}}"#);
    check_index_rejected(&shard(r#"["country"]"#), "The Vector Indexing Policy has an invalid Shard Path: country.");
    check_index_rejected(&shard(r#""/country""#), "One of the specified inputs is invalid");
    let three = array(3, |at| format!("\"/p{at}\""));
    let too_many = "The number of shard paths defined in the Vector Indexing Policy: 3 exceeds the maximum: 1.";
    check_index_rejected(&shard(&three), too_many);
}

#[test]
fn size_limits_are_exact() {
    let quantized = |path: &str, bytes: i64| {
        format!(r#"{{"path":"/{path}","type":"quantizedFlat","quantizationByteSize":{bytes}}}"#)
    };
    let zero = "The Vector Indexing Policy parameter QuantizationByteSize value :: 0 is out of range. The allowed range is between 1 and 256.";
    check_index_rejected(&quantized("v1", 0), zero);
    check_index_rejected(&quantized("v1", -1), "QuantizationByteSize value :: -1 is out of range");
    check_index_rejected(
        &quantized("v1", 257),
        "value :: 257 is out of range. The allowed range is between 1 and 256.",
    );
    check_index_rejected(&quantized("v3", 513), "QuantizationByteSize value :: 513 is out of range.");
    for accepted in [quantized("v1", 1), quantized("v1", 256), quantized("v3", 512)] {
        create(&members(&format!("[{accepted}]")));
    }
    let searching = |size: i64| format!(r#"{{"path":"/v1","type":"diskANN","indexingSearchListSize":{size}}}"#);
    let five = "IndexingSearchListSize value :: 5 is out of range. The allowed range is between 25 and 500.";
    check_index_rejected(&searching(5), five);
    check_index_rejected(&searching(24), "value :: 24 is out of range");
    check_index_rejected(&searching(501), "value :: 501 is out of range");
    for accepted in [searching(25), searching(500)] {
        create(&members(&format!("[{accepted}]")));
    }
}

#[test]
fn a_replace_may_add_and_drop_entries_but_not_modify_them() {
    let flat = members(r#"[{"path":"/v1","type":"flat"}]"#);
    let definition = create(&flat);
    let quantized = body(&members(r#"[{"path":"/v1","type":"quantizedFlat"}]"#));
    let indexes = "Paths in existing vector indexing policy cannot be modified in Collection Replace. They can only be added or removed.";
    check_invalid(definition.replace(&quantized), indexes);
    let smaller = body(&flat.replace("256", "255"));
    check_invalid(
        definition.replace(&smaller),
        "Paths in existing embedding policy cannot be modified in Collection Replace",
    );
    let without_embedding = body(r#""indexingPolicy":{"vectorIndexes":[{"path":"/v1","type":"quantizedFlat"}]}"#);
    let nowhere = "The Vector Indexing Policy's path::/v1 not matching in Embedding's path.";
    check_invalid(definition.replace(&without_embedding), nowhere);

    let more = body(&members(r#"[{"path":"/v1","type":"flat"},{"path":"/v2","type":"diskANN"}]"#));
    let more = definition.replace(&more).expect("an index may be added");
    more.replace(&body("")).expect("everything may be dropped");
}
