//! An operation of the NoSQL API: what a request asks for, whatever protocol carries it.
//!
//! Guarantees: an `Operation` names no header, method or frame. A protocol has a decoder that makes operations
//! (`http::decode`) and an encoder for replies; `translate` carries operations out.
//!
//! ```text
//! POST /dbs/d/colls/c/docs                 kind     Create
//! x-ms-documentdb-partitionkey: ["a"]  →   address  the items of d/c
//! {"id": "1", "pk": "a"}                   options  partition_key: ["a"]
//! ```

use std::borrow::Cow;

use bytes::Bytes;
use pleiad_engine::{
    ActivityId, Admitted, BucketId, ChangeMode, ContainerName, DatabaseName, Precondition, Priority, ReportOptions,
    RequestClass, SessionToken, ThroughputRequest, Triggers,
};
use pleiad_model::partition_key::{EpkRange, PartitionKey};
use pleiad_model::resource_id::{ContainerRid, DatabaseRid};
use pleiad_model::{Consistency, Error, Result, Value, json};

use super::address::Address;
use super::binary_json;
use super::sdk::Sdk;

pub struct Operation<'a> {
    pub kind: OperationKind,
    pub address: &'a Address,
    pub options: OperationOptions<'a>,
    pub body: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    Read,
    /// A page of the resources of one type.
    List,
    ChangeFeed,
    /// A change feed with a filter.
    ChangeFeedQuery,
    Query,
    /// What a client needs to execute a query itself.
    QueryPlan,
    Create,
    Upsert,
    Replace,
    Patch,
    Delete,
    DeleteByPartitionKey,
    /// Many operations on items in one body.
    Batch,
    /// Of a stored procedure.
    Execute,
    /// No resource has it.
    NotAllowed,
}

impl OperationKind {
    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Read => "Read",
            OperationKind::List => "List",
            OperationKind::ChangeFeed | OperationKind::ChangeFeedQuery => "ChangeFeed",
            OperationKind::Query => "Query",
            OperationKind::QueryPlan => "QueryPlan",
            OperationKind::Create => "Create",
            OperationKind::Upsert => "Upsert",
            OperationKind::Replace => "Replace",
            OperationKind::Patch => "Patch",
            OperationKind::Delete => "Delete",
            OperationKind::DeleteByPartitionKey => "DeleteByPartitionKey",
            OperationKind::Batch => "Batch",
            OperationKind::Execute => "Execute",
            OperationKind::NotAllowed => "Other",
        }
    }

    /// Whether it changes nothing, so that a read-only key is sufficient.
    pub fn is_read(self) -> bool {
        use OperationKind::{ChangeFeed, ChangeFeedQuery, List, Query, QueryPlan, Read};
        matches!(self, Read | List | ChangeFeed | ChangeFeedQuery | Query | QueryPlan)
    }
}

/// An option that the client may have malformed. The error counts only for an operation that has a use for the option.
/// Boxed, so that options are small.
#[derive(Clone, Debug)]
pub struct DecodedOption<T>(Result<Option<T>, Box<Error>>);

impl<T> Default for DecodedOption<T> {
    fn default() -> Self {
        DecodedOption(Ok(None))
    }
}

impl<T> From<T> for DecodedOption<T> {
    fn from(value: T) -> Self {
        DecodedOption(Ok(Some(value)))
    }
}

impl<T> From<Result<T>> for DecodedOption<T> {
    fn from(decoded: Result<T>) -> Self {
        DecodedOption(decoded.map(Some).map_err(Box::new))
    }
}

impl<T> From<Result<Option<T>>> for DecodedOption<T> {
    fn from(decoded: Result<Option<T>>) -> Self {
        DecodedOption(decoded.map_err(Box::new))
    }
}

impl<T> DecodedOption<T> {
    pub fn get(&self) -> Result<Option<&T>> {
        match &self.0 {
            Ok(value) => Ok(value.as_ref()),
            Err(error) => Err(Error::clone(error)),
        }
    }
}

