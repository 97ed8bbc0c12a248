//! The plan of hybrid search, `ORDER BY RANK`: the queries that score items, and the rules to fuse their scores.
//!
//! Guarantees: summing the statistics of all ranges, filling them into each component's query, running it on every
//! range and fusing the scores with `rank::fuse` gives the query's result. Clients do this with the plan, the engine
//! with the same queries.
//!
//! ```text
//! SELECT TOP 10 * FROM c ORDER BY RANK FullTextScore(c.text, "swim")
//!    statistics  SELECT COUNT(1) AS documentCount, [{"totalWordCount": SUM(_FullTextWordCount(c.text)),
//!                "hitCounts": [COUNTIF(FullTextContains(c.text, "swim"))]}] AS fullTextStatistics FROM c
//!    component   SELECT TOP 120 c._rid, [{"item": score}] AS orderByItems,
//!                {"payload": c, "componentScores": [(score ?? -1)]} AS payload FROM c WHERE (…) ORDER BY score DESC
//!    score       _FullTextScore(c.text, ["swim"], {…-totaldocumentcount}, {…-totalwordcount-0}, {…-hitcountsarray-0})
//! ```
//!
//! A component returns more rows than the query: an item that one component ranks low may be ranked high by another.

use std::collections::HashMap;

use pleiad_model::{Error, Object, Result, Value, json};

use super::rewrite::{ORDER_FILTER, nesting_error, order_filter, payload};
use crate::check::Counts;
use crate::compile::{BindContext, compile, constant};
use crate::expr::MemoryBudget;
use crate::parse;
use crate::parse::ast::{Expr, OrderBy, OrderByItem, Select, SelectSpec};
use crate::parse::print::{print_expr, print_from, print_list};
use crate::rank::{Component, FusionRule, RankClause, Score, ScoredItem, selected_property};

/// The smallest row limit of a component.
const COMPONENT_ROWS_MIN: u64 = 120;
/// The largest: clients read it as a signed 32-bit number.
const COMPONENT_ROWS_MAX: u64 = i32::MAX as u64;
/// The memory budget of the search terms, which are written into every component's query.
const TERM_BYTES_MAX: usize = 64 * 1024;

/// The limit on the queries of all components together: each of n queries contains n scores.
const TEXTS_BYTES_MAX: usize = 4 << 20;

/// The prefix of the placeholders that clients fill in.
const PLACEHOLDER_PREFIX: &str = "{documentdb-";
const DOCUMENT_COUNT: &str = "{documentdb-formattablehybridsearchquery-totaldocumentcount}";

/// Placeholders are numbered over the components with search terms, in their order.
fn word_count_placeholder(number: usize) -> String {
    format!("{{documentdb-formattablehybridsearchquery-totalwordcount-{number}}}")
}

fn hit_counts_placeholder(number: usize) -> String {
    format!("{{documentdb-formattablehybridsearchquery-hitcountsarray-{number}}}")
}

/// The format of a component's rows, for the reader that fuses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComponentFormat {
    /// Sorted by the component's score, like the rows of an `ORDER BY` query.
    Sorted,
    /// Not merged in order: the reader ranks by the scores, the highest first. For clients that list
    /// `HybridSearchSkipOrderByRewrite`.
    Unsorted,
}

/// The plan of a query with `ORDER BY RANK`.
pub struct Hybrid {
    statistics: String,
    components: Vec<ComponentQuery>,
    /// The number of components that need statistics.
    statistics_count: usize,
    is_weighted: bool,
    skip: Option<u64>,
    take: Option<u64>,
    /// The row limit of each component.
    top: Option<u64>,
    format: ComponentFormat,
}

struct ComponentQuery {
    score: String,
    text: String,
    fusion: FusionRule,
}

/// Term statistics over all ranges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GlobalStatistics {
    documents: u64,
    /// Per component: the number of words, and the number of documents that contain each term.
    texts: Vec<(u64, Vec<u64>)>,
}

