//! One expression: names to slots, calls to functions, constants folded on the way up.

use pleiad_model::{Result, Value};

use super::{Compiler, Root};
use crate::block::{Like, Node, Step};
use crate::document::PropertyName;
use crate::expr::aggregate::AggregateKind;
use crate::expr::like::Pattern;
use crate::expr::{bytes, functions};
use crate::language::ast::{self, Expr, ExprKind};

impl<'q> Compiler<'q> {
    pub(super) fn scalar(&mut self, expr: &'q Expr) -> Result<Node> {
        if let Some(node) = self.over_group(expr)? {
            return Ok(node);
        }
        let node = self.plain(expr)?;
        Ok(self.fold(node))
    }

    fn plain(&mut self, expr: &'q Expr) -> Result<Node> {
        Ok(match &expr.kind {
            ExprKind::Undefined => Node::Undefined,
            ExprKind::Constant(value) => Node::Constant(value.clone()),
            ExprKind::Name(name) => Node::Slot(self.resolve(name, expr)?),
            ExprKind::Parameter(name) => self.parameter(name)?,
            ExprKind::Access { base, steps } => self.access(base, steps)?,
            ExprKind::Unary { op, operand } => Node::Unary { op: *op, operand: self.boxed(operand)? },
            ExprKind::Binary { first, rest } => {
                let rest = rest.iter().map(|(op, expr)| Ok((*op, self.scalar(expr)?))).collect::<Result<_>>()?;
                Node::Binary { first: self.boxed(first)?, rest }
            }
            ExprKind::And(terms) => Node::And(self.all(terms)?),
            ExprKind::Or(terms) => Node::Or(self.all(terms)?),
            ExprKind::Coalesce(terms) => Node::Coalesce(self.all(terms)?),
            ExprKind::Conditional { arms, otherwise } => Node::Conditional {
                arms: arms.iter().map(|(c, v)| Ok((self.scalar(c)?, self.scalar(v)?))).collect::<Result<_>>()?,
                otherwise: self.boxed(otherwise)?,
            },
            ExprKind::In { not, operand, list } => {
                Node::In { not: *not, operand: self.boxed(operand)?, list: self.all(list)? }
            }
            ExprKind::Between { not, operand, low, high } => Node::Between {
                not: *not,
                operand: self.boxed(operand)?,
                low: self.boxed(low)?,
                high: self.boxed(high)?,
            },
            ExprKind::Like { not, operand, pattern, escape } => {
                Node::Like { not: *not, operand: self.boxed(operand)?, pattern: self.like(pattern, *escape)? }
            }
            ExprKind::Object(properties) => {
                let property = |(name, expr): &'q (String, Expr)| Ok((name.clone(), self.scalar(expr)?));
                Node::Object(properties.iter().map(property).collect::<Result<_>>()?)
            }
            ExprKind::Array(items) => Node::Array(self.all(items)?),
            ExprKind::Call { function, arguments } => self.call(function, arguments, expr)?,
            ExprKind::UserCall { function, arguments } => {
                Node::UserCall { function: function.clone(), arguments: self.all(arguments)? }
            }
            ExprKind::Subquery { form, select } => {
                let block = Box::new(self.block(select)?);
                Node::Subquery { form: *form, block }
            }
        })
    }

    fn boxed(&mut self, expr: &'q Expr) -> Result<Box<Node>> {
        self.scalar(expr).map(Box::new)
    }

    pub(super) fn all(&mut self, exprs: &'q [Expr]) -> Result<Vec<Node>> {
        exprs.iter().map(|expr| self.scalar(expr)).collect()
    }

    /// An alias; or, where a source is named for the first time, the container.
    fn resolve(&self, name: &str, expr: &Expr) -> Result<usize> {
        let slot = self.slot(name).or_else(|| (self.root == Root::Opened).then_some(0));
        let slot =
            slot.ok_or_else(|| self.fault(expr.span, "SC2001", format!("Identifier '{name}' could not be resolved.")))?;
        self.check_slot(slot, expr)?;
        Ok(slot)
    }