/// The options of an operation; each kind uses some of them.
#[derive(Default)]
pub struct OperationOptions<'a> {
    /// A date, such as `2018-12-31`; `None` means the newest.
    pub api_version: Option<&'a str>,
    pub sdk: Sdk,
    /// A feature that the request asks for and this server does not have.
    pub refused: Option<&'static str>,
    /// The id of this request in the client's and the server's logs.
    pub activity: ActivityId,
    /// The endpoint as the client spells it; empty where the protocol has none.
    pub endpoint: Endpoint<'a>,
    /// The `_rid` that the client expects the container to have.
    pub intended_container: Option<&'a str>,
    pub consistency: DecodedOption<RequestedConsistency>,
    pub session_token: DecodedOption<SessionToken>,
    pub priority: DecodedOption<Priority>,
    pub throughput_bucket: DecodedOption<BucketId>,
    pub if_match: Option<&'a str>,
    pub if_none_match: Option<&'a str>,

    // ---- which items
    pub partition_key: DecodedOption<PartitionKey>,
    pub range_id: DecodedOption<u32>,
    pub epk_range: DecodedOption<EpkRange>,

    // ---- pages
    pub page_size: DecodedOption<PageRows>,
    pub continuation: Option<&'a str>,
    pub continuation_kb_max: DecodedOption<usize>,

    // ---- writes
    /// The reply to a write need not contain the item.
    pub minimal_reply: bool,
    /// Whether the item is indexed; `None` leaves that to the container's policy.
    pub indexed: DecodedOption<bool>,
    pub triggers: DecodedOption<Triggers>,
    pub batch_is_atomic: bool,
    pub continue_on_error: bool,

    // ---- queries
    /// The body is the text of the query, without JSON around it.
    pub bare_query: bool,
    pub cross_partition: bool,
    /// The server executes a cross-partition query completely, for clients that cannot merge partitions themselves.
    pub cross_partition_by_server: bool,
    pub enable_scan: bool,
    /// The client executes the query without a plan and is told whether it needs one.
    pub is_optimistic: bool,
    /// The features that the client can execute itself, for a query plan.
    pub query_features: &'a str,
    pub report: ReportOptions,
    /// The second format of index metrics.
    pub index_metrics_v2: bool,

    // ---- change feed
    pub change_mode: DecodedOption<ChangeMode>,
    /// Changes before this second are not returned.
    pub since_s: DecodedOption<u32>,
    /// Each change is in an envelope, `{"current": …, "metadata": …}`.
    pub enveloped: bool,

    // ---- scripts
    pub script_logging: bool,

    // ---- metadata
    pub throughput: DecodedOption<ThroughputRequest>,
    pub offer_migration: Option<OfferMigration>,
    pub quota_info: bool,
    pub partition_statistics: bool,
    /// The lifetime of the tokens of a permission.
    pub expiry_s: DecodedOption<u64>,
}

/// The number of rows that the client wants in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageRows {
    /// As many as fit.
    Dynamic,
    AtMost(usize),
}

/// A change of the kind of throughput that leaves the value to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferMigration {
    ToAutoscale,
    ToManual,
}

/// The consistency that the client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedConsistency {
    /// The level, not stronger than the account's.
    Level(Consistency),
    /// A strategy for one read, which takes precedence over a level.
    Strategy(ReadStrategy),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStrategy {
    Eventual,
    Session,
    LatestCommitted,
    GlobalStrong,
}

/// Scheme, host and port of the server, as the client sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint<'a> {
    pub scheme: &'a str,
    pub host: Cow<'a, str>,
}

impl<'a> Operation<'a> {
    pub fn json(&self) -> Result<Value> {
        json_of(&self.body)
    }

