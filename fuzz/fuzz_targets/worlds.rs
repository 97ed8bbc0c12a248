//! Documents, indexing policies, partitions and queries: whatever plan the planner chooses, the rows are those of a
//! full scan.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pleiad_engine::exam::every_access_path_returns_the_rows_of_a_scan(bytes));
