//! Consistency levels: the five of the service.
//!
//! Invariant: levels are ordered, the weakest first. There is one store, and reads return its newest durable version,
//! so every read satisfies every level; the levels differ in which session tokens count and in what a read costs.

/// From the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consistency {
    Eventual,
    ConsistentPrefix,
    Session,
    BoundedStaleness,
    Strong,
}

impl Consistency {
    pub const ALL: [Consistency; 5] = [
        Consistency::Eventual,
        Consistency::ConsistentPrefix,
        Consistency::Session,
        Consistency::BoundedStaleness,
        Consistency::Strong,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Consistency::Eventual => "Eventual",
            Consistency::ConsistentPrefix => "ConsistentPrefix",
            Consistency::Session => "Session",
            Consistency::BoundedStaleness => "BoundedStaleness",
            Consistency::Strong => "Strong",
        }
    }

    /// Ignores case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str().eq_ignore_ascii_case(text))
    }

    /// How many replicas the service reads and charges for.
    pub fn replicas_read(self) -> u8 {
        match self {
            Consistency::Eventual | Consistency::ConsistentPrefix | Consistency::Session => 1,
            Consistency::BoundedStaleness | Consistency::Strong => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_parse_from_their_names() {
        assert!(Consistency::ALL.is_sorted());
        for level in Consistency::ALL {
            assert_eq!(Consistency::parse(&level.as_str().to_lowercase()), Some(level));
        }
        assert_eq!(Consistency::parse("Quite"), None);
    }
}
