//! Items: single-item operations and the read feed.

use http::{Method, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use pleiad_engine::{Admitted, FeedRange, ItemRead, PageLimit, Precondition, Target, Verb, WriteOptions};
use pleiad_model::patch::Patch;
use pleiad_model::resource_id::ItemRid;
use pleiad_model::{Error, Result};

use super::not_allowed;
use super::procedures::triggers;
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::reply::{
    ALT_CONTENT_PATH, CONTENT_PATH, CONTINUATION, ErrorReply, Handled, ITEM_COUNT, ITEM_LOCAL_LSN, ITEM_LSN, Reply,
};
use crate::nosql::request::{PostKind, Request, indexing_directive, is_read};

pub(super) const PAGE_ITEMS: usize = 100;
pub(super) const PAGE_ITEMS_MAX: usize = 1000;
pub(super) const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

impl RequestContext<'_> {
    pub(super) async fn items(&self, request: &Request<'_>) -> Handled {
        let level = request.consistency(self.account.consistency)?;
        let at = self.engine.admit(request.container_name()?, request.intended_rid())?;
        let at = at.in_class(request.class()?).reading_at(level);
        let handled = self.items_of(request, &at).await;
        match handled {
            Ok(reply) => Ok(told(reply, &at)),
            Err(mut refusal) => {
                tell(&mut refusal.headers, &at);
                Err(refusal)
            }
        }
    }

    async fn items_of(&self, request: &Request<'_>, at: &Admitted) -> Handled {
        let triggers = triggers(request)?;
        if !triggers.is_empty() && !is_read(request.method, request.headers, request.address) {
            return self.write_with_triggers(request, at, &triggers).await;
        }
        match (request.method, request.address.is_feed) {
            (&Method::GET, false) => self.read_item(request, at).await,
            (&Method::POST, true) => match request.post_kind() {
                PostKind::Create => self.create_item(request, at, Verb::Create).await,
                PostKind::Upsert => self.create_item(request, at, Verb::Upsert).await,
                PostKind::Query => self.query_items(request, at).await,
                PostKind::QueryPlan => self.query_plan(request, at),
                PostKind::Batch => self.batch(request, at).await,
            },
            (&Method::PUT, false) => self.replace_item(request, at).await,
            (&Method::DELETE, false) => self.delete_item(request, at).await,
            (&Method::PATCH, false) => self.patch_item(request, at).await,
            (&Method::GET, true) if request.header("a-im").is_some() => self.change_feed(request, at).await,
            (&Method::GET, true) => self.list_items(request, at).await,
            _ => Err(not_allowed()),
        }
    }

    async fn read_item(&self, request: &Request<'_>, at: &Admitted) -> Handled {
        let (key, session) = (request.partition_key()?, request.session(at)?);
        let known = request.header("if-none-match");
        let answer = self.engine.read_item(at, key.as_ref(), target(request)?, known, session.as_ref()).await;
        let (ItemRead { record, is_unchanged }, place, charge_ru) = ErrorReply::of(answer)?;
        let etag = record.etag().to_string();
        let reply = if is_unchanged {
            Reply::empty(StatusCode::NOT_MODIFIED).charged(charge_ru)
        } else {
            let mut body = Vec::new();
            pleiad_engine::write_item(at.container().rid, &record.view(), &mut body);
            Reply::new(StatusCode::OK, body).charged(charge_ru)
        };
        Ok(reply.at_lsn(place).etag(&etag).with_number(ITEM_LSN, record.lsn).with_number(ITEM_LOCAL_LSN, record.lsn))
    }

    async fn create_item(&self, request: &Request<'_>, at: &Admitted, verb: Verb) -> Handled {
        let key = request.partition_key()?;
        let options = write_options(request, verb)?;
        let answer = self.engine.create_item(at, key.as_ref(), verb, request.json()?, &options).await;
        self.written(request, at, answer)
    }

    async fn replace_item(&self, request: &Request<'_>, at: &Admitted) -> Handled {
        let key = request.partition_key()?;
        let options = write_options(request, Verb::Replace)?;
        let answer = self.engine.replace_item(at, key.as_ref(), target(request)?, request.json()?, &options).await;
        self.written(request, at, answer)
    }

    async fn patch_item(&self, request: &Request<'_>, at: &Admitted) -> Handled {
        let (key, patch) = (request.partition_key()?, Patch::parse(&request.json()?)?);
        let (target, condition) = (target(request)?, request.write_condition());
        let answer = self.engine.patch_item(at, key.as_ref(), target, &patch, &condition).await;
        self.written(request, at, answer)
    }

    async fn delete_item(&self, request: &Request<'_>, at: &Admitted) -> Handled {
        let key = request.partition_key()?;
        let answer = self.engine.delete_item(at, key.as_ref(), target(request)?, &request.write_condition()).await;
        let (_, place, charge_ru) = ErrorReply::of(answer)?;
        Ok(Reply::empty(StatusCode::NO_CONTENT).charged(charge_ru).at_lsn(place))
    }

    pub(super) fn written(
        &self,
        request: &Request<'_>,
        at: &Admitted,
        answer: pleiad_engine::EngineResponse<pleiad_engine::Written>,
    ) -> Handled {
        let (written, place, charge_ru) = ErrorReply::of(answer)?;
        let record = written.record.ok_or_else(|| Error::internal("a write left no item"))?;
        let mut body = Vec::new();
        if !request.prefers_minimal() {
            pleiad_engine::write_item(at.container().rid, &record.view(), &mut body);
        }
        let status = if written.created { StatusCode::CREATED } else { StatusCode::OK };
        let reply = Reply::new(status, body).charged(charge_ru).at_lsn(place).etag(&record.etag().to_string());
        Ok(reply.with_number(ITEM_LSN, record.lsn).with_number(ITEM_LOCAL_LSN, record.lsn))
    }

    async fn list_items(&self, request: &Request<'_>, at: &Admitted) -> Handled {
        let rid = at.container().rid.to_string();
        let token = request.header("x-ms-continuation").filter(|token| !token.is_empty());
        let from = token.map(|token| self.tokens.redeem(&rid, token)).transpose()?;
        let items = request.max_item_count()?.unwrap_or(PAGE_ITEMS).min(PAGE_ITEMS_MAX);
        let quota = PageLimit { items, bytes: PAGE_BYTES_MAX };
        let session = request.session(at)?;
        let answer = self.engine.list_items(at, &current_scope(request, at)?, from, quota, session.as_ref()).await;
        let (page, place, charge_ru) = ErrorReply::of(answer)?;
        let body = encode::item_feed(at.container().rid, &page.records);
        let reply = Reply::new(StatusCode::OK, body).charged(charge_ru).at_lsn(place);
        let reply = reply.with_number(ITEM_COUNT, page.records.len() as u64);
        Ok(match page.next {
            Some(position) => reply.with(CONTINUATION, &self.tokens.issue(&rid, &position)),
            None => reply,
        })
    }
}

