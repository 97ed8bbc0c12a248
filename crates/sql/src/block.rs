//! A query, compiled: names are slots, parameters and constants are values, subqueries are blocks of their own.
//!
//! Promise: a block can be run without looking at the text again, and nothing in it depends on a row.

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
    /// The slots of the blocks around it; its own begin here.
    pub base: usize,
    /// It reads the container: slot 0 is the item.
    pub reads_items: bool,
    /// Each binds one more slot; the item itself is not among them.
    pub sources: Vec<RowSource>,
    /// A row stays when all of them are true; each is tried as soon as its slots are bound.
    pub filters: Vec<Filter>,
    pub output: Output,
    pub distinct: bool,
    pub order: Vec<SortKey>,
    pub offset: u64,
    /// `TOP` or `LIMIT`.
    pub take: Option<u64>,
}

pub struct RowSource {
    /// One row per element, or one row.
    pub each: bool,
    pub of: RowSourceKind,
}

pub enum RowSourceKind {
    Scalar(ScalarExpr),
    Rows(Box<Block>),
}

pub struct Filter {
    /// How many of the block's sources it needs.
    pub level: usize,
    pub node: ScalarExpr,
}

pub enum Output {
    Rows(OutputExpr),
    /// The projection looks at a group, in slot `base`.
    Groups(Grouping, OutputExpr),
}

#[derive(Default)]
pub struct Grouping {
    pub keys: Vec<ScalarExpr>,
    pub aggregates: Vec<(AggregateKind, ScalarExpr)>,
    /// No `GROUP BY`: one group, even of nothing.
    pub whole: bool,
}

pub enum OutputExpr {
    Value(ScalarExpr),
    Object(Vec<(String, ScalarExpr)>),
}

pub struct SortKey {
    pub node: ScalarExpr,
    pub descending: bool,
}

/// One scalar.
pub enum ScalarExpr {
    Undefined,
    Constant(Value),
    Slot(usize),
    /// Properties below a slot; at least one.
    Path {
        slot: usize,
        steps: Vec<PropertyName>,
    },
    /// `base.a[i]`, whatever the base is.
    Access {
        base: Box<ScalarExpr>,
        steps: Vec<AccessStep>,
    },
    /// What a group has in common.
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

/// How near two vectors are. One of them at least is to be computed.
pub struct Distance {
    pub measure: DistanceMetric,
    pub left: Operand,
    pub right: Operand,
    pub search: VectorSearchOptions,
}

pub enum Operand {
    /// A vector as the measure wants it.
    Known(Vec<f32>),
    Computed(ScalarExpr),
}

/// How hard to look for the nearest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VectorSearchOptions {
    /// At every vector.
    pub brute_force: bool,
    /// How many candidates a graph is walked with, for each row that is wanted.
    pub list_multiplier: Option<f64>,
    /// How many candidates are measured exactly, for each row that is wanted.
    pub rerank_multiplier: Option<f64>,
}

pub enum AccessStep {
    Property(PropertyName),
    Index(ScalarExpr),
}

pub enum LikeOperand {
    /// The text is kept for the index.
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
    /// Nothing is asked of the items but how many they are: `SELECT VALUE COUNT(1) FROM c`.
    pub fn only_counts(&self) -> bool {
        let Output::Groups(grouping, _) = &self.output else { return false };
        let counts =
            |(kind, node): &(AggregateKind, ScalarExpr)| *kind == AggregateKind::Count && node.constant().is_some();
        grouping.whole
            && grouping.aggregates.iter().all(counts)
            && self.reads_items
            && self.sources.is_empty()
            && self.filters.is_empty()
    }
}

impl Block {
    /// One look at each item: no loops over its arrays, no code of the client's.
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
        self.keys.iter().chain(self.aggregates.iter().map(|(_, node)| node))
    }
}

impl OutputExpr {
    fn nodes(&self) -> impl Iterator<Item = &ScalarExpr> {
        let (value, properties) = match self {
            OutputExpr::Value(node) => (Some(node), [].as_slice()),
            OutputExpr::Object(properties) => (None, properties.as_slice()),
        };
        value.into_iter().chain(properties.iter().map(|(_, node)| node))
    }
}

impl ScalarExpr {
    fn is_simple(&self) -> bool {
        // A text is many words.
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

    /// The same value whatever the row.
    pub fn is_constant(&self) -> bool {
        matches!(self, ScalarExpr::Constant(_) | ScalarExpr::Undefined)
    }

    /// Visits the nodes directly below; does not enter subqueries.
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

    /// The innermost slot it looks at, subqueries included.
    pub fn last_slot(&self) -> Option<usize> {
        let own = match self {
            ScalarExpr::Slot(slot) | ScalarExpr::Path { slot, .. } => Some(*slot),
            ScalarExpr::Key { slot, .. } | ScalarExpr::Aggregate { slot, .. } => Some(*slot),
            // What it looks at outside of itself is below its base.
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
