//! A query, compiled: names are slots, parameters and constants are values, subqueries are blocks of their own.
//!
//! Promise: a block can be run without looking at the text again, and nothing in it depends on a row.

use pleiad_model::Value;
use pleiad_vector::DistanceMetric;

use crate::document::PropertyName;
use crate::expr::aggregate::AggregateKind;
use crate::expr::full_text::FullText;
use crate::expr::functions::Function;
use crate::expr::like::Pattern;
use crate::language::ast::{BinaryOp, SubqueryForm, UnaryOp};

/// One `SELECT`.
pub struct Block {
    /// The slots of the blocks around it; its own begin here.
    pub base: usize,
    /// It reads the container: slot 0 is the item.
    pub reads_items: bool,
    /// Each binds one more slot; the item itself is not among them.
    pub sources: Vec<Source>,
    /// A row stays when all of them are true; each is tried as soon as its slots are bound.
    pub filters: Vec<Filter>,
    pub output: Output,
    pub distinct: bool,
    pub order: Vec<OrderKey>,
    pub offset: u64,
    /// `TOP` or `LIMIT`.
    pub take: Option<u64>,
}

pub struct Source {
    /// One row per element, or one row.
    pub each: bool,
    pub of: SourceOf,
}

pub enum SourceOf {
    Scalar(Node),
    Rows(Box<Block>),
}

pub struct Filter {
    /// How many of the block's sources it needs.
    pub level: usize,
    pub node: Node,
}

pub enum Output {
    Rows(Project),
    /// The projection looks at a group, in slot `base`.
    Groups(Grouping, Project),
}

#[derive(Default)]
pub struct Grouping {
    pub keys: Vec<Node>,
    pub aggregates: Vec<(AggregateKind, Node)>,
    /// No `GROUP BY`: one group, even of nothing.
    pub whole: bool,
}

pub enum Project {
    Value(Node),
    Object(Vec<(String, Node)>),
}

pub struct OrderKey {
    pub node: Node,
    pub descending: bool,
}

/// One scalar.
pub enum Node {
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
        base: Box<Node>,
        steps: Vec<Step>,
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
        operand: Box<Node>,
    },
    Binary {
        first: Box<Node>,
        rest: Vec<(BinaryOp, Node)>,
    },
    And(Vec<Node>),
    Or(Vec<Node>),
    Coalesce(Vec<Node>),
    Conditional {
        arms: Vec<(Node, Node)>,
        otherwise: Box<Node>,
    },
    In {
        not: bool,
        operand: Box<Node>,
        list: Vec<Node>,
    },
    Between {
        not: bool,
        operand: Box<Node>,
        low: Box<Node>,
        high: Box<Node>,
    },
    Like {
        not: bool,
        operand: Box<Node>,
        pattern: Like,
    },
    Object(Vec<(String, Node)>),
    Array(Vec<Node>),
    Call {
        function: &'static Function,
        arguments: Vec<Node>,
    },
    Distance(Box<Distance>),
    UserCall {
        function: String,
        arguments: Vec<Node>,
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
    pub search: Search,
}

pub enum Operand {
    /// A vector as the measure wants it.
    Known(Vec<f32>),
    Computed(Node),
}

/// How hard to look for the nearest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Search {
    /// At every vector.
    pub brute_force: bool,
    /// How many candidates a graph is walked with, for each row that is wanted.
    pub list_multiplier: Option<f64>,
    /// How many candidates are measured exactly, for each row that is wanted.
    pub rerank_multiplier: Option<f64>,
}

pub enum Step {
    Property(PropertyName),
    Index(Node),
}

pub enum Like {
    /// The text is kept for the index.
    Known {
        text: String,
        escape: Option<char>,
        pattern: Pattern,
    },
    Computed {
        node: Box<Node>,
        escape: Option<char>,
    },
}

