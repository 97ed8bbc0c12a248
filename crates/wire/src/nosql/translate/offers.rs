//! Offers: what is reserved, for which database or container.

use http::{Method, StatusCode};
use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_engine::{Offer, ThroughputRequest};
use pleiad_model::resource_id::OfferRid;
use pleiad_model::{Error, Result, Value};

use super::metadata::{Rows, one};
use super::not_allowed;
use crate::nosql::Gateway;
use crate::nosql::reply::{Handled, MIN_THROUGHPUT, OFFER_REPLACE_PENDING, Reply};
use crate::nosql::request::{PostKind, Request, autoscale_of};
use crate::nosql::shape;

impl Gateway {
    pub(super) async fn offers(&self, request: &Request<'_>) -> Handled {
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
        Ok(told(one(request, StatusCode::OK, &shape::offer(offer, &tree)), offer))
    }

    async fn replace_offer(&self, request: &Request<'_>) -> Handled {
        let rid = offer_rid(request).ok_or_else(|| Error::not_found("There is no such offer."))?;
        let (asked, may_switch) = self.asked(request, rid)?;
        let offer = self.engine.catalog.replace_offer(rid, asked, may_switch).await?;
        let tree = self.engine.catalog.tree();
        Ok(told(one(request, StatusCode::OK, &shape::offer(&offer, &tree)), &offer).charged(METADATA_WRITE_RU))
    }

    /// What the body asks for; the migration headers switch the kind and leave the figure to us.
    fn asked(&self, request: &Request<'_>, rid: OfferRid) -> Result<(ThroughputRequest, bool)> {
        let tree = self.engine.catalog.tree();
        let current = tree.offers.get(&rid.0).ok_or_else(|| Error::not_found("There is no such offer."))?;
        let ceiling = i64::from(current.throughput.ceiling_ru());
        if request.flag("x-ms-cosmos-migrate-offer-to-autopilot") {
            let floor = ceiling.max(1000).max(i64::from(current.highest_ru) / 10);
            let max = (floor + 999) / 1000 * 1000;
            return Ok((ThroughputRequest::Autoscale { max, increment_percent: None }, true));
        }
        if request.flag("x-ms-cosmos-migrate-offer-to-manual-throughput") {
            return Ok((ThroughputRequest::Manual(ceiling), true));
        }
        Ok((throughput_of(&request.json()?)?, false))
    }

    fn offer_rows(&self) -> Rows<'static> {
        let tree = self.engine.catalog.tree();
        let numbered =
            tree.offers.iter().map(|(&number, offer)| (u64::from(number), shape::offer(offer, &tree))).collect();
        Rows { owner: "", array: "Offers", numbered }
    }
}

fn offer_rid(request: &Request<'_>) -> Option<OfferRid> {
    OfferRid::parse(request.address.segment(0)?)
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

fn told(reply: Reply, offer: &Offer) -> Reply {
    let minimum = offer.throughput.minimum_ru(offer.highest_ru);
    reply.with_number(MIN_THROUGHPUT, u64::from(minimum)).with(OFFER_REPLACE_PENDING, "false")
}
