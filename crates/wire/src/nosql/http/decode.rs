//! Decoder: an operation from a request's method, address and headers.
//!
//! Headers that are not read here have no effect or are refused: `headers` knows which. Of a header that occurs twice,
//! the first counts. Booleans are `True` or `true`, as the SDKs differ.

use std::borrow::Cow;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method};
use pleiad_engine::{BucketId, ChangeMode, Priority, ThroughputRequest, Triggers};
use pleiad_model::partition_key::{EffectiveKey, EpkRange, PartitionKey};
use pleiad_model::{Consistency, Error, Result, json};

use super::headers;
use crate::http::ConnectionOrigin;
use crate::nosql::address::{Address, ResourceType};
use crate::nosql::operation::{
    Endpoint, OfferMigration, Operation, OperationKind, OperationOptions, PageRows, ReadStrategy, RequestedConsistency,
    autoscale_of, indexing_directive,
};
use crate::nosql::sdk::Sdk;
use crate::nosql::session;

/// The body follows later: the caller is authenticated before it is read. `from_proxy`: the peer is a trusted proxy.
pub fn decode<'a>(
    parts: &'a Parts,
    address: &'a Address,
    origin: &ConnectionOrigin,
    from_proxy: bool,
) -> Operation<'a> {
    let headers = Headers::read(&parts.headers);
    let kind = kind(&parts.method, address, &headers);
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let mut options = headers.options;
    options.endpoint = headers.forwarded.endpoint(origin, authority, from_proxy);
    Operation { kind, address, options, body: Bytes::new() }
}

/// Whether a read-only key is sufficient. No resource has HEAD; a client learns that with any key.
pub fn is_read(method: &Method, kind: OperationKind) -> bool {
    matches!(*method, Method::GET | Method::HEAD) || kind.is_read()
}

/// A POST to a feed may be a query or a batch; a POST to anything else is executed, whatever its headers claim.
fn kind(method: &Method, address: &Address, headers: &Headers<'_>) -> OperationKind {
    match (method, address.is_feed) {
        (&Method::POST, _) if address.resource == ResourceType::Operations => match address.last() {
            Some(name) if name.eq_ignore_ascii_case("partitionkeydelete") => OperationKind::DeleteByPartitionKey,
            _ => OperationKind::NotAllowed,
        },
        (&Method::GET, true) if address.resource == ResourceType::Items && headers.has_change_mode => {
            OperationKind::ChangeFeed
        }
        (&Method::GET, true) => OperationKind::List,
        (&Method::GET, false) => OperationKind::Read,
        (&Method::POST, true) if address.resource == ResourceType::Items => headers.posted_items(),
        (&Method::POST, true) => headers.posted(),
        (&Method::POST, false) => OperationKind::Execute,
        (&Method::PUT, false) => OperationKind::Replace,
        (&Method::PATCH, false) => OperationKind::Patch,
        (&Method::DELETE, false) => OperationKind::Delete,
        _ => OperationKind::NotAllowed,
    }
}

/// What the headers of a request say.
#[derive(Default)]
struct Headers<'a> {
    options: OperationOptions<'a>,
    has_change_mode: bool,
    is_query_plan: bool,
    is_batch: bool,
    is_query: bool,
    is_upsert: bool,
    forwarded: Forwarded<'a>,
}

/// Values that an option needs together.
#[derive(Default)]
struct Combined<'a> {
    level: Option<&'a str>,
    strategy: Option<&'a str>,
    epk_start: Option<&'a str>,
    epk_end: Option<&'a str>,
    pre_trigger: Option<&'a str>,
    post_trigger: Option<&'a str>,
    manual_ru: Option<&'a str>,
    autoscale: Option<&'a str>,
}

/// A proxy in front of the server reports the client's spelling of the endpoint.
#[derive(Default)]
struct Forwarded<'a> {
    proto: Option<&'a str>,
    forwarded_host: Option<&'a str>,
    host: Option<&'a str>,
}

/// Content types of a query: JSON with the text and its parameters, or the bare text.
const QUERY: &str = "application/query+json";
const BARE_QUERY: &str = "application/sql";

const PRIORITY: &str = "x-ms-cosmos-priority-level";
const THROUGHPUT_BUCKET: &str = "x-ms-cosmos-throughput-bucket";
const PRE_TRIGGER: &str = "x-ms-documentdb-pre-trigger-include";
const POST_TRIGGER: &str = "x-ms-documentdb-post-trigger-include";

