//! Provisioned throughput of a container or a database: the offer without its resource envelope.
//!
//! ```text
//! {"throughput": 400}                    manual
//! {"autoscaleMaxThroughput": 4000}       autoscale; either may replace the other
//! ```

use std::sync::Arc;

use pleiad_engine::{Offer, OfferChange, OfferOwner, ProvisionedThroughput, ThroughputRequest};
use pleiad_model::{Error, Object, Result, Value};

use super::request::{ManagementRequest, reject_unknown_members};
use super::route::Owner;
use super::{ManagementApi, ok};
use crate::nosql::reply::Handled;

impl ManagementApi {
    pub(super) fn throughput(&self, of: Owner<'_>) -> Handled {
        let offer = self.offer(of)?;
        ok(self.offer_json(&offer))
    }

    pub(super) async fn set_throughput(&self, of: Owner<'_>, request: &ManagementRequest<'_>) -> Handled {
        let throughput = parse_throughput(&request.object()?)?;
        let offer = self.offer(of)?;
        let offer = self.engine.catalog.replace_offer(offer.rid, OfferChange::ToEither(throughput), None).await?;
        ok(self.offer_json(&offer))
    }

    fn offer(&self, of: Owner<'_>) -> Result<Arc<Offer>> {
        let (owner, otherwise) = match of {
            Owner::Database(name) => {
                let database = self.engine.find_database(name)?;
                let none = format!("The database {name:?} reserves nothing itself: ask its containers.");
                (OfferOwner::Database(database.rid), none)
            }
            Owner::Container(name) => {
                let container = self.engine.find_container(name)?;
                let none = format!(
                    "The container shares the throughput of its database: ask databases/{}/throughput.",
                    container.database
                );
                (OfferOwner::Container(container.rid), none)
            }
        };
        self.engine.catalog.tree().offer(owner).cloned().ok_or_else(|| Error::not_found(otherwise))
    }

    pub(super) fn offer_json(&self, offer: &Offer) -> Object {
        let minimum = self.engine.catalog.minimum_ru(&self.engine.catalog.tree(), offer);
        let shown = match offer.throughput {
            ProvisionedThroughput::Manual(ru) => Object::new().with("kind", "manual").with("throughput", u64::from(ru)),
            ProvisionedThroughput::Autoscale { max, .. } => {
                Object::new().with("kind", "autoscale").with("autoscaleMaxThroughput", u64::from(max))
            }
        };
        let pending = self.engine.catalog.is_scaling(offer);
        shown
            .with("minimumThroughput", u64::from(minimum))
            .with("isPending", pending)
            .with("offer", offer.rid.to_string())
    }
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