impl Hybrid {
    /// `None` for a query without `ORDER BY RANK`.
    pub fn of(
        select: &Select,
        text: &str,
        bind: BindContext<'_>,
        counts: Counts,
        format: ComponentFormat,
    ) -> Result<Option<Hybrid>> {
        let Some(OrderBy::Rank(score)) = &select.order_by else { return Ok(None) };
        let ranking = RankClause::parse(score, select.spans.order_by, Some(bind.parameters))
            .map_err(|diagnostic| diagnostic.into_error(text))?;
        // A single component is not fused: clients return its rows in merge order.
        let format = if ranking.components.len() < 2 { ComponentFormat::Sorted } else { format };
        let mut scores = Scores::default();
        for component in &ranking.components {
            scores.add(component, select, text, bind)?;
        }
        let (skip, take) = match counts.offset_limit {
            Some((skip, take)) => (Some(skip), Some(take)),
            None => (None, counts.top),
        };
        let top = take.map(|take| (2 * (skip.unwrap_or(0) + take)).clamp(COMPONENT_ROWS_MIN, COMPONENT_ROWS_MAX));
        let statistics = format!(
            "SELECT COUNT(1) AS documentCount, [{}] AS fullTextStatistics{}",
            scores.statistics.join(", "),
            print_from(&select.from)
        );
        let (statistics_count, components) = (scores.statistics.len(), scores.into_components(select, top, format)?);
        let is_weighted = ranking.is_weighted;
        Ok(Some(Hybrid { statistics, components, statistics_count, is_weighted, skip, take, top, format }))
    }

    pub fn is_weighted(&self) -> bool {
        self.is_weighted
    }

    /// The query that gathers statistics from each range; `None` if no component needs any.
    pub fn statistics_query(&self) -> Option<&str> {
        (self.statistics_count > 0).then_some(self.statistics.as_str())
    }

    /// The queries of the components, with the statistics filled in.
    pub fn component_queries(&self, statistics: &GlobalStatistics) -> impl Iterator<Item = String> {
        self.components.iter().map(|component| statistics.fill(&component.text))
    }

    pub fn fusion_rules(&self) -> Vec<FusionRule> {
        self.components.iter().map(|component| component.fusion).collect()
    }

    /// The number of rows to skip and to return.
    pub fn window(&self) -> (u64, Option<u64>) {
        (self.skip.unwrap_or(0), self.take)
    }

    pub(super) fn to_object(&self) -> Object {
        let count = |n: Option<u64>| n.map_or(Value::Null, Value::from);
        let weights =
            self.components.iter().filter(|_| self.is_weighted).map(|component| Value::from(component.fusion.weight));
        Object::new()
            .with("globalStatisticsQuery", self.statistics.as_str())
            .with(
                "componentQueryInfos",
                self.components.iter().map(|component| self.component(component).into()).collect::<Vec<_>>(),
            )
            .with("componentWithoutPayloadQueryInfos", Vec::new())
            .with("projectionQueryInfo", Value::Null)
            .with("componentWeights", weights.collect::<Vec<_>>())
            .with("skip", count(self.skip))
            .with("take", count(self.take))
            .with("requiresGlobalStatistics", self.statistics_count > 0)
    }

    fn component(&self, component: &ComponentQuery) -> Object {
        let is_sorted = self.format == ComponentFormat::Sorted;
        let if_sorted = |value: Value| if is_sorted { vec![value] } else { Vec::new() };
        Object::new()
            .with("distinctType", "None")
            .with("top", self.top.filter(|_| is_sorted).map_or(Value::Null, Value::from))
            .with("offset", Value::Null)
            .with("limit", Value::Null)
            .with("orderBy", if_sorted(super::direction(!component.fusion.ascending).into()))
            .with("orderByExpressions", if_sorted(component.score.as_str().into()))
            .with("groupByExpressions", Vec::new())
            .with("groupByAliases", Vec::new())
            .with("aggregates", Vec::new())
            .with("groupByAliasToAggregateType", Object::new())
            .with("rewrittenQuery", component.text.as_str())
            .with("hasSelectValue", false)
            .with("dCountInfo", Value::Null)
            .with("hasNonStreamingOrderBy", is_sorted)
    }
}

/// The score expressions of all components. They are collected first because each component's query contains all of
/// them.
#[derive(Default)]
struct Scores {
    scores: Vec<(String, FusionRule)>,
    /// The literal that replaces an undefined score.
    unscored: Vec<&'static str>,
    statistics: Vec<String>,
}

