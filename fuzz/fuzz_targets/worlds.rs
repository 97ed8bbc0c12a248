//! Documents, indexing policies, partitions and queries: whatever way the planner goes, the rows are those of a scan.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pleiad_engine::exam::every_plan_gives_what_a_scan_gives(bytes));
