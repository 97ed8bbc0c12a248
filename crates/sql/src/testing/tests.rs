//! The exam, with a number of seeds. Fuzzers run it with more cases.

use pleiad_model::policy::Geospatial;
use pleiad_model::{Value, json};

use super::*;
use crate::check;
use crate::compile::{BindContext, compile};
use crate::index_predicate::index_predicate;

#[test]
fn an_index_misses_nothing() {
    for seed in 0..30_000 {
        exam::an_index_misses_nothing(&mut Choices::of_seed(seed));
    }
}

/// A fuzzer's bytes may end anywhere.
#[test]
fn short_byte_inputs_make_cases() {
    for length in 0..200usize {
        let bytes: Vec<u8> = (0..length).map(|at| (at * 151 + length * 29) as u8).collect();
        exam::an_index_misses_nothing(&mut Choices::of_bytes(&bytes));
        exam::pages_equal_a_single_pass(&mut Choices::of_bytes(&bytes));
    }
}

#[test]
fn pages_equal_a_single_pass() {
    for seed in 0..8_000 {
        exam::pages_equal_a_single_pass(&mut Choices::of_seed(seed));
    }
}

/// Texts that are nearly queries: a generated query with a part removed or doubled.
#[test]
fn any_text_is_a_query_or_an_error() {
    for seed in 0..4_000 {
        let choices = &mut Choices::of_seed(seed);
        let text: Vec<char> = query(choices, &[]).text.chars().take(2_000).collect();
        let from = choices.below(256) * text.len() / 256;
        let to = (from + choices.below(12)).min(text.len());
        let piece = &text[if choices.once_in(2) { from..to } else { from..from }];
        let broken: String =
            text[..from].iter().chain(piece).chain(&text[if piece.is_empty() { to } else { from }..]).collect();
        exam::any_text_is_a_query_or_an_error(&broken);
    }
}

/// The exam is only meaningful if most generated texts are queries and many of them can use an index.
#[test]
fn most_generated_texts_are_queries() {
    let (mut read, mut predicates) = (0, 0);
    for seed in 0..1_000 {
        let test_query = query(&mut Choices::of_seed(seed), &[]);
        let parameters = test_query.parameters();
        let bind = BindContext {
            parameters: &parameters,
            geospatial: Geospatial::Geography,
            embeddings: &[],
            full_text: None,
            started_ms: Some(0),
        };
        let Ok(select) = check::parse_and_check(&test_query.text) else { continue };
        let Ok(block) = compile(&select, &test_query.text, bind) else { continue };
        read += 1;
        predicates += usize::from(index_predicate(&block).is_some());
    }
    assert!(read > 850, "{read} of 1000 are queries");
    assert!(predicates > 350, "{predicates} of 1000 could use an index");
    assert!(matches!(policy(&mut Choices::of_seed(0)), Value::Object(_)));
}

#[test]
fn lazy_json_agrees_with_the_parser() {
    for seed in 0..3_000 {
        let choices = &mut Choices::of_seed(seed);
        let text = json::to_string(&document(choices).into()).into_bytes();
        exam::lazy_json_agrees_with_the_parser(&text);
        let mut broken = text.clone();
        let at = choices.below(256) * broken.len() / 256;
        broken.splice(
            at..(at + choices.below(3)).min(text.len()),
            [*choices.pick(&[&b'"', &b'{', &b'\\', &b']', &0xFF])],
        );
        exam::lazy_json_agrees_with_the_parser(&broken);
    }
}

#[test]
fn spatial_search_finds_near_shapes() {
    for seed in 0..20_000 {
        exam::spatial_search_finds_near_shapes(&mut Choices::of_seed(seed));
    }
}
