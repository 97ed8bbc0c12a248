//! Compiled query: names are slots, parameters and constants are values, subqueries are blocks of their own.
//!
//! Invariant: a block runs without the query text, and nothing in it depends on a row.

use pleiad_model::Value;
use pleiad_vector::DistanceMetric;

use crate::document::PropertyName;
use crate::expr::aggregate::AggregateKind;
use crate::expr::full_text::FullText;
use crate::expr::functions::Function;
use crate::expr::like::LikePattern;
use crate::parse::ast::{BinaryOp, SubqueryForm, UnaryOp};

/// One `SELECT`.
pub struct Block {
    /// How many slots the enclosing blocks have; the first slot of this block has this number.
    pub base: usize,
    /// The block reads the container: slot 0 is the item.
    pub reads_items: bool,
    /// Each source binds one more slot. The item itself is not in the list.
    pub sources: Vec<RowSource>,
    /// Conjuncts: a row is kept if all are true. Each is evaluated as soon as its slots are bound.
    pub filters: Vec<Filter>,
    pub output: Output,
    pub distinct: bool,
    pub order: Vec<SortKey>,
    pub offset: u64,
    /// `TOP` or `LIMIT`.
    pub take: Option<u64>,
}

pub struct RowSource {
    /// `IN`: one row per array element. Otherwise the value is one row.
    pub unnest: bool,
    pub kind: RowSourceKind,
}

pub enum RowSourceKind {
    Scalar(ScalarExpr),
    Rows(Box<Block>),
}

pub struct Filter {
    /// The number of sources of the block that must be bound to evaluate it.
    pub level: usize,
    pub node: ScalarExpr,
}

pub enum Output {
    Rows(OutputExpr),
    /// The projection reads a group, in slot `base`.
    Groups(Grouping, OutputExpr),
}

#[derive(Default)]
pub struct Grouping {
    pub keys: Vec<ScalarExpr>,
    /// The keys of `ORDER BY`, each a key of the group or a part of one.
    pub order: Vec<SortKey>,
    pub aggregates: Vec<(AggregateKind, ScalarExpr)>,
    /// No `GROUP BY`: exactly one group, even without rows.
    pub single_group: bool,
}

pub enum OutputExpr {
    Value(ScalarExpr),
    Object(Vec<(String, ScalarExpr)>),
}

pub struct SortKey {
    pub node: ScalarExpr,
    pub descending: bool,
}

/// A scalar expression.
pub enum ScalarExpr {
    Undefined,
    Constant(Value),
    Slot(usize),
    /// A path of properties below a slot; at least one step.
    Path {
        slot: usize,
        steps: Vec<PropertyName>,
    },
    /// `base.a[i]` for any base expression.
    Access {
        base: Box<ScalarExpr>,
        steps: Vec<AccessStep>,
    },
    /// A `GROUP BY` key of the group in the slot, by its index.
    Key {
        slot: usize,
        at: usize,
    },
    Aggregate {
        slot: usize,
        at: usize,
    },
    Unary {
        op: UnaryOp,
        operand: Box<ScalarExpr>,
    },
    Binary {
        first: Box<ScalarExpr>,
        rest: Vec<(BinaryOp, ScalarExpr)>,
    },
    And(Vec<ScalarExpr>),
    Or(Vec<ScalarExpr>),
    Coalesce(Vec<ScalarExpr>),
    Conditional {
        arms: Vec<(ScalarExpr, ScalarExpr)>,
        otherwise: Box<ScalarExpr>,
    },
    In {
        not: bool,
        operand: Box<ScalarExpr>,
        list: Vec<ScalarExpr>,
    },
    Between {
        not: bool,
        operand: Box<ScalarExpr>,
        low: Box<ScalarExpr>,
        high: Box<ScalarExpr>,
    },
    Like {
        not: bool,
        operand: Box<ScalarExpr>,
        pattern: LikeOperand,
    },
    Object(Vec<(String, ScalarExpr)>),
    Array(Vec<ScalarExpr>),
    Call {
        function: &'static Function,
        arguments: Vec<ScalarExpr>,
    },
    Distance(Box<Distance>),
    UserCall {
        function: String,
        arguments: Vec<ScalarExpr>,
    },
    /// Boxed: few queries have one.
    FullText(Box<FullText>),
    Subquery {
        form: SubqueryForm,
        block: Box<Block>,
    },
}

/// `VectorDistance` of two vectors, of which at least one is computed per row.
pub struct Distance {
    pub metric: DistanceMetric,
    pub left: Operand,
    pub right: Operand,
    pub search: VectorSearchOptions,
}

pub enum Operand {
    /// A constant vector, already validated and converted for the metric.
    Known(Vec<f32>),
    Computed(ScalarExpr),
}

/// How thoroughly a vector search looks for the nearest neighbors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VectorSearchOptions {
    /// Exact search: compares with every vector.
    pub brute_force: bool,
    /// The size of the candidate list of the graph search, per requested row.
    pub list_multiplier: Option<f64>,
    /// The number of candidates whose exact distance is computed, per requested row.
    pub rerank_multiplier: Option<f64>,
}

pub enum AccessStep {
    Property(PropertyName),
    Index(ScalarExpr),
}

pub enum LikeOperand {
    /// A constant pattern; its text stays here for deriving the index predicate.
    Known {
        text: String,
        escape: Option<char>,
        pattern: LikePattern,
    },
    Computed {
        node: Box<ScalarExpr>,
        escape: Option<char>,
    },
}

