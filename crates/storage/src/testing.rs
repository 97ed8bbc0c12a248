//! Test tools for stores, for the tests of this crate and of the crates above.
//!
//! `exam!` makes one set of tests for any store; `Mirror` runs two stores side by side and panics when they disagree;
//! `Faulty` fails according to a `FaultPlan`. Nothing here is in the product.

pub mod exam;
mod faulty;
mod mirror;

pub use exam::block_on;
pub use faulty::{FaultPlan, FaultPoint, Faulty, FaultySnapshot};
pub use mirror::{Mirror, MirrorSnapshot};

#[cfg(test)]
mod tests;
