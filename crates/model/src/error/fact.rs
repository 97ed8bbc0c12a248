//! Facts: what went wrong, as data: all of the item path, and what else a protocol says in words of its own.
//!
//! Invariants: a fact determines its kind. Building one formats no sentence, because rejected writes and misses are
//! frequent. The text here is for logs and names no header, status or sentence of a protocol: each protocol has a table
//! of its own from facts to its sentences (`wire::nosql::messages`).
//!
//! ```text
//! Fact::KeyFull { bytes_max: 4096 }
//!   kind         KeyFull
//!   in a log     the logical partition has reached its maximum size of 4096 bytes
//!   NoSQL API    403/1014 "Partition key reached maximum size of 4096 bytes. Delete items of this key, or …"
//! ```

use std::fmt;
use std::time::Duration;

use super::{Error, ExceededLimit, Kind, Throttle};
use crate::resource_id::ContainerRid;
use crate::value::Value;

/// Variants with more than 16 bytes of fields are boxed, so that errors stay small.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    ItemMissing,
    ItemExists,
    /// A database, a container or another resource that is not an item.
    ResourceMissing,
    ResourceExists,
    /// The container, or another parent of the addressed resource, does not exist.
    OwnerMissing,
    ContainerRecreated(Box<ContainerRecreated>),
    /// The container is a global secondary index: only its source can be written.
    ContainerReadOnly {
        source: Box<str>,
    },
    /// The request was not authorized for the action that it performs.
    ActionNotAuthorized {
        action: &'static str,
    },
    /// The container changed during every attempt.
    ContainerChanging,

    /// A condition on the current version, such as its etag, does not hold.
    PreconditionNotMet,
    /// Another item of the logical partition has one of the values.
    UniqueViolation,
    /// Another writer has committed a change of an item that the transaction has written.
    ConflictingWrite,
    /// Another operation of the same request failed.
    FailedDependency,

    /// The request has no partition key.
    KeyMissing,
    KeyMismatch(Box<KeyMismatch>),
    /// A partition key with more or fewer levels than the container's definition.
    KeyLevels {
        given: usize,
        expected: usize,
    },
    /// A prefix of a partition key with more levels than the container's definition.
    KeyPrefixLevels {
        given: usize,
        levels_max: usize,
    },
    KeyValueTooLong {
        bytes_max: usize,
    },
    /// The text of a partition key is not a JSON array.
    KeyNotArray {
        text: Box<str>,
    },
    /// A value of a partition key is an object or an array.
    KeyValueNotScalar,
    /// An operation of a transaction addresses another logical partition than the transaction.
    KeyOutsideTransaction,
    /// The same, in a script.
    KeyOutsideScript,

    ItemNotObject,
    IdMissing,
    IdNotString,
    /// An item's id is empty or too long; `start` has its first characters.
    ItemIdLength {
        start: Box<NameStart>,
        bytes_max: usize,
    },
    /// The same of the name of another resource.
    ResourceNameLength {
        start: Box<NameStart>,
        chars_max: usize,
    },
    /// The name has a character that cannot be in one segment of a URL.
    NameCharacter {
        name: Box<str>,
    },
    NameTrailingSpace {
        name: Box<str>,
    },
    /// An id, a name or a value of a partition key has U+FFFD, as which an unpaired surrogate is read: two texts that
    /// differ only there would be the same name.
    ReplacementCharacter {
        text: Box<str>,
    },
    TtlOutOfRange {
        ttl: Box<Value>,
        seconds_max: i64,
    },
    ItemTooLarge {
        bytes: usize,
        bytes_max: usize,
    },
    Patch(Box<PatchError>),
    BatchEmpty,
    BatchTooLong {
        operations: usize,
        operations_max: usize,
    },
    /// An operation of a batch names no item.
    BatchItemUnnamed,

    /// The logical partition has reached its size limit.
    KeyFull {
        bytes_max: u64,
    },
    /// The partition has reached its size limit and cannot be split.
    PartitionFull {
        bytes_max: u64,
        range: u32,
    },
    /// The container has no partition key, so that it cannot be split, and has reached the size limit of a partition.
    ContainerFull {
        bytes_max: u64,
    },
    /// The partition has no docnum left for another item.
    DocnumsExhausted {
        range: u32,
    },
    TransactionTooLarge {
        changes_max: usize,
        bytes_max: usize,
    },
    Throttled(Box<ThrottledRequest>),

    SessionAhead(Box<SessionAhead>),
    /// The partition key range was split or merged, or never existed.
    RangeGone {
        range: u32,
        epoch: u64,
    },
    /// A cursor of a read feed belongs to another feed range.
    ForeignCursor,
    /// A position in the change feed belongs to another feed range.
    ForeignChangeCursor,
    /// A position in the change feed that the partition has not reached: data was lost, or restored from a copy.
    ChangesAhead {
        after_lsn: u64,
        reached_lsn: u64,
    },
    /// The container does not retain all versions.
    AllVersionsDisabled,
    /// All versions were requested from the beginning, or from a time: they are retained for a while only.
    AllVersionsFromStart,
    /// Versions after the requested LSN have been removed.
    VersionsTrimmed {
        after_lsn: u64,
        retained_from_lsn: u64,
    },

    /// The query needs several partitions, which the request does not allow.
    CrossPartitionDisabled,
    /// The rows of several partitions have to be merged, which the request leaves to the client.
    MergeLeftToClient,

    /// The offer would change between manual and autoscale throughput, which the request does not ask for.
    ThroughputKindChange,

    /// A fault that a test has set.
    InjectedThrottle {
        retry_after_ms: u64,
    },
    InjectedGone {
        epoch: u64,
    },

    /// The engine accepts no more writes, because it is closed or replaced. It declined the request and has done
    /// nothing.
    Stopping,
    /// The committer ended before it acknowledged the write, which may or may not be durable.
    Unacknowledged,
    /// An earlier commit failed; no write is accepted until a restart.
    EarlierCommitFailed(Box<Error>),
}