impl Block {
    /// Nothing is asked of the items but how many they are: `SELECT VALUE COUNT(1) FROM c`.
    pub fn only_counts(&self) -> bool {
        let Output::Groups(grouping, _) = &self.output else { return false };
        let counts = |(kind, node): &(AggregateKind, Node)| *kind == AggregateKind::Count && node.constant().is_some();
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
        self.reads_items && self.sources.is_empty() && nodes.all(Node::is_simple)
    }
}

impl Grouping {
    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.keys.iter().chain(self.aggregates.iter().map(|(_, node)| node))
    }
}

impl Project {
    fn nodes(&self) -> impl Iterator<Item = &Node> {
        let (value, properties) = match self {
            Project::Value(node) => (Some(node), [].as_slice()),
            Project::Object(properties) => (None, properties.as_slice()),
        };
        value.into_iter().chain(properties.iter().map(|(_, node)| node))
    }
}

impl Node {
    fn is_simple(&self) -> bool {
        // A text is many words.
        let mut simple = !matches!(self, Node::Subquery { .. } | Node::UserCall { .. } | Node::FullText(_));
        self.each_child(&mut |child| simple = simple && child.is_simple());
        simple
    }

    pub fn constant(&self) -> Option<&Value> {
        match self {
            Node::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The same value whatever the row.
    pub fn is_constant(&self) -> bool {
        matches!(self, Node::Constant(_) | Node::Undefined)
    }

    /// Visits the nodes directly below; does not enter subqueries.
    pub fn each_child<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        match self {
            Node::Undefined | Node::Constant(_) | Node::Slot(_) | Node::Path { .. } => {}
            Node::Key { .. } | Node::Aggregate { .. } | Node::Subquery { .. } => {}
            Node::Access { base, steps } => {
                visit(base);
                steps.iter().filter_map(Step::index).for_each(visit);
            }
            Node::Unary { operand, .. } => visit(operand),
            Node::Binary { first, rest } => {
                visit(first);
                rest.iter().for_each(|(_, node)| visit(node));
            }
            Node::And(nodes) | Node::Or(nodes) | Node::Coalesce(nodes) | Node::Array(nodes) => {
                nodes.iter().for_each(visit);
            }
            Node::Conditional { arms, otherwise } => {
                arms.iter().for_each(|(condition, value)| {
                    visit(condition);
                    visit(value);
                });
                visit(otherwise);
            }
            Node::In { operand, list, .. } => {
                visit(operand);
                list.iter().for_each(visit);
            }
            Node::Between { operand, low, high, .. } => [operand, low, high].into_iter().for_each(|node| visit(node)),
            Node::Like { operand, pattern, .. } => {
                visit(operand);
                if let Like::Computed { node, .. } = pattern {
                    visit(node);
                }
            }
            Node::Object(properties) => properties.iter().for_each(|(_, node)| visit(node)),
            Node::Call { arguments, .. } | Node::UserCall { arguments, .. } => arguments.iter().for_each(visit),
            Node::Distance(distance) => {
                [&distance.left, &distance.right].into_iter().filter_map(Operand::node).for_each(visit)
            }
            Node::FullText(call) => call.each_child(visit),
        }
    }

    /// The innermost slot it looks at, subqueries included.
    pub fn last_slot(&self) -> Option<usize> {
        let own = match self {
            Node::Slot(slot) | Node::Path { slot, .. } => Some(*slot),
            Node::Key { slot, .. } | Node::Aggregate { slot, .. } => Some(*slot),
            // What it looks at outside of itself is below its base.
            Node::Subquery { block, .. } => block.base.checked_sub(1),
            _ => None,
        };
        let mut last = own;
        self.each_child(&mut |child| last = last.max(child.last_slot()));
        last
    }
}

impl Operand {
    pub fn node(&self) -> Option<&Node> {
        match self {
            Operand::Known(_) => None,
            Operand::Computed(node) => Some(node),
        }
    }
}

impl Step {
    fn index(&self) -> Option<&Node> {
        match self {
            Step::Property(_) => None,
            Step::Index(node) => Some(node),
        }
    }
}