impl Scores {
    fn add(&mut self, component: &Component<'_>, select: &Select, text: &str, bind: BindContext<'_>) -> Result<()> {
        let is_reversed = component.weight < 0.0;
        let (score, descends, unscored) = match component.score {
            Score::Text { property, terms } => {
                let terms = term_values(terms, bind)?;
                (self.text_score(property, &terms), true, "-1")
            }
            Score::Vector(arguments) => {
                let descends = nearest_is_largest(component.expr, select, text, bind)?;
                (format!("_VectorScore({})", print_list(arguments)), descends, "-1e308")
            }
        };
        let ascending = descends == is_reversed;
        self.unscored.push(if ascending { "1.79769e+308" } else { unscored });
        self.scores.push((score, FusionRule { ascending, weight: component.weight.abs() }));
        Ok(())
    }

    fn text_score(&mut self, property: &Expr, terms: &[Value]) -> String {
        let (number, property) = (self.statistics.len(), print_expr(&selected_property(property)));
        let terms: Vec<String> = terms.iter().map(json::to_string).collect();
        let counted = terms.iter().map(|term| format!("COUNTIF(FullTextContains({property}, {term}))"));
        self.statistics.push(format!(
            r#"{{"totalWordCount": SUM(_FullTextWordCount({property})), "hitCounts": [{}]}}"#,
            counted.collect::<Vec<_>>().join(", ")
        ));
        format!(
            "_FullTextScore({property}, [{}], {DOCUMENT_COUNT}, {}, {})",
            terms.join(", "),
            word_count_placeholder(number),
            hit_counts_placeholder(number)
        )
    }

    fn into_components(
        self,
        select: &Select,
        top: Option<u64>,
        format: ComponentFormat,
    ) -> Result<Vec<ComponentQuery>> {
        let scored = self.scores.iter().zip(&self.unscored).map(|((score, fusion), unscored)| match format {
            ComponentFormat::Unsorted if fusion.ascending => format!("(-1 * ({score} ?? {unscored}))"),
            _ => format!("({score} ?? {unscored})"),
        });
        let all = scored.collect::<Vec<_>>().join(", ");
        let counted = GlobalStatistics::empty(&self.statistics);
        let mut bytes = 0;
        let component = |(score, fusion): (String, FusionRule)| {
            let text = match format {
                ComponentFormat::Sorted => sorted_query(select, top, &score, &all, fusion),
                ComponentFormat::Unsorted => unsorted_query(select, top, &score, &all, fusion),
            };
            bytes += text.len();
            if bytes > TEXTS_BYTES_MAX {
                return Err(Error::invalid(
                    "The scores of the RRF function are too long together. Rank by fewer or shorter ones.",
                ));
            }
            match parse::parse(&counted.fill(&text)) {
                Ok(_) => Ok(ComponentQuery { score, text, fusion }),
                Err(_) => Err(nesting_error()),
            }
        };
        self.scores.into_iter().map(component).collect()
    }
}

fn sorted_query(select: &Select, top: Option<u64>, score: &str, all: &str, fusion: FusionRule) -> String {
    let root = select.from.first().and_then(|source| source.name()).unwrap_or_default();
    format!(
        r#"SELECT {top}{root}._rid, [{{"item": {score}}}] AS orderByItems, {{"payload": {payload}, "componentScores": [{all}]}} AS payload{from} WHERE {filter} ORDER BY {score} {direction}"#,
        top = top.map_or(String::new(), |top| format!("TOP {top} ")),
        payload = payload(&select.spec, root),
        from = print_from(&select.from),
        filter = order_filter(select),
        direction = if fusion.ascending { "ASC" } else { "DESC" },
    )
}

fn unsorted_query(select: &Select, top: Option<u64>, score: &str, all: &str, fusion: FusionRule) -> String {
    let root = select.from.first().and_then(|source| source.name()).unwrap_or_default();
    format!(
        "SELECT {top}{root}._rid, {payload} AS payload, [{all}] AS componentScores{from}{filter} ORDER BY {score} {direction}",
        top = top.map_or(String::new(), |top| format!("TOP {top} ")),
        payload = payload(&select.spec, root),
        from = print_from(&select.from),
        filter = unsorted_filter(select),
        direction = if fusion.ascending { "ASC" } else { "DESC" },
    )
}

/// An undefined value of `SELECT VALUE` gives no row.
fn unsorted_filter(select: &Select) -> String {
    let filter = select.filter.as_ref().map(|filter| format!("({})", print_expr(filter)));
    let defined = match &select.spec {
        SelectSpec::Value(item) => Some(format!("IS_DEFINED({})", print_expr(&item.expr))),
        _ => None,
    };
    let terms: Vec<String> = filter.into_iter().chain(defined).collect();
    if terms.is_empty() { String::new() } else { format!(" WHERE {}", terms.join(" AND ")) }
}

