//! Messages: the sentences in which this API reports facts.
//!
//! Invariant: they are the service's own where these are known, odd grammar and all, because tests of applications match
//! on them. No crate below `wire` has one of them. Errors off the item path are text already.

use pleiad_model::error::{PatchError, PatchFault, PatchVerb, SessionAhead, ThrottledRequest};
use pleiad_model::{Error, ErrorDetail, ExceededLimit, Fact, Throttle, json};

#[cfg(test)]
mod tests;

const KEY_MISMATCH: &str = "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key field values specified in the document.";
const LEARN_ABOUT_PATCH: &str = "Learn more: https://aka.ms/cosmosPatchDocs";

/// What a client is told about an error, or a script.
pub fn message(error: &Error) -> String {
    match error.detail() {
        ErrorDetail::Fact(fact) => sentence(fact),
        ErrorDetail::Text(text) => text.clone(),
    }
}

pub fn sentence(fact: &Fact) -> String {
    match fact {
        Fact::ItemMissing | Fact::ResourceMissing => {
            "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found".into()
        }
        Fact::ItemExists | Fact::ResourceExists => "Resource with specified id or name already exists.".into(),
        Fact::OwnerMissing => "Owner resource does not exist".into(),
        Fact::ContainerRecreated(found) => format!(
            "The container's resource id is {}, not {}: it was created anew. Read the container again and retry.",
            found.actual, found.intended
        ),
        Fact::ContainerReadOnly { source } => format!(
            "Write operations are not allowed on a global secondary index container: it is read-only. Write to its source container '{source}'."
        ),
        Fact::ActionNotAuthorized { action } => format!("The request was not authorized for the action {action}."),
        Fact::ContainerChanging => "The container is changing all the time. Try again.".into(),
        Fact::PreconditionNotMet => "One of the specified pre-condition is not met.".into(),
        Fact::UniqueViolation => "Resource with specified id, name, or unique index already exists.".into(),
        Fact::ConflictingWrite => {
            "Another request has changed an item that this transaction has written. Try again.".into()
        }
        Fact::FailedDependency => "Another operation of the same request failed.".into(),
        // The doubled article is the service's.
        Fact::KeyMissing => "The partition key supplied in x-ms-partitionkey header has fewer components than defined in the the collection.".into(),
        Fact::KeyMismatch(_) | Fact::KeyLevels { .. } => KEY_MISMATCH.into(),
        Fact::KeyPrefixLevels { .. } => {
            "The partition key has more components than the container's definition.".into()
        }
        Fact::KeyValueTooLong { bytes_max } => format!(
            "A partition key value is longer than {bytes_max} bytes. Shorten it, or use a hash of it as the key."
        ),
        Fact::KeyNotArray { text } => format!(
            "The partition key '{text}' is invalid: write a JSON array with one value per key path, as in [\"value\"]."
        ),
        Fact::KeyValueNotScalar => "A partition key value is a string, a number, a boolean, null, or {} where the item has none; an object or an array cannot be one.".into(),
        Fact::KeyOutsideTransaction => "Requests of a transaction cannot reference partition keys other than the one for which it was begun.".into(),
        Fact::KeyOutsideScript => "Requests originating from scripts cannot reference partition keys other than the one for which client request was submitted.".into(),
        Fact::ItemNotObject => "The input content is invalid: an item is a JSON object.".into(),
        Fact::IdMissing => {
            "The input content is invalid because the required properties - 'id; ' - are missing".into()
        }
        Fact::IdNotString => {
            "The input content is invalid because the required property 'id' is not a string.".into()
        }
        Fact::ItemIdLength { start, bytes_max } => name_length(start, bytes_max + 1),
        // The service allows as many characters as its message excludes.
        Fact::ResourceNameLength { start, chars_max } => name_length(start, *chars_max),
        Fact::NameCharacter { name } => {
            format!("The input name '{name}' is invalid: it must not contain '/', '\\', '#' or '?'.")
        }
        Fact::NameTrailingSpace { name } => {
            format!("The input name '{name}' is invalid: it must not end with a space.")
        }
        Fact::ReplacementCharacter { text } => format!(
            "The input name or partition key '{text}' is invalid: it must not contain U+FFFD or an unpaired surrogate, which is read as U+FFFD."
        ),
        Fact::TtlOutOfRange { ttl, seconds_max } => format!(
            "The input ttl '{}' is invalid. Ensure to provide a nonzero positive integer less than or equal to '{seconds_max}', or '-1' which means never expire.",
            json::to_string(ttl)
        ),
        Fact::ItemTooLarge { bytes, bytes_max } => {
            format!("Request size is too large: an item has at most {bytes_max} bytes, this one has {bytes}.")
        }
        Fact::Patch(error) => patch(error),
        Fact::BatchEmpty => "Batch request has no operations.".into(),
        Fact::BatchTooLong { .. } => "Batch request has more operations than what is supported.".into(),
        Fact::BatchItemUnnamed => "The batch operation needs the 'id' of an item.".into(),
        Fact::KeyFull { bytes_max } => format!(
            "Partition key reached maximum size of {bytes_max} bytes. Delete items of this key, or choose a key with more values."
        ),
        Fact::PartitionFull { bytes_max, .. } => format!(
            "The partition has reached its maximum size of {bytes_max} bytes, and all its items have one partition key value, so that it cannot be split. Delete items, or choose a key with more values."
        ),
        Fact::ContainerFull { bytes_max } => format!(
            "The container has no partition key and has reached its maximum size of {bytes_max} bytes. Delete items, or move them to a container with a partition key."
        ),
        Fact::DocnumsExhausted { .. } => "this partition has used up its item numbers".into(),
        Fact::TransactionTooLarge { changes_max, bytes_max } => {
            format!("A transaction makes at most {changes_max} changes and writes at most {bytes_max} bytes.")
        }
        Fact::Throttled(request) => throttled(request),
        Fact::SessionAhead(ahead) => {
            let SessionAhead { range, asked_lsn, reached_lsn } = &**ahead;
            format!(
                "The read session is not available for the input session token. It asks for {asked_lsn}, partition {range} has reached {reached_lsn}."
            )
        }
        Fact::RangeGone { range, .. } => {
            format!("Partition key range {range} is gone. Read the container's partition key ranges again.")
        }
        Fact::ForeignCursor => {
            "The continuation token belongs to another request: start again without it.".into()
        }
        Fact::ForeignChangeCursor => {
            "The change feed's position belongs to another request: start again without it.".into()
        }
        Fact::ChangesAhead { after_lsn, reached_lsn } => format!(
            "The change feed's position {after_lsn} is ahead of the partition, which has reached {reached_lsn}: its data was lost or restored from an earlier copy. Start again from the beginning, from a time or from now."
        ),
        Fact::AllVersionsDisabled => "The change feed mode All Versions and Deletes must be enabled on the container: give it a changeFeedPolicy with a retentionDuration in minutes.".into(),
        Fact::AllVersionsFromStart => "FullFidelity Change Feed must have valid If-None-Match header. All versions and deletes are read from now on or from a position, not from the beginning or a time.".into(),
        Fact::VersionsTrimmed { .. } => "The position lies before the versions that this container keeps: start from now, or keep them for longer.".into(),
        Fact::CrossPartitionDisabled => "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception.".into(),
        Fact::MergeLeftToClient => "The provided cross partition query can not be directly served by the gateway. Cross partition query only supports 'VALUE <AggreateFunc>' for aggregates, and needs a client that asks for the query plan; or send x-pleiad-cross-partition: true to have the server do all of it.".into(),
        Fact::ThroughputKindChange => "The offer cannot change between manual and autoscale throughput without the migration header x-ms-cosmos-migrate-offer-to-autopilot or x-ms-cosmos-migrate-offer-to-manual-throughput.".into(),
        Fact::InjectedThrottle { .. } => "Request rate is large: a fault set by a test.".into(),
        Fact::InjectedGone { .. } => "The partition key range is gone: a fault set by a test.".into(),
        Fact::Stopping | Fact::Unacknowledged => "the server is stopping".into(),
        Fact::EarlierCommitFailed(error) => {
            format!("an earlier write could not be made durable: {}. Writes continue when the disk works again.", message(error))
        }
    }
}

