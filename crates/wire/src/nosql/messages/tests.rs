//! Every fact has its sentence, status and substatus.

use std::collections::HashSet;
use std::mem::discriminant;
use std::time::Duration;

use pleiad_model::Value;
use pleiad_model::error::{ContainerRecreated, KeyMismatch, NameStart};
use pleiad_model::resource_id::ContainerRid;

use super::*;
use crate::nosql::status::ErrorStatus;

const LEARN: &str = "Learn more: https://aka.ms/cosmosPatchDocs";

#[track_caller]
fn check(fact: Fact, status: u16, substatus: u32, sentence: &str) {
    let error = Error::from(fact);
    assert_eq!(message(&error), sentence);
    let shown = ErrorStatus::from(error);
    assert_eq!((shown.status.code(), shown.substatus.unwrap_or(0)), (status, substatus), "{sentence}");
    assert_eq!(shown.message, sentence);
}

fn start(name: &str) -> Box<NameStart> {
    Box::new(NameStart::of(name))
}

fn throttled_by(over: ExceededLimit, busiest_key: Option<&str>) -> Fact {
    let throttle = Throttle { range: 3, share_ru: 400.0, used_ru: 412.5, busiest_key: busiest_key.map(str::to_owned) };
    let (database, container) = ("db".to_owned(), "c".to_owned());
    let request = ThrottledRequest { retry_after: Duration::from_millis(7), over, database, container, throttle };
    Fact::Throttled(Box::new(request))
}

