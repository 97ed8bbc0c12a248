//! The exam, with a number of seeds. Fuzzers run it with more cases.

use pleiad_model::policy::Geospatial;
use pleiad_model::{Value, json};

use super::*;
use crate::check;
use crate::compile::{Bind, compile};
use crate::index_predicate::condition;

#[test]
fn an_index_misses_nothing() {
    for seed in 0..30_000 {
        exam::an_index_misses_nothing(&mut Choices::of_seed(seed));
    }
}

/// A fuzzer's bytes may end anywhere.
#[test]
fn short_inputs_make_cases_too() {
    for length in 0..200usize {
        let bytes: Vec<u8> = (0..length).map(|at| (at * 151 + length * 29) as u8).collect();
        exam::an_index_misses_nothing(&mut Choices::of_bytes(&bytes));
        exam::pages_are_the_whole(&mut Choices::of_bytes(&bytes));
    }
}

#[test]
fn pages_are_the_whole() {
    for seed in 0..8_000 {
        exam::pages_are_the_whole(&mut Choices::of_seed(seed));
    }
}

/// Texts that are nearly queries: a generated query with a part removed or doubled.
#[test]
fn any_text_is_a_query_or_an_error() {
    for seed in 0..4_000 {
        let chance = &mut Choices::of_seed(seed);
        let text: Vec<char> = query(chance, &[]).text.chars().take(2_000).collect();
        let from = chance.below(256) * text.len() / 256;
        let to = (from + chance.below(12)).min(text.len());
        let piece = &text[if chance.once_in(2) { from..to } else { from..from }];
        let broken: String =
            text[..from].iter().chain(piece).chain(&text[if piece.is_empty() { to } else { from }..]).collect();
        exam::any_text_is_a_query_or_an_error(&broken);
    }
}

/// The exam is only meaningful if most generated texts are queries and many of them can use an index.
#[test]
fn generated_queries_are_queries() {
    let (mut read, mut conditions) = (0, 0);
    for seed in 0..1_000 {
        let asked = query(&mut Choices::of_seed(seed), &[]);
        let parameters = asked.parameters();
        let bind = Bind {
            parameters: &parameters,
            geospatial: Geospatial::Geography,
            embeddings: &[],
            full_text: None,
            started_ms: Some(0),
        };
        let Ok(select) = check::read(&asked.text) else { continue };
        let Ok(block) = compile(&select, &asked.text, bind) else { continue };
        read += 1;
        conditions += usize::from(condition(&block).is_some());
    }
    assert!(read > 850, "{read} of 1000 are queries");
    assert!(conditions > 350, "{conditions} of 1000 could use an index");
    assert!(matches!(policy(&mut Choices::of_seed(0)), Value::Object(_)));
}

#[test]
fn a_look_finds_what_a_parser_finds() {
    for seed in 0..3_000 {
        let chance = &mut Choices::of_seed(seed);
        let text = json::to_string(&document(chance).into()).into_bytes();
        exam::a_look_finds_what_a_parser_finds(&text);
        let mut broken = text.clone();
        let at = chance.below(256) * broken.len() / 256;
        broken
            .splice(at..(at + chance.below(3)).min(text.len()), [*chance.pick(&[&b'"', &b'{', &b'\\', &b']', &0xFF])]);
        exam::a_look_finds_what_a_parser_finds(&broken);
    }
}

#[test]
fn a_search_finds_what_is_near() {
    for seed in 0..20_000 {
        exam::a_search_finds_what_is_near(&mut Choices::of_seed(seed));
    }
}
