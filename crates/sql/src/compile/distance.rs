//! Compiles `VectorDistance(a, b [, bruteForce [, options]])`. The metric comes from the container's policy; options of
//! the call override it.
//!
//! ```text
//! VectorDistance(c.v, @v)                                           vectorEmbeddingPolicy of /v; else cosine, float32
//! VectorDistance(c.v, @v, true, {'distanceFunction': 'euclidean'})  the call's function, the rest from the policy
//! ```
//!
//! A constant that is not a vector of the metric's type and dimensions makes the call undefined.

use pleiad_model::policy::{DistanceFunction, VectorDataType, VectorEmbedding};
use pleiad_model::{Object, Result, Value, json};
use pleiad_vector::DistanceMetric;

use super::Compiler;
use crate::block::{Distance, Operand, ScalarExpr, VectorSearchOptions};
use crate::expr::functions::{self, DEFAULT_METRIC};
use crate::parse::ast::{Expr, ExprKind};
use crate::parse::{Diagnostic, Span};

const MULTIPLIER_MAX: f64 = 100.0;

/// Whether the expression is a call of `VectorDistance`.
pub fn is_distance(expr: &Expr) -> bool {
    let ExprKind::Call { function, .. } = &expr.kind else { return false };
    functions::find(function).is_some_and(|function| function.name == functions::VECTOR_DISTANCE)
}

impl<'q> Compiler<'q> {
    pub(super) fn distance(&mut self, arguments: &'q [Expr], expr: &Expr) -> Result<ScalarExpr> {
        let nodes = self.scalars(arguments)?;
        let mut nodes = nodes.into_iter();
        let (Some(left), Some(right)) = (nodes.next(), nodes.next()) else { return Ok(ScalarExpr::Undefined) };
        let measure = self
            .embedding_policy(&left)
            .or_else(|| self.embedding_policy(&right))
            .map_or(DEFAULT_METRIC, DistanceMetric::of);
        let (measure, search) = self.options(measure, nodes.next(), nodes.next(), CallSpans::of(expr, arguments))?;
        let (Some(left), Some(right)) = (operand(left, measure), operand(right, measure)) else {
            return Ok(ScalarExpr::Undefined);
        };
        Ok(match (&left, &right) {
            (Operand::Known(left), Operand::Known(right)) => measure
                .between(left, right)
                .map_or(ScalarExpr::Undefined, |distance| ScalarExpr::Constant(distance.into())),
            _ => ScalarExpr::Distance(Box::new(Distance { metric: measure, left, right, search })),
        })
    }

    /// Whether `ORDER BY` this call, without ASC or DESC, sorts descending: the nearest come first, and similarities
    /// are larger for nearer vectors.
    pub(super) fn sorts_descending(&mut self, arguments: &'q [Expr], expr: &Expr) -> Result<bool> {
        let nodes = self.scalars(arguments)?;
        let measure = nodes
            .iter()
            .take(2)
            .find_map(|node| self.embedding_policy(node))
            .map_or(DEFAULT_METRIC, DistanceMetric::of);
        let mut settings = nodes.into_iter().skip(2);
        let (measure, _) = self.options(measure, settings.next(), settings.next(), CallSpans::of(expr, arguments))?;
        Ok(measure.is_similarity())
    }

    fn embedding_policy(&self, node: &ScalarExpr) -> Option<&'q VectorEmbedding> {
        let ScalarExpr::Path { slot: 0, steps } = node else { return None };
        let is_at =
            |embedding: &&VectorEmbedding| embedding.path.segments().iter().eq(steps.iter().map(|step| &step.text));
        self.bind.embeddings.iter().find(is_at)
    }

    fn options(
        &self,
        mut measure: DistanceMetric,
        brute_force: Option<ScalarExpr>,
        options: Option<ScalarExpr>,
        at: CallSpans,
    ) -> Result<(DistanceMetric, VectorSearchOptions)> {
        let invalid = |what: &str| Err(Diagnostic::plain(at.call, what).into_error(self.text));
        let brute_force = match brute_force {
            None | Some(ScalarExpr::Undefined) => false,
            Some(ScalarExpr::Constant(Value::Bool(brute_force))) => brute_force,
            Some(_) => return invalid("The third argument of the VectorDistance function must be true or false."),
        };
        let mut search = VectorSearchOptions { brute_force, ..VectorSearchOptions::default() };
        let options = match options {
            None | Some(ScalarExpr::Undefined) => Object::new(),
            Some(ScalarExpr::Constant(Value::Object(options))) => options,
            Some(_) => {
                return invalid("The fourth argument of the VectorDistance function must be an object of constants.");
            }
        };
        for (name, value) in options.iter() {
            set_option(name, value, &mut measure, &mut search, at)
                .map_err(|diagnostic| diagnostic.into_error(self.text))?;
        }
        Ok((measure, search))
    }
}

