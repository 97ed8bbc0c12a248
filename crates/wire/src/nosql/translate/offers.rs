//! Offers: the provisioned throughput of databases and containers.

use http::{Method, StatusCode};
use pleiad_engine::catalog::CatalogTree;
use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_engine::{BucketId, Caps, Offer, OfferChange, ThroughputRequest};
use pleiad_model::resource_id::OfferRid;
use pleiad_model::{Error, Result, Value};

use super::metadata::{MetadataRows, one};
use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::reply::{Handled, MIN_THROUGHPUT, OFFER_REPLACE_PENDING, Reply};
use crate::nosql::request::{PostKind, Request, autoscale_of};

impl RequestContext<'_> {
    pub(super) async fn offers(&self, request: &Request<'_>) -> Handled {
        if self.engine.catalog.limits().governance.serverless {
            let message = "Reading or replacing offers is not supported for serverless accounts.";
            return Err(Error::invalid(message).into());
        }
        match (request.method, request.address.is_feed) {
            (&Method::GET, true) => self.list(request, self.offer_rows()),
            (&Method::POST, true) if request.post_kind() == PostKind::Query => self.query(request, self.offer_rows()),
            (&Method::GET, false) => self.read_offer(request),
            (&Method::PUT, false) => self.replace_offer(request).await,
            _ => Err(not_allowed()),
        }
    }

    fn read_offer(&self, request: &Request<'_>) -> Handled {
        let tree = self.engine.catalog.tree();
        let offer = offer_rid(request).and_then(|rid| tree.offers.get(&rid.0));
        let offer = offer.ok_or_else(|| Error::not_found("There is no such offer."))?;
        Ok(self.told(one(request, StatusCode::OK, &self.shaped(offer, &tree)), &tree, offer))
    }

    async fn replace_offer(&self, request: &Request<'_>) -> Handled {
        let rid = offer_rid(request).ok_or_else(|| Error::not_found("There is no such offer."))?;
        let (asked, caps) = asked(request)?;
        let offer = self.engine.catalog.replace_offer(rid, asked, caps).await?;
        let tree = self.engine.catalog.tree();
        let reply = one(request, StatusCode::OK, &self.shaped(&offer, &tree)).charged(METADATA_WRITE_RU);
        Ok(self.told(reply, &tree, &offer))
    }

    fn told(&self, reply: Reply, tree: &CatalogTree, offer: &Offer) -> Reply {
        let minimum = self.engine.catalog.minimum_ru(tree, offer);
        let pending = if self.engine.catalog.is_scaling(offer) { "true" } else { "false" };
        reply.with_number(MIN_THROUGHPUT, u64::from(minimum)).with(OFFER_REPLACE_PENDING, pending)
    }

    fn offer_rows(&self) -> MetadataRows<'static> {
        let tree = self.engine.catalog.tree();
        let numbered =
            tree.offers.iter().map(|(&number, offer)| (u64::from(number), self.shaped(offer, &tree))).collect();
        MetadataRows { owner: "", array: "Offers", numbered }
    }

    fn shaped(&self, offer: &Offer, tree: &CatalogTree) -> Value {
        encode::offer(offer, tree, self.engine.catalog.is_scaling(offer))
    }
}

fn offer_rid(request: &Request<'_>) -> Option<OfferRid> {
    OfferRid::parse(request.address.segment(0)?)
}

/// The change that the request asks for; the migration headers switch the kind and leave the value to the server.
fn asked(request: &Request<'_>) -> Result<(OfferChange, Option<Caps>)> {
    if request.flag("x-ms-cosmos-migrate-offer-to-autopilot") {
        return Ok((OfferChange::ToAutoscale, None));
    }
    if request.flag("x-ms-cosmos-migrate-offer-to-manual-throughput") {
        return Ok((OfferChange::ToManual, None));
    }
    let body = request.json()?;
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