pub(super) fn list_scope(request: &Request<'_>) -> Result<FeedRange> {
    let (keys, range) = (request.epk_range()?, request.range_id()?);
    Ok(match (request.partition_key()?, keys, range) {
        (Some(key), _, _) => FeedRange::PartitionKey(key),
        (None, Some(keys), range) => FeedRange::EffectiveKeys(keys, range),
        (None, None, Some(range)) => FeedRange::PartitionKeyRange(range),
        (None, None, None) => FeedRange::Container,
    })
}

/// As in the service, a range that was split or merged is gone (410). Two SDKs do not handle that in the middle of a
/// query: Python's returns ORDER BY rows twice and JavaScript's retries forever. They get the items from the partitions
/// that hold them now, in the order in which the old partition would have returned them.
pub(super) fn current_scope(request: &Request<'_>, at: &Admitted) -> Result<FeedRange> {
    let scope = list_scope(request)?;
    if !request.is_from_sdk(&["azsdk-python-cosmos", "azure-cosmos-js"]) {
        at.check_current(&scope)?;
    }
    Ok(scope)
}

pub(super) fn target<'a>(request: &'a Request<'_>) -> Result<Target<'a>> {
    let name = request.address.segment(2).unwrap_or_default();
    if !request.address.by_rid {
        return Ok(Target::Named(name));
    }
    ItemRid::parse(name).map(Target::Rid).ok_or_else(|| Error::not_found("There is no such item."))
}

/// A create has no version to compare with: its preconditions are ignored, as in the service.
pub(super) fn write_options(request: &Request<'_>, verb: Verb) -> Result<WriteOptions> {
    let condition = if verb == Verb::Create { Precondition::None } else { request.write_condition() };
    let indexed = indexing_directive(request.header("x-ms-indexing-directive"))?;
    Ok(WriteOptions { condition, indexed })
}

pub(super) fn told(mut reply: Reply, at: &Admitted) -> Reply {
    tell(&mut reply.headers, at);
    reply
}

/// Headers that name the item's container: SDKs store session tokens by it.
pub(super) fn tell(headers: &mut http::HeaderMap, at: &Admitted) {
    let container = at.container();
    let path = format!("dbs/{}/colls/{}", container.database, container.definition.id);
    crate::nosql::reply::set(headers, ALT_CONTENT_PATH, &encode_path(&path));
    crate::nosql::reply::set(headers, CONTENT_PATH, &container.rid.to_string());
}

/// Escapes only what a header cannot contain: clients compare the value with names that they encode themselves.
const UNSAFE: &AsciiSet = &CONTROLS.add(b'%');

pub(super) fn encode_path(path: &str) -> std::borrow::Cow<'_, str> {
    if path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'%' || byte == b' ') {
        return path.into();
    }
    utf8_percent_encode(path, UNSAFE).to_string().into()
}
