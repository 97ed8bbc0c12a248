//! Nothing is here: the official Rust SDK against Pleiad is under `tests/`.
