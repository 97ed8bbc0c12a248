//! Decodes a script's request into an operation and enqueues it.
//!
//! Guarantees: for any object the result is an operation id, "not accepted", or one of four errors. The realm's
//! `api.js` has already converted options to plain strings and numbers; a script cannot call this function directly.

use pleiad_model::{Value, json};
use rquickjs::Object;

use crate::call::Collection;
use crate::host_state::HostState;
use crate::operation::{DocumentAction, DocumentLink, IndexingDirective, PageOptions, ScriptQuery};

#[cfg(test)]
mod tests;

/// Applies unless the script sets a page size.
const PAGE_ITEMS_DEFAULT: u32 = 100;

/// Why a request is not a valid operation. `api.js` has the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationError {
    InvalidLink = -1,
    LinkOutside = -2,
    TooLarge = -3,
    InvalidOptions = -4,
}

/// An operation id, 0 for "not accepted", or the negative number of an error.
pub fn decode_and_enqueue(host_state: &HostState, object: &Object<'_>) -> rquickjs::Result<i32> {
    let operation = RawOperation::read(object)?;
    let Some(call) = host_state.call() else { return Ok(0) };
    Ok(match operation.action(&call.collection, host_state.limits.body_bytes_max) {
        Ok(action) => host_state.enqueue(action).map_or(0, |id| i32::try_from(id.0).unwrap_or(0)),
        Err(error) => error as i32,
    })
}

/// A request as `api.js` passes it.
#[derive(Clone, Debug, Default)]
struct RawOperation {
    kind: String,
    link: Option<String>,
    body: Option<String>,
    etag: Option<String>,
    if_none_match: Option<String>,
    index_action: Option<String>,
    continuation: Option<String>,
    page_size: Option<f64>,
    may_scan: bool,
}

impl RawOperation {
    fn read(object: &Object<'_>) -> rquickjs::Result<RawOperation> {
        let link: rquickjs::Value = object.get("link")?;
        Ok(RawOperation {
            kind: object.get("kind")?,
            link: link.as_string().map(|text| text.to_string()).transpose()?,
            body: object.get("body")?,
            etag: object.get("etag")?,
            if_none_match: object.get("ifNoneMatch")?,
            index_action: object.get("indexAction")?,
            continuation: object.get("continuation")?,
            page_size: object.get("pageSize")?,
            may_scan: object.get("enableScan")?,
        })
    }

    fn action(mut self, collection: &Collection, body_bytes_max: usize) -> Result<DocumentAction, OperationError> {
        if self.body.as_ref().is_some_and(|body| body.len() > body_bytes_max) {
            return Err(OperationError::TooLarge);
        }
        let link = self.link.take().ok_or(OperationError::InvalidLink)?;
        let segments = segments_after_collection(&link, collection)?;
        match (self.kind.as_str(), segments.as_slice()) {
            ("create", []) => Ok(DocumentAction::Create { indexing: self.indexing()?, body: self.body()? }),
            ("upsert", []) => {
                Ok(DocumentAction::Upsert { indexing: self.indexing()?, body: self.body()?, etag: self.etag.take() })
            }
            ("query", []) => Ok(DocumentAction::Query { query: self.query()?, page: self.page()? }),
            ("readFeed", []) => Ok(DocumentAction::ReadFeed { page: self.page()? }),
            (_, ["docs", name]) if !name.is_empty() => self.document_action(document_link(&link, name, collection)),
            _ => Err(OperationError::InvalidLink),
        }
    }

    fn document_action(mut self, link: DocumentLink) -> Result<DocumentAction, OperationError> {
        match self.kind.as_str() {
            "read" => Ok(DocumentAction::Read { link, if_none_match: self.if_none_match }),
            "delete" => Ok(DocumentAction::Delete { link, etag: self.etag }),
            "replace" => Ok(DocumentAction::Replace {
                link,
                indexing: self.indexing()?,
                body: self.body()?,
                etag: self.etag.take(),
            }),
            _ => Err(OperationError::InvalidLink),
        }
    }

    fn body(&mut self) -> Result<String, OperationError> {
        self.body.take().ok_or(OperationError::InvalidOptions)
    }

    fn indexing(&self) -> Result<IndexingDirective, OperationError> {
        match self.index_action.as_deref().map(str::to_ascii_lowercase).as_deref() {
            None | Some("default") => Ok(IndexingDirective::Default),
            Some("include") => Ok(IndexingDirective::Include),
            Some("exclude") => Ok(IndexingDirective::Exclude),
            Some(_) => Err(OperationError::InvalidOptions),
        }
    }

    fn page(&mut self) -> Result<PageOptions, OperationError> {
        let size = match self.page_size {
            None => Some(PAGE_ITEMS_DEFAULT),
            Some(n) if n < 0.0 => None,
            Some(0.0) => Some(PAGE_ITEMS_DEFAULT),
            Some(n) if n.fract() == 0.0 && n <= f64::from(i32::MAX) => Some(n as u32),
            Some(_) => return Err(OperationError::InvalidOptions),
        };
        Ok(PageOptions { size, continuation: self.continuation.take() })
    }

    /// `{"query": "…", "parameters": [{"name": "@a", "value": 1}]}`
    fn query(&mut self) -> Result<ScriptQuery, OperationError> {
        let body = json::parse(self.body()?.as_bytes()).map_err(|_| OperationError::InvalidOptions)?;
        let text = body.get("query").and_then(Value::as_str).ok_or(OperationError::InvalidOptions)?.to_owned();
        let parameters = match body.get("parameters") {
            None | Some(Value::Null) => Vec::new(),
            Some(list) => list.as_array().and_then(parameters).ok_or(OperationError::InvalidOptions)?,
        };
        Ok(ScriptQuery { text, parameters, may_scan: self.may_scan })
    }
}

fn parameters(list: &[Value]) -> Option<Vec<(String, Value)>> {
    let parameter = |entry: &Value| {
        let name = entry.get("name")?.as_str()?.to_owned();
        Some((name, entry.get("value")?.clone()))
    };
    list.iter().map(parameter).collect()
}

/// The segments after the collection in a link: none, or `docs` and a name.
fn segments_after_collection<'a>(link: &'a str, collection: &Collection) -> Result<Vec<&'a str>, OperationError> {
    let all: Vec<&str> = link.trim_matches('/').split('/').collect();
    let is_collection = matches!(all.as_slice(), [dbs, _, colls, _, ..]
        if dbs.eq_ignore_ascii_case("dbs") && colls.eq_ignore_ascii_case("colls"));
    let rest = all.get(4..).filter(|_| is_collection).ok_or(OperationError::InvalidLink)?;
    let is_inside = [&collection.self_link, &collection.alt_link]
        .iter()
        .any(|collection_link| is_in_collection(&all, collection_link));
    if is_inside { Ok(rest.to_vec()) } else { Err(OperationError::LinkOutside) }
}

fn is_in_collection(all: &[&str], collection_link: &str) -> bool {
    let collection_segments: Vec<&str> = collection_link.trim_matches('/').split('/').collect();
    collection_segments.len() == 4
        && all.get(1) == collection_segments.get(1)
        && all.get(3) == collection_segments.get(3)
}

fn document_link(link: &str, name: &str, collection: &Collection) -> DocumentLink {
    let all: Vec<&str> = link.trim_matches('/').split('/').collect();
    let by_rid = is_in_collection(&all, &collection.self_link);
    if by_rid { DocumentLink::Rid(name.to_owned()) } else { DocumentLink::Id(name.to_owned()) }
}
