//! Offers: the provisioned throughput of databases and containers.

use pleiad_engine::catalog::CatalogTree;
use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_engine::{BucketId, Caps, Offer, OfferChange, ThroughputRequest};
use pleiad_model::resource_id::OfferRid;
use pleiad_model::{Error, Result, Value};

use super::metadata::{MetadataRows, one};
use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::operation::{OfferMigration, Operation, OperationKind, autoscale_of};
use crate::nosql::reply::{Handled, OfferMetadata, Reply};
use crate::nosql::status::Status;

impl RequestContext<'_> {
    pub(super) async fn offers(&self, operation: &Operation<'_>) -> Handled {
        if self.engine.catalog.limits().governance.serverless {
            let message = "Reading or replacing offers is not supported for serverless accounts.";
            return Err(Error::invalid(message).into());
        }
        match operation.kind {
            OperationKind::List => self.list(operation, self.offer_rows()),
            OperationKind::Query => self.query(operation, self.offer_rows()),
            OperationKind::Read => self.read_offer(operation),
            OperationKind::Replace => self.replace_offer(operation).await,
            _ => Err(not_allowed()),
        }
    }

    fn read_offer(&self, operation: &Operation<'_>) -> Handled {
        let tree = self.engine.catalog.tree();
        let offer = offer_rid(operation).and_then(|rid| tree.offers.get(&rid.0));
        let offer = offer.ok_or_else(|| Error::not_found("There is no such offer."))?;
        let reply = one(operation, Status::Ok, &self.offer_value(offer, &tree));
        Ok(self.with_offer_metadata(reply, &tree, offer))
    }

    async fn replace_offer(&self, operation: &Operation<'_>) -> Handled {
        let rid = offer_rid(operation).ok_or_else(|| Error::not_found("There is no such offer."))?;
        let (change, caps) = requested_change(operation)?;
        let offer = self.engine.catalog.replace_offer(rid, change, caps).await?;
        let tree = self.engine.catalog.tree();
        let reply = one(operation, Status::Ok, &self.offer_value(&offer, &tree)).charged(METADATA_WRITE_RU);
        Ok(self.with_offer_metadata(reply, &tree, &offer))
    }

    fn with_offer_metadata(&self, mut reply: Reply, tree: &CatalogTree, offer: &Offer) -> Reply {
        let minimum_ru = self.engine.catalog.minimum_ru(tree, offer);
        let is_replace_pending = self.engine.catalog.is_scaling(offer);
        reply.metadata.offer = Some(OfferMetadata { minimum_ru, is_replace_pending });
        reply
    }

    fn offer_rows(&self) -> MetadataRows<'static> {
        let tree = self.engine.catalog.tree();
        let numbered =
            tree.offers.iter().map(|(&number, offer)| (u64::from(number), self.offer_value(offer, &tree))).collect();
        MetadataRows { owner: "", array: "Offers", numbered }
    }

    fn offer_value(&self, offer: &Offer, tree: &CatalogTree) -> Value {
        encode::offer(offer, tree, self.engine.catalog.is_scaling(offer))
    }
}

fn offer_rid(operation: &Operation<'_>) -> Option<OfferRid> {
    OfferRid::parse(operation.address.segment(0)?)
}

/// A migration switches the kind of throughput and leaves the value to the server.
fn requested_change(operation: &Operation<'_>) -> Result<(OfferChange, Option<Caps>)> {
    match operation.options.offer_migration {
        Some(OfferMigration::ToAutoscale) => return Ok((OfferChange::ToAutoscale, None)),
        Some(OfferMigration::ToManual) => return Ok((OfferChange::ToManual, None)),
        None => {}
    }
    let body = operation.json()?;
    let buckets = body.get("content").and_then(|content| content.get("throughputBuckets"));
    Ok((OfferChange::To(throughput_of(&body)?), buckets.map(caps_of).transpose()?))
}

/// `[{"id": 1, "maxThroughputPercentage": 20, "isDefaultBucket": true}]`
fn caps_of(buckets: &Value) -> Result<Caps> {
    let wrong =
        || Error::invalid("A throughput bucket has an 'id' from 1 to 5 and a 'maxThroughputPercentage' from 1 to 100.");
    let mut caps = Caps::default();
    for bucket in buckets.as_array().ok_or_else(wrong)? {
        let id = bucket.get("id").and_then(Value::as_i64).and_then(BucketId::new).ok_or_else(wrong)?;
        let percent =
            bucket.get("maxThroughputPercentage").and_then(Value::as_i64).filter(|percent| (1..=100).contains(percent));
        let percent = percent.and_then(|percent| u8::try_from(percent).ok()).ok_or_else(wrong)?;
        if let Some(cap) = caps.percent.get_mut(usize::from(id.number()) - 1) {
            *cap = percent;
        }
        if bucket.get("isDefaultBucket").and_then(Value::as_bool) == Some(true) {
            caps.default_bucket = Some(id);
        }
    }
    Ok(caps)
}

fn throughput_of(body: &Value) -> Result<ThroughputRequest> {
    let content = body.get("content").ok_or_else(|| Error::invalid("An offer has its throughput in 'content'."))?;
    if let Some(settings) = content.get("offerAutopilotSettings").filter(|settings| **settings != Value::Null) {
        return autoscale_of(settings);
    }
    let ru = content.get("offerThroughput").and_then(Value::as_i64);
    ru.map(ThroughputRequest::Manual)
        .ok_or_else(|| Error::invalid("An offer needs a number in 'content.offerThroughput'."))
}