/// The search terms of a score, given one by one or as an array.
fn term_values(terms: &[Expr], bind: BindContext<'_>) -> Result<Vec<Value>> {
    let memory = MemoryBudget::new(TERM_BYTES_MAX);
    let mut found = Vec::new();
    for term in terms {
        match constant(term, bind, &memory) {
            Some(Some(Value::Array(terms))) => found.extend(terms),
            Some(Some(term)) => found.push(term),
            _ => return Err(not_a_term()),
        }
    }
    let is_term =
        |term: &Value| matches!(term, Value::String(_)) || term.get("term").is_some_and(|of| of.as_str().is_some());
    if found.iter().all(is_term) { Ok(found) } else { Err(not_a_term()) }
}

fn not_a_term() -> Error {
    Error::invalid(
        "The terms of FullTextScore must be string literals, parameters that are strings, or objects like \
         {\"term\": \"red\", \"distance\": 1}.",
    )
}

/// Whether the nearest vectors have the largest scores.
fn nearest_is_largest(distance: &Expr, select: &Select, text: &str, bind: BindContext<'_>) -> Result<bool> {
    let key = OrderByItem { expr: distance.clone(), descending: false, direction: None };
    let sorted = Select { order_by: Some(OrderBy::Keys(vec![key])), ..select.clone() };
    Ok(compile(&sorted, text, bind)?.order.first().is_some_and(|key| key.descending))
}

impl GlobalStatistics {
    /// Adds the statistics of one range: a row of the statistics query.
    pub fn add(&mut self, row: &Value) -> Result<()> {
        let wrong = || Error::internal("statistics of another shape");
        let count =
            |value: Option<&Value>| value.and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok()).ok_or_else(wrong);
        let list = |value: Option<&Value>| value.and_then(Value::as_array).map(<[Value]>::to_vec).ok_or_else(wrong);
        self.documents += count(row.get("documentCount"))?;
        for (at, text) in list(row.get("fullTextStatistics"))?.iter().enumerate() {
            let hits = list(text.get("hitCounts"))?.iter().map(|hit| count(Some(hit))).collect::<Result<Vec<_>>>()?;
            if self.texts.len() <= at {
                self.texts.push((0, vec![0; hits.len()]));
            }
            if let Some((words, sums)) = self.texts.get_mut(at) {
                *words += count(text.get("totalWordCount"))?;
                sums.iter_mut().zip(hits).for_each(|(sum, hits)| *sum += hits);
            }
        }
        Ok(())
    }

    fn empty(statistics: &[String]) -> GlobalStatistics {
        GlobalStatistics { documents: 0, texts: vec![(0, Vec::new()); statistics.len()] }
    }

    fn fill(&self, text: &str) -> String {
        let values = self.placeholder_values();
        let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find(PLACEHOLDER_PREFIX) {
            let (before, from) = rest.split_at(at);
            let (placeholder, after) = from.split_at(from.find('}').map_or(from.len(), |end| end + 1));
            filled.push_str(before);
            filled.push_str(values.get(placeholder).map_or(placeholder, String::as_str));
            rest = after;
        }
        filled + rest
    }

    fn placeholder_values(&self) -> HashMap<String, String> {
        let mut values = HashMap::from([
            (ORDER_FILTER.to_owned(), "true".to_owned()),
            (DOCUMENT_COUNT.to_owned(), self.documents.to_string()),
        ]);
        for (at, (total, sums)) in self.texts.iter().enumerate() {
            let sums: Vec<String> = sums.iter().map(u64::to_string).collect();
            values.insert(word_count_placeholder(at), total.to_string());
            values.insert(hit_counts_placeholder(at), format!("[{}]", sums.join(",")));
        }
        values
    }
}

/// Parses a row of a component's result.
pub fn parse_scored_row(row: &Value) -> Result<ScoredItem> {
    let read = || {
        let outer = row.get("payload")?;
        let scores = outer.get("componentScores")?.as_array()?;
        let scores = scores.iter().map(|score| Some(score.as_number()?.as_f64())).collect::<Option<_>>()?;
        Some(ScoredItem { rid: row.get("_rid")?.as_str()?.to_owned(), scores, payload: outer.get("payload")?.clone() })
    };
    read().ok_or_else(|| Error::internal("a component's row of another shape"))
}

#[cfg(test)]
mod tests;
