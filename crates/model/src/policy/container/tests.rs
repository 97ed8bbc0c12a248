use proptest::prelude::*;

use super::super::testing::{body, check_invalid, check_rejected, check_returned, create, value};
use super::*;
use crate::json;
use crate::partition_key::KeyKind;

#[test]
fn a_container_is_returned_as_cosmos_returns_it() {
    let wanted = concat!(
        r#"{"id":"c","#,
        r#""indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]},"#,
        r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"#,
        r#""defaultTtl":60,"#,
        r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/mail"]}]},"#,
        r#""conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""},"#,
        r#""geospatialConfig":{"type":"Geography"},"#,
        r#""changeFeedPolicy":{"retentionDuration":10},"#,
        r#""analyticalStorageTtl":-1}"#,
    );
    let members = r#""analyticalStorageTtl":-1,"changeFeedPolicy":{"retentionDuration":10},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/mail"]}]},"defaultTtl":60,"_rid":"x","_ts":1"#;
    assert_eq!(json::to_string(&create(members).to_object().into()), wanted);
}

#[test]
fn the_kind_is_not_part_of_the_resource() {
    let created = create(r#""kind":"table""#);
    assert_eq!(created.kind, ContainerKind::Nosql);
    assert_eq!(created.to_object().get("kind"), None);
    let stored = ContainerDefinition::from_stored(ContainerKind::Table, &body("")).expect("it is valid");
    let replaced = stored.replace(&body(r#""kind":"graph","defaultTtl":60"#)).expect("it is valid");
    assert_eq!((replaced.kind, replaced.default_ttl), (ContainerKind::Table, Some(60)));
}

/// The key of a container with this `partitionKey`, as returned.
#[track_caller]
fn check_key(sent: &str, wanted: &str) {
    let body = value(&format!(r#"{{"id":"c","partitionKey":{sent}}}"#));
    let definition = ContainerDefinition::create(&body).expect("the definition is accepted");
    assert_eq!(definition.to_object().get("partitionKey").map(json::to_string).as_deref(), Some(wanted));
}

#[track_caller]
fn check_key_rejected(sent: &str, message: &str) {
    check_invalid(ContainerDefinition::create(&value(&format!(r#"{{"id":"c","partitionKey":{sent}}}"#))), message);
}

#[test]
fn the_partition_key_is_returned_as_created() {
    check_key(r#"{"paths":["/a"],"kind":"Hash","version":2}"#, r#"{"paths":["/a"],"kind":"Hash","version":2}"#);
    check_key(r#"{"paths":["/a"],"kind":"Hash"}"#, r#"{"paths":["/a"],"kind":"Hash","version":1}"#);
    check_key(r#"{"version":1,"paths":["/a/b"]}"#, r#"{"paths":["/a/b"],"kind":"Hash","version":1}"#);
    let quoted = r#"{"paths":["/\"level' 1*()\"/\"le/vel2\""],"kind":"Hash","version":2}"#;
    check_key(quoted, quoted);
    let levels = r#"{"paths":["/a","/b","/c"],"kind":"MultiHash","version":2}"#;
    check_key(levels, levels);
    check_key(&levels.replace(r#","version":2"#, ""), levels);
    let migrated = r#"{"paths":["/_partitionKey"],"kind":"Hash","version":2,"systemKey":true}"#;
    check_key(migrated, migrated);
}

#[test]
fn the_partition_key_is_validated() {
    let too_many = "Too many partition key paths (4) specified. A maximum of 3 is allowed.";
    check_key_rejected(r#"{"paths":["/a","/b","/c","/d"],"kind":"MultiHash","version":2}"#, too_many);
    check_key_rejected(r#"{"paths":["/a","/b"],"kind":"Hash","version":2}"#, "Too many partition key paths");
    check_key_rejected(r#"{"paths":[],"kind":"Hash"}"#, "has no paths");
    check_key_rejected(r#"{"kind":"Hash"}"#, "has no paths");
    check_key_rejected(r#"{"paths":["/a","/\"a\""],"kind":"MultiHash"}"#, "there twice");
    check_key_rejected(r#"{"paths":["/a","/b"],"kind":"MultiHash","version":1}"#, "needs version 2");
    check_key_rejected(r#"{"paths":["/a"],"kind":"Range"}"#, "is not Hash or MultiHash");
    check_key_rejected(r#"{"paths":["/a"],"version":3}"#, "is not 1 or 2");
    check_key_rejected(r#"{"paths":"/a"}"#, "One of the specified inputs is invalid");
    check_key_rejected(r#"["/a"]"#, "One of the specified inputs is invalid");
}

/// S8: a partition key path has no trailing wildcard, unlike an index path.
#[test]
fn s8_a_partition_key_path_names_a_property() {
    check_key(r#"{"paths":["/department"]}"#, r#"{"paths":["/department"],"kind":"Hash","version":1}"#);
    for path in ["/department/?", "/department/*", "/department/", "/", "department", "/a/[]/b"] {
        check_key_rejected(&format!(r#"{{"paths":["{path}"]}}"#), &format!("path '{path}' could not be accepted"));
    }
    create(r#""indexingPolicy":{"includedPaths":[{"path":"/*"},{"path":"/department/?"},{"path":"/department/*"}]}"#);
}

/// S15: the key of a container cannot be changed in place.
#[test]
fn s15_the_partition_key_is_immutable() {
    let (old, fixed) = (create(""), "partition key cannot be changed");
    let with = |key: &str| value(&format!(r#"{{"id":"c","partitionKey":{key}}}"#));
    check_invalid(old.replace(&with(r#"{"paths":["/other"],"kind":"Hash","version":2}"#)), fixed);
    check_invalid(old.replace(&with(r#"{"paths":["/pk"],"kind":"Hash","version":1}"#)), fixed);
    check_invalid(old.replace(&with(r#"{"paths":["/pk"],"kind":"MultiHash","version":2}"#)), fixed);
    check_invalid(old.replace(&with("null")), fixed);
    for same in [r#"{"paths":["/pk"],"kind":"Hash","version":2}"#, r#"{"paths":["/\"pk\""],"kind":"Hash"}"#] {
        assert_eq!(old.replace(&with(same)), Ok(old.clone()));
    }
}

/// S74: a container may have no key; the engine decides when that is allowed.
#[test]
fn s74_a_fixed_container_has_no_key() {
    let bare = value(r#"{"id":"fixed"}"#);
    let fixed = ContainerDefinition::create(&bare).expect("the definition is accepted");
    assert_eq!((&fixed.partition_key, fixed.to_object().get("partitionKey")), (&None, None));
    assert_eq!(fixed.replace(&bare), Ok(fixed.clone()));
    let keyed = value(r#"{"id":"fixed","partitionKey":{"paths":["/a"]}}"#);
    check_invalid(fixed.replace(&keyed), "partition key cannot be changed");
}

#[test]
fn the_id_is_required_and_immutable() {
    let error = ContainerDefinition::create(&value("{}")).unwrap_err();
    assert_eq!(error.fact(), Some(&crate::Fact::IdMissing));
    check_invalid(ContainerDefinition::create(&value(r#"{"id":"a/b"}"#)), "");
    check_invalid(ContainerDefinition::create(&value(&format!(r#"{{"id":"{}"}}"#, "x".repeat(256)))), "255");
    check_invalid(ContainerDefinition::create(&value("[]")), "One of the specified inputs is invalid");
    let renamed = value(r#"{"id":"d","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#);
    check_invalid(create("").replace(&renamed), "cannot be renamed");
}

#[test]
fn time_to_live_is_in_range_and_needs_an_index() {
    for ttl in ["-1", "1", "2147483647"] {
        check_returned(&format!(r#""defaultTtl":{ttl}"#), "defaultTtl", ttl);
    }
    for ttl in ["0", "-2", "-10", "2147483648"] {
        check_rejected(&format!(r#""defaultTtl":{ttl}"#), &format!("The defaultTtl {ttl} is not"));
    }
    check_rejected(r#""defaultTtl":"soon""#, "One of the specified inputs is invalid");
    assert_eq!(create(r#""defaultTtl":null"#).default_ttl, None);
    check_rejected(r#""defaultTtl":5,"indexingPolicy":{"indexingMode":"none"}"#, "needs the indexing mode consistent");
    assert_eq!(create(r#""defaultTtl":5"#).replace(&body("")).map(|new| new.default_ttl), Ok(None));
}

#[test]
fn the_conflict_resolution_policy_is_stored_and_immutable() {
    let name = "conflictResolutionPolicy";
    let member = |policy: &str| format!(r#""{name}":{policy}"#);
    let by_path = r#"{"mode":"LastWriterWins","conflictResolutionPath":"/rank","conflictResolutionProcedure":""}"#;
    check_returned(&member(by_path), name, by_path);
    let custom =
        r#"{"mode":"Custom","conflictResolutionPath":"","conflictResolutionProcedure":"dbs/d/colls/c/sprocs/r"}"#;
    check_returned(&member(custom), name, custom);
    check_rejected(
        &member(r#"{"mode":"Custom","conflictResolutionPath":"/a"}"#),
        "Custom conflict resolution mode should not have conflict resolution path set.",
    );
    check_rejected(
        &member(r#"{"mode":"LastWriterWins","conflictResolutionProcedure":"dbs/d/colls/c/sprocs/r"}"#),
        "LastWriterWins conflict resolution mode should not have conflict resolution procedure set.",
    );
    let nested = member(r#"{"mode":"LastWriterWins","conflictResolutionPath":"/a/b"}"#);
    check_rejected(&nested, "Invalid path '/a/b' for last writer wins conflict resolution");
    assert!(
        ContainerDefinition::from_stored(ContainerKind::Nosql, &body(&nested)).is_ok(),
        "a stored definition is still accepted"
    );
    check_rejected(&member(r#"{"mode":"Coin"}"#), "'Coin' is neither LastWriterWins nor Custom");

    let old = create(&member(by_path));
    assert_eq!(old.replace(&body("")), Ok(old.clone()));
    check_invalid(
        old.replace(&body(&member(custom))),
        "Updating conflict resolution policy is currently not supported",
    );
}

#[track_caller]
fn check_unsupported_setting(members: &str, wanted: Option<&str>) {
    let definition = create(members);
    assert_eq!(definition.unsupported_setting(), wanted);
    assert_eq!(ContainerDefinition::create(&definition.to_object().into()), Ok(definition));
}

#[test]
fn unsupported_settings_are_reported() {
    check_unsupported_setting(r#""dataMaskingPolicy":{"includedPaths":[{"path":"/a"}]}"#, Some("dataMaskingPolicy"));
    check_unsupported_setting(r#""analyticalStorageTtl":-1"#, Some("analyticalStorageTtl"));
    check_unsupported_setting(r#""defaultTtl":5,"ttlPropertyPath":"/born""#, Some("ttlPropertyPath"));
    check_unsupported_setting(r#""ttlPropertyPath":"""#, None);
    check_rejected(r#""ttlPropertyPath":"/born""#, "ttlPropertyPath needs a defaultTtl");
    check_unsupported_setting(r#""indexingPolicy":{"indexingMode":"lazy"}"#, Some("indexingMode lazy"));
    let source =
        r#""vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","embeddingSource":{"authType":"Entra"}}]}"#;
    check_unsupported_setting(source, Some("embeddingSource"));
}

#[test]
fn a_global_secondary_index_has_a_source_and_a_definition() {
    for name in ["materializedViewDefinition", "globalSecondaryIndexDefinition"] {
        let members = format!(r#""{name}":{{"sourceCollectionId":"s","definition":"SELECT * FROM c"}}"#);
        check_unsupported_setting(&members, None);
        let index = create(&members);
        let view = index.global_index.clone().unwrap();
        assert_eq!((view.source.as_str(), view.source_rid, view.member()), ("s", None, name));
        let sent_back = format!(
            r#""{name}":{{"sourceCollectionId":"s","sourceCollectionRid":"AQAAAIAAAAE=","definition":"SELECT * FROM c","status":"Active"}}"#
        );
        assert_eq!(index.replace(&body(&sent_back)).unwrap().global_index, Some(view));
        let fixed = format!("'{name}' cannot be changed");
        check_invalid(index.replace(&body(&members.replace('*', "c.a"))), &fixed);
        check_invalid(index.replace(&body("")), &fixed);
    }
    check_rejected(r#""materializedViewDefinition":{"sourceCollectionId":"s"}"#, "needs 'definition'");
    let unique = r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]}"#;
    let view = r#""materializedViewDefinition":{"sourceCollectionId":"s","definition":"SELECT * FROM c"}"#;
    check_rejected(&format!("{unique},{view}"), "no unique keys");
}

#[test]
fn clients_cannot_change_the_indexes_of_a_source() {
    let source = create(r#""materializedViews":[{"id":"i","_rid":"AQAAAIAAAAI="}]"#);
    assert_eq!(source.indexed_by.len(), 1);
    assert!(source.records_versions() && !source.has_all_versions_feed());
    assert_eq!(ContainerDefinition::create(&source.to_object().into()), Ok(source.clone()));
    assert_eq!(source.replace(&body("")).unwrap().indexed_by, source.indexed_by);
}

#[test]
fn empty_policies_and_query_accelerators_are_supported() {
    check_unsupported_setting("", None);
    let nothing = r#""uniqueKeyPolicy":{"uniqueKeys":[]},"changeFeedPolicy":{"retentionDuration":0},"dataMaskingPolicy":{"includedPaths":[]},"analyticalStorageTtl":0"#;
    check_unsupported_setting(nothing, None);
    check_unsupported_setting(r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]}"#, None);
    check_unsupported_setting(r#""computedProperties":[{"name":"a","query":"SELECT VALUE 1 FROM c"}]"#, None);
    let helps = r#""geospatialConfig":{"type":"Geometry"},
        "vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dimensions":3}]},"fullTextPolicy":{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/t"}]},
        "indexingPolicy":{"vectorIndexes":[{"path":"/v","type":"flat"}],"fullTextIndexes":[{"path":"/t"}],"compositeIndexes":[[{"path":"/a"},{"path":"/b"}]]}"#;
    check_unsupported_setting(helps, None);
}

#[test]
fn members_of_the_wrong_type_are_rejected() {
    let names = [
        "partitionKey",
        "indexingPolicy",
        "defaultTtl",
        "uniqueKeyPolicy",
        "conflictResolutionPolicy",
        "geospatialConfig",
        "computedProperties",
        "vectorEmbeddingPolicy",
        "fullTextPolicy",
        "clientEncryptionPolicy",
        "changeFeedPolicy",
        "analyticalStorageTtl",
        "materializedViewDefinition",
        "dataMaskingPolicy",
    ];
    for name in names {
        check_rejected(&format!(r#""{name}":"text""#), "One of the specified inputs is invalid");
    }
    check_rejected(r#""changeFeedPolicy":{"retentionDuration":-1}"#, "is not a number of minutes");
    check_rejected(r#""ttlPropertyPath":1"#, "One of the specified inputs is invalid");
    check_rejected(r#""analyticalStorageTtl":-2"#, "The analyticalStorageTtl -2 is not");
}

/// JSON similar to a definition: correct names, often wrong values.
fn almost_definition() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        prop::sample::select(vec!["/a", "/*", "/a/?", "/b/[]/c/*", "none", "Hash", "flat", "en-US", "Custom", "Point"])
            .prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "id",
        "partitionKey",
        "paths",
        "kind",
        "indexingPolicy",
        "indexingMode",
        "includedPaths",
        "excludedPaths",
        "compositeIndexes",
        "spatialIndexes",
        "vectorIndexes",
        "fullTextIndexes",
        "path",
        "type",
        "types",
        "order",
        "uniqueKeyPolicy",
        "uniqueKeys",
        "conflictResolutionPolicy",
        "mode",
        "vectorEmbeddingPolicy",
        "vectorEmbeddings",
        "fullTextPolicy",
        "defaultLanguage",
        "fullTextPaths",
        "changeFeedPolicy",
        "defaultTtl",
    ]);
    leaf.prop_recursive(4, 32, 5, move |inner| {
        let object = prop::collection::vec((names.clone(), inner.clone()), 0..5).prop_map(|members| {
            Value::Object(members.into_iter().fold(Object::new(), |object, (name, value)| object.with(name, value)))
        });
        prop_oneof![object, prop::collection::vec(inner, 0..3).prop_map(Value::Array)]
    })
}

fn index_text() -> impl Strategy<Value = String> {
    let step = prop::sample::select(vec!["a", "b", "\\\"x y\\\"", "[]", "_etag"]);
    (prop::collection::vec(step, 1..4), prop::sample::select(vec!["?", "*"]))
        .prop_map(|(steps, end)| format!("/{}/{end}", steps.join("/")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Any JSON is a definition or an error, and an accepted definition round-trips.
    #[test]
    fn any_json_is_a_definition_or_an_error(part in almost_definition(), name in prop::sample::select(vec![
        "indexingPolicy", "uniqueKeyPolicy", "vectorEmbeddingPolicy", "fullTextPolicy", "partitionKey",
        "conflictResolutionPolicy", "geospatialConfig", "computedProperties", "clientEncryptionPolicy",
    ])) {
        let mut object = Object::new().with("id", "c");
        object.set(name, part);
        if let Ok(definition) = ContainerDefinition::create(&object.into()) {
            prop_assert_eq!(ContainerDefinition::create(&definition.to_object().into()), Ok(definition));
        }
    }

    #[test]
    fn definitions_round_trip(
        included in prop::collection::btree_set(index_text(), 0..5),
        excluded in prop::collection::btree_set(index_text(), 0..5),
        ttl in prop::option::of(1i32..), version in 1..3, levels in 1usize..4,
    ) {
        let entries = |paths: Vec<&String>| paths.iter().map(|path| format!(r#"{{"path":"{path}"}}"#)).collect::<Vec<_>>().join(",");
        let excluded = entries(excluded.difference(&included).collect());
        let included = entries(included.iter().collect());
        let comma = if included.is_empty() { "" } else { "," };
        let ttl = ttl.map_or("null".to_owned(), |ttl| ttl.to_string());
        let (kind, version) = if levels == 1 { ("Hash", version) } else { ("MultiHash", 2) };
        let paths = (0..levels).map(|level| format!("\"/k{level}\"")).collect::<Vec<_>>().join(",");
        let body = value(&format!(
            r#"{{"id":"c","partitionKey":{{"paths":[{paths}],"kind":"{kind}","version":{version}}},"defaultTtl":{ttl},
                "indexingPolicy":{{"includedPaths":[{included}{comma}{{"path":"/*"}}],"excludedPaths":[{excluded}]}}}}"#
        ));
        let definition = ContainerDefinition::create(&body).expect("the definition is accepted");
        prop_assert_eq!(definition.partition_key.as_ref().map(|key| key.kind == KeyKind::Hash), Some(levels == 1));
        let read_back = Value::Object(definition.to_object());
        prop_assert_eq!(ContainerDefinition::create(&read_back), Ok(definition.clone()));
        prop_assert_eq!(definition.replace(&read_back), Ok(definition.clone()));
    }
}
