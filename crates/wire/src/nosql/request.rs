//! A decoded request of this protocol: verb, address, headers parsed on demand, body.
//!
//! Unknown headers are ignored. Booleans are `True` or `true`, as the SDKs differ.

use bytes::Bytes;
use http::{HeaderMap, Method};
use pleiad_engine::{
    Admitted, BucketId, ContainerName, Precondition, Priority, RequestClass, SessionToken, ThroughputRequest,
};
use pleiad_model::partition_key::{EffectiveKey, EpkRange, PartitionKey};
use pleiad_model::resource_id::{ContainerRid, DatabaseRid};
use pleiad_model::{Consistency, Error, Result, Value, json};

use super::address::{Address, ResourceType};
use super::{binary_json, session};
use crate::http::ConnectionOrigin;

pub struct Request<'a> {
    pub method: &'a Method,
    pub address: &'a Address,
    pub headers: &'a HeaderMap,
    pub body: Bytes,
    pub origin: &'a ConnectionOrigin,
    /// From the request line: HTTP/2 and absolute URLs have it.
    pub authority: Option<&'a str>,
}

/// The operation that a POST to a feed asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostKind {
    Create,
    Upsert,
    Query,
    QueryPlan,
    Batch,
}

impl<'a> Request<'a> {
    /// Names and keys may be raw UTF-8, which `to_str` would reject.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        std::str::from_utf8(self.headers.get(name)?.as_bytes()).ok()
    }

    pub fn flag(&self, name: &str) -> bool {
        self.header(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The endpoint in the client's spelling; a proxy in front of the server reports it in forwarding headers.
    pub fn endpoint(&self) -> String {
        let first = |name| self.header(name).and_then(|value| value.split(',').next()).map(str::trim);
        let scheme = first("x-forwarded-proto").unwrap_or(if self.origin.secure { "https" } else { "http" });
        match first("x-forwarded-host").or(self.authority).or(first("host")) {
            Some(host) => format!("{scheme}://{host}/"),
            None => format!("{scheme}://{}/", self.origin.local),
        }
    }

    pub fn post_kind(&self) -> PostKind {
        post_kind(self.headers)
    }

    /// The body is the bare text of a query, without JSON around it.
    pub fn has_bare_query(&self) -> bool {
        self.header("content-type").is_some_and(|content_type| content_type.starts_with(BARE_QUERY))
    }

    pub fn json(&self) -> Result<Value> {
        json_of(&self.body)
    }

    pub fn container_name(&self) -> Result<ContainerName<'_>> {
        let missing = || Error::not_found("The path names no container.");
        let container = self.address.segment(1).ok_or_else(missing)?;
        if self.address.by_rid {
            let rid = ContainerRid::parse(container).filter(|rid| Some(rid.database) == self.database_rid());
            return rid.map(ContainerName::Rid).ok_or_else(missing);
        }
        Ok(ContainerName::Named { database: self.address.segment(0).ok_or_else(missing)?, container })
    }

    pub fn database_rid(&self) -> Option<DatabaseRid> {
        DatabaseRid::parse(self.address.segment(0)?).filter(|_| self.address.by_rid)
    }

    pub fn intended_rid(&self) -> Option<&'a str> {
        self.header("x-ms-cosmos-intended-collection-rid")
    }

    pub fn partition_key(&self) -> Result<Option<PartitionKey>> {
        self.header("x-ms-documentdb-partitionkey").map(PartitionKey::parse).transpose()
    }

    /// `{collection rid},{id}` is an older spelling of the same.
    pub fn range_id(&self) -> Result<Option<u32>> {
        let Some(text) = self.header("x-ms-documentdb-partitionkeyrangeid") else { return Ok(None) };
        let id = text.rsplit(',').next().unwrap_or_default().trim();
        id.parse()
            .map(Some)
            .map_err(|_| Error::invalid(format!("The partition key range id {text:?} is not a number.")))
    }

    pub fn epk_range(&self) -> Result<Option<EpkRange>> {
        let (start, end) = (self.header("x-ms-start-epk"), self.header("x-ms-end-epk"));
        if start.is_none() && end.is_none() {
            return Ok(None);
        }
        let min = start.map_or(Ok(EffectiveKey::MIN), EffectiveKey::parse)?;
        Ok(Some(EpkRange { min, max: end.map_or(Ok(EffectiveKey::MAX), EffectiveKey::parse)? }))
    }

    /// For the few workarounds for particular SDKs.
    pub fn is_from_sdk(&self, names: &[&str]) -> bool {
        // In a browser an SDK may not be able to set `user-agent`.
        let agents = [self.header("user-agent"), self.header("x-ms-useragent")];
        agents.into_iter().flatten().any(|agent| names.iter().any(|name| agent.contains(name)))
    }

    /// The consistency level of a read: the account's or a weaker one. A read consistency strategy takes precedence
    /// over a level.
    pub fn consistency(&self, account: Consistency) -> Result<Consistency> {
        let non_empty = |name: &str| self.header(name).filter(|value| !value.is_empty());
        match (non_empty("x-ms-cosmos-read-consistency-strategy"), non_empty("x-ms-consistency-level")) {
            (Some(strategy), _) if !strategy.eq_ignore_ascii_case("Default") => by_strategy(strategy, account),
            (_, Some(level)) => at_most(level, account),
            _ => Ok(account),
        }
    }

    /// The client's session token. It matters only at session consistency: weaker reads may lag behind, stronger ones
    /// never do.
    pub fn session(&self, at: &Admitted) -> Result<Option<SessionToken>> {
        if at.consistency() != Consistency::Session {
            return Ok(None);
        }
        self.header("x-ms-session-token").filter(|text| !text.is_empty()).map(session::parse).transpose()
    }

    /// The precondition of an item write.
    pub fn write_condition(&self) -> Precondition {
        condition(self.header("if-match"), self.header("if-none-match"))
    }

    /// The expected version of a user, a permission or an encryption key. Containers and databases check no version, as
    /// in the service.
    pub fn version_condition(&self) -> Precondition {
        condition(self.header("if-match"), None)
    }

    /// One header may contain several preferences.
    pub fn prefers_minimal(&self) -> bool {
        let preferences = self.header("prefer").unwrap_or_default().split(',');
        preferences.map(str::trim).any(|preference| preference.eq_ignore_ascii_case("return=minimal"))
    }

    /// The maximum number of rows in a page; `None` if the client leaves it to the server, as zero does.
    pub fn max_item_count(&self) -> Result<Option<usize>> {
        match self.header("x-ms-max-item-count") {
            None | Some("-1" | "") => Ok(None),
            Some(text) => match text.parse() {
                Ok(count) => Ok(Some(count).filter(|count| *count > 0)),
                Err(_) => Err(Error::invalid(format!(
                    "The input PageSize {text} is invalid. Ensure to pass a valid page size which must be a positive integer or -1 for a dynamic page size"
                ))),
            },
        }
    }

    /// Whether a page may hold as many rows as fit.
    pub fn is_dynamic_page(&self) -> bool {
        self.header("x-ms-max-item-count") == Some("-1")
    }

    /// How the request is treated when throughput is short: its priority and throughput bucket.
    pub fn class(&self) -> Result<RequestClass> {
        let priority = match self.header("x-ms-cosmos-priority-level") {
            None | Some("") => Priority::High,
            Some(word) if word.eq_ignore_ascii_case("high") => Priority::High,
            Some(word) if word.eq_ignore_ascii_case("low") => Priority::Low,
            Some(word) => return Err(invalid_header(word, "x-ms-cosmos-priority-level")),
        };
        let bucket = match self.header(THROUGHPUT_BUCKET) {
            None | Some("") => None,
            Some(text) => {
                let bucket = text.trim().parse().ok().and_then(BucketId::new);
                Some(bucket.ok_or_else(|| invalid_header(text, THROUGHPUT_BUCKET))?)
            }
        };
        Ok(RequestClass { priority, bucket })
    }

    pub fn throughput(&self) -> Result<ThroughputRequest> {
        let manual = self.header("x-ms-offer-throughput").filter(|text| !text.is_empty());
        let autoscale = self.header("x-ms-cosmos-offer-autopilot-settings").filter(|text| !text.is_empty());
        match (manual, autoscale) {
            (Some(_), Some(_)) => Err(Error::invalid("Give either manual or autoscale throughput, not both.")),
            (Some(text), None) => match text.trim().parse() {
                Ok(ru) => Ok(ThroughputRequest::Manual(ru)),
                Err(_) => Err(Error::invalid(format!("x-ms-offer-throughput is {text:?}; it must be a number."))),
            },
            (None, Some(text)) => autoscale_of(&json::parse(text.as_bytes())?),
            (None, None) => Ok(ThroughputRequest::Unspecified),
        }
    }
}

