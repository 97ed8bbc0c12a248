//! Compiles scalar expressions bottom-up: resolves names to slots and calls to functions, and folds constants.

use pleiad_model::{Result, Value};

use super::{Compiler, RootBinding};
use crate::block::{AccessStep, LikeOperand, ScalarExpr};
use crate::document::PropertyName;
use crate::expr::aggregate::AggregateKind;
use crate::expr::like::LikePattern;
use crate::expr::{functions, memory_bytes};
use crate::parse::ast::{self, Expr, ExprKind};

impl<'q> Compiler<'q> {
    pub(super) fn scalar(&mut self, expr: &'q Expr) -> Result<ScalarExpr> {
        if let Some(node) = self.over_group(expr)? {
            return Ok(node);
        }
        let node = self.unfolded(expr)?;
        Ok(self.fold(node))
    }

    fn unfolded(&mut self, expr: &'q Expr) -> Result<ScalarExpr> {
        Ok(match &expr.kind {
            ExprKind::Undefined => ScalarExpr::Undefined,
            ExprKind::Constant(value) => ScalarExpr::Constant(value.clone()),
            ExprKind::Name(name) => ScalarExpr::Slot(self.resolve(name, expr)?),
            ExprKind::Parameter(name) => self.parameter(name)?,
            ExprKind::Access { base, steps } => self.access(base, steps)?,
            ExprKind::Unary { op, operand } => ScalarExpr::Unary { op: *op, operand: self.boxed(operand)? },
            ExprKind::Binary { first, rest } => {
                let rest = rest.iter().map(|(op, expr)| Ok((*op, self.scalar(expr)?))).collect::<Result<_>>()?;
                ScalarExpr::Binary { first: self.boxed(first)?, rest }
            }
            ExprKind::And(terms) => ScalarExpr::And(self.scalars(terms)?),
            ExprKind::Or(terms) => ScalarExpr::Or(self.scalars(terms)?),
            ExprKind::Coalesce(terms) => ScalarExpr::Coalesce(self.scalars(terms)?),
            ExprKind::Conditional { arms, otherwise } => ScalarExpr::Conditional {
                arms: arms.iter().map(|(c, v)| Ok((self.scalar(c)?, self.scalar(v)?))).collect::<Result<_>>()?,
                otherwise: self.boxed(otherwise)?,
            },
            ExprKind::In { not, operand, list } => {
                ScalarExpr::In { not: *not, operand: self.boxed(operand)?, list: self.scalars(list)? }
            }
            ExprKind::Between { not, operand, low, high } => ScalarExpr::Between {
                not: *not,
                operand: self.boxed(operand)?,
                low: self.boxed(low)?,
                high: self.boxed(high)?,
            },
            ExprKind::Like { not, operand, pattern, escape } => {
                ScalarExpr::Like { not: *not, operand: self.boxed(operand)?, pattern: self.like(pattern, *escape)? }
            }
            ExprKind::Object(properties) => {
                let property = |(name, expr): &'q (String, Expr)| Ok((name.clone(), self.scalar(expr)?));
                ScalarExpr::Object(properties.iter().map(property).collect::<Result<_>>()?)
            }
            ExprKind::Array(items) => ScalarExpr::Array(self.scalars(items)?),
            ExprKind::Call { function, arguments } => self.call(function, arguments, expr)?,
            ExprKind::UserCall { function, arguments } => {
                ScalarExpr::UserCall { function: function.clone(), arguments: self.scalars(arguments)? }
            }
            ExprKind::Subquery { form, select } => {
                let block = Box::new(self.block(select)?);
                ScalarExpr::Subquery { form: *form, block }
            }
        })
    }

    fn boxed(&mut self, expr: &'q Expr) -> Result<Box<ScalarExpr>> {
        self.scalar(expr).map(Box::new)
    }

    pub(super) fn scalars(&mut self, exprs: &'q [Expr]) -> Result<Vec<ScalarExpr>> {
        exprs.iter().map(|expr| self.scalar(expr)).collect()
    }

    /// The slot of an alias, or of the container in the first FROM source.
    fn resolve(&self, name: &str, expr: &Expr) -> Result<usize> {
        let slot = self.slot(name).or_else(|| (self.root == RootBinding::Opened).then_some(0));
        let slot =
            slot.ok_or_else(|| self.error(expr.span, "SC2001", format!("Identifier '{name}' could not be resolved.")))?;
        self.check_slot(slot, expr)?;
        Ok(slot)
    }

