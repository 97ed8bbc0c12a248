//! Empty: the tests of the official Rust SDK against Pleiad are in `tests/`.
