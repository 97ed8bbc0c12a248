//! Which terms an item puts into the index: one for each scalar on an indexed path.
//!
//! Promise: terms depend on the item and the policy only, so that the terms of an old version can
//! be worked out again when it is replaced or deleted. Rows are written by `transaction`.

pub mod order; // values as bytes whose order is the values' order

use order::encode_scalar;
use pleiad_model::Value;
use pleiad_model::policy::{IndexMatcher, Node};

/// One (path, value) pair. Sorted and unique within an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    pub path: u64,
    pub value: Vec<u8>,
}

/// The item's terms under a policy, sorted, each once.
pub fn terms(item: &Value, matcher: &IndexMatcher) -> Vec<Term> {
    let mut found = Vec::new();
    collect(item, matcher.root(), PathHash::ROOT, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

fn collect(value: &Value, node: Node<'_>, path: PathHash, found: &mut Vec<Term>) {
    match value {
        Value::Object(object) if node.may_index_below() => {
            for (name, child) in object.iter() {
                collect(child, node.property(name), path.property(name), found);
            }
        }
        Value::Array(items) if node.may_index_below() => {
            items.iter().for_each(|child| collect(child, node.element(), path.element(), found));
        }
        Value::Object(_) | Value::Array(_) => {}
        scalar => {
            if node.indexes_scalar() {
                found.push(Term { path: path.finish(), value: encode_scalar(scalar) });
            }
        }
    }
}

/// Hash of a path, grown one step at a time. Two paths that collide share index rows, which costs
/// a look at the item and never a wrong answer.
#[derive(Clone, Copy)]
pub struct PathHash(u64);

impl PathHash {
    pub const ROOT: PathHash = PathHash(0xCBF2_9CE4_8422_2325);

    pub fn property(self, name: &str) -> PathHash {
        name.bytes().fold(self.step(b'/'), PathHash::step)
    }

    /// Any element of an array: positions are not told apart.
    pub fn element(self) -> PathHash {
        // No property step can produce this: every property begins with '/'.
        self.step(b'[').step(b']')
    }

    pub fn finish(self) -> u64 {
        // FNV mixes its last bytes poorly into the upper bits; keys are compared from the top.
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 29)
    }

    fn step(self, byte: u8) -> PathHash {
        PathHash((self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
    }
}

#[cfg(test)]
mod tests;