/// A body as JSON, in text or binary form.
pub fn json_of(body: &[u8]) -> Result<Value> {
    if body.is_empty() {
        return Err(Error::invalid("The request needs a JSON body."));
    }
    if binary_json::is_binary(body) {
        return binary_json::decode(body);
    }
    json::parse(body)
}

/// A read may be weaker than the account's level, but not stronger.
fn at_most(requested: &str, account: Consistency) -> Result<Consistency> {
    match Consistency::parse(requested) {
        Some(level) if level <= account => Ok(level),
        Some(_) => Err(Error::invalid(format!(
            "ConsistencyLevel {requested} specified in the request is invalid when service is configured with consistency level {}. Ensure the request consistency level is not stronger than the service consistency level.",
            account.as_str()
        ))),
        None => Err(Error::invalid(format!("{requested:?} is not a consistency level."))),
    }
}

/// The level for a read consistency strategy, which applies to one read. Reading two replicas returns the latest
/// committed version at any account level; globally strong reads need an account whose writes wait for all regions.
fn by_strategy(strategy: &str, account: Consistency) -> Result<Consistency> {
    match strategy.to_ascii_lowercase().as_str() {
        "eventual" => Ok(Consistency::Eventual),
        "session" => Ok(Consistency::Session),
        "latestcommitted" => Ok(account.max(Consistency::BoundedStaleness)),
        "globalstrong" if account == Consistency::Strong => Ok(Consistency::Strong),
        "globalstrong" => Err(Error::invalid(format!(
            "ReadConsistencyStrategy GlobalStrong is only valid on accounts with strong consistency; this one's is {}.",
            account.as_str()
        ))),
        _ => Err(Error::invalid(format!("{strategy:?} is not a read consistency strategy."))),
    }
}