fn facts() -> Vec<(Fact, u16, u32, &'static str)> {
    let (database, number) = (pleiad_model::resource_id::DatabaseRid(1), 2);
    let actual = ContainerRid { database, number };
    let recreated = ContainerRecreated { actual, intended: "AAAAAYAAAAM=".into() };
    let mismatch = KeyMismatch { expected: vec![Value::from("a")], given: vec![Value::from("b")] };
    let ahead = SessionAhead { range: 4, asked_lsn: 9, reached_lsn: 7 };
    vec![
        (Fact::ItemMissing, 404, 0, "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"),
        (Fact::ResourceMissing, 404, 0, "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found"),
        (Fact::ItemExists, 409, 0, "Resource with specified id or name already exists."),
        (Fact::ResourceExists, 409, 0, "Resource with specified id or name already exists."),
        (Fact::OwnerMissing, 404, 1003, "Owner resource does not exist"),
        (
            Fact::ContainerRecreated(Box::new(recreated)),
            400,
            1024,
            "The container's resource id is AAAAAYAAAAI=, not AAAAAYAAAAM=: it was created anew. Read the container again and retry.",
        ),
        (
            Fact::ActionNotAuthorized { action: "ReadItem" },
            403,
            0,
            "The request was not authorized for the action ReadItem.",
        ),
        (
            Fact::ContainerReadOnly { source: "orders".into() },
            403,
            0,
            "Write operations are not allowed on a global secondary index container: it is read-only. Write to its source container 'orders'.",
        ),
        (Fact::ContainerChanging, 449, 0, "The container is changing all the time. Try again."),
        (Fact::PreconditionNotMet, 412, 0, "One of the specified pre-condition is not met."),
        (Fact::UniqueViolation, 409, 0, "Resource with specified id, name, or unique index already exists."),
        (
            Fact::ConflictingWrite,
            449,
            0,
            "Another request has changed an item that this transaction has written. Try again.",
        ),
        (Fact::FailedDependency, 424, 0, "Another operation of the same request failed."),
        (
            Fact::KeyMissing,
            400,
            1001,
            "The partition key supplied in x-ms-partitionkey header has fewer components than defined in the the collection.",
        ),
        (Fact::KeyMismatch(Box::new(mismatch)), 400, 1001, KEY_MISMATCH),
        (
            Fact::KeyLevels { given: 1, expected: 3 },
            400,
            1001,
            "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key field values specified in the document.",
        ),
        (
            Fact::KeyPrefixLevels { given: 4, levels_max: 3 },
            400,
            1001,
            "The partition key has more components than the container's definition.",
        ),
        (
            Fact::KeyValueTooLong { bytes_max: 2048 },
            400,
            0,
            "A partition key value is longer than 2048 bytes. Shorten it, or use a hash of it as the key.",
        ),
        (
            Fact::KeyNotArray { text: "a".into() },
            400,
            0,
            "The partition key 'a' is invalid: write a JSON array with one value per key path, as in [\"value\"].",
        ),
        (
            Fact::KeyValueNotScalar,
            400,
            0,
            "A partition key value is a string, a number, a boolean, null, or {} where the item has none; an object or an array cannot be one.",
        ),
        (
            Fact::KeyOutsideTransaction,
            400,
            0,
            "Requests of a transaction cannot reference partition keys other than the one for which it was begun.",
        ),
        (
            Fact::KeyOutsideScript,
            400,
            0,
            "Requests originating from scripts cannot reference partition keys other than the one for which client request was submitted.",
        ),
        (Fact::ItemNotObject, 400, 0, "The input content is invalid: an item is a JSON object."),
        (
            Fact::IdMissing,
            400,
            0,
            "The input content is invalid because the required properties - 'id; ' - are missing",
        ),
        (Fact::IdNotString, 400, 0, "The input content is invalid because the required property 'id' is not a string."),
        (
            Fact::ItemIdLength { start: start(&"a".repeat(1024)), bytes_max: 1023 },
            400,
            0,
            "The input name 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…' is invalid. Ensure to provide a unique non-empty string less than '1024' characters.",
        ),
        (
            Fact::ResourceNameLength { start: start(""), chars_max: 255 },
            400,
            0,
            "The input name '' is invalid. Ensure to provide a unique non-empty string less than '255' characters.",
        ),
        (
            Fact::NameCharacter { name: "a/b".into() },
            400,
            0,
            "The input name 'a/b' is invalid: it must not contain '/', '\\', '#' or '?'.",
        ),
        (
            Fact::ReplacementCharacter { text: "\u{FFFD}".into() },
            400,
            0,
            "The input name or partition key '\u{FFFD}' is invalid: it must not contain U+FFFD or an unpaired surrogate, which is read as U+FFFD.",
        ),
        (
            Fact::NameTrailingSpace { name: "a ".into() },
            400,
            0,
            "The input name 'a ' is invalid: it must not end with a space.",
        ),
        (
            Fact::TtlOutOfRange { ttl: Box::new(Value::from("5")), seconds_max: 2_147_483_647 },
            400,
            0,
            "The input ttl '\"5\"' is invalid. Ensure to provide a nonzero positive integer less than or equal to '2147483647', or '-1' which means never expire.",
        ),
        (
            Fact::ItemTooLarge { bytes: 3_000_000, bytes_max: 2_097_152 },
            413,
            0,
            "Request size is too large: an item has at most 2097152 bytes, this one has 3000000.",
        ),
        (
            Fact::Patch(Box::new(PatchError { operation: Some(2), fault: PatchFault::NotFinite })),
            400,
            0,
            "For Operation(2): Increment leads to a number that is too large.",
        ),
        (Fact::BatchEmpty, 400, 0, "Batch request has no operations."),
        (
            Fact::BatchTooLong { operations: 101, operations_max: 100 },
            400,
            0,
            "Batch request has more operations than what is supported.",
        ),
        (Fact::BatchItemUnnamed, 400, 0, "The batch operation needs the 'id' of an item."),
        (
            Fact::KeyFull { bytes_max: 4096 },
            403,
            1014,
            "Partition key reached maximum size of 4096 bytes. Delete items of this key, or choose a key with more values.",
        ),
        (
            Fact::PartitionFull { bytes_max: 4096, range: 2 },
            403,
            0,
            "The partition has reached its maximum size of 4096 bytes, and all its items have one partition key value, so that it cannot be split. Delete items, or choose a key with more values.",
        ),
        (
            Fact::ContainerFull { bytes_max: 4096 },
            403,
            0,
            "The container has no partition key and has reached its maximum size of 4096 bytes. Delete items, or move them to a container with a partition key.",
        ),
        (Fact::DocnumsExhausted { range: 2 }, 403, 0, "this partition has used up its item numbers"),
        (
            Fact::TransactionTooLarge { changes_max: 65_535, bytes_max: 67_108_864 },
            413,
            0,
            "A transaction makes at most 65535 changes and writes at most 67108864 bytes.",
        ),
        (
            throttled_by(ExceededLimit::Share, Some("[\"a\"]")),
            429,
            3200,
            "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Partition key range 3 of db/c: its share is 400 RU/s, 412.5 are used in this second. The busiest partition key is [\"a\"]. Learn more: http://aka.ms/cosmosdb-error-429",
        ),
        (
            throttled_by(ExceededLimit::Bucket, None),
            429,
            3212,
            "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Partition key range 3 of db/c: the throughput bucket may use 400 RU/s, 412.5 are used in this second. Learn more: http://aka.ms/cosmosdb-error-429",
        ),
        (
            Fact::SessionAhead(Box::new(ahead)),
            404,
            1002,
            "The read session is not available for the input session token. It asks for 9, partition 4 has reached 7.",
        ),
        (
            Fact::RangeGone { range: 4, epoch: 2 },
            410,
            1002,
            "Partition key range 4 is gone. Read the container's partition key ranges again.",
        ),
        (Fact::ForeignCursor, 400, 0, "The continuation token belongs to another request: start again without it."),
        (
            Fact::ForeignChangeCursor,
            400,
            0,
            "The change feed's position belongs to another request: start again without it.",
        ),
        (
            Fact::ChangesAhead { after_lsn: 9, reached_lsn: 4 },
            400,
            0,
            "The change feed's position 9 is ahead of the partition, which has reached 4: its data was lost or restored from an earlier copy. Start again from the beginning, from a time or from now.",
        ),
        (
            Fact::AllVersionsDisabled,
            400,
            0,
            "The change feed mode All Versions and Deletes must be enabled on the container: give it a changeFeedPolicy with a retentionDuration in minutes.",
        ),
        (
            Fact::AllVersionsFromStart,
            400,
            0,
            "FullFidelity Change Feed must have valid If-None-Match header. All versions and deletes are read from now on or from a position, not from the beginning or a time.",
        ),
        (
            Fact::VersionsTrimmed { after_lsn: 3, retained_from_lsn: 8 },
            400,
            0,
            "The position lies before the versions that this container keeps: start from now, or keep them for longer.",
        ),
        (
            Fact::CrossPartitionDisabled,
            400,
            0,
            "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception.",
        ),
        (
            Fact::MergeLeftToClient,
            400,
            1004,
            "The provided cross partition query can not be directly served by the gateway. Cross partition query only supports 'VALUE <AggreateFunc>' for aggregates, and needs a client that asks for the query plan; or send x-pleiad-cross-partition: true to have the server do all of it.",
        ),
        (
            Fact::ThroughputKindChange,
            400,
            0,
            "The offer cannot change between manual and autoscale throughput without the migration header x-ms-cosmos-migrate-offer-to-autopilot or x-ms-cosmos-migrate-offer-to-manual-throughput.",
        ),
        (Fact::InjectedThrottle { retry_after_ms: 7 }, 429, 3200, "Request rate is large: a fault set by a test."),
        (Fact::InjectedGone { epoch: 2 }, 410, 1002, "The partition key range is gone: a fault set by a test."),
        (Fact::Stopping, 503, 0, "the server is stopping"),
        (Fact::Unacknowledged, 503, 0, "the server is stopping"),
        (
            Fact::EarlierCommitFailed(Box::new(Error::internal("the disk is full"))),
            503,
            0,
            "an earlier write could not be made durable: the disk is full. Writes continue when the disk works again.",
        ),
    ]
}