impl<'a> Headers<'a> {
    fn read(map: &'a HeaderMap) -> Headers<'a> {
        let (mut headers, mut combined) = (Headers::default(), Combined::default());
        let mut last = None;
        for (name, value) in map {
            // The values of one name follow each other. They may be raw UTF-8, which `to_str` would reject.
            let is_first = last.replace(name) != Some(name);
            if let Ok(value) = std::str::from_utf8(value.as_bytes())
                && is_first
            {
                headers.take(name.as_str(), value, &mut combined);
            }
        }
        let options = &mut headers.options;
        options.consistency = consistency(&combined).into();
        options.epk_range = epk_range(&combined).into();
        options.triggers = triggers(&combined).into();
        options.throughput = throughput(&combined).into();
        headers
    }

    /// An empty value is as good as none, except where a match arm says otherwise.
    fn take(&mut self, name: &str, value: &'a str, combined: &mut Combined<'a>) {
        let is_true = value.eq_ignore_ascii_case("true");
        let non_empty = Some(value).filter(|value| !value.is_empty());
        let options = &mut self.options;
        match name {
            "x-ms-version" => options.api_version = Some(value),
            "user-agent" | "x-ms-useragent" if options.sdk == Sdk::Other => options.sdk = Sdk::of_user_agent(value),
            "host" => self.forwarded.host = Some(first_of_list(value)),
            "x-forwarded-proto" => self.forwarded.proto = Some(first_of_list(value)),
            "x-forwarded-host" => self.forwarded.forwarded_host = Some(first_of_list(value)),
            "content-type" => {
                options.bare_query = value.starts_with(BARE_QUERY);
                self.is_query |= value.starts_with(QUERY) || options.bare_query;
            }
            "x-ms-documentdb-isquery" | "x-ms-documentdb-query" => self.is_query |= is_true,
            "x-ms-cosmos-is-query-plan-request" => self.is_query_plan = is_true,
            "x-ms-cosmos-is-batch-request" => self.is_batch = is_true,
            "x-ms-documentdb-is-upsert" => self.is_upsert = is_true,
            "x-ms-cosmos-intended-collection-rid" => options.intended_container = Some(value),
            "x-ms-consistency-level" => combined.level = non_empty,
            "x-ms-cosmos-read-consistency-strategy" => combined.strategy = non_empty,
            "x-ms-session-token" => options.session_token = non_empty.map(session::parse).transpose().into(),
            PRIORITY => options.priority = non_empty.map(priority).transpose().into(),
            THROUGHPUT_BUCKET => options.throughput_bucket = non_empty.map(bucket).transpose().into(),
            "if-match" => options.if_match = Some(value),
            "if-none-match" => options.if_none_match = Some(value),
            "x-ms-documentdb-partitionkey" => options.partition_key = PartitionKey::parse(value).into(),
            "x-ms-documentdb-partitionkeyrangeid" => options.range_id = range_id(value).into(),
            "x-ms-start-epk" => combined.epk_start = Some(value),
            "x-ms-end-epk" => combined.epk_end = Some(value),
            "x-ms-max-item-count" => options.page_size = page_rows(value).into(),
            "x-ms-continuation" => options.continuation = non_empty,
            "x-ms-documentdb-responsecontinuationtokenlimitinkb" => {
                options.continuation_kb_max = continuation_kb(value).into();
            }
            "prefer" => options.minimal_reply = prefers_minimal(value),
            "x-ms-indexing-directive" => options.indexed = indexing_directive(Some(value)).into(),
            PRE_TRIGGER => combined.pre_trigger = Some(value),
            POST_TRIGGER => combined.post_trigger = Some(value),
            "x-ms-cosmos-batch-atomic" => options.batch_is_atomic = is_true,
            "x-ms-cosmos-batch-continue-on-error" => options.continue_on_error = is_true,
            "x-ms-documentdb-query-enablecrosspartition" => options.cross_partition = is_true,
            "x-pleiad-cross-partition" => options.cross_partition_by_server = is_true,
            "x-ms-documentdb-query-enable-scan" => options.enable_scan = is_true,
            "x-ms-cosmos-query-optimisticdirectexecute" => options.is_optimistic = is_true,
            "x-ms-cosmos-supported-query-features" => options.query_features = value,
            "x-ms-documentdb-populatequerymetrics" => options.report.times = is_true,
            "x-ms-cosmos-populateindexmetrics" => options.report.indexes |= is_true,
            "x-ms-cosmos-populateindexmetrics-v2" => {
                options.report.indexes |= is_true;
                options.index_metrics_v2 = is_true;
            }
            "x-ms-cosmos-populatequeryadvice" => options.report.advice = is_true,
            "a-im" => {
                self.has_change_mode = true;
                options.change_mode = change_mode(value).into();
            }
            "if-modified-since" => options.since_s = since_s(value).into(),
            "x-ms-cosmos-changefeed-wire-format-version" => options.enveloped = !value.is_empty(),
            "x-ms-documentdb-script-enable-logging" => options.script_logging = is_true,
            "x-ms-offer-throughput" => combined.manual_ru = non_empty,
            "x-ms-cosmos-offer-autopilot-settings" => combined.autoscale = non_empty,
            "x-ms-cosmos-migrate-offer-to-autopilot" if is_true => {
                options.offer_migration = Some(OfferMigration::ToAutoscale);
            }
            "x-ms-cosmos-migrate-offer-to-manual-throughput" if is_true => {
                options.offer_migration.get_or_insert(OfferMigration::ToManual);
            }
            "x-ms-documentdb-populatequotainfo" => options.quota_info = is_true,
            "x-ms-documentdb-populatepartitionstatistics" => options.partition_statistics = is_true,
            "x-ms-documentdb-expiry-seconds" => options.expiry_s = expiry_s(value).into(),
            _ => options.refused = options.refused.or_else(|| headers::check(name, value)),
        }
    }

    fn posted_items(&self) -> OperationKind {
        match self.posted() {
            OperationKind::Query | OperationKind::Create if self.has_change_mode => OperationKind::ChangeFeedQuery,
            kind => kind,
        }
    }

    fn posted(&self) -> OperationKind {
        match self {
            Headers { is_query_plan: true, .. } => OperationKind::QueryPlan,
            Headers { is_batch: true, .. } => OperationKind::Batch,
            Headers { is_query: true, .. } => OperationKind::Query,
            Headers { is_upsert: true, .. } => OperationKind::Upsert,
            _ => OperationKind::Create,
        }
    }
}

impl<'a> Forwarded<'a> {
    /// `authority` is from the request line: HTTP/2 and absolute URLs have it.
    fn endpoint(&self, origin: &ConnectionOrigin, authority: Option<&'a str>, from_proxy: bool) -> Endpoint<'a> {
        let direct = if origin.secure { "https" } else { "http" };
        let scheme = self.proto.filter(|_| from_proxy).unwrap_or(direct);
        let host = self.forwarded_host.filter(|_| from_proxy).or(authority).or(self.host);
        Endpoint { scheme, host: host.map_or_else(|| origin.local.to_string().into(), Cow::from) }
    }
}

fn first_of_list(value: &str) -> &str {
    value.split(',').next().unwrap_or_default().trim()
}

fn consistency(values: &Combined<'_>) -> Result<Option<RequestedConsistency>> {
    match (values.strategy, values.level) {
        (Some(word), _) if !word.eq_ignore_ascii_case("Default") => {
            let strategy = match word.to_ascii_lowercase().as_str() {
                "eventual" => ReadStrategy::Eventual,
                "session" => ReadStrategy::Session,
                "latestcommitted" => ReadStrategy::LatestCommitted,
                "globalstrong" => ReadStrategy::GlobalStrong,
                _ => return Err(Error::invalid(format!("{word:?} is not a read consistency strategy."))),
            };
            Ok(Some(RequestedConsistency::Strategy(strategy)))
        }
        (_, Some(word)) => match Consistency::parse(word) {
            Some(level) => Ok(Some(RequestedConsistency::Level(level))),
            None => Err(Error::invalid(format!("{word:?} is not a consistency level."))),
        },
        _ => Ok(None),
    }
}

fn epk_range(values: &Combined<'_>) -> Result<Option<EpkRange>> {
    let (start, end) = (values.epk_start, values.epk_end);
    if start.is_none() && end.is_none() {
        return Ok(None);
    }
    let min = start.map_or(Ok(EffectiveKey::MIN), EffectiveKey::parse)?;
    Ok(Some(EpkRange { min, max: end.map_or(Ok(EffectiveKey::MAX), EffectiveKey::parse)? }))
}

/// `{collection rid},{id}` is an older spelling of the same.
fn range_id(text: &str) -> Result<u32> {
    let id = text.rsplit(',').next().unwrap_or_default().trim();
    id.parse().map_err(|_| Error::invalid(format!("The partition key range id {text:?} is not a number.")))
}

/// At most one trigger of each kind, as in the service.
fn triggers(values: &Combined<'_>) -> Result<Option<Triggers>> {
    let triggers =
        Triggers { pre: trigger(values.pre_trigger, PRE_TRIGGER)?, post: trigger(values.post_trigger, POST_TRIGGER)? };
    Ok(if triggers.is_empty() { None } else { Some(triggers) })
}

fn trigger(names: Option<&str>, header: &str) -> Result<Option<String>> {
    let mut names = names.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    match (names.next(), names.next()) {
        (first, None) => Ok(first.map(str::to_owned)),
        (_, Some(_)) => Err(Error::invalid(format!("At most one trigger can be named in {header}."))),
    }
}

fn throughput(values: &Combined<'_>) -> Result<Option<ThroughputRequest>> {
    match (values.manual_ru, values.autoscale) {
        (Some(_), Some(_)) => Err(Error::invalid("Give either manual or autoscale throughput, not both.")),
        (Some(text), None) => match text.trim().parse() {
            Ok(ru) => Ok(Some(ThroughputRequest::Manual(ru))),
            Err(_) => Err(Error::invalid(format!("x-ms-offer-throughput is {text:?}; it must be a number."))),
        },
        (None, Some(text)) => autoscale_of(&json::parse(text.as_bytes())?).map(Some),
        (None, None) => Ok(None),
    }
}

fn priority(word: &str) -> Result<Priority> {
    match word {
        word if word.eq_ignore_ascii_case("high") => Ok(Priority::High),
        word if word.eq_ignore_ascii_case("low") => Ok(Priority::Low),
        word => Err(invalid_header(word, PRIORITY)),
    }
}

fn bucket(text: &str) -> Result<BucketId> {
    let bucket = text.trim().parse().ok().and_then(BucketId::new);
    bucket.ok_or_else(|| invalid_header(text, THROUGHPUT_BUCKET))
}

fn invalid_header(value: &str, name: &str) -> Error {
    Error::invalid(format!("The value '{value}' specified for the header '{name}' is invalid."))
}

/// Zero leaves the number to the server.
fn page_rows(text: &str) -> Result<Option<PageRows>> {
    match text {
        "" => Ok(None),
        "-1" => Ok(Some(PageRows::Dynamic)),
        text => match text.parse() {
            Ok(0) => Ok(None),
            Ok(rows) => Ok(Some(PageRows::AtMost(rows))),
            Err(_) => Err(Error::invalid(format!(
                "The input PageSize {text} is invalid. Ensure to pass a valid page size which must be a positive integer or -1 for a dynamic page size"
            ))),
        },
    }
}

fn continuation_kb(text: &str) -> Result<Option<usize>> {
    match text {
        "" => Ok(None),
        text => match text.parse() {
            Ok(0) => Err(Error::invalid("The continuation token limit specified is not large enough.")),
            Ok(kb) => Ok(Some(kb)),
            Err(_) => Err(Error::invalid(format!(
                "The continuation token limit {text} is invalid. Please pass in a valid continuation token size limit which must be a positive integer."
            ))),
        },
    }
}

/// One header may contain several preferences.
fn prefers_minimal(value: &str) -> bool {
    value.split(',').map(str::trim).any(|preference| preference.eq_ignore_ascii_case("return=minimal"))
}

const LATEST_VERSION: &str = "Incremental Feed";
const ALL_VERSIONS: &str = "Full-Fidelity Feed";

fn change_mode(value: &str) -> Result<ChangeMode> {
    match value.trim() {
        mode if mode.eq_ignore_ascii_case(LATEST_VERSION) => Ok(ChangeMode::LatestVersion),
        mode if mode.eq_ignore_ascii_case(ALL_VERSIONS) => Ok(ChangeMode::AllVersions),
        mode => {
            let message = format!("A-IM is {mode:?}; a change feed is \"{LATEST_VERSION}\" or \"{ALL_VERSIONS}\".");
            Err(Error::invalid(message))
        }
    }
}

/// The zone is GMT; one SDK calls it UTC.
fn since_s(value: &str) -> Result<Option<u32>> {
    let text = value.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let date = text.strip_suffix("UTC").map_or(text.to_owned(), |date| format!("{date}GMT"));
    let time = httpdate::parse_http_date(&date).map_err(|_| {
        Error::invalid(format!("If-Modified-Since is {text:?}; write a date as \"Mon, 16 Nov 2026 03:20:00 GMT\"."))
    })?;
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Some(u32::try_from(since.as_secs()).unwrap_or(u32::MAX)))
}

/// What is not a number is out of bounds; `translate` knows them.
fn expiry_s(value: &str) -> Result<Option<u64>> {
    match value.trim() {
        "" => Ok(None),
        text => Ok(Some(text.parse().unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests;
