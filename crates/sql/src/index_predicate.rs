//! Index predicates: the part of a filter or order that an index can evaluate, as predicates on paths.
//!
//! Guarantees: every item for which the filter is true satisfies the predicate. The converse need not hold: the
//! executor evaluates the filter again on the items that an index returns. The planner decides which predicates
//! are worth using and checks whether the container's policy indexes the path.

mod derive; // expression to index predicate
mod explain; // index predicates as text

use std::ops::Bound;

use pleiad_model::Value;
use pleiad_model::policy::{Language, PathStep as IndexStep};
use pleiad_vector::DistanceMetric;

use crate::block::{Block, Distance, Operand, Output, ScalarExpr, VectorSearchOptions};
use crate::expr::full_text::FullTextFunction;
use crate::expr::functions::Function;
use crate::expr::like::LikePattern;
use crate::expr::{Context, Datum};

#[derive(Debug)]
pub enum IndexPredicate<'b> {
    /// No item satisfies it.
    Never,
    And(Vec<IndexPredicate<'b>>),
    Or(Vec<IndexPredicate<'b>>),
    Path(PathPredicate<'b>),
    Spatial(SpatialPredicate<'b>),
    Term(TermPredicate<'b>),
}

/// A predicate on the value at a path.
#[derive(Debug)]
pub struct PathPredicate<'b> {
    pub path: Vec<IndexStep>,
    pub value: ValuePredicate<'b>,
}

#[derive(Debug)]
pub enum ValuePredicate<'b> {
    /// Equal to this scalar.
    Equal(Value),
    /// A scalar between two bounds of one type.
    Range(Bound<Value>, Bound<Value>),
    /// A string with this prefix.
    Prefix(String),
    /// A string that passes a test, which can be evaluated on index entries alone.
    Strings(StringTest<'b>),
    Type(ValueType),
    /// Anything but undefined.
    Defined,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// `CONTAINS(c.a, 'x')`, `c.a LIKE '%x%'`: a predicate on one string.
pub enum StringTest<'b> {
    Like(&'b LikePattern),
    /// The string is the first argument.
    Call(&'static Function, &'b [ScalarExpr]),
}

impl std::fmt::Debug for StringTest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StringTest::Like(_) => f.write_str("LIKE"),
            StringTest::Call(function, _) => f.write_str(function.name),
        }
    }
}

/// A spatial predicate against a constant geometry.
#[derive(Debug)]
pub struct SpatialPredicate<'b> {
    pub path: Vec<IndexStep>,
    pub region: &'b Value,
    /// The maximum distance from the region, in metres or in units of the plane.
    pub distance: f64,
}

/// The text at a path contains this word.
#[derive(Debug)]
pub struct TermPredicate<'b> {
    pub path: Vec<IndexStep>,
    /// The language that the index analyzed the text with; entries of other languages do not match.
    pub language: Language,
    pub word: &'b str,
}

/// A key of `ORDER BY` that is a path of properties.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderPath {
    pub path: Vec<IndexStep>,
    pub descending: bool,
}

impl StringTest<'_> {
    pub fn passes(&self, text: &str, cx: &Context<'_>) -> bool {
        match self {
            StringTest::Like(pattern) => pattern.matches(text),
            StringTest::Call(function, rest) => {
                let first: Datum<'_> = Some(std::borrow::Cow::Owned(Value::from(text)));
                let rest = rest.iter().map(|node| node.constant().map(std::borrow::Cow::Borrowed));
                let mut arguments: Vec<Datum<'_>> = std::iter::once(first).chain(rest).collect();
                // If the test fails with an error, the entry counts as a match: the filter is evaluated on the item
                // anyway.
                (function.call)(&mut arguments, cx).map_or(true, |term| term.is_some_and(|v| v.as_bool() == Some(true)))
            }
        }
    }
}

impl IndexPredicate<'_> {
    /// The number of index lookups it stands for.
    pub fn lookups(&self) -> usize {
        match self {
            IndexPredicate::Never => 0,
            IndexPredicate::Path(_) | IndexPredicate::Spatial(_) | IndexPredicate::Term(_) => 1,
            IndexPredicate::And(all) | IndexPredicate::Or(all) => all.iter().map(IndexPredicate::lookups).sum(),
        }
    }
}

/// The index predicate that the block's filters imply together; `None` if an index can evaluate no part of them.
pub fn index_predicate(block: &Block) -> Option<IndexPredicate<'_>> {
    if !block.reads_items {
        return None;
    }
    derive::Paths::of(block).conjunction(block.filters.iter().map(|filter| &filter.node))
}

