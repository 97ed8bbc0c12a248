//! Container kind: the API whose data model a container has.
//!
//! Invariant: the kind is chosen when the container is created and never changes. A container made through the NoSQL
//! API is nosql.
//!
//! A kind fixes what the layers below must know before they read the first item:
//!
//! | | nosql |
//! |---|---|
//! | codec of the stored items | JSON text |
//! | identity of an item | partition key and `id` |
//! | type order of index terms | undefined, null, booleans, numbers, strings, arrays, objects |
//! | default indexing policy | every path |
//!
//! The other kinds are reserved: their names have a meaning on disk, and no version creates or opens such containers
//! yet. Opening one as nosql would show its items wrongly and index new ones in the wrong order.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerKind {
    Nosql,
    Table,
    Graph,
    Mongo,
    Cassandra,
}

impl ContainerKind {
    pub const ALL: [ContainerKind; 5] = [
        ContainerKind::Nosql,
        ContainerKind::Table,
        ContainerKind::Graph,
        ContainerKind::Mongo,
        ContainerKind::Cassandra,
    ];

    /// The name on disk and in the management API.
    pub fn as_str(self) -> &'static str {
        match self {
            ContainerKind::Nosql => "nosql",
            ContainerKind::Table => "table",
            ContainerKind::Graph => "graph",
            ContainerKind::Mongo => "mongo",
            ContainerKind::Cassandra => "cassandra",
        }
    }

    pub fn from_name(name: &str) -> Option<ContainerKind> {
        ContainerKind::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Whether this version neither creates nor opens containers of the kind.
    pub fn is_reserved(self) -> bool {
        self != ContainerKind::Nosql
    }
}

#[cfg(test)]
mod tests;
