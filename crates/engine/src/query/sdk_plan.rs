//! SDK plan: the query plan with which a client runs a query over many partitions itself.

use pleiad_model::{Result, Value};
use pleiad_sql::Parameters;
use pleiad_sql::compile::BindContext;
use pleiad_sql::query_plan::{needs_merge, query_plan};

use super::statement_cache;
use crate::feed::FeedRange;
use crate::{Action, Admitted, Engine};

/// The features of the most capable client.
const ALL_FEATURES: &str = "Aggregate,NonValueAggregate,MultipleAggregates,CountIf,ListAndSetAggregate,GroupBy,DCount,\
                            Distinct,OrderBy,MultipleOrderBy,NonStreamingOrderBy,HybridSearch,WeightedRankFusion,\
                            OffsetAndLimit,Top,CompositeAggregate";

impl Engine {
    /// `features` are those that the client supports; `None` stands for all.
    pub fn query_plan(
        &self,
        at: &Admitted,
        text: &str,
        parameters: &Parameters,
        features: Option<&str>,
    ) -> Result<Value> {
        at.check(Action::ExecuteQuery)?;
        let definition = &at.container().definition;
        let (geospatial, embeddings) = (definition.geospatial, definition.vector_embeddings.as_slice());
        let full_text = definition.full_text.as_ref();
        let bind = BindContext { parameters, geospatial, embeddings, full_text, started_ms: None };
        let features = features.unwrap_or(ALL_FEATURES);
        query_plan(text, bind, at.container().schema.key.as_ref(), features)
    }

    /// Whether a client that executed the query without a plan has to execute it with one, to continue after a change
    /// of the partitions. By partition key it has not: the current partitions answer a request for a key completely.
    pub fn requires_plan(&self, at: &Admitted, text: &str, scope: &FeedRange) -> Result<bool> {
        at.check(Action::ExecuteQuery)?;
        let is_by_range = matches!(scope, FeedRange::PartitionKeyRange(_) | FeedRange::EffectiveKeys(..));
        Ok(is_by_range && needs_merge(&statement_cache::get_or_parse(text)?.select))
    }
}
