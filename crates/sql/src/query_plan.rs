//! The query plan for SDKs: what a client needs to run a query over many partitions by itself.
//!
//! Guarantees: a client that runs the rewritten query on every range of the plan, and merges as the plan says, gets the
//! query's result. A plan requires only features that the client has listed.
//!
//! ```text
//! SELECT c.n, AVG(c.a) FROM c GROUP BY c.n
//!    rewritten   SELECT [{"item": c.n}] AS groupByItems,
//!                       {"n": c.n, "$1": {"item": {"sum": SUM(c.a), "count": COUNT(c.a)}}} AS payload
//!                FROM c GROUP BY c.n
//!    merge       groups of equal groupByItems; "n": the first, "$1": Average
//!    ranges      ["", "FF")
//! ```
//!
//! `pruning` determines the keys that a filter allows; the engine maps them to partitions.

mod features; // features that a client must support
mod hybrid; // the plan of ORDER BY RANK
mod rewrite; // the query for one range
mod shape; // how results are merged

use pleiad_model::partition_key::PartitionKeyDefinition;
use pleiad_model::{Object, Result, Value};

use crate::check::{self, Counts};
use crate::compile::{BindContext, compile, is_distance};
use crate::parse::ast::{OrderBy, OrderByItem, Select, SelectSpec};
use crate::parse::print::print_expr;
use crate::pruning::{PrunedKeys, QueryRange, prune, ranges};
use shape::{GroupColumn, MergeShape};

pub use hybrid::{ComponentFormat, GlobalStatistics, Hybrid, parse_scored_row};
pub(crate) use shape::combines_rows;
pub use shape::needs_merge;

const VERSION: i64 = 2;

/// The query plan in the JSON format that SDKs expect. `supported_features` is the client's list, separated by commas;
/// a container without a partition key has no `definition`.
pub fn query_plan(
    text: &str,
    bind: BindContext<'_>,
    definition: Option<&PartitionKeyDefinition>,
    supported_features: &str,
) -> Result<Value> {
    let select = check::parse_and_check(text)?;
    let counts = check::check_parameters(&select, bind.parameters, text)?;
    let pruned = definition.map_or(PrunedKeys::All, |definition| prune(&select, bind, definition));
    let is_single = definition.is_some_and(|definition| pruned.single(definition).is_some());
    let ranges = match definition {
        Some(definition) => ranges(&pruned, definition),
        None if !select.reads_items() => vec![QueryRange::empty()],
        None => vec![QueryRange::full()],
    };
    let answer = Object::new().with("partitionedQueryExecutionInfoVersion", VERSION);
    let answer = match Hybrid::of(&select, text, bind, counts, features::component_format(supported_features))? {
        Some(hybrid) => {
            features::check_hybrid(&hybrid, counts, supported_features)?;
            answer.with("hybridSearchQueryInfo", hybrid.to_object())
        }
        None => {
            let vector_direction = vector_direction(&select, text, bind)?;
            let plan = SdkPlan::of(&select, counts, is_single, vector_direction)?;
            features::check(&plan, supported_features)?;
            answer.with("queryInfo", plan.to_object()?)
        }
    };
    let ranges = ranges.iter().map(QueryRange::to_value).collect::<Vec<_>>();
    Ok(Value::from(answer.with("queryRanges", ranges)))
}

/// The direction of `ORDER BY VectorDistance(…)`, which sorts the nearest first: descending for similarities, ascending
/// for distances. `None` for any other query.
fn vector_direction(select: &Select, text: &str, bind: BindContext<'_>) -> Result<Option<SortDirection>> {
    match &select.order_by {
        Some(OrderBy::Keys(keys)) if keys.iter().any(|key| is_distance(&key.expr)) => {
            let block = compile(select, text, bind)?;
            Ok(block.order.first().map(|key| direction(key.descending)))
        }
        _ => Ok(None),
    }
}

/// A sort direction as plans spell it.
type SortDirection = &'static str;

struct SdkPlan<'q> {
    select: &'q Select,
    shape: MergeShape<'q>,
    /// The counts that the client applies; a query that passes through unchanged applies its own.
    counts: Counts,
    /// The direction of a vector search, for which a range returns rows only after it has read all of them.
    vector_direction: Option<SortDirection>,
}

