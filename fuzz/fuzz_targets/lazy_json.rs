//! The lazy JSON scanner finds what the parser finds; no input makes it panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_sql::testing::exam;

fuzz_target!(|text: &[u8]| exam::lazy_json_agrees_with_the_parser(text));
