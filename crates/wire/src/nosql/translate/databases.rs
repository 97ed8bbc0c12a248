//! Databases.

use http::{Method, StatusCode};
use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_model::Result;

use super::metadata::{MetadataRows, id_of, one};
use super::{creates, not_allowed};
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::reply::{Handled, Reply};
use crate::nosql::request::{PostKind, Request};

impl RequestContext<'_> {
    pub(super) async fn databases(&self, request: &Request<'_>) -> Handled {
        match (request.method, request.address.is_feed) {
            (&Method::GET, true) => self.list(request, self.database_rows()),
            (&Method::POST, true) if request.post_kind() == PostKind::Query => {
                self.query(request, self.database_rows())
            }
            (&Method::POST, true) if creates(request) => self.create_database(request).await,
            (&Method::GET, false) => Ok(one(request, StatusCode::OK, &encode::database(&*self.database_of(request)?))),
            (&Method::DELETE, false) => {
                self.engine.catalog.delete_database(self.database_of(request)?.rid).await?;
                Ok(Reply::empty(StatusCode::NO_CONTENT).charged(METADATA_WRITE_RU))
            }
            _ => Err(not_allowed()),
        }
    }

    async fn create_database(&self, request: &Request<'_>) -> Handled {
        let body = request.json()?;
        let database = self.engine.catalog.create_database(id_of(&body)?, request.throughput()?).await?;
        Ok(one(request, StatusCode::CREATED, &encode::database(&database)).charged(METADATA_WRITE_RU))
    }

    /// The database that the first segment of the path names.
    pub(super) fn database_of(&self, request: &Request<'_>) -> Result<std::sync::Arc<pleiad_engine::Database>> {
        match request.database_rid() {
            Some(rid) => self.engine.find_database_by_rid(rid),
            None => self.engine.find_database(request.address.segment(0).unwrap_or_default()),
        }
    }

    fn database_rows(&self) -> MetadataRows<'static> {
        let tree = self.engine.catalog.tree();
        let numbered =
            tree.databases.iter().map(|(&number, database)| (u64::from(number), encode::database(database))).collect();
        MetadataRows { owner: "", array: "Databases", numbered }
    }
}