impl<'q> SdkPlan<'q> {
    fn of(
        select: &'q Select,
        mut counts: Counts,
        is_single: bool,
        vector_direction: Option<SortDirection>,
    ) -> Result<Self> {
        let mut shape = MergeShape::of(select)?;
        // A single partition sorts, skips and limits by itself.
        let is_plain =
            matches!(shape, MergeShape::Rows | MergeShape::Sorted(_)) && vector_direction.is_none() && !select.distinct;
        if is_single && is_plain {
            shape = MergeShape::Rows;
            counts.offset_limit = None;
        }
        // A query that reads no items has nothing to merge.
        if matches!(shape, MergeShape::Rows) && !select.reads_items() {
            counts = Counts::default();
        }
        Ok(SdkPlan { select, shape, counts, vector_direction })
    }

    fn to_object(&self) -> Result<Object> {
        let count = |n: Option<u64>| n.map_or(Value::Null, Value::from);
        let texts = |texts: Vec<String>| Value::from(texts.into_iter().map(Value::from).collect::<Vec<_>>());
        let group_by = self.shape.group_by().iter().map(print_expr).collect();
        let order_by = self.shape.order_by();
        let info = Object::new()
            .with("distinctType", self.distinct_type())
            .with("top", count(self.counts.top))
            .with("offset", count(self.counts.offset_limit.map(|(offset, _)| offset)))
            .with("limit", count(self.counts.offset_limit.map(|(_, limit)| limit)))
            .with("orderBy", texts(order_by.iter().map(|key| self.direction(key).to_owned()).collect()))
            .with("orderByExpressions", texts(order_by.iter().map(|key| print_expr(&key.expr)).collect()))
            .with("groupByExpressions", texts(group_by))
            .with("groupByAliases", texts(self.shape.columns().iter().map(|column| column.name.clone()).collect()))
            .with(
                "aggregates",
                texts(self.shape.value_aggregate().map(|kind| kind.wire_name().to_owned()).into_iter().collect()),
            )
            .with("groupByAliasToAggregateType", aggregate_types(self.shape.columns()))
            .with("rewrittenQuery", rewrite::rewrite(self)?)
            .with("hasSelectValue", matches!(self.select.spec, SelectSpec::Value(_)))
            .with("dCountInfo", self.distinct_count())
            .with("hasNonStreamingOrderBy", self.vector_direction.is_some());
        Ok(info)
    }

    fn direction(&self, key: &OrderByItem) -> SortDirection {
        self.vector_direction.unwrap_or_else(|| direction(key.descending))
    }

    fn distinct_type(&self) -> &'static str {
        match &self.shape {
            MergeShape::DistinctCount { .. } => "Unordered",
            MergeShape::Sorted(keys) if self.select.distinct && shape::equal_rows_are_adjacent(self.select, keys) => {
                "Ordered"
            }
            // Without FROM there is a single row.
            _ if self.select.distinct && !self.select.from.is_empty() => "Unordered",
            _ => "None",
        }
    }

    fn distinct_count(&self) -> Value {
        match &self.shape {
            MergeShape::DistinctCount { alias, .. } => Object::new().with("dCountAlias", alias.as_str()).into(),
            _ => Value::Null,
        }
    }
}

fn direction(descending: bool) -> SortDirection {
    if descending { "Descending" } else { "Ascending" }
}

fn aggregate_types(columns: &[GroupColumn<'_>]) -> Object {
    let mut types = Object::new();
    for column in columns {
        let name = column.aggregate.map_or(Value::Null, |(kind, _)| Value::from(kind.wire_name()));
        types.set(column.name.as_str(), name);
    }
    types
}

impl QueryRange {
    fn to_value(&self) -> Value {
        let range = Object::new()
            .with("min", self.min.as_str())
            .with("max", self.max.as_str())
            .with("isMinInclusive", self.min_inclusive)
            .with("isMaxInclusive", self.max_inclusive);
        Value::from(range)
    }
}

#[cfg(test)]
mod tests;
