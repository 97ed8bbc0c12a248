//! Both formats of a batch, decoded and encoded; the .NET one byte by byte.

use pleiad_engine::Precondition;
use proptest::prelude::*;

use super::hybrid_row::{OPERATION, RESULT};
use super::*;
use crate::nosql::hybrid_row::RecordIoWriter;
use crate::nosql::hybrid_row::row::{HybridRow, Sparse};

/// An operation as the .NET SDK writes it.
struct TestOperation<'a> {
    operation: u32,
    key: Option<&'a str>,
    id: Option<&'a str>,
    body: Option<&'a str>,
    if_match: Option<&'a str>,
    minimal: bool,
}

const BARE_READ: TestOperation<'static> =
    TestOperation { operation: 2, key: None, id: None, body: None, if_match: None, minimal: false };

fn encode(operations: &[TestOperation<'_>]) -> Vec<u8> {
    let mut stream = RecordIoWriter::new();
    for operation in operations {
        let text = |text: Option<&'static str>| text.map(str::as_bytes);
        let bytes = |value: Option<&str>| value.map(|value| value.as_bytes().to_vec());
        let (key, id, body, if_match) =
            (bytes(operation.key), bytes(operation.id), bytes(operation.body), bytes(operation.if_match));
        let row = HybridRow {
            fixed: vec![Some(operation.operation), Some(2)],
            variable: vec![key.as_deref(), text(None), id.as_deref(), text(None), body.as_deref()],
            sparse: vec![
                None,
                if_match.as_deref().map(Sparse::Bytes),
                None,
                None,
                operation.minimal.then_some(Sparse::Bool(true)),
            ],
        };
        stream.push(&row.write(&OPERATION));
    }
    stream.finish()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_read_has_the_documented_layout() {
    let body = encode(&[TestOperation { id: Some("a"), ..BARE_READ }]);
    let row = "817054e17f130200000002000000".to_owned() + "0161";
    let record = hex(&body[10..]);
    assert_eq!(hex(&body[..10]), "81f0d8ff7f010a000000");
    assert!(record.starts_with("81f1d8ff7f10000000") && record.ends_with(&row), "{record}");
}

#[test]
fn every_operation_type_of_the_dotnet_sdk_is_known() {
    let item = Some(r#"{"id":"a","pk":"p"}"#);
    let operations = [
        TestOperation { operation: 0, body: item, minimal: true, ..BARE_READ },
        TestOperation { operation: 20, body: item, ..BARE_READ },
        TestOperation { operation: 5, id: Some("a"), body: item, if_match: Some("\"e\""), ..BARE_READ },
        TestOperation {
            operation: 1,
            id: Some("a"),
            body: Some(r#"{"operations":[{"op":"remove","path":"/n"}]}"#),
            ..BARE_READ
        },
        TestOperation { id: Some("a"), key: Some("[\"p\"]"), ..BARE_READ },
        TestOperation { operation: 4, id: Some("a"), ..BARE_READ },
    ];
    let body = encode(&operations);
    assert_eq!(BatchFormat::of(&body), BatchFormat::HybridRow);
    let (parsed, minimal) = parse(BatchFormat::HybridRow, &body).unwrap();
    let verbs: Vec<&str> = parsed.iter().map(|operation| verb(operation.action.as_ref().unwrap())).collect();
    assert_eq!(verbs, ["create", "upsert", "replace", "patch", "read", "delete"]);
    assert_eq!(minimal, [true, false, false, false, false, false]);
    assert_eq!(parsed[2].options.condition, Precondition::IfMatch("\"e\"".into()));
    assert_eq!(parsed[4].key, Some(PartitionKey::parse("[\"p\"]").unwrap()));
    assert!(parse(BatchFormat::HybridRow, &encode(&[TestOperation { operation: 9, ..BARE_READ }])).is_err());
}

fn verb(action: &BatchAction) -> &'static str {
    match action {
        BatchAction::Create(_) => "create",
        BatchAction::Upsert(_) => "upsert",
        BatchAction::Replace(_) => "replace",
        BatchAction::Patch(_) => "patch",
        BatchAction::Read => "read",
        BatchAction::Delete => "delete",
    }
}

#[test]
fn an_operation_with_an_invalid_body_fails_by_itself() {
    let body = encode(&[
        TestOperation { operation: 0, body: Some("{"), ..BARE_READ },
        TestOperation { operation: 0, ..BARE_READ },
        TestOperation { operation: 1, body: Some("{}"), ..BARE_READ },
    ]);
    let (parsed, _) = parse(BatchFormat::HybridRow, &body).unwrap();
    assert!(parsed.iter().all(|operation| operation.action.is_err()));
}

#[test]
fn bulk_partition_keys_may_be_text_or_arrays() {
    let text = br#"[{"operationType":"Read","id":"1","partitionKey":"[\"a\"]"},{"operationType":"read","id":"1","partitionKey":["a"]}]"#;
    let (parsed, _) = parse(BatchFormat::Json, text).unwrap();
    assert_eq!(parsed[0].key, parsed[1].key);
    assert_eq!(parsed[0].key, Some(PartitionKey::parse("[\"a\"]").unwrap()));
    assert!(parse(BatchFormat::Json, br#"[{"operationType":"Read","partitionKey":"a"}]"#).is_err());
}

fn failed() -> BatchOperationResult {
    let kind = pleiad_model::Kind::Throttled {
        retry_after: std::time::Duration::from_millis(12),
        over: pleiad_model::ExceededLimit::Share,
    };
    BatchOperationResult { result: Err(Error::new(kind, "later")), charge_ru: 0.0 }
}

#[test]
fn results_have_the_form_of_their_request() {
    let container = ContainerRid::parse("AAAAAYAAAAE=").unwrap_or_else(|| panic!("a rid"));
    let deleted = || BatchOperationResult { result: Ok(OperationOutcome::Deleted), charge_ru: 5.349 };
    let text = write(BatchFormat::Json, container, vec![deleted(), failed()], &[false, false]);
    assert_eq!(
        String::from_utf8(text).unwrap(),
        r#"[{"statusCode":204,"requestCharge":5.35},{"statusCode":429,"subStatusCode":3200,"requestCharge":0,"retryAfterMilliseconds":12,"message":"later"}]"#
    );
    let records = write(BatchFormat::HybridRow, container, vec![deleted(), failed()], &[false, false]);
    let rows = crate::nosql::hybrid_row::records(&records).unwrap();
    let rows: Vec<HybridRow<'_>> = rows.iter().map(|row| HybridRow::read(&RESULT, row).unwrap()).collect();
    assert_eq!(rows[0].fixed, [Some(204), Some(0)]);
    assert_eq!(rows[0].sparse, [None, Some(Sparse::F64(5.35))]);
    assert_eq!(rows[1].fixed, [Some(429), Some(3200)]);
    assert_eq!(rows[1].sparse, [Some(Sparse::U32(12)), Some(Sparse::F64(0.0))]);
}

proptest! {
    #[test]
    fn arbitrary_json_never_panics(text in "[\\[\\]{}a-z:,\" ]{0,60}") {
        let _ = parse(BatchFormat::Json, text.as_bytes());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut stream = RecordIoWriter::new();
        stream.push(&[&[0x81, 0x70, 0x54, 0xE1, 0x7F][..], &bytes].concat());
        let _ = parse(BatchFormat::HybridRow, &stream.finish());
        let _ = parse(BatchFormat::HybridRow, &bytes);
    }
}
