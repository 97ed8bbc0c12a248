//! Items: single-item operations and the read feed.

use pleiad_engine::{Addressed, Admitted, FeedRange, ItemRead, PageLimit, Precondition, Target, Verb, WriteOptions};
use pleiad_model::partition_key::EpkRange;
use pleiad_model::patch::Patch;
use pleiad_model::resource_id::ItemRid;
use pleiad_model::{Error, Result};

use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::continuation::gateway;
use crate::nosql::encode;
use crate::nosql::operation::{Operation, OperationKind};
use crate::nosql::reply::{ErrorReply, Handled, Reply, in_container};
use crate::nosql::status::Status;

pub(super) const PAGE_ITEMS: usize = 100;
pub(super) const PAGE_ITEMS_MAX: usize = 1000;
pub(super) const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

impl RequestContext<'_> {
    pub(super) async fn items(&self, operation: &Operation<'_>) -> Handled {
        let level = operation.consistency(self.account.consistency)?;
        let at = self.admit_container(operation, Addressed::Parent)?;
        let at = at.in_class(operation.class()?).reading_at(level);
        in_container(self.items_of(operation, &at).await, at.container())
    }

    async fn items_of(&self, operation: &Operation<'_>, at: &Admitted) -> Handled {
        if let Some(triggers) = operation.options.triggers.get()?
            && !operation.kind.is_read()
        {
            return self.write_with_triggers(operation, at, triggers).await;
        }
        match operation.kind {
            OperationKind::Read => self.read_item(operation, at).await,
            OperationKind::Create => self.create_item(operation, at, Verb::Create).await,
            OperationKind::Upsert => self.create_item(operation, at, Verb::Upsert).await,
            OperationKind::Replace => self.replace_item(operation, at).await,
            OperationKind::Patch => self.patch_item(operation, at).await,
            OperationKind::Delete => self.delete_item(operation, at).await,
            OperationKind::List => self.list_items(operation, at).await,
            OperationKind::ChangeFeed | OperationKind::ChangeFeedQuery => self.change_feed(operation, at).await,
            OperationKind::Query => self.query_items(operation, at).await,
            OperationKind::QueryPlan => self.query_plan(operation, at),
            OperationKind::Batch => self.batch(operation, at).await,
            OperationKind::DeleteByPartitionKey | OperationKind::Execute | OperationKind::NotAllowed => {
                Err(not_allowed())
            }
        }
    }

    async fn read_item(&self, operation: &Operation<'_>, at: &Admitted) -> Handled {
        let (key, session) = (operation.partition_key()?, operation.session(at)?);
        let known_etag = operation.options.if_none_match;
        let answer = self.engine.read_item(at, key, target(operation)?, known_etag, session).await;
        let (ItemRead { record, is_unchanged }, served_by, charge_ru) = ErrorReply::of(answer)?;
        let etag = record.etag().to_string();
        let reply = if is_unchanged {
            Reply::empty(Status::NotModified).charged(charge_ru)
        } else {
            let mut body = Vec::new();
            pleiad_engine::write_item(at.container().rid, &record.view(), &mut body);
            Reply::new(Status::Ok, body).charged(charge_ru)
        };
        Ok(reply.served_by(served_by).etag(etag).item_lsn(record.lsn))
    }

    async fn create_item(&self, operation: &Operation<'_>, at: &Admitted, verb: Verb) -> Handled {
        let (key, options) = (operation.partition_key()?, write_options(operation, verb)?);
        let answer = self.engine.create_item(at, key, verb, operation.json()?, &options).await;
        written(operation, at, answer)
    }

    async fn replace_item(&self, operation: &Operation<'_>, at: &Admitted) -> Handled {
        let (key, options) = (operation.partition_key()?, write_options(operation, Verb::Replace)?);
        let answer = self.engine.replace_item(at, key, target(operation)?, operation.json()?, &options).await;
        written(operation, at, answer)
    }

    async fn patch_item(&self, operation: &Operation<'_>, at: &Admitted) -> Handled {
        let (key, patch) = (operation.partition_key()?, Patch::parse(&operation.json()?)?);
        let (target, condition) = (target(operation)?, operation.write_condition());
        let answer = self.engine.patch_item(at, key, target, &patch, &condition).await;
        written(operation, at, answer)
    }

    async fn delete_item(&self, operation: &Operation<'_>, at: &Admitted) -> Handled {
        let (key, condition) = (operation.partition_key()?, operation.write_condition());
        let answer = self.engine.delete_item(at, key, target(operation)?, &condition).await;
        let (_, served_by, charge_ru) = ErrorReply::of(answer)?;
        Ok(Reply::empty(Status::NoContent).charged(charge_ru).served_by(served_by))
    }

    async fn list_items(&self, operation: &Operation<'_>, at: &Admitted) -> Handled {
        let rid = at.container().rid.to_string();
        let scope = current_scope(operation, at)?;
        let place = named_place(&scope, at);
        let redeem = |text| self.tokens.redeem_items(&rid, text, place.as_ref());
        let from = operation.options.continuation.map(redeem).transpose()?;
        operation.options.continuation_kb_max.get()?;
        let items = operation.page_rows()?.unwrap_or(PAGE_ITEMS).min(PAGE_ITEMS_MAX);
        let limit = PageLimit { items, bytes: PAGE_BYTES_MAX };
        let session = operation.session(at)?;
        let answer = self.engine.list_items(at, &scope, from, limit, session).await;
        let (page, served_by, charge_ru) = ErrorReply::of(answer)?;
        let body = encode::item_feed(at.container().rid, &page.records);
        let token = page.next.map(|position| {
            let token = self.tokens.issue(&rid, &position);
            match scope {
                FeedRange::Container => gateway::wrap(&token, gateway::first_range(&position.ranges)),
                _ => token,
            }
        });
        let reply = Reply::new(Status::Ok, body).charged(charge_ru).served_by(served_by);
        Ok(reply.item_count(page.records.len()).continuation(token))
    }
}

