//! Data actions: everything that a role can allow, under its documented name.
//!
//! Names are compared without regard to case. A name that ends in `/*` stands for all that begin with what is before the star.

use pleiad_model::{Error, Result};

const PREFIX: &str = "Microsoft.DocumentDB/databaseAccounts/";

macro_rules! actions {
    ($($(#[$note:meta])* $action:ident = $name:literal,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Action { $($(#[$note])* $action),+ }

        impl Action {
            pub const ALL: &'static [Action] = &[$(Action::$action),+];

            /// Without the prefix that all have in common.
            fn short_name(self) -> &'static str {
                match self { $(Action::$action => $name),+ }
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
    /// Seeing what a masking policy hides. Nothing is hidden here yet, so that nothing asks for it.
    UnmaskItem = "sqlDatabases/containers/items/unmask",
    ExecuteQuery = "sqlDatabases/containers/executeQuery",
    ReadChangeFeed = "sqlDatabases/containers/readChangeFeed",
    ExecuteStoredProcedure = "sqlDatabases/containers/executeStoredProcedure",
    ManageConflicts = "sqlDatabases/containers/manageConflicts",
}

impl Action {
    /// As refusals spell it.
    pub fn name(self) -> String {
        format!("{PREFIX}{}", self.short_name())
    }
}

/// Some of the actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionSet(u16);

impl ActionSet {
    pub fn of(actions: &[Action]) -> ActionSet {
        ActionSet(actions.iter().fold(0, |bits, action| bits | 1 << *action as u16))
    }

    pub fn has(self, action: Action) -> bool {
        self.0 & 1 << action as u16 != 0
    }

    pub fn with(self, other: ActionSet) -> ActionSet {
        ActionSet(self.0 | other.0)
    }

    pub fn without(self, other: ActionSet) -> ActionSet {
        ActionSet(self.0 & !other.0)
    }

    /// What a name of a role definition stands for: never nothing.
    pub fn named(name: &str) -> Result<ActionSet> {
        let found = Action::ALL.iter().copied().filter(|action| matches(name, &action.name()));
        let found = ActionSet::of(&found.collect::<Vec<_>>());
        if found == ActionSet::default() {
            let message =
                format!("The provided data action string [{name}] does not correspond to any valid SQL data action.");
            return Err(Error::invalid(message));
        }
        Ok(found)
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) if start.ends_with('/') => name.get(..start.len()).is_some_and(|s| s.eq_ignore_ascii_case(start)),
        _ => pattern.eq_ignore_ascii_case(name),
    }
}