/// Validates constant options before compilation, so that a query plan request reports the same errors.
pub fn check_options(call: &Expr, arguments: &[Expr]) -> Result<(), Diagnostic> {
    let Some(ExprKind::Object(options)) = arguments.get(OPTIONS).map(|options| &options.kind) else { return Ok(()) };
    let (mut measure, mut search) = (DEFAULT_METRIC, VectorSearchOptions::default());
    options.iter().try_for_each(|(name, value)| match &value.kind {
        ExprKind::Constant(value) => set_option(name, value, &mut measure, &mut search, CallSpans::of(call, arguments)),
        _ => Ok(()),
    })
}

/// The position of the options argument.
const OPTIONS: usize = 3;

/// Positions for diagnostics: the service points at the options for some errors, at the call for others.
#[derive(Clone, Copy)]
struct CallSpans {
    call: Span,
    options: Span,
}

impl CallSpans {
    fn of(call: &Expr, arguments: &[Expr]) -> Self {
        CallSpans { call: call.span, options: arguments.get(OPTIONS).map_or(call.span, |options| options.span) }
    }
}

fn set_option(
    name: &str,
    value: &Value,
    measure: &mut DistanceMetric,
    search: &mut VectorSearchOptions,
    at: CallSpans,
) -> Result<(), Diagnostic> {
    let text = value.as_str().unwrap_or_default();
    let unknown = |known: &str| {
        let shown = value.as_str().map_or_else(|| json::to_string(value), str::to_owned);
        let message = format!(
            "VectorDistance function options argument property value '{shown}' is not a valid value for option '{name}'."
        );
        Diagnostic::coded(at.options, "SC2210", message).with_hint(format!("Use {known}."))
    };
    match name {
        "distanceFunction" => {
            let known = DistanceFunction::parse(text);
            measure.function = known.ok_or_else(|| unknown("cosine, dotproduct or euclidean"))?;
        }
        "dataType" => {
            let known = VectorDataType::parse(text);
            measure.data_type = known.ok_or_else(|| unknown("Float32, Float16, Int8 or Uint8"))?;
        }
        "searchListSizeMultiplier" => search.list_multiplier = Some(within(name, value, 1.0, MULTIPLIER_MAX, at)?),
        "quantizedVectorListMultiplier" => {
            search.rerank_multiplier = Some(within(name, value, 1.0, MULTIPLIER_MAX, at)?);
        }
        // Validated and ignored: the engine decides how the graph search uses the filter, see docs/vector-search.md.
        "filterPriority" => {
            within(name, value, 0.0, 1.0, at)?;
        }
        _ => {
            const KNOWN: &str = "distanceFunction, dataType, searchListSizeMultiplier, quantizedVectorListMultiplier and filterPriority";
            let message = format!("'{name}' is not a valid option name for VectorDistance function options argument.");
            return Err(Diagnostic::coded(at.options, "SC2210", message).with_hint(format!("There are {KNOWN}.")));
        }
    }
    Ok(())
}

fn within(name: &str, value: &Value, min: f64, max: f64, at: CallSpans) -> Result<f64, Diagnostic> {
    match value.as_number().map(|number| number.as_f64()) {
        Some(number) if (min..=max).contains(&number) => Ok(number),
        _ => {
            let shown = json::to_string(value);
            let message = format!(
                "The '{name}' value {shown} specified in the VectorDistance function is outside the supported range. The \
                 value must be between {min} and {max}."
            );
            Err(Diagnostic::coded(at.call, "SC2213", message))
        }
    }
}

fn operand(node: ScalarExpr, measure: DistanceMetric) -> Option<Operand> {
    match node {
        ScalarExpr::Undefined => None,
        ScalarExpr::Constant(value) => measure.vector(&value).map(Operand::Known),
        node => Some(Operand::Computed(node)),
    }
}

#[cfg(test)]
mod tests;
