//! Request headers: every header of the protocol that SDKs send, and what the server does with it.
//!
//! Guarantees: the decoder obeys exactly the headers that are `Obeyed` here. A request with a refused one gets 501 with
//! the feature's name. One that is not in the table is logged, once for each name.
//!
//! The table was made from recordings of the SDKs' requests and, for the Rust SDK, from its source. `docs/headers.md` is
//! its text; a test compares them.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{LazyLock, RwLock};

mod table;

pub use table::TABLE;

/// A header, in lower case.
#[derive(Debug)]
pub struct KnownHeader {
    pub name: &'static str,
    pub effect: HeaderEffect,
    /// The SDKs whose requests have it; none for headers that only documentation or older clients have.
    pub sent_by: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderEffect {
    Obeyed,
    /// The reply is the same without it, for this reason.
    None(&'static str),
    /// The server does not have this feature, for which a request asks with any value except this one.
    Refused {
        feature: &'static str,
        except: &'static str,
    },
}

/// Looks up a header that the decoder did not take. The feature that the request asks for, if it is refused.
pub fn check(name: &str, value: &str) -> Option<&'static str> {
    if !name.starts_with("x-ms-") && !name.starts_with("x-pleiad-") {
        return None;
    }
    match TABLE.binary_search_by(|known| known.name.cmp(name)) {
        Ok(found) => match TABLE.get(found)?.effect {
            HeaderEffect::Refused { feature, except } => (!value.eq_ignore_ascii_case(except)).then_some(feature),
            HeaderEffect::Obeyed | HeaderEffect::None(_) => None,
        },
        Err(_) => {
            if UNKNOWN.is_new(name) {
                let name = name.get(..NAME_BYTES_MAX).unwrap_or(name);
                tracing::warn!(
                    header = name,
                    "a request has a header that this server does not know; it has no effect"
                );
            }
            None
        }
    }
}

/// Clients can invent names: no more are remembered and logged than this, by their hashes.
const UNKNOWN_MAX: usize = 64;
/// The part of a name that is logged.
const NAME_BYTES_MAX: usize = 128;

static UNKNOWN: LazyLock<SeenNames> = LazyLock::new(SeenNames::default);

#[derive(Default)]
struct SeenNames {
    hasher: RandomState,
    hashes: RwLock<HashSet<u64>>,
}

impl SeenNames {
    /// Whether the name is seen for the first time. `false` for all names when there are too many.
    fn is_new(&self, name: &str) -> bool {
        let hash = self.hasher.hash_one(name);
        let is_settled = |hashes: &HashSet<u64>| hashes.len() >= UNKNOWN_MAX || hashes.contains(&hash);
        if self.hashes.read().is_ok_and(|hashes| is_settled(&hashes)) {
            return false;
        }
        self.hashes.write().is_ok_and(|mut hashes| !is_settled(&hashes) && hashes.insert(hash))
    }
}

#[cfg(test)]
mod tests;
