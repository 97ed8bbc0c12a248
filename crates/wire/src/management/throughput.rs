//! Provisioned throughput of a container or a database: the offer without its resource envelope.
//!
//! ```text
//! {"throughput": 400}                    manual
//! {"autoscaleMaxThroughput": 4000}       autoscale; either may replace the other
//! ```

use pleiad_engine::{Action, OfferChange, OfferReport, ProvisionedThroughput, ThroughputRequest};
use pleiad_model::{Error, Object, Result, Value};

use super::request::{ManagementRequest, reject_unknown_members};
use super::route::Owner;
use super::{ManagementApi, ok};
use crate::nosql::reply::{ErrorReply, Handled};

impl ManagementApi<'_> {
    pub(super) fn throughput(&self, of: Owner<'_>) -> Handled {
        ok(offer_json(&self.offer(of)?))
    }

    pub(super) async fn set_throughput(&self, of: Owner<'_>, request: &ManagementRequest<'_>) -> Handled {
        let throughput = parse_throughput(&request.object()?)?;
        let (rid, at) = (self.offer(of)?.offer.rid, self.admit(Action::WriteSettings)?);
        let offer = self.engine.replace_offer(&at, rid, OfferChange::ToEither(throughput), None).await?;
        ok(offer_json(&offer))
    }

    fn offer(&self, of: Owner<'_>) -> Result<OfferReport, ErrorReply> {
        let (offer, otherwise) = match of {
            Owner::Database(name) => {
                let at = self.admit_database(Action::ReadSettings, name)?;
                let none = format!("The database {name:?} reserves nothing itself: ask its containers.");
                (self.engine.database_offer(&at)?, none)
            }
            Owner::Container(name) => {
                let at = self.admit_container(Action::ReadSettings, name)?;
                let none = format!(
                    "The container shares the throughput of its database: ask databases/{}/throughput.",
                    at.container().database
                );
                (self.engine.container_offer(&at)?, none)
            }
        };
        offer.ok_or_else(|| Error::not_found(otherwise).into())
    }
}

pub(super) fn offer_json(report: &OfferReport) -> Object {
    let shown = match report.offer.throughput {
        ProvisionedThroughput::Manual(ru) => Object::new().with("kind", "manual").with("throughput", u64::from(ru)),
        ProvisionedThroughput::Autoscale { max, .. } => {
            Object::new().with("kind", "autoscale").with("autoscaleMaxThroughput", u64::from(max))
        }
    };
    shown
        .with("minimumThroughput", u64::from(report.minimum_ru))
        .with("isPending", report.is_scaling)
        .with("offer", report.offer.rid.to_string())
}

/// The members that specify throughput.
pub(super) const THROUGHPUT_MEMBERS: [&str; 2] = ["throughput", "autoscaleMaxThroughput"];

pub(super) fn parse_throughput(body: &Object) -> Result<ThroughputRequest> {
    reject_unknown_members(body, &THROUGHPUT_MEMBERS)?;
    let number = |name| body.get(name).and_then(Value::as_i64);
    match (number("throughput"), number("autoscaleMaxThroughput")) {
        (Some(ru), None) => Ok(ThroughputRequest::Manual(ru)),
        (None, Some(max)) => Ok(ThroughputRequest::Autoscale { max, increment_percent: None }),
        _ => Err(Error::invalid("Give 'throughput' (manual) or 'autoscaleMaxThroughput' (autoscale), as a number.")),
    }
}
