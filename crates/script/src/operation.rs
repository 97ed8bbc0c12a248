//! Script operations: a script's requests to its collection, and their results.
//!
//! Invariant: an operation is complete and typed; its link is inside the call's collection. The host checks that the
//! document exists, fits and may be written, and replies [`OperationResult::Failed`] otherwise.

use pleiad_model::{Kind, Value};

/// Identifies the operation that a reply belongs to. Counted from 1 in each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(pub u32);

#[derive(Clone, Debug, PartialEq)]
pub struct ScriptOperation {
    pub id: OperationId,
    pub action: DocumentAction,
}

/// Bodies are the JSON text of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum DocumentAction {
    Create { body: String, indexing: IndexingDirective },
    Upsert { body: String, etag: Option<String>, indexing: IndexingDirective },
    Read { link: DocumentLink, if_none_match: Option<String> },
    Replace { link: DocumentLink, body: String, etag: Option<String>, indexing: IndexingDirective },
    Delete { link: DocumentLink, etag: Option<String> },
    Query { query: ScriptQuery, page: PageOptions },
    ReadFeed { page: PageOptions },
}

/// The last segment of a document's link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentLink {
    Rid(String),
    Id(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexingDirective {
    #[default]
    Default,
    Include,
    Exclude,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScriptQuery {
    pub text: String,
    pub parameters: Vec<(String, Value)>,
    /// The script allows a scan if no index applies.
    pub may_scan: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageOptions {
    /// None if the host chooses the size.
    pub size: Option<u32>,
    pub continuation: Option<String>,
}

#[derive(Clone, Debug)]
pub struct OperationReply {
    pub id: OperationId,
    pub result: OperationResult,
}

#[derive(Clone, Debug)]
pub enum OperationResult {
    /// The document as JSON text, with its system properties.
    Resource(String),
    NotModified,
    Deleted,
    /// A JSON array of documents or rows.
    Feed {
        documents: String,
        continuation: Option<String>,
    },
    /// The message is what the host would tell a client.
    Failed {
        kind: Kind,
        message: String,
    },
}