/// The name refers to another container than the client expects.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerRecreated {
    pub actual: ContainerRid,
    /// As the client sent it.
    pub intended: String,
}

/// The partition key of a request, or of an operation in it, is not the expected one.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyMismatch {
    /// One value per level, `{}` where there is none: the item's key or, in a batch for one key, the request's.
    pub expected: Vec<Value>,
    pub given: Vec<Value>,
}

/// The first characters of a name that is too long, or empty.
#[derive(Clone, Debug, PartialEq)]
pub struct NameStart {
    pub text: Box<str>,
    /// Whether the name goes on.
    pub is_cut: bool,
}

/// A partition has no budget left for a request.
#[derive(Clone, Debug, PartialEq)]
pub struct ThrottledRequest {
    pub retry_after: Duration,
    pub over: ExceededLimit,
    pub database: String,
    pub container: String,
    pub throttle: Throttle,
}

/// The partition has not reached the LSN of the session token.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionAhead {
    pub range: u32,
    pub asked_lsn: u64,
    pub reached_lsn: u64,
}

/// Why a patch was rejected.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchError {
    /// The number of the operation, from 1; `None` if the fault is not in one operation.
    pub operation: Option<usize>,
    pub fault: PatchFault,
}

/// Paths are JSON pointers.
#[derive(Clone, Debug, PartialEq)]
pub enum PatchFault {
    NoOperationsArray,
    ConditionNotString,
    NoOperations,
    TooManyOperations { operations_max: usize },
    UnknownOperation { name: String },
    MemberMissing { operation: String, member: &'static str },
    PathNotAbsolute { path: String },
    PathEscape { path: String },
    SystemProperty { path: String },
    PartitionKey { path: String },
    MoveIntoItself { from: String, to: String },
    NotNumeric,
    NotFinite,
    TooDeep { depth_max: usize },
    PathNotFound { verb: PatchVerb, path: String },
    ParentNotFound { verb: PatchVerb, parent: String },
    IndexOutOfRange { path: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchVerb {
    Add,
    Set,
    Replace,
    Remove,
    Increment,
    Move,
}

impl NameStart {
    const CHARS_MAX: usize = 32;

    pub fn of(name: &str) -> NameStart {
        let end = name.char_indices().nth(Self::CHARS_MAX).map_or(name.len(), |(at, _)| at);
        NameStart { text: name[..end].into(), is_cut: end < name.len() }
    }
}

impl Fact {
    pub fn kind(&self) -> Kind {
        match self {
            Fact::ItemMissing | Fact::ResourceMissing => Kind::NotFound,
            Fact::OwnerMissing => Kind::OwnerNotFound,
            Fact::ItemExists | Fact::ResourceExists | Fact::UniqueViolation => Kind::Conflict,
            Fact::ContainerRecreated(_) => Kind::ContainerChanged,
            Fact::ContainerReadOnly { .. } | Fact::ActionNotAuthorized { .. } => Kind::Forbidden,
            Fact::ContainerChanging | Fact::ConflictingWrite => Kind::RetryWith,
            Fact::PreconditionNotMet => Kind::PreconditionFailed,
            Fact::FailedDependency => Kind::FailedDependency,
            Fact::KeyMissing | Fact::KeyMismatch(_) | Fact::KeyLevels { .. } | Fact::KeyPrefixLevels { .. } => {
                Kind::KeyMismatch
            }
            Fact::KeyValueTooLong { .. }
            | Fact::KeyNotArray { .. }
            | Fact::KeyValueNotScalar
            | Fact::KeyOutsideTransaction
            | Fact::KeyOutsideScript
            | Fact::ItemNotObject
            | Fact::IdMissing
            | Fact::IdNotString
            | Fact::ItemIdLength { .. }
            | Fact::ResourceNameLength { .. }
            | Fact::NameCharacter { .. }
            | Fact::NameTrailingSpace { .. }
            | Fact::ReplacementCharacter { .. }
            | Fact::TtlOutOfRange { .. }
            | Fact::Patch(_)
            | Fact::BatchEmpty
            | Fact::BatchTooLong { .. }
            | Fact::BatchItemUnnamed
            | Fact::ForeignCursor
            | Fact::ForeignChangeCursor
            | Fact::ChangesAhead { .. }
            | Fact::AllVersionsDisabled
            | Fact::AllVersionsFromStart
            | Fact::VersionsTrimmed { .. }
            | Fact::CrossPartitionDisabled
            | Fact::ThroughputKindChange => Kind::Invalid,
            Fact::MergeLeftToClient => Kind::CrossPartition,
            Fact::ItemTooLarge { .. } | Fact::TransactionTooLarge { .. } => Kind::TooLarge,
            Fact::KeyFull { .. } => Kind::KeyFull,
            Fact::PartitionFull { .. } | Fact::ContainerFull { .. } | Fact::DocnumsExhausted { .. } => {
                Kind::QuotaExceeded
            }
            Fact::Throttled(request) => Kind::Throttled { retry_after: request.retry_after, over: request.over },
            Fact::InjectedThrottle { retry_after_ms } => {
                Kind::Throttled { retry_after: Duration::from_millis(*retry_after_ms), over: ExceededLimit::Share }
            }
            Fact::SessionAhead(_) => Kind::SessionNotAvailable,
            Fact::RangeGone { epoch, .. } | Fact::InjectedGone { epoch } => Kind::Moved { epoch: *epoch },
            Fact::Stopping | Fact::Unacknowledged | Fact::EarlierCommitFailed(_) => Kind::Unavailable,
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fact::ItemMissing => f.write_str("the item does not exist"),
            Fact::ItemExists => f.write_str("an item with this id exists"),
            Fact::ResourceMissing => f.write_str("the resource does not exist"),
            Fact::ResourceExists => f.write_str("a resource with this name exists"),
            Fact::OwnerMissing => f.write_str("the parent of the resource does not exist"),
            Fact::ContainerRecreated(found) => {
                write!(f, "the container has the resource id {}, not {}", found.actual, found.intended)
            }
            Fact::ContainerReadOnly { source } => write!(f, "the container is an index of '{source}' and read-only"),
            Fact::ActionNotAuthorized { action } => write!(f, "the request was not authorized for {action}"),
            Fact::ContainerChanging => f.write_str("the container changed during every attempt"),
            Fact::PreconditionNotMet => f.write_str("the precondition does not hold"),
            Fact::UniqueViolation => f.write_str("another item has one of the unique values"),
            Fact::ConflictingWrite => f.write_str("another writer has changed an item of the transaction"),
            Fact::FailedDependency => f.write_str("another operation of the same request failed"),
            Fact::KeyMissing => f.write_str("the request has no partition key"),
            // Without the values: they are the client's data.
            Fact::KeyMismatch(_) => f.write_str("the partition key is not the expected one"),
            Fact::KeyLevels { given, expected } => {
                write!(f, "the partition key has {given} levels, the container's definition {expected}")
            }
            Fact::KeyPrefixLevels { given, levels_max } => {
                write!(f, "the partition key has {given} levels, the container's definition {levels_max}")
            }
            Fact::KeyValueTooLong { bytes_max } => {
                write!(f, "a partition key value is longer than {bytes_max} bytes")
            }
            Fact::KeyNotArray { text } => write!(f, "the partition key '{text}' is not a JSON array"),
            Fact::KeyValueNotScalar => f.write_str("a partition key value is an object or an array"),
            Fact::KeyOutsideTransaction => f.write_str("the item is in another logical partition than the transaction"),
            Fact::KeyOutsideScript => f.write_str("the item is in another logical partition than the script"),
            Fact::ItemNotObject => f.write_str("the item is not a JSON object"),
            Fact::IdMissing => f.write_str("the body has no id"),
            Fact::IdNotString => f.write_str("the id in the body is not a string"),
            Fact::ItemIdLength { start, bytes_max } => {
                write!(f, "the id '{start}' is empty or longer than {bytes_max} bytes")
            }
            Fact::ResourceNameLength { start, chars_max } => {
                write!(f, "the name '{start}' is empty or longer than {chars_max} characters")
            }
            Fact::NameCharacter { name } => write!(f, "the name '{name}' has a character that URLs reserve"),
            Fact::NameTrailingSpace { name } => write!(f, "the name '{name}' ends with a space"),
            Fact::ReplacementCharacter { text } => write!(f, "'{text}' has a character that stands for others"),
            Fact::TtlOutOfRange { .. } => f.write_str("the item's time to live is out of range"),
            Fact::ItemTooLarge { bytes, bytes_max } => {
                write!(f, "the item has {bytes} bytes, {bytes_max} are allowed")
            }
            Fact::Patch(error) => error.fmt(f),
            Fact::BatchEmpty => f.write_str("the batch has no operations"),
            Fact::BatchTooLong { operations, operations_max } => {
                write!(f, "the batch has {operations} operations, {operations_max} are allowed")
            }
            Fact::BatchItemUnnamed => f.write_str("an operation of the batch names no item"),
            Fact::KeyFull { bytes_max } => {
                write!(f, "the logical partition has reached its maximum size of {bytes_max} bytes")
            }
            Fact::PartitionFull { bytes_max, range } => {
                write!(f, "partition {range} has reached its maximum size of {bytes_max} bytes and cannot be split")
            }
            Fact::ContainerFull { bytes_max } => {
                write!(f, "the container has no partition key and has reached its maximum size of {bytes_max} bytes")
            }
            Fact::DocnumsExhausted { range } => write!(f, "partition {range} has no docnum left"),
            Fact::TransactionTooLarge { changes_max, bytes_max } => {
                write!(f, "the transaction makes more than {changes_max} changes or writes more than {bytes_max} bytes")
            }
            Fact::Throttled(request) => request.fmt(f),
            Fact::SessionAhead(ahead) => {
                let SessionAhead { range, asked_lsn, reached_lsn } = &**ahead;
                write!(f, "the session token asks for LSN {asked_lsn}, partition {range} has reached {reached_lsn}")
            }
            Fact::RangeGone { range, epoch } => write!(f, "partition {range} does not exist at epoch {epoch}"),
            Fact::ForeignCursor => f.write_str("the cursor belongs to another feed range"),
            Fact::ForeignChangeCursor => f.write_str("the position in the change feed belongs to another feed range"),
            Fact::ChangesAhead { after_lsn, reached_lsn } => {
                write!(f, "changes after LSN {after_lsn} were requested, the partition has reached {reached_lsn}")
            }
            Fact::AllVersionsDisabled => f.write_str("the container does not retain all versions"),
            Fact::AllVersionsFromStart => f.write_str("all versions cannot be read from the beginning or a time"),
            Fact::VersionsTrimmed { after_lsn, retained_from_lsn } => {
                write!(f, "versions after LSN {after_lsn} were removed, they are retained from {retained_from_lsn}")
            }
            Fact::CrossPartitionDisabled => f.write_str("the query needs several partitions, which is not allowed"),
            Fact::MergeLeftToClient => f.write_str("the query needs a merge, which is left to the client"),
            Fact::ThroughputKindChange => {
                f.write_str("manual and autoscale throughput are changed by a migration only")
            }
            Fact::InjectedThrottle { .. } => f.write_str("throttled by a fault that a test has set"),
            Fact::InjectedGone { .. } => f.write_str("the partition is gone by a fault that a test has set"),
            Fact::Stopping => f.write_str("the server is stopping"),
            Fact::Unacknowledged => f.write_str("the committer ended before it acknowledged the write"),
            Fact::EarlierCommitFailed(error) => {
                write!(
                    f,
                    "an earlier write could not be made durable: {error}. Writes continue when the disk works again."
                )
            }
        }
    }
}

impl fmt::Display for NameStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.is_cut { "…" } else { "" })
    }
}

