//! Error messages for an `ORDER BY` whose order no index has.

use super::*;
use crate::testing::parse;
use pleiad_model::policy::{ContainerDefinition, PathStep};
use pleiad_partition::{IndexingConfig, Schema, SizeLimits};

const WITHOUT: &str = r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/n/?"}]}"#;
const WITH: &str = r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/n","order":"descending"}]]}"#;

/// The schema of a container, during or after a change from one indexing policy to another.
fn schema(policy: &str, former: Option<&str>) -> Schema {
    let definition = |policy: &str| {
        let body = format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"]}},"indexingPolicy":{policy}}}"#);
        ContainerDefinition::create(&parse(&body)).unwrap()
    };
    let former: Vec<IndexingConfig> =
        former.iter().map(|policy| IndexingConfig::of(&definition(policy), Default::default())).collect();
    Schema::new(1, &definition(policy), &Default::default(), &former, SizeLimits::UNLIMITED)
}

fn by(name: &str, descending: bool) -> OrderPath {
    OrderPath { path: vec![PathStep::Property(name.to_owned())], descending }
}

#[test]
fn errors_distinguish_a_missing_path_index_from_one_being_built() {
    let message = |schema: Schema| missing_path_error(&by("n", false), schema.usable_index()).to_string();
    let missing =
        r#"Order-by item requires a corresponding index path. Include "/n/?" in the container's indexing policy."#;
    assert_eq!(message(schema(WITHOUT, None)), missing);
    assert_eq!(message(schema(WITHOUT, Some(WITH))), missing, "the index is being removed");
    let building = message(schema(WITH, Some(WITHOUT)));
    assert!(building.contains("\"/n/?\" cannot be used yet.") && building.contains("being built"), "{building}");
}

#[test]
fn errors_distinguish_a_missing_composite_index_from_one_being_built() {
    let order = [by("a", true), by("n", false)];
    let message = |schema: Schema| missing_composite_error(&order, schema.usable_index()).to_string();
    assert!(message(schema(WITHOUT, None)).ends_with("to compositeIndexes in the container's indexing policy."));
    assert!(message(schema(WITH, Some(WITHOUT))).contains("being built"));
}