    /// One that the request does not give is undefined.
    fn parameter(&self, name: &str) -> Result<Node> {
        match self.bind.parameters.get(name) {
            None => Ok(Node::Undefined),
            Some(value) => {
                self.room.take(bytes(value))?;
                Ok(Node::Constant(value.clone()))
            }
        }
    }

    /// Properties straight below a slot are a path; anything else walks value by value.
    fn access(&mut self, base: &'q Expr, steps: &'q [ast::Step]) -> Result<Node> {
        let base = self.scalar(base)?;
        if let (Node::Slot(slot), Some(steps)) = (&base, names(steps)) {
            return Ok(Node::Path { slot: *slot, steps });
        }
        let steps = steps.iter().map(|step| self.step(step)).collect::<Result<Vec<_>>>()?;
        let Node::Slot(slot) = base else { return Ok(Node::Access { base: Box::new(base), steps }) };
        let split = steps.iter().position(|step| matches!(step, Step::Index(_))).unwrap_or(steps.len());
        let mut steps = steps.into_iter();
        let names: Vec<PropertyName> = steps.by_ref().take(split).filter_map(Step::into_property).collect();
        let rest: Vec<Step> = steps.collect();
        let base = if names.is_empty() { Node::Slot(slot) } else { Node::Path { slot, steps: names } };
        Ok(if rest.is_empty() { base } else { Node::Access { base: Box::new(base), steps: rest } })
    }

    pub(super) fn step(&mut self, step: &'q ast::Step) -> Result<Step> {
        match step {
            ast::Step::Property(name) => Ok(Step::Property(PropertyName::new(name.as_str()))),
            ast::Step::Index(index) => Ok(match self.scalar(index)? {
                Node::Constant(Value::String(name)) => Step::Property(PropertyName::new(name)),
                node => Step::Index(node),
            }),
        }
    }

    fn like(&mut self, pattern: &'q Expr, escape: Option<char>) -> Result<Like> {
        match self.scalar(pattern)? {
            Node::Constant(Value::String(text)) => {
                let pattern = Pattern::compile(&text, escape)?;
                Ok(Like::Known { text, escape, pattern })
            }
            node => Ok(Like::Computed { node: Box::new(node), escape }),
        }
    }

    fn call(&mut self, name: &str, arguments: &'q [Expr], expr: &Expr) -> Result<Node> {
        if AggregateKind::find(name).is_some() {
            return Err(self.fault(expr.span, "SC2101", MISPLACED_AGGREGATE));
        }
        let Some(function) = functions::find(name) else {
            let message = format!("'{name}' is not a recognized built-in function name.");
            return Err(self.fault(expr.span, "SC2005", message));
        };
        let arity = function.arity;
        if arguments.len() < arity.min || arity.max.is_some_and(|max| arguments.len() > max) {
            let message = format!("The {} function requires {} argument(s).", function.name, words(arity));
            return Err(self.fault(expr.span, "SC2050", message));
        }
        if function.name == functions::VECTOR_DISTANCE {
            return self.distance(arguments, expr);
        }
        match self.full_text(function.name, arguments)? {
            Some(node) => Ok(node),
            None => Ok(Node::Call { function, arguments: self.all(arguments)? }),
        }
    }
}

const MISPLACED_AGGREGATE: &str =
    "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.";

/// `2`, `2 to 3`, `at least 2`
fn words(arity: functions::Arity) -> String {
    match arity.max {
        Some(max) if max == arity.min => max.to_string(),
        Some(max) => format!("{} to {max}", arity.min),
        None => format!("at least {}", arity.min),
    }
}

/// Steps that are all names of properties, as nearly all are.
fn names(steps: &[ast::Step]) -> Option<Vec<PropertyName>> {
    steps.iter().map(|step| step.property().map(PropertyName::new)).collect()
}

impl Step {
    fn into_property(self) -> Option<PropertyName> {
        match self {
            Step::Property(name) => Some(name),
            Step::Index(_) => None,
        }
    }
}
