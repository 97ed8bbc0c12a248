//! Evaluates full-text functions for one row.
//!
//! Invariant: a result depends only on the text, the terms and the language that the container's policy assigns to the
//! path, so an index lookup and a scan agree. If the value is not a string or a term is invalid, the result is
//! undefined, not false. `pleiad_text` defines tokens and relevance scores.

use std::borrow::Cow;

use pleiad_model::{Error, Number, Result, Value};
use pleiad_text::{Analyzer, DISTANCE_MAX, Statistics, TextQuery, bm25};

use super::{Context, Datum, evaluate};
use crate::block::ScalarExpr;
use crate::document::Bindings;

/// A compiled call, with its language and analyzed constant terms.
pub struct FullText {
    pub function: FullTextFunction,
    pub text: ScalarExpr,
    pub analyzer: Analyzer,
    pub terms: SearchTerms,
}

/// Which function is evaluated.
#[derive(Clone, Debug, PartialEq)]
pub enum FullTextFunction {
    All,
    Any,
    /// The number of words; 0 if the value is not a string, so that sums are defined.
    Length,
    Score(Statistics),
}

pub enum SearchTerms {
    Known(Vec<TextQuery>),
    Computed(Vec<ScalarExpr>),
}

impl FullText {
    pub fn each_child<'n>(&'n self, visit: &mut dyn FnMut(&'n ScalarExpr)) {
        visit(&self.text);
        if let SearchTerms::Computed(nodes) = &self.terms {
            nodes.iter().for_each(visit);
        }
    }

    pub(super) fn evaluate<'a>(&'a self, rows: Bindings<'a>, cx: &Context<'_>) -> Result<Datum<'a>> {
        let value = evaluate(&self.text, rows, cx)?;
        let text = value.as_deref().and_then(Value::as_str);
        if self.function == FullTextFunction::Length {
            let words = text.map_or(0, |text| self.analyzer.count_words(text));
            return Ok(number(Number::Int(words as i64)));
        }
        let (Some(text), Some(terms)) = (text, self.text_queries(rows, cx)?) else { return Ok(None) };
        for term in terms.iter() {
            check_phrase(term)?;
            cx.count_steps(text.len() * term.word_count())?;
        }
        Ok(self.apply(text, &terms))
    }

    /// The score of a text without any of the terms: 0, or undefined if the value is not a string.
    pub(crate) fn zero_score<'a>(&'a self, rows: Bindings<'a>, cx: &Context<'_>) -> Result<Datum<'a>> {
        let value = evaluate(&self.text, rows, cx)?;
        Ok(value.as_deref().and_then(Value::as_str).and_then(|_| number(Number::from(0.0))))
    }

    fn apply<'a>(&self, text: &str, terms: &[TextQuery]) -> Datum<'a> {
        let words = self.analyzer.analyze(text);
        let truth = |truth| Some(Cow::Owned(Value::Bool(truth)));
        match &self.function {
            FullTextFunction::All => truth(terms.iter().all(|term| term.occurs_in(&words))),
            FullTextFunction::Any => truth(terms.iter().any(|term| term.occurs_in(&words))),
            FullTextFunction::Length => number(Number::Int(words.len() as i64)),
            FullTextFunction::Score(statistics) => {
                let occurrences = terms.iter().map(|term| term.occurrences(&words));
                number(Number::from(bm25(statistics, occurrences, words.len())))
            }
        }
    }

    fn text_queries<'a>(&'a self, rows: Bindings<'a>, cx: &Context<'_>) -> Result<Option<Cow<'a, [TextQuery]>>> {
        match &self.terms {
            SearchTerms::Known(terms) => Ok(Some(Cow::Borrowed(terms))),
            SearchTerms::Computed(nodes) => {
                let mut terms = Vec::with_capacity(nodes.len());
                for node in nodes {
                    let value = evaluate(node, rows, cx)?;
                    let Some(term) = value.as_deref().and_then(|value| text_query(self.analyzer, value)) else {
                        return Ok(None);
                    };
                    terms.push(term);
                }
                Ok(Some(Cow::Owned(terms)))
            }
        }
    }
}

/// The phrase length limit: a phrase is compared at every position of a text.
pub const PHRASE_WORDS_MAX: usize = 100;

fn check_phrase(term: &TextQuery) -> Result<()> {
    match term.word_count() {
        ..=PHRASE_WORDS_MAX => Ok(()),
        words => Err(Error::invalid(format!(
            "A phrase of a full-text search has at most {PHRASE_WORDS_MAX} words; this one has {words}. Search for parts of it."
        ))),
    }
}

/// A search term: a string, or `{"term": "red", "distance": 1}` for a fuzzy match.
pub fn text_query(analyzer: Analyzer, term: &Value) -> Option<TextQuery> {
    match term {
        Value::String(text) => Some(TextQuery::new(analyzer, text)),
        Value::Object(object) => {
            let text = object.get("term")?.as_str()?;
            let distance = object.get("distance").map_or(Some(0), Value::as_i64)?;
            let distance = u8::try_from(distance).ok().filter(|distance| *distance <= DISTANCE_MAX)?;
            Some(TextQuery::fuzzy(analyzer, text, distance))
        }
        _ => None,
    }
}

fn number<'a>(number: Number) -> Datum<'a> {
    Some(Cow::Owned(Value::Number(number)))
}

#[cfg(test)]
mod tests;