/// Predicates in the `SELECT`, and paths that aggregates read. They select no items, but an index can evaluate them.
pub fn projected_predicates(block: &Block) -> Vec<IndexPredicate<'_>> {
    if !block.reads_items {
        return Vec::new();
    }
    let paths = derive::Paths::of(block);
    let mut found = Vec::new();
    let project = match &block.output {
        Output::Rows(project) => project,
        Output::Groups(grouping, project) => {
            grouping.aggregates.iter().for_each(|(_, argument)| match paths.path(argument) {
                Some(path) => found.push(IndexPredicate::Path(PathPredicate { path, value: ValuePredicate::Defined })),
                None => paths.collect_projected(argument, &mut found),
            });
            project
        }
    };
    project.nodes().for_each(|node| paths.collect_projected(node, &mut found));
    found
}

/// The `GROUP BY` keys that are paths of properties below the item.
pub fn group_paths(block: &Block) -> Vec<Vec<IndexStep>> {
    let Output::Groups(grouping, _) = &block.output else { return Vec::new() };
    let paths = derive::Paths::of(block);
    let is_property = |step: &IndexStep| matches!(step, IndexStep::Property(_));
    let keys = grouping.keys.iter().filter_map(|key| paths.path(key).filter(|path| path.iter().all(is_property)));
    keys.filter(|_| block.reads_items).collect()
}

/// The keys of `ORDER BY`, if each is a path of properties below the item.
pub fn order_paths(block: &Block) -> Option<Vec<OrderPath>> {
    if !block.reads_items {
        return None;
    }
    let paths = derive::Paths::of(block);
    let path = |node| paths.path(node).filter(|path| path.iter().all(|step| matches!(step, IndexStep::Property(_))));
    let keys = block.order.iter();
    keys.map(|key| Some(OrderPath { path: path(&key.node)?, descending: key.descending })).collect()
}

/// The order of a k-nearest-neighbor query: `ORDER BY VectorDistance(c.path, constant)` as the only key.
#[derive(Debug)]
pub struct VectorOrder<'b> {
    pub path: Vec<IndexStep>,
    pub target: &'b [f32],
    pub metric: DistanceMetric,
    pub search: VectorSearchOptions,
}

pub fn vector_order(block: &Block) -> Option<VectorOrder<'_>> {
    let [only] = block.order.as_slice() else { return None };
    let ScalarExpr::Distance(distance) = &only.node else { return None };
    let Distance { metric: measure, search, left, right } = &**distance;
    if only.descending != measure.is_similarity() {
        return None; // farthest first: not an order of a vector index
    }
    let (target, node) = match (left, right) {
        (Operand::Known(to), Operand::Computed(node)) | (Operand::Computed(node), Operand::Known(to)) => (to, node),
        _ => return None,
    };
    let is_property = |step: &IndexStep| matches!(step, IndexStep::Property(_));
    let path = derive::Paths::of(block).path(node).filter(|path| block.reads_items && path.iter().all(is_property))?;
    Some(VectorOrder { path, target, metric: *measure, search: *search })
}

/// Order by relevance: `ORDER BY _FullTextScore(c.path, …) DESC` as the only key.
#[derive(Debug)]
pub struct TextScoreOrder<'b> {
    pub path: Vec<IndexStep>,
    /// An item that does not satisfy it has the score 0.
    pub predicate: IndexPredicate<'b>,
}

/// `None` also if the text index cannot evaluate one of the terms.
pub fn text_score_order(block: &Block) -> Option<TextScoreOrder<'_>> {
    let [only] = block.order.as_slice() else { return None };
    let ScalarExpr::FullText(call) = &only.node else { return None };
    if !block.reads_items || !only.descending || !matches!(call.function, FullTextFunction::Score(_)) {
        return None;
    }
    let paths = derive::Paths::of(block);
    Some(TextScoreOrder { path: paths.path(&call.text)?, predicate: IndexPredicate::Or(paths.term_predicates(call)?) })
}

/// An aggregate that full-text statistics answer without reading items: the number of items, the total number of words
/// at a path, or the number of texts that contain a word.
#[derive(Debug)]
pub enum TextAggregate<'b> {
    Items,
    Words { path: Vec<IndexStep>, language: Language },
    Hits(TermPredicate<'b>),
}

/// One per aggregate, if the block computes nothing but such aggregates.
pub fn text_aggregates(block: &Block) -> Option<Vec<TextAggregate<'_>>> {
    let Output::Groups(grouping, _) = &block.output else { return None };
    if !grouping.single_group || !block.reads_items || !block.sources.is_empty() || !block.filters.is_empty() {
        return None;
    }
    let paths = derive::Paths::of(block);
    grouping.aggregates.iter().map(|(kind, node)| paths.text_aggregate(*kind, node)).collect()
}

pub use explain::path_text;

#[cfg(test)]
mod tests;
