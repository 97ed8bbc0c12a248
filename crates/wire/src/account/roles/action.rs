//! Data actions: everything that a role can allow, by documented name.
//!
//! Names are compared case-insensitively. There are two wildcards and no others: a role definition must state how wide
//! it is.
//!
//! ```text
//! …/sqlDatabases/containers/*          everything on containers
//! …/sqlDatabases/containers/items/*    everything on items
//! ```

use pleiad_model::{Error, Result};

const PREFIX: &str = "Microsoft.DocumentDB/databaseAccounts/";
/// Without the prefix; each stands for all actions that begin with the text before its star.
const WILDCARDS: [&str; 2] = ["sqlDatabases/containers/*", "sqlDatabases/containers/items/*"];

macro_rules! actions {
    ($($(#[$note:meta])* $action:ident = $name:literal,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum DataAction { $($(#[$note])* $action),+ }

        impl DataAction {
            pub const ALL: &'static [DataAction] = &[$(DataAction::$action),+];

            /// Without the common prefix.
            fn short_name(self) -> &'static str {
                match self { $(DataAction::$action => $name),+ }
            }
        }
    };
}

actions! {
    ReadMetadata = "readMetadata",
    CreateItem = "sqlDatabases/containers/items/create",
    ReadItem = "sqlDatabases/containers/items/read",
    ReplaceItem = "sqlDatabases/containers/items/replace",
    UpsertItem = "sqlDatabases/containers/items/upsert",
    DeleteItem = "sqlDatabases/containers/items/delete",
    /// Reading properties that a masking policy hides. Masking is not implemented yet, so nothing requires this action.
    UnmaskItem = "sqlDatabases/containers/items/unmask",
    ExecuteQuery = "sqlDatabases/containers/executeQuery",
    ReadChangeFeed = "sqlDatabases/containers/readChangeFeed",
    ExecuteStoredProcedure = "sqlDatabases/containers/executeStoredProcedure",
    ManageConflicts = "sqlDatabases/containers/manageConflicts",
}

impl DataAction {
    /// The full name, as in error messages.
    pub fn name(self) -> String {
        format!("{PREFIX}{}", self.short_name())
    }
}

/// A set of data actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionSet(u16);

impl ActionSet {
    pub fn of(actions: &[DataAction]) -> ActionSet {
        ActionSet(actions.iter().fold(0, |bits, action| bits | 1 << *action as u16))
    }

    pub fn has(self, action: DataAction) -> bool {
        self.0 & 1 << action as u16 != 0
    }

    pub fn with(self, other: ActionSet) -> ActionSet {
        ActionSet(self.0 | other.0)
    }

    pub fn without(self, other: ActionSet) -> ActionSet {
        ActionSet(self.0 & !other.0)
    }

    /// The actions that a name in a role definition stands for; never empty.
    pub fn named(name: &str) -> Result<ActionSet> {
        let short = name.get(..PREFIX.len()).filter(|start| start.eq_ignore_ascii_case(PREFIX));
        let short = short.and_then(|start| name.get(start.len()..)).unwrap_or_default();
        let start = WILDCARDS.into_iter().find(|wildcard| wildcard.eq_ignore_ascii_case(short));
        let start = start.and_then(|wildcard| wildcard.strip_suffix('*'));
        let matches_name = |action: &DataAction| match start {
            Some(start) => action.short_name().starts_with(start),
            None => action.short_name().eq_ignore_ascii_case(short),
        };
        let found: Vec<DataAction> = DataAction::ALL.iter().copied().filter(matches_name).collect();
        if found.is_empty() { Err(Error::invalid(unknown(name))) } else { Ok(ActionSet::of(&found)) }
    }
}

fn unknown(name: &str) -> String {
    let message = format!("The provided data action string [{name}] does not correspond to any valid SQL data action.");
    if !name.contains('*') {
        return message;
    }
    let [containers, items] = WILDCARDS;
    format!(
        "{message} Of wildcards there are '{PREFIX}{containers}' and '{PREFIX}{items}'; name other actions one by one."
    )
}
