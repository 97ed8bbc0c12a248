//! Offers: the provisioned throughput of databases and containers.

use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_engine::{Admitted, BucketId, Caps, OfferChange, OfferReport, ThroughputRequest, WholeAccount};
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
        let at = self.admit(operation)?;
        if self.engine.limits().governance.serverless {
            let message = "Reading or replacing offers is not supported for serverless accounts.";
            return Err(Error::invalid(message).into());
        }
        match operation.kind {
            OperationKind::List => self.list(operation, self.offer_rows(&at)?),
            OperationKind::Query => self.query(operation, self.offer_rows(&at)?),
            OperationKind::Read => self.read_offer(operation, &at),
            OperationKind::Replace => self.replace_offer(operation, &at).await,
            _ => Err(not_allowed()),
        }
    }

    fn read_offer(&self, operation: &Operation<'_>, at: &Admitted<WholeAccount>) -> Handled {
        let report = self.engine.offer(at, offer_rid(operation)?)?.ok_or_else(missing)?;
        Ok(with_offer_metadata(one(operation, Status::Ok, &encode::offer(&report)), &report))
    }

    async fn replace_offer(&self, operation: &Operation<'_>, at: &Admitted<WholeAccount>) -> Handled {
        let rid = offer_rid(operation)?;
        let (change, caps) = requested_change(operation)?;
        let report = self.engine.replace_offer(at, rid, change, caps).await?;
        let reply = one(operation, Status::Ok, &encode::offer(&report)).charged(METADATA_WRITE_RU);
        Ok(with_offer_metadata(reply, &report))
    }

    fn offer_rows(&self, at: &Admitted<WholeAccount>) -> Result<MetadataRows<'static>> {
        let reports = self.engine.offers(at)?;
        let numbered = reports.iter().map(|report| (u64::from(report.offer.rid.0), encode::offer(report))).collect();
        Ok(MetadataRows { owner: "", array: "Offers", numbered })
    }
}

fn with_offer_metadata(mut reply: Reply, report: &OfferReport) -> Reply {
    let (minimum_ru, is_replace_pending) = (report.minimum_ru, report.is_scaling);
    reply.metadata.offer = Some(OfferMetadata { minimum_ru, is_replace_pending });
    reply
}

fn missing() -> Error {
    Error::not_found("There is no such offer.")
}

fn offer_rid(operation: &Operation<'_>) -> Result<OfferRid> {
    operation.address.segment(0).and_then(OfferRid::parse).ok_or_else(missing)
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