/// The number of variants; the compiler asks for the sentence of a new one, this number for its line in the table.
const FACTS: usize = 58;

#[test]
fn every_fact_has_a_status_and_a_sentence() {
    let facts = facts();
    assert_eq!(facts.iter().map(|(fact, ..)| discriminant(fact)).collect::<HashSet<_>>().len(), FACTS);
    facts.into_iter().for_each(|(fact, status, substatus, sentence)| check(fact, status, substatus, sentence));
}

#[test]
fn every_fault_of_a_patch_has_a_sentence() {
    let path = || "/a/b".to_owned();
    let check = |fault: PatchFault, sentence: &str| {
        assert_eq!(sentence, patch(&PatchError { operation: None, fault: fault.clone() }));
        let numbered = format!("For Operation(3): {sentence}");
        assert_eq!(numbered, patch(&PatchError { operation: Some(3), fault }));
    };
    check(PatchFault::NoOperationsArray, "The patch request is invalid: it needs an array 'operations'.");
    check(PatchFault::ConditionNotString, "The patch request is invalid: its condition is not a string.");
    check(PatchFault::NoOperations, "The patch request has no operations.");
    check(
        PatchFault::TooManyOperations { operations_max: 10 },
        &format!("The number of patch operations can't exceed '10'. {LEARN}"),
    );
    check(PatchFault::UnknownOperation { name: "copy".into() }, &format!("'copy' is not a patch operation. {LEARN}"));
    check(
        PatchFault::MemberMissing { operation: "set".into(), member: "value" },
        &format!("The set operation needs 'value'. {LEARN}"),
    );
    check(PatchFault::PathNotAbsolute { path: "a".into() }, "The path 'a' must name a property and begin with '/'.");
    check(PatchFault::PathEscape { path: "/a~2".into() }, "In the path '/a~2' a '~' must be written as ~0.");
    check(
        PatchFault::SystemProperty { path: "/_ts".into() },
        &format!("The system property '/_ts' cannot be patched. {LEARN}"),
    );
    check(
        PatchFault::PartitionKey { path: path() },
        &format!("The partition key of an item cannot be patched: '/a/b'. {LEARN}"),
    );
    check(
        PatchFault::MoveIntoItself { from: "/a".into(), to: path() },
        &format!("'/a/b' lies inside of '/a', which it would be moved from. {LEARN}"),
    );
    check(PatchFault::NotNumeric, &format!("Increment Operation can only be performed on numbers. {LEARN}"));
    check(PatchFault::NotFinite, "Increment leads to a number that is too large.");
    check(PatchFault::TooDeep { depth_max: 128 }, "An item has at most 128 arrays and objects inside each other.");
    check(
        PatchFault::IndexOutOfRange { path: path() },
        &format!("The array index is beyond the end of the array: '/a/b'. {LEARN}"),
    );
    let verbs = [
        (PatchVerb::Add, "Add"),
        (PatchVerb::Set, "Set"),
        (PatchVerb::Replace, "Replace"),
        (PatchVerb::Remove, "Remove"),
        (PatchVerb::Increment, "Increment"),
        (PatchVerb::Move, "Move"),
    ];
    for (verb, name) in verbs {
        check(
            PatchFault::PathNotFound { verb, path: path() },
            &format!("{name} Operation can only be performed on an existing node, no path found: '/a/b'. {LEARN}"),
        );
        check(
            PatchFault::ParentNotFound { verb, parent: path() },
            &format!(
                "{name} Operation can only create a child object of an existing node (array or object) and cannot create path recursively, no path found beyond: '/a/b'. {LEARN}"
            ),
        );
    }
}

