//! Tools to examine stores, for the tests of this crate and of those above.
//!
//! `exam!` makes one set of tests for any store; `Mirror` runs two stores side by side and panics
//! when they disagree; `Faulty` fails when its script says so. Nothing here is in the product.

pub mod exam;
mod faulty;
mod mirror;

pub use exam::block_on;
pub use faulty::{FaultPlan, FaultPoint, Faulty, FaultySnapshot};
pub use mirror::{Mirror, MirrorSnapshot};

#[cfg(test)]
mod tests;
