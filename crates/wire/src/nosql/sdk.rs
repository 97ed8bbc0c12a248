//! What is known about particular SDKs: where the server's reply differs by client, this is the only place that says
//! so.
//!
//! | SDK | product token in its user agent | difference |
//! |---|---|---|
//! | Python | `azsdk-python-cosmos` | `follows_moved_ranges` |
//! | JavaScript | `azure-cosmos-js` | `follows_moved_ranges` |

/// An SDK that some reply differs for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sdk {
    Python,
    JavaScript,
    /// Any other client.
    #[default]
    Other,
}

const PRODUCTS: [(&str, Sdk); 2] = [("azsdk-python-cosmos", Sdk::Python), ("azure-cosmos-js", Sdk::JavaScript)];

impl Sdk {
    pub fn of_user_agent(agent: &str) -> Sdk {
        PRODUCTS.iter().find(|(product, _)| agent.contains(product)).map_or(Sdk::Other, |(_, sdk)| *sdk)
    }

    /// As in the service, a range that was split or merged is gone (410). These two do not handle that in the middle of
    /// a query: Python's returns ORDER BY rows twice and JavaScript's retries forever. They get the items from the
    /// partitions that hold them now, in the order in which the old partition would have returned them.
    pub fn follows_moved_ranges(self) -> bool {
        matches!(self, Sdk::Python | Sdk::JavaScript)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sdks_are_known_by_their_product_token() {
        assert_eq!(Sdk::of_user_agent("azsdk-python-cosmos/4.9.0 Python/3.12"), Sdk::Python);
        assert_eq!(Sdk::of_user_agent("azure-cosmos-js/4.5.0 (linux)"), Sdk::JavaScript);
        assert_eq!(Sdk::of_user_agent("cosmos-netstandard-sdk/3.52.0"), Sdk::Other);
    }
}
