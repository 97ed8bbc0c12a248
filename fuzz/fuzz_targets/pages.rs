//! A query by pages, over what an index leaves of the items, in several heaps: the rows of one pass over all.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_sql::testing::{Choices, exam};

fuzz_target!(|bytes: &[u8]| exam::pages_are_the_whole(&mut Choices::of_bytes(bytes)));
