//! Data actions: everything that a role can allow, by documented name.
//!
//! Names are compared case-insensitively. There are two wildcards and no others: a role definition must state how wide
//! it is.
//!
//! ```text
//! …/sqlDatabases/containers/*          everything on containers
//! …/sqlDatabases/containers/items/*    everything on items
//! ```

use pleiad_engine::{Action, ActionSet};
use pleiad_model::{Error, Result};

const PREFIX: &str = "Microsoft.DocumentDB/databaseAccounts/";
/// Without the prefix; each stands for all actions that begin with the text before its star.
const WILDCARDS: [&str; 2] = ["sqlDatabases/containers/*", "sqlDatabases/containers/items/*"];

/// The data actions, with their names without the common prefix. The order is that of the documentation.
const NAMES: [(Action, &str); 11] = [
    (Action::ReadMetadata, "readMetadata"),
    (Action::CreateItem, "sqlDatabases/containers/items/create"),
    (Action::ReadItem, "sqlDatabases/containers/items/read"),
    (Action::ReplaceItem, "sqlDatabases/containers/items/replace"),
    (Action::UpsertItem, "sqlDatabases/containers/items/upsert"),
    (Action::DeleteItem, "sqlDatabases/containers/items/delete"),
    (Action::UnmaskItem, "sqlDatabases/containers/items/unmask"),
    (Action::ExecuteQuery, "sqlDatabases/containers/executeQuery"),
    (Action::ReadChangeFeed, "sqlDatabases/containers/readChangeFeed"),
    (Action::ExecuteStoredProcedure, "sqlDatabases/containers/executeStoredProcedure"),
    (Action::ManageConflicts, "sqlDatabases/containers/manageConflicts"),
];

/// All actions that a role can allow.
pub const DATA_ACTIONS: [Action; NAMES.len()] = {
    let (mut actions, mut at) = ([Action::ReadMetadata; NAMES.len()], 0);
    while at < NAMES.len() {
        actions[at] = NAMES[at].0;
        at += 1;
    }
    actions
};

/// The full name, as in error messages; `None` for an action that no role can allow.
pub fn action_name(action: Action) -> Option<String> {
    NAMES.iter().find(|(known, _)| *known == action).map(|(_, name)| format!("{PREFIX}{name}"))
}

/// The actions that a name in a role definition stands for; never empty.
pub fn actions_named(name: &str) -> Result<ActionSet> {
    let short = name.get(..PREFIX.len()).filter(|start| start.eq_ignore_ascii_case(PREFIX));
    let short = short.and_then(|start| name.get(start.len()..)).unwrap_or_default();
    let start = WILDCARDS.into_iter().find(|wildcard| wildcard.eq_ignore_ascii_case(short));
    let start = start.and_then(|wildcard| wildcard.strip_suffix('*'));
    let matches_name = |known: &str| match start {
        Some(start) => known.starts_with(start),
        None => known.eq_ignore_ascii_case(short),
    };
    let found = NAMES.iter().filter(|(_, known)| matches_name(known)).map(|(action, _)| ActionSet::from(*action));
    let found = found.fold(ActionSet::default(), ActionSet::with);
    if found.is_empty() { Err(Error::invalid(unknown(name))) } else { Ok(found) }
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