pub fn condition(if_match: Option<&str>, if_none_match: Option<&str>) -> Precondition {
    match (if_match, if_none_match) {
        (Some("*"), _) => Precondition::IfAny,
        (Some(etag), _) => Precondition::IfMatch(etag.to_owned()),
        (None, Some("*")) => Precondition::IfAbsent,
        _ => Precondition::None,
    }
}

/// Accepts the names, or the numbers that one SDK sends for them.
pub fn indexing_directive(word: Option<&str>) -> Result<Option<bool>> {
    match word {
        None | Some("" | "0") => Ok(None),
        Some("1") => Ok(Some(false)),
        Some("2") => Ok(Some(true)),
        Some(word) if word.eq_ignore_ascii_case("default") => Ok(None),
        Some(word) if word.eq_ignore_ascii_case("exclude") => Ok(Some(false)),
        Some(word) if word.eq_ignore_ascii_case("include") => Ok(Some(true)),
        Some(word) => Err(Error::invalid(format!("{word:?} is not an indexing directive."))),
    }
}

/// Content types of a query: JSON with the text and its parameters, or the bare text.
const QUERY: &str = "application/query+json";
const BARE_QUERY: &str = "application/sql";

const THROUGHPUT_BUCKET: &str = "x-ms-cosmos-throughput-bucket";

fn invalid_header(value: &str, name: &str) -> Error {
    Error::invalid(format!("The value '{value}' specified for the header '{name}' is invalid."))
}

/// `{"maxThroughput": 4000, "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": 2}}}`
pub fn autoscale_of(settings: &Value) -> Result<ThroughputRequest> {
    let max = settings.get("maxThroughput").and_then(Value::as_i64);
    let max = max.ok_or_else(|| Error::invalid("The autoscale settings need a number 'maxThroughput'."))?;
    let policy = settings.get("autoUpgradePolicy").and_then(|policy| policy.get("throughputPolicy"));
    let increment_percent = policy.and_then(|policy| policy.get("incrementPercent")).and_then(Value::as_i64);
    Ok(ThroughputRequest::Autoscale { max, increment_percent })
}

pub fn post_kind(headers: &HeaderMap) -> PostKind {
    let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    let flag = |name| text(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if flag("x-ms-cosmos-is-query-plan-request") {
        return PostKind::QueryPlan;
    }
    if flag("x-ms-cosmos-is-batch-request") {
        return PostKind::Batch;
    }
    let content_type = text("content-type").unwrap_or_default();
    if flag("x-ms-documentdb-isquery")
        || flag("x-ms-documentdb-query")
        || content_type.starts_with(QUERY)
        || content_type.starts_with(BARE_QUERY)
    {
        return PostKind::Query;
    }
    if flag("x-ms-documentdb-is-upsert") { PostKind::Upsert } else { PostKind::Create }
}

/// Whether the request changes nothing, so that a read-only key is sufficient. A POST to a feed may be a query; a POST
/// to anything else is executed, whatever its headers claim.
pub fn is_read(method: &Method, headers: &HeaderMap, address: &Address) -> bool {
    match *method {
        Method::GET | Method::HEAD => true,
        Method::POST if address.is_feed && address.resource != ResourceType::Operations => {
            matches!(post_kind(headers), PostKind::Query | PostKind::QueryPlan)
        }
        _ => false,
    }
}
