//! The account resource. Every SDK reads it first and connects to the addresses in it: the configured public endpoint, or
//! else the scheme, host and port that the client used.

use pleiad_model::{Object, Value, json};

use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::operation::{Endpoint, Operation, OperationKind};
use crate::nosql::reply::{Handled, Reply};
use crate::nosql::status::Status;

/// The limits and features of the query engine, as a JSON document inside a string.
const QUERY_ENGINE: &str = r#"{"maxSqlQueryInputLength":524288,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":2000,"maxLogicalOrPerSqlQuery":2000,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,"queryMaxInMemorySortDocumentCount":500,"maxQueryRequestTimeoutFraction":0.9,"sqlAllowNonFiniteNumbers":false,"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,"sqlAllowScalarSubQuery":true,"allowNewKeywords":true,"sqlAllowLike":true,"sqlAllowGroupByClause":true,"maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,"sqlAllowTop":true,"enableSpatialIndexing":true}"#;

impl RequestContext<'_> {
    pub(super) fn account(&self, operation: &Operation<'_>) -> Handled {
        self.admit(operation)?;
        if operation.kind != OperationKind::Read {
            return Err(not_allowed());
        }
        let mut body = Vec::with_capacity(2048);
        let Endpoint { scheme, host } = &operation.options.endpoint;
        let endpoint = self.account.public_endpoint.clone().unwrap_or_else(|| format!("{scheme}://{host}/"));
        json::write(&self.account_document(&endpoint), &mut body);
        Ok(Reply::new(Status::Ok, body))
    }

    fn account_document(&self, endpoint: &str) -> Value {
        let location =
            Object::new().with("name", self.account.region.as_str()).with("databaseAccountEndpoint", endpoint);
        let locations: Value = vec![Value::from(location)].into();
        let replication = Object::new()
            .with("asyncReplication", false)
            .with("minReplicaSetSize", 1i64)
            .with("maxReplicasetSize", 1i64);
        Object::new()
            .with("_self", "")
            .with("id", self.account.id.as_str())
            .with("_rid", format!("{}.documents.azure.com", self.account.id))
            .with("media", "//media/")
            .with("addresses", "//addresses/")
            .with("_dbs", "//dbs/")
            .with("writableLocations", locations.clone())
            .with("readableLocations", locations)
            .with("enableMultipleWriteLocations", false)
            .with("userReplicationPolicy", replication.clone())
            .with(
                "userConsistencyPolicy",
                Object::new().with("defaultConsistencyLevel", self.account.consistency.as_str()),
            )
            .with("systemReplicationPolicy", replication)
            .with(
                "readPolicy",
                Object::new().with("primaryReadCoefficient", 1i64).with("secondaryReadCoefficient", 1i64),
            )
            .with("queryEngineConfiguration", QUERY_ENGINE)
            .into()
    }
}
