//! `VectorDistance(a, b [, bruteForce [, options]])`: what it measures is said by the container's policy, or by the call.
//!
//! ```text
//! VectorDistance(c.v, @v)                                        as vectorEmbeddingPolicy says of /v; else cosine, float32
//! VectorDistance(c.v, @v, true, {'distanceFunction': 'euclidean'})    the call's word counts, all else as the policy says
//! ```
//!
//! A constant that is no vector of that kind has no distance to anything.

use pleiad_model::policy::{DistanceFunction, VectorDataType, VectorEmbedding};
use pleiad_model::{Object, Result, Value, json};
use pleiad_vector::Measure;

use super::Compiler;
use crate::block::{Distance, Node, Operand, Search};
use crate::expr::functions::{self, UNSAID};
use crate::language::Fault;
use crate::language::ast::{Expr, ExprKind};

const MULTIPLIER_MAX: f64 = 100.0;

/// Whether a call measures how near two vectors are.
pub fn is_distance(expr: &Expr) -> bool {
    let ExprKind::Call { function, .. } = &expr.kind else { return false };
    functions::find(function).is_some_and(|function| function.name == functions::VECTOR_DISTANCE)
}

impl<'q> Compiler<'q> {
    pub(super) fn distance(&mut self, arguments: &'q [Expr], expr: &Expr) -> Result<Node> {
        let nodes = self.all(arguments)?;
        let mut nodes = nodes.into_iter();
        let (Some(left), Some(right)) = (nodes.next(), nodes.next()) else { return Ok(Node::Undefined) };
        let measure = self.policy_of(&left).or_else(|| self.policy_of(&right)).map_or(UNSAID, Measure::of);
        let (measure, search) = self.options(measure, nodes.next(), nodes.next(), expr)?;
        let (Some(left), Some(right)) = (operand(left, measure), operand(right, measure)) else {
            return Ok(Node::Undefined);
        };
        Ok(match (&left, &right) {
            (Operand::Known(left), Operand::Known(right)) => {
                measure.between(left, right).map_or(Node::Undefined, |distance| Node::Constant(distance.into()))
            }
            _ => Node::Distance(Box::new(Distance { measure, left, right, search })),
        })
    }

    /// Whether `ORDER BY` this distance goes down: the nearest comes first.
    pub(super) fn descends(&mut self, arguments: &'q [Expr], expr: &Expr) -> Result<bool> {
        let nodes = self.all(arguments)?;
        let measure = nodes.iter().take(2).find_map(|node| self.policy_of(node)).map_or(UNSAID, Measure::of);
        let mut settings = nodes.into_iter().skip(2);
        let (measure, _) = self.options(measure, settings.next(), settings.next(), expr)?;
        Ok(measure.is_similarity())
    }

    fn policy_of(&self, node: &Node) -> Option<&'q VectorEmbedding> {
        let Node::Path { slot: 0, steps } = node else { return None };
        let is_at =
            |embedding: &&VectorEmbedding| embedding.path.segments().iter().eq(steps.iter().map(|step| &step.text));
        self.bind.embeddings.iter().find(is_at)
    }

    fn options(
        &self,
        mut measure: Measure,
        brute_force: Option<Node>,
        options: Option<Node>,
        expr: &Expr,
    ) -> Result<(Measure, Search)> {
        let refuse = |what: &str| Err(Fault::plain(expr.span, what).into_error(self.text));
        let brute_force = match brute_force {
            None | Some(Node::Undefined) => false,
            Some(Node::Constant(Value::Bool(brute_force))) => brute_force,
            Some(_) => return refuse("The third argument of the VectorDistance function must be true or false."),
        };
        let mut search = Search { brute_force, ..Search::default() };
        let options = match options {
            None | Some(Node::Undefined) => Object::new(),
            Some(Node::Constant(Value::Object(options))) => options,
            Some(_) => {
                return refuse("The fourth argument of the VectorDistance function must be an object of constants.");
            }
        };
        for (name, value) in options.iter() {
            set(name, value, &mut measure, &mut search)
                .map_err(|(code, message)| Fault { code, ..Fault::plain(expr.span, message) }.into_error(self.text))?;
        }
        Ok((measure, search))
    }
}

type Wrong = (Option<&'static str>, String);

fn set(name: &str, value: &Value, measure: &mut Measure, search: &mut Search) -> Result<(), Wrong> {
    let text = || value.as_str().unwrap_or_default();
    let unknown = |known: &str| {
        let shown = json::to_string(value);
        (
            None,
            format!(
                "The '{name}' value {shown} specified in the VectorDistance function is not supported. Use {known}."
            ),
        )
    };
    match name {
        "distanceFunction" => {
            let known = DistanceFunction::parse(text());
            measure.function = known.ok_or_else(|| unknown("cosine, dotproduct or euclidean"))?;
        }
        "dataType" => {
            let known = VectorDataType::parse(text());
            measure.data_type = known.ok_or_else(|| unknown("Float32, Float16, Int8 or Uint8"))?;
        }
        "searchListSizeMultiplier" => search.list_multiplier = Some(within(name, value, 1.0, MULTIPLIER_MAX)?),
        "quantizedVectorListMultiplier" => search.rerank_multiplier = Some(within(name, value, 1.0, MULTIPLIER_MAX)?),
        // How much a search minds the filter while it looks around is ours to choose: see docs/vector-search.md.
        "filterPriority" => {
            within(name, value, 0.0, 1.0)?;
        }
        _ => {
            const KNOWN: &str = "distanceFunction, dataType, searchListSizeMultiplier, quantizedVectorListMultiplier and filterPriority";
            return Err((None, format!("The VectorDistance function has no option '{name}'. It has {KNOWN}.")));
        }
    }
    Ok(())
}

fn within(name: &str, value: &Value, min: f64, max: f64) -> Result<f64, Wrong> {
    match value.as_number().map(|number| number.as_f64()) {
        Some(number) if (min..=max).contains(&number) => Ok(number),
        _ => {
            let shown = json::to_string(value);
            let message = format!(
                "The '{name}' value {shown} specified in the VectorDistance function is outside the supported range. The \
                 value must be between {min} and {max}."
            );
            Err((Some("SC2213"), message))
        }
    }
}

fn operand(node: Node, measure: Measure) -> Option<Operand> {
    match node {
        Node::Undefined => None,
        Node::Constant(value) => measure.vector(&value).map(Operand::Known),
        node => Some(Operand::Computed(node)),
    }
}

#[cfg(test)]
mod tests;
