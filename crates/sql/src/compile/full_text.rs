//! Compiles full-text calls: looks up the language of the path and analyzes constant terms once.

use pleiad_model::policy::{FullTextPolicy, Language, PathStep};
use pleiad_model::{Error, Result, Value};
use pleiad_text::{Analyzer, DISTANCE_MAX, Statistics};

use super::Compiler;
use crate::block::ScalarExpr;
use crate::expr::full_text::{FullText, FullTextFunction, SearchTerms, text_query};
use crate::parse::ast::Expr;

impl<'q> Compiler<'q> {
    /// `None` for other functions. The caller has checked the number of arguments.
    pub(super) fn full_text(&mut self, name: &str, arguments: &'q [Expr]) -> Result<Option<ScalarExpr>> {
        let function = match name {
            "FULLTEXTCONTAINS" | "FULLTEXTCONTAINSALL" => FullTextFunction::All,
            "FULLTEXTCONTAINSANY" => FullTextFunction::Any,
            "_FULLTEXTWORDCOUNT" => FullTextFunction::Length,
            "_FULLTEXTSCORE" => return self.full_text_score(arguments).map(Some),
            _ => return Ok(None),
        };
        let Some((text, terms)) = arguments.split_first() else { return Ok(None) };
        let text = self.scalar(text)?;
        let terms = terms.iter().map(|term| self.scalar(term)).collect::<Result<_>>()?;
        self.full_text_node(function, text, terms).map(Some)
    }

    /// `_FullTextScore(path, [terms], documents, words, [hits])`: what SDKs send once they know the statistics.
    fn full_text_score(&mut self, arguments: &'q [Expr]) -> Result<ScalarExpr> {
        let [text, terms, documents, words, hits] = arguments else { return Ok(ScalarExpr::Undefined) };
        let text = self.scalar(text)?;
        let constants = [terms, documents, words, hits].map(|argument| self.scalar(argument));
        let [terms, documents, words, hits] = constants;
        let (terms, hits) = (constant_array(terms?)?, constant_array(hits?)?);
        let hits = hits.iter().map(count).collect::<Result<Vec<f64>>>()?;
        if hits.len() != terms.len() {
            return Err(invalid_score_call());
        }
        let statistics = Statistics {
            documents: count(constant_value(&documents?)?)?,
            words: count(constant_value(&words?)?)?,
            hits,
        };
        let terms = terms.into_iter().map(ScalarExpr::Constant).collect();
        self.full_text_node(FullTextFunction::Score(statistics), text, terms)
    }

    fn full_text_node(
        &self,
        function: FullTextFunction,
        text: ScalarExpr,
        terms: Vec<ScalarExpr>,
    ) -> Result<ScalarExpr> {
        let analyzer = Analyzer::new(language(self.bind.full_text, &text));
        let known = terms.iter().map(ScalarExpr::constant).collect::<Option<Vec<&Value>>>();
        let terms = match known {
            None => SearchTerms::Computed(terms),
            Some(values) => {
                values.iter().try_for_each(|value| check_distance(value))?;
                match values.iter().map(|value| text_query(analyzer, value)).collect() {
                    Some(searches) => SearchTerms::Known(searches),
                    // Not a valid search term.
                    None => return Ok(ScalarExpr::Undefined),
                }
            }
        };
        Ok(ScalarExpr::FullText(Box::new(FullText { function, text, analyzer, terms })))
    }
}

/// The policy's language for the path; the policy's default language for anything that is not a path of the item.
fn language(policy: Option<&FullTextPolicy>, text: &ScalarExpr) -> Language {
    let steps: Vec<PathStep> = match text {
        ScalarExpr::Path { slot: 0, steps } => steps.iter().map(|step| PathStep::Property(step.text.clone())).collect(),
        _ => Vec::new(),
    };
    policy.map_or(Language::ENGLISH, |policy| policy.language(&steps))
}

fn check_distance(term: &Value) -> Result<()> {
    match term.get("distance").map(|distance| distance.as_i64()) {
        None => Ok(()),
        Some(Some(distance)) if (0..=i64::from(DISTANCE_MAX)).contains(&distance) => Ok(()),
        _ => {
            Err(Error::invalid(format!("The distance of a full-text term is a whole number from 0 to {DISTANCE_MAX}.")))
        }
    }
}

fn constant_value(node: &ScalarExpr) -> Result<&Value> {
    node.constant().ok_or_else(invalid_score_call)
}

fn constant_array(node: ScalarExpr) -> Result<Vec<Value>> {
    match node {
        ScalarExpr::Constant(Value::Array(values)) => Ok(values),
        _ => Err(invalid_score_call()),
    }
}

fn count(value: &Value) -> Result<f64> {
    value.as_number().map(|number| number.as_f64()).ok_or_else(invalid_score_call)
}

fn invalid_score_call() -> Error {
    Error::invalid(
        "_FullTextScore takes a property, its terms, the number of documents, the number of words and how many documents \
         have each term. Write ORDER BY RANK FullTextScore(c.text, 'term'), and leave the rest to the SDK.",
    )
}
