//! Documents, indexing policies, partitions and queries: whatever plan the planner chooses, the rows are those of a
//! full scan.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pleiad_engine::exam::every_plan_gives_what_a_scan_gives(bytes));