fn name_length(start: &impl std::fmt::Display, limit: usize) -> String {
    format!(
        "The input name '{start}' is invalid. Ensure to provide a unique non-empty string less than '{limit}' characters."
    )
}

fn throttled(request: &ThrottledRequest) -> String {
    let ThrottledRequest { over, database, container, throttle, .. } = request;
    let Throttle { range, share_ru, used_ru, busiest_key } = throttle;
    let whose = match over {
        ExceededLimit::Share => "its share is",
        ExceededLimit::Bucket => "the throughput bucket may use",
    };
    let key = busiest_key.as_ref().map(|key| format!(" The busiest partition key is {key}.")).unwrap_or_default();
    format!(
        "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. \
         Partition key range {range} of {database}/{container}: {whose} {share_ru} RU/s, {used_ru} are used in this second.{key} \
         Learn more: http://aka.ms/cosmosdb-error-429"
    )
}

fn patch(PatchError { operation, fault }: &PatchError) -> String {
    let sentence = patch_fault(fault);
    match operation {
        Some(number) => format!("For Operation({number}): {sentence}"),
        None => sentence,
    }
}

fn patch_fault(fault: &PatchFault) -> String {
    match fault {
        PatchFault::NoOperationsArray => "The patch request is invalid: it needs an array 'operations'.".into(),
        PatchFault::ConditionNotString => "The patch request is invalid: its condition is not a string.".into(),
        PatchFault::NoOperations => "The patch request has no operations.".into(),
        PatchFault::TooManyOperations { operations_max } => {
            format!("The number of patch operations can't exceed '{operations_max}'. {LEARN_ABOUT_PATCH}")
        }
        PatchFault::UnknownOperation { name } => format!("'{name}' is not a patch operation. {LEARN_ABOUT_PATCH}"),
        PatchFault::MemberMissing { operation, member } => {
            format!("The {operation} operation needs '{member}'. {LEARN_ABOUT_PATCH}")
        }
        PatchFault::PathNotAbsolute { path } => format!("The path '{path}' must name a property and begin with '/'."),
        PatchFault::PathEscape { path } => format!("In the path '{path}' a '~' must be written as ~0."),
        PatchFault::SystemProperty { path } => {
            format!("The system property '{path}' cannot be patched. {LEARN_ABOUT_PATCH}")
        }
        PatchFault::PartitionKey { path } => {
            format!("The partition key of an item cannot be patched: '{path}'. {LEARN_ABOUT_PATCH}")
        }
        PatchFault::MoveIntoItself { from, to } => {
            format!("'{to}' lies inside of '{from}', which it would be moved from. {LEARN_ABOUT_PATCH}")
        }
        PatchFault::NotNumeric => {
            format!("Increment Operation can only be performed on numbers. {LEARN_ABOUT_PATCH}")
        }
        PatchFault::NotFinite => "Increment leads to a number that is too large.".into(),
        PatchFault::TooDeep { depth_max } => {
            format!("An item has at most {depth_max} arrays and objects inside each other.")
        }
        PatchFault::PathNotFound { verb, path } => format!(
            "{} Operation can only be performed on an existing node, no path found: '{path}'. {LEARN_ABOUT_PATCH}",
            patch_verb(*verb)
        ),
        PatchFault::ParentNotFound { verb, parent } => format!(
            "{} Operation can only create a child object of an existing node (array or object) and cannot create path recursively, no path found beyond: '{parent}'. {LEARN_ABOUT_PATCH}",
            patch_verb(*verb)
        ),
        PatchFault::IndexOutOfRange { path } => {
            format!("The array index is beyond the end of the array: '{path}'. {LEARN_ABOUT_PATCH}")
        }
    }
}

fn patch_verb(verb: PatchVerb) -> &'static str {
    match verb {
        PatchVerb::Add => "Add",
        PatchVerb::Set => "Set",
        PatchVerb::Replace => "Replace",
        PatchVerb::Remove => "Remove",
        PatchVerb::Increment => "Increment",
        PatchVerb::Move => "Move",
    }
}