pub(super) fn written(
    operation: &Operation<'_>,
    at: &Admitted,
    answer: pleiad_engine::EngineResponse<pleiad_engine::Written>,
) -> Handled {
    let (written, served_by, charge_ru) = ErrorReply::of(answer)?;
    let record = written.record.ok_or_else(|| Error::internal("a write left no item"))?;
    let mut body = Vec::new();
    if !operation.options.minimal_reply {
        pleiad_engine::write_item(at.container().rid, &record.view(), &mut body);
    }
    let status = if written.created { Status::Created } else { Status::Ok };
    let reply = Reply::new(status, body).charged(charge_ru).served_by(served_by);
    Ok(reply.etag(record.etag().to_string()).item_lsn(record.lsn))
}

pub(super) fn list_scope(operation: &Operation<'_>) -> Result<FeedRange> {
    let (keys, range) = (operation.options.epk_range.get()?, operation.range_id()?);
    Ok(match (operation.partition_key()?, keys, range) {
        (Some(key), _, _) => FeedRange::PartitionKey(key.clone()),
        (None, Some(keys), range) => FeedRange::EffectiveKeys(keys.clone(), range),
        (None, None, Some(range)) => FeedRange::PartitionKeyRange(range),
        (None, None, None) => FeedRange::Container,
    })
}

/// Fails if the scope names a partition that was split or merged, unless the client cannot handle that.
pub(super) fn current_scope(operation: &Operation<'_>, at: &Admitted) -> Result<FeedRange> {
    let scope = list_scope(operation)?;
    if !operation.options.sdk.follows_moved_ranges() {
        at.check_current(&scope)?;
    }
    Ok(scope)
}

/// Where a position without a range is: in the key or partition that the request names, or in the only partition.
/// Among several partitions an item alone is no position.
pub(super) fn named_place(scope: &FeedRange, at: &Admitted) -> Option<EpkRange> {
    let is_named = !matches!(scope, FeedRange::Container | FeedRange::EffectiveKeys(_, None));
    (is_named || at.container().map.ranges().len() == 1).then_some(EpkRange::FULL)
}

pub(super) fn target<'a>(operation: &Operation<'a>) -> Result<Target<'a>> {
    let name = operation.address.segment(2).unwrap_or_default();
    if !operation.address.by_rid {
        return Ok(Target::Named(name));
    }
    ItemRid::parse(name).map(Target::Rid).ok_or_else(|| Error::not_found("There is no such item."))
}

/// A create has no version to compare with: its preconditions are ignored, as in the service.
pub(super) fn write_options(operation: &Operation<'_>, verb: Verb) -> Result<WriteOptions> {
    let condition = if verb == Verb::Create { Precondition::None } else { operation.write_condition() };
    Ok(WriteOptions { condition, indexed: operation.options.indexed.get()?.copied() })
}