impl fmt::Display for ThrottledRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ThrottledRequest { database, container, throttle, .. } = self;
        let Throttle { range, share_ru, used_ru, .. } = throttle;
        write!(f, "partition {range} of {database}/{container} may provide {share_ru} RU/s, {used_ru} are used")
    }
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            Some(number) => write!(f, "patch operation {number}: {}", self.fault),
            None => write!(f, "patch: {}", self.fault),
        }
    }
}

impl fmt::Display for PatchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatchFault::NoOperationsArray => f.write_str("there is no array of operations"),
            PatchFault::ConditionNotString => f.write_str("the condition is not a string"),
            PatchFault::NoOperations => f.write_str("there are no operations"),
            PatchFault::TooManyOperations { operations_max } => {
                write!(f, "there are more than {operations_max} operations")
            }
            PatchFault::UnknownOperation { name } => write!(f, "'{name}' is not an operation"),
            PatchFault::MemberMissing { operation, member } => write!(f, "{operation} without '{member}'"),
            PatchFault::PathNotAbsolute { path } => write!(f, "the path '{path}' does not begin with '/'"),
            PatchFault::PathEscape { path } => write!(f, "the path '{path}' has an invalid escape"),
            PatchFault::SystemProperty { path } => write!(f, "'{path}' is a system property"),
            PatchFault::PartitionKey { path } => write!(f, "'{path}' is a partition key property"),
            PatchFault::MoveIntoItself { from, to } => write!(f, "'{from}' cannot be moved into itself, to '{to}'"),
            PatchFault::NotNumeric => f.write_str("only numbers can be incremented"),
            PatchFault::NotFinite => f.write_str("the sum is not finite"),
            PatchFault::TooDeep { depth_max } => write!(f, "the item would be nested deeper than {depth_max}"),
            PatchFault::PathNotFound { path, .. } => write!(f, "there is no value at '{path}'"),
            PatchFault::ParentNotFound { parent, .. } => write!(f, "there is no object or array at '{parent}'"),
            PatchFault::IndexOutOfRange { path } => write!(f, "the index '{path}' is past the end of the array"),
        }
    }
}