    /// A parameter that the request does not set is undefined.
    fn parameter(&self, name: &str) -> Result<ScalarExpr> {
        match self.bind.parameters.get(name) {
            None => Ok(ScalarExpr::Undefined),
            Some(value) => {
                self.memory.reserve(memory_bytes(value))?;
                Ok(ScalarExpr::Constant(value.clone()))
            }
        }
    }

    /// Properties directly below a slot become a `Path`; other accesses are evaluated step by step.
    fn access(&mut self, base: &'q Expr, steps: &'q [ast::AstStep]) -> Result<ScalarExpr> {
        let base = self.scalar(base)?;
        if let (ScalarExpr::Slot(slot), Some(steps)) = (&base, property_names(steps)) {
            return Ok(ScalarExpr::Path { slot: *slot, steps });
        }
        let steps = steps.iter().map(|step| self.step(step)).collect::<Result<Vec<_>>>()?;
        let ScalarExpr::Slot(slot) = base else { return Ok(ScalarExpr::Access { base: Box::new(base), steps }) };
        let split = steps.iter().position(|step| matches!(step, AccessStep::Index(_))).unwrap_or(steps.len());
        let mut steps = steps.into_iter();
        let names: Vec<PropertyName> = steps.by_ref().take(split).filter_map(AccessStep::into_property).collect();
        let rest: Vec<AccessStep> = steps.collect();
        let base = if names.is_empty() { ScalarExpr::Slot(slot) } else { ScalarExpr::Path { slot, steps: names } };
        Ok(if rest.is_empty() { base } else { ScalarExpr::Access { base: Box::new(base), steps: rest } })
    }

    pub(super) fn step(&mut self, step: &'q ast::AstStep) -> Result<AccessStep> {
        match step {
            ast::AstStep::Property(name) => Ok(AccessStep::Property(PropertyName::new(name.as_str()))),
            ast::AstStep::Index(index) => Ok(match self.scalar(index)? {
                ScalarExpr::Constant(Value::String(name)) => AccessStep::Property(PropertyName::new(name)),
                node => AccessStep::Index(node),
            }),
        }
    }

    fn like(&mut self, pattern: &'q Expr, escape: Option<char>) -> Result<LikeOperand> {
        match self.scalar(pattern)? {
            ScalarExpr::Constant(Value::String(text)) => {
                let pattern = LikePattern::compile(&text, escape)?;
                Ok(LikeOperand::Known { text, escape, pattern })
            }
            node => Ok(LikeOperand::Computed { node: Box::new(node), escape }),
        }
    }

    fn call(&mut self, name: &str, arguments: &'q [Expr], expr: &Expr) -> Result<ScalarExpr> {
        if AggregateKind::find(name).is_some() {
            return Err(self.error(expr.span, "SC2101", MISPLACED_AGGREGATE));
        }
        let Some(function) = functions::find(name) else {
            let message = format!("'{name}' is not a recognized built-in function name.");
            return Err(self.error(expr.span, "SC2005", message));
        };
        let arity = function.arity;
        if arguments.len() < arity.min || arity.max.is_some_and(|max| arguments.len() > max) {
            let message = format!("The {} function requires {} argument(s).", function.name, arity_text(arity));
            return Err(self.error(expr.span, "SC2050", message));
        }
        if function.name == functions::VECTOR_DISTANCE {
            return self.distance(arguments, expr);
        }
        match self.full_text(function.name, arguments)? {
            Some(node) => Ok(node),
            None => Ok(ScalarExpr::Call { function, arguments: self.scalars(arguments)? }),
        }
    }
}

const MISPLACED_AGGREGATE: &str =
    "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.";

/// `2`, `2 to 3`, `at least 2`
fn arity_text(arity: functions::Arity) -> String {
    match arity.max {
        Some(max) if max == arity.min => max.to_string(),
        Some(max) => format!("{} to {max}", arity.min),
        None => format!("at least {}", arity.min),
    }
}

/// The names, if all steps are properties: the common case.
fn property_names(steps: &[ast::AstStep]) -> Option<Vec<PropertyName>> {
    steps.iter().map(|step| step.property().map(PropertyName::new)).collect()
}

impl AccessStep {
    fn into_property(self) -> Option<PropertyName> {
        match self {
            AccessStep::Property(name) => Some(name),
            AccessStep::Index(_) => None,
        }
    }
}
