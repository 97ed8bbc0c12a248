//! The abstract syntax tree.
//!
//! Invariant: the tree represents every construct of the language, supported or not, and each node has its span in the
//! text. Operators of one level form flat chains, so that a query of ten thousand `OR`s is wide, not deep.

use std::convert::Infallible;

use pleiad_model::Value;

use super::Span;

/// One query block.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub distinct: bool,
    /// A numeric constant or a parameter, like the two of `offset_limit`.
    pub top: Option<Expr>,
    pub spec: SelectSpec,
    /// The first source and the joined ones; empty without `FROM`.
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    pub group_by: Vec<Expr>,
    pub order_by: Option<OrderBy>,
    pub offset_limit: Option<(Expr, Expr)>,
    pub spans: ClauseSpans,
    pub span: Span,
}

/// The spans of clauses, including their keywords; empty for absent clauses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClauseSpans {
    pub top: Span,
    pub order_by: Span,
    pub offset_limit: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SelectSpec {
    Star(Span),
    Value(SelectItem),
    List(Vec<SelectItem>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    pub expr: Expr,
    pub alias: Option<Name>,
}

/// A source of rows. `unnest` distinguishes `x IN c.items` (one row per element) from `c.items x` (one row).
#[derive(Clone, Debug, PartialEq)]
pub struct FromItem {
    pub unnest: bool,
    /// A name, a path from a name, a subquery or a function call.
    pub expr: Expr,
    pub alias: Option<Name>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum OrderBy {
    Keys(Vec<OrderByItem>),
    Rank(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub struct OrderByItem {
    pub expr: Expr,
    pub descending: bool,
    /// The span of `ASC` or `DESC`, if present.
    pub direction: Option<Span>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Undefined,
    /// Includes `NaN` and `Infinity`, which JSON documents cannot contain.
    Constant(Value),
    /// An alias that `FROM` binds.
    Name(String),
    /// With its `@`.
    Parameter(String),
    /// `base.a["b"][0]`; at least one step.
    Access {
        base: Box<Expr>,
        steps: Vec<AstStep>,
    },
    Unary {
        op: UnaryOp,
        operand: Box<Expr>,
    },
    /// A left-associative chain of operators of one level; `rest` is not empty.
    Binary {
        first: Box<Expr>,
        rest: Vec<(BinaryOp, Expr)>,
    },
    /// At least two terms.
    And(Vec<Expr>),
    Or(Vec<Expr>),
    /// `a ?? b ?? c`
    Coalesce(Vec<Expr>),
    /// `c1 ? v1 : c2 ? v2 : otherwise`
    Conditional {
        arms: Vec<(Expr, Expr)>,
        otherwise: Box<Expr>,
    },
    In {
        not: bool,
        operand: Box<Expr>,
        list: Vec<Expr>,
    },
    Between {
        not: bool,
        operand: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
    },
    Like {
        not: bool,
        operand: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<char>,
    },
    Object(Vec<(String, Expr)>),
    Array(Vec<Expr>),
    Call {
        function: String,
        arguments: Vec<Expr>,
    },
    UserCall {
        function: String,
        arguments: Vec<Expr>,
    },
    Subquery {
        form: SubqueryForm,
        select: Box<Select>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum AstStep {
    /// `.name`
    Property(String),
    /// `[scalar]`
    Index(Expr),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubqueryForm {
    Scalar,
    Exists,
    Array,
    All,
    First,
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Minus,
    Plus,
    BitNot,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub enum BinaryOp {
    Multiply, Divide, Remainder,
    Add, Subtract,
    ShiftLeft, ShiftRight, ShiftRightUnsigned,
    Less, Greater, LessOrEqual, GreaterOrEqual,
    Equal, NotEqual,
    BitAnd, BitXor, BitOr,
    Concat,
}

impl BinaryOp {
    /// The loosest level of binary operators; predicates, `AND`, `OR`, `??` and `?:` are looser.
    pub const LEVEL_LOOSEST: u8 = 9;

    /// `=`, `<` and the other operators with a Boolean result.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Equal | NotEqual | Less | Greater | LessOrEqual | GreaterOrEqual)
    }

    /// 1 binds tightest.
    #[rustfmt::skip]
    pub fn level(self) -> u8 {
        use BinaryOp::*;
        match self {
            Multiply | Divide | Remainder => 1,
            Add | Subtract => 2,
            ShiftLeft | ShiftRight | ShiftRightUnsigned => 3,
            Less | Greater | LessOrEqual | GreaterOrEqual => 4,
            Equal | NotEqual => 5,
            BitAnd => 6,
            BitXor => 7,
            BitOr => 8,
            Concat => 9,
        }
    }
}

impl Select {
    /// Whether rows come from the container's items. The first source decides, because joined sources start from its
    /// alias.
    pub fn reads_items(&self) -> bool {
        self.from.first().is_some_and(|source| source.expr.reads_items())
    }

    /// Whether the rows are whole items, as in `SELECT DISTINCT VALUE c FROM c`: no two are equal, because each item
    /// has its own `_rid`.
    pub fn returns_whole_items(&self) -> bool {
        let [source] = self.from.as_slice() else { return false };
        let is_item = match &self.spec {
            SelectSpec::Star(_) => true,
            SelectSpec::Value(item) => {
                matches!(&item.expr.kind, ExprKind::Name(name) if Some(name.as_str()) == source.name())
            }
            SelectSpec::List(_) => false,
        };
        is_item && !source.unnest && matches!(source.expr.kind, ExprKind::Name(_)) && self.group_by.is_empty()
    }

    /// Visits the subqueries in this query's scalars, in text order. Does not descend into them.
    pub fn each_subquery<'a>(&'a self, visit: &mut dyn FnMut(&'a Select)) {
        let visited: Result<(), Infallible> = self.each_scalar(&mut |scalar| scalar.each_subquery(visit));
        let Ok(()) = visited;
    }

    /// Visits the scalars in the clauses of this block, in text order.
    pub fn each_scalar<'a, E>(&'a self, visit: &mut dyn FnMut(&'a Expr) -> Result<(), E>) -> Result<(), E> {
        self.top.iter().try_for_each(&mut *visit)?;
        self.spec.items().iter().map(|item| &item.expr).try_for_each(&mut *visit)?;
        self.from.iter().map(|source| &source.expr).try_for_each(&mut *visit)?;
        self.filter.iter().try_for_each(&mut *visit)?;
        self.group_by.iter().try_for_each(&mut *visit)?;
        match &self.order_by {
            None => {}
            Some(OrderBy::Rank(score)) => visit(score)?,
            Some(OrderBy::Keys(keys)) => keys.iter().map(|key| &key.expr).try_for_each(&mut *visit)?,
        }
        self.offset_limit.iter().flat_map(|(offset, limit)| [offset, limit]).try_for_each(visit)
    }
}

impl SelectSpec {
    /// The projected items; empty for `*`.
    pub fn items(&self) -> &[SelectItem] {
        match self {
            SelectSpec::Star(_) => &[],
            SelectSpec::Value(item) => std::slice::from_ref(item),
            SelectSpec::List(items) => items,
        }
    }

    /// The property name of each item in a select list: its alias, the last property of its path, or `$1`, `$2`, … for
    /// items that have neither.
    pub fn column_names(&self) -> Vec<String> {
        let mut unnamed = 0;
        let mut name = |item: &SelectItem| match item.name() {
            Some(name) => name.to_owned(),
            None => {
                unnamed += 1;
                format!("${unnamed}")
            }
        };
        self.items().iter().map(&mut name).collect()
    }
}

impl SelectItem {
    pub fn name(&self) -> Option<&str> {
        self.alias.as_ref().map(|alias| alias.text.as_str()).or_else(|| self.expr.inferred_name())
    }
}

impl FromItem {
    pub fn name(&self) -> Option<&str> {
        self.alias.as_ref().map(|alias| alias.text.as_str()).or_else(|| self.expr.inferred_name())
    }
}

impl Expr {
    /// Visits the direct child scalars, in text order. Does not descend into subqueries.
    pub fn each_child<'a, E>(&'a self, visit: &mut dyn FnMut(&'a Expr) -> Result<(), E>) -> Result<(), E> {
        use ExprKind::*;
        match &self.kind {
            Undefined | Constant(_) | Name(_) | Parameter(_) | Subquery { .. } => Ok(()),
            Access { base, steps } => {
                visit(base)?;
                steps.iter().filter_map(AstStep::index).try_for_each(visit)
            }
            Unary { operand, .. } => visit(operand),
            Binary { first, rest } => {
                visit(first)?;
                rest.iter().try_for_each(|(_, operand)| visit(operand))
            }
            And(terms) | Or(terms) | Coalesce(terms) | Array(terms) => terms.iter().try_for_each(visit),
            Conditional { arms, otherwise } => {
                arms.iter().flat_map(|(condition, value)| [condition, value]).try_for_each(&mut *visit)?;
                visit(otherwise)
            }
            In { operand, list, .. } => {
                visit(operand)?;
                list.iter().try_for_each(visit)
            }
            Between { operand, low, high, .. } => [operand, low, high].into_iter().try_for_each(|e| visit(e)),
            Like { operand, pattern, .. } => [operand, pattern].into_iter().try_for_each(|e| visit(e)),
            Object(properties) => properties.iter().try_for_each(|(_, value)| visit(value)),
            Call { arguments, .. } | UserCall { arguments, .. } => arguments.iter().try_for_each(visit),
        }
    }

    /// Visits what `each_child` visits; stops at the first `None`.
    pub fn each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expr) -> Option<()>) -> Option<()> {
        use ExprKind::*;
        match &mut self.kind {
            Undefined | Constant(_) | Name(_) | Parameter(_) | Subquery { .. } => Some(()),
            Access { base, steps } => {
                visit(base)?;
                steps.iter_mut().filter_map(AstStep::index_mut).try_for_each(visit)
            }
            Unary { operand, .. } => visit(operand),
            Binary { first, rest } => {
                visit(first)?;
                rest.iter_mut().try_for_each(|(_, operand)| visit(operand))
            }
            And(terms) | Or(terms) | Coalesce(terms) | Array(terms) => terms.iter_mut().try_for_each(visit),
            Conditional { arms, otherwise } => {
                arms.iter_mut().flat_map(|(condition, value)| [condition, value]).try_for_each(&mut *visit)?;
                visit(otherwise)
            }
            In { operand, list, .. } => {
                visit(operand)?;
                list.iter_mut().try_for_each(visit)
            }
            Between { operand, low, high, .. } => [operand, low, high].into_iter().try_for_each(|e| visit(e)),
            Like { operand, pattern, .. } => [operand, pattern].into_iter().try_for_each(|e| visit(e)),
            Object(properties) => properties.iter_mut().try_for_each(|(_, value)| visit(value)),
            Call { arguments, .. } | UserCall { arguments, .. } => arguments.iter_mut().try_for_each(visit),
        }
    }

    fn each_subquery<'a>(&'a self, visit: &mut dyn FnMut(&'a Select)) -> Result<(), Infallible> {
        if let ExprKind::Subquery { select, .. } = &self.kind {
            visit(select);
        }
        self.each_child(&mut |child| child.each_subquery(visit))
    }

    /// Whether this scalar, as the first source of a query, reads the container's items.
    fn reads_items(&self) -> bool {
        match &self.kind {
            ExprKind::Name(_) => true,
            ExprKind::Access { base, .. } => base.reads_items(),
            ExprKind::Subquery { select, .. } => select.reads_items(),
            _ => false,
        }
    }

    /// The name of this scalar in a select list or `FROM` without an alias: the last property of a path, or the name
    /// itself.
    pub fn inferred_name(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Name(name) => Some(name),
            ExprKind::Access { steps, .. } => steps.last()?.property(),
            _ => None,
        }
    }
}

impl AstStep {
    /// The property of a step with a constant name: `.a` or `["a"]`.
    pub fn property(&self) -> Option<&str> {
        match self {
            AstStep::Property(name) => Some(name),
            AstStep::Index(Expr { kind: ExprKind::Constant(Value::String(name)), .. }) => Some(name),
            AstStep::Index(_) => None,
        }
    }

    pub fn index_mut(&mut self) -> Option<&mut Expr> {
        match self {
            AstStep::Property(_) => None,
            AstStep::Index(index) => Some(index),
        }
    }

    pub fn index(&self) -> Option<&Expr> {
        match self {
            AstStep::Property(_) => None,
            AstStep::Index(index) => Some(index),
        }
    }
}