impl Block {
    /// The query only counts items: `SELECT VALUE COUNT(1) FROM c`.
    pub fn only_counts(&self) -> bool {
        let Output::Groups(grouping, _) = &self.output else { return false };
        let counts =
            |(kind, node): &(AggregateKind, ScalarExpr)| *kind == AggregateKind::Count && node.constant().is_some();
        grouping.single_group
            && grouping.aggregates.iter().all(counts)
            && self.reads_items
            && self.sources.is_empty()
            && self.filters.is_empty()
    }
}

impl Block {
    /// Constant work per item: no loops over its arrays, no full-text analysis, no user-defined functions.
    pub fn is_simple(&self) -> bool {
        let (groups, project) = match &self.output {
            Output::Rows(project) => (None, project),
            Output::Groups(grouping, project) => (Some(grouping), project),
        };
        let filters = self.filters.iter().map(|filter| &filter.node);
        let keys = self.order.iter().map(|key| &key.node);
        let grouped = groups.into_iter().flat_map(Grouping::nodes);
        let mut nodes = filters.chain(keys).chain(grouped).chain(project.nodes());
        self.reads_items && self.sources.is_empty() && nodes.all(ScalarExpr::is_simple)
    }
}

impl Grouping {
    fn nodes(&self) -> impl Iterator<Item = &ScalarExpr> {
        let keys = self.keys.iter().chain(self.order.iter().map(|key| &key.node));
        keys.chain(self.aggregates.iter().map(|(_, node)| node))
    }
}

impl OutputExpr {
    pub fn nodes(&self) -> impl Iterator<Item = &ScalarExpr> {
        let (value, properties) = match self {
            OutputExpr::Value(node) => (Some(node), [].as_slice()),
            OutputExpr::Object(properties) => (None, properties.as_slice()),
        };
        value.into_iter().chain(properties.iter().map(|(_, node)| node))
    }
}

impl ScalarExpr {
    fn is_simple(&self) -> bool {
        // Full-text functions tokenize the whole text.
        let mut simple =
            !matches!(self, ScalarExpr::Subquery { .. } | ScalarExpr::UserCall { .. } | ScalarExpr::FullText(_));
        self.each_child(&mut |child| simple = simple && child.is_simple());
        simple
    }

    pub fn constant(&self) -> Option<&Value> {
        match self {
            ScalarExpr::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The value does not depend on the row.
    pub fn is_constant(&self) -> bool {
        matches!(self, ScalarExpr::Constant(_) | ScalarExpr::Undefined)
    }

    /// Visits the direct children; does not descend into subqueries.
    pub fn each_child<'n>(&'n self, visit: &mut dyn FnMut(&'n ScalarExpr)) {
        match self {
            ScalarExpr::Undefined | ScalarExpr::Constant(_) | ScalarExpr::Slot(_) | ScalarExpr::Path { .. } => {}
            ScalarExpr::Key { .. } | ScalarExpr::Aggregate { .. } | ScalarExpr::Subquery { .. } => {}
            ScalarExpr::Access { base, steps } => {
                visit(base);
                steps.iter().filter_map(AccessStep::index).for_each(visit);
            }
            ScalarExpr::Unary { operand, .. } => visit(operand),
            ScalarExpr::Binary { first, rest } => {
                visit(first);
                rest.iter().for_each(|(_, node)| visit(node));
            }
            ScalarExpr::And(nodes) | ScalarExpr::Or(nodes) | ScalarExpr::Coalesce(nodes) | ScalarExpr::Array(nodes) => {
                nodes.iter().for_each(visit);
            }
            ScalarExpr::Conditional { arms, otherwise } => {
                arms.iter().for_each(|(condition, value)| {
                    visit(condition);
                    visit(value);
                });
                visit(otherwise);
            }
            ScalarExpr::In { operand, list, .. } => {
                visit(operand);
                list.iter().for_each(visit);
            }
            ScalarExpr::Between { operand, low, high, .. } => {
                [operand, low, high].into_iter().for_each(|node| visit(node))
            }
            ScalarExpr::Like { operand, pattern, .. } => {
                visit(operand);
                if let LikeOperand::Computed { node, .. } = pattern {
                    visit(node);
                }
            }
            ScalarExpr::Object(properties) => properties.iter().for_each(|(_, node)| visit(node)),
            ScalarExpr::Call { arguments, .. } | ScalarExpr::UserCall { arguments, .. } => {
                arguments.iter().for_each(visit)
            }
            ScalarExpr::Distance(distance) => {
                [&distance.left, &distance.right].into_iter().filter_map(Operand::node).for_each(visit)
            }
            ScalarExpr::FullText(call) => call.each_child(visit),
        }
    }

    /// The innermost slot the expression reads, including reads by its subqueries.
    pub fn last_slot(&self) -> Option<usize> {
        let own = match self {
            ScalarExpr::Slot(slot) | ScalarExpr::Path { slot, .. } => Some(*slot),
            ScalarExpr::Key { slot, .. } | ScalarExpr::Aggregate { slot, .. } => Some(*slot),
            // The outer slots that a subquery can read are those below its base.
            ScalarExpr::Subquery { block, .. } => block.base.checked_sub(1),
            _ => None,
        };
        let mut last = own;
        self.each_child(&mut |child| last = last.max(child.last_slot()));
        last
    }
}

impl Operand {
    pub fn node(&self) -> Option<&ScalarExpr> {
        match self {
            Operand::Known(_) => None,
            Operand::Computed(node) => Some(node),
        }
    }
}

impl AccessStep {
    fn index(&self) -> Option<&ScalarExpr> {
        match self {
            AccessStep::Property(_) => None,
            AccessStep::Index(node) => Some(node),
        }
    }
}
