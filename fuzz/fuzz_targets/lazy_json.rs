//! A look at JSON text finds what a parser finds; no bytes make it panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_sql::testing::exam;

fuzz_target!(|text: &[u8]| exam::a_look_finds_what_a_parser_finds(text));