    pub fn container_name(&self) -> Result<ContainerName<'a>> {
        let missing = || Error::not_found("The path names no container.");
        let container = self.address.segment(1).ok_or_else(missing)?;
        if self.address.by_rid {
            let rid = ContainerRid::parse(container).filter(|rid| Some(rid.database) == self.database_rid());
            return rid.map(ContainerName::Rid).ok_or_else(missing);
        }
        Ok(ContainerName::Named { database: self.address.segment(0).ok_or_else(missing)?, container })
    }

    /// The database that the first segment of the path names.
    pub fn database_name(&self) -> DatabaseName<'a> {
        match self.database_rid() {
            Some(rid) => DatabaseName::Rid(rid),
            None => DatabaseName::Named(self.address.segment(0).unwrap_or_default()),
        }
    }

    pub fn database_rid(&self) -> Option<DatabaseRid> {
        DatabaseRid::parse(self.address.segment(0)?).filter(|_| self.address.by_rid)
    }

    pub fn partition_key(&self) -> Result<Option<&PartitionKey>> {
        self.options.partition_key.get()
    }

    pub fn range_id(&self) -> Result<Option<u32>> {
        Ok(self.options.range_id.get()?.copied())
    }

    /// The consistency level of a read: the account's or a weaker one.
    pub fn consistency(&self, account: Consistency) -> Result<Consistency> {
        match self.options.consistency.get()? {
            None => Ok(account),
            Some(RequestedConsistency::Level(level)) => at_most(*level, account),
            Some(RequestedConsistency::Strategy(strategy)) => by_strategy(*strategy, account),
        }
    }

    /// The client's session token. It matters only at session consistency: weaker reads may lag behind, stronger ones
    /// never do.
    pub fn session(&self, at: &Admitted) -> Result<Option<&SessionToken>> {
        if at.consistency() != Consistency::Session {
            return Ok(None);
        }
        self.options.session_token.get()
    }

    /// The precondition of an item write.
    pub fn write_condition(&self) -> Precondition {
        condition(self.options.if_match, self.options.if_none_match)
    }

    /// The expected version of a user, a permission or an encryption key. Containers and databases check no version, as
    /// in the service.
    pub fn version_condition(&self) -> Precondition {
        condition(self.options.if_match, None)
    }

    /// The maximum number of rows in a page; `None` if the client leaves it to the server.
    pub fn page_rows(&self) -> Result<Option<usize>> {
        Ok(match self.options.page_size.get()? {
            Some(PageRows::AtMost(rows)) => Some(*rows),
            Some(PageRows::Dynamic) | None => None,
        })
    }

    /// How the request is treated when throughput is short.
    pub fn class(&self) -> Result<RequestClass> {
        let priority = self.options.priority.get()?.copied().unwrap_or(Priority::High);
        Ok(RequestClass { priority, bucket: self.options.throughput_bucket.get()?.copied() })
    }

    pub fn throughput(&self) -> Result<ThroughputRequest> {
        Ok(self.options.throughput.get()?.copied().unwrap_or(ThroughputRequest::Unspecified))
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
fn at_most(requested: Consistency, account: Consistency) -> Result<Consistency> {
    if requested <= account {
        return Ok(requested);
    }
    Err(Error::invalid(format!(
        "ConsistencyLevel {} specified in the request is invalid when service is configured with consistency level {}. Ensure the request consistency level is not stronger than the service consistency level.",
        requested.as_str(),
        account.as_str()
    )))
}

/// The level for a read consistency strategy, which applies to one read. Reading two replicas returns the latest
/// committed version at any account level; globally strong reads need an account whose writes wait for all regions.
fn by_strategy(strategy: ReadStrategy, account: Consistency) -> Result<Consistency> {
    match strategy {
        ReadStrategy::Eventual => Ok(Consistency::Eventual),
        ReadStrategy::Session => Ok(Consistency::Session),
        ReadStrategy::LatestCommitted => Ok(account.max(Consistency::BoundedStaleness)),
        ReadStrategy::GlobalStrong if account == Consistency::Strong => Ok(Consistency::Strong),
        ReadStrategy::GlobalStrong => Err(Error::invalid(format!(
            "ReadConsistencyStrategy GlobalStrong is only valid on accounts with strong consistency; this one's is {}.",
            account.as_str()
        ))),
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

/// `{"maxThroughput": 4000, "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": 2}}}`
pub fn autoscale_of(settings: &Value) -> Result<ThroughputRequest> {
    let max = settings.get("maxThroughput").and_then(Value::as_i64);
    let max = max.ok_or_else(|| Error::invalid("The autoscale settings need a number 'maxThroughput'."))?;
    let policy = settings.get("autoUpgradePolicy").and_then(|policy| policy.get("throughputPolicy"));
    let increment_percent = policy.and_then(|policy| policy.get("incrementPercent")).and_then(Value::as_i64);
    Ok(ThroughputRequest::Autoscale { max, increment_percent })
}