/// Logs are not written in the words of a protocol.
#[test]
fn the_text_for_logs_has_no_sentence_of_the_protocol() {
    let neutral = facts().into_iter().filter(|(fact, ..)| {
        !matches!(fact, Fact::Stopping | Fact::EarlierCommitFailed(_)) // one text for both
    });
    for (fact, _, _, sentence) in neutral {
        let text = fact.to_string();
        assert_ne!(text, sentence);
        assert!(!text.contains("x-ms-") && !text.contains("aka.ms") && !text.contains("If-None-Match"), "{text}");
    }
}

/// Other reasons to be unavailable do not send a request to another engine.
#[test]
fn only_an_engine_that_is_stopping_declines() {
    let declined = |error: Error| ErrorStatus::from(error).is_declined;
    assert!(declined(Fact::Stopping.into()));
    assert!(!declined(Fact::Unacknowledged.into()));
    assert!(!declined(Fact::EarlierCommitFailed(Box::new(Error::internal("the disk is full"))).into()));
    assert!(!declined(Error::unavailable("all script threads are busy")));
    assert!(!declined(Error::unavailable("the server is stopping")));
}

#[test]
fn a_throttled_request_keeps_its_details() {
    let status = ErrorStatus::from(Error::from(throttled_by(ExceededLimit::Share, Some("[\"a\"]"))));
    assert_eq!(status.retry_after_ms, Some(7));
    assert_eq!(
        status.throttle.map(|throttle| (throttle.range, throttle.busiest_key)),
        Some((3, Some("[\"a\"]".into())))
    );
}
