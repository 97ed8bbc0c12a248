//! Roles: which principal may take which data action where.
//!
//! Promise: nobody may do anything unless an assignment says so. A role definition is a set of data actions; an assignment gives it to a
//! principal (a user, an application, a group) within a scope: the account, a database or a container. `definition` reads both from the
//! operator's file, `need` tells which action a request takes, `book` keeps the newest good file.
//!
//! ```text
//! {"sqlRoleDefinitions": [{"id": "…", "roleName": "Writes", "type": "CustomRole", "assignableScopes": ["/"],
//!                          "permissions": [{"dataActions": ["Microsoft.DocumentDB/databaseAccounts/readMetadata", …]}]}],
//!  "sqlRoleAssignments": [{"roleDefinitionId": "…", "principalId": "…", "scope": "/dbs/shop/colls/orders"}]}
//! ```

mod action; // what can be done to data, by its documented name
pub mod store; // the newest good file
mod definition; // the file, read
mod required; // which action a request takes
mod scope; // where

#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub use action::{ActionSet, DataAction};
pub use definition::parse;
pub use required::{RequiredAccess, needs};
pub use scope::RoleScope;

use super::auth::Principal;

/// Who has which actions where.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// By the principal's id in lower case: GUIDs are compared as such.
    grants: HashMap<String, Vec<RoleAssignment>>,
}

/// One assignment, its role looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleAssignment {
    scope: RoleScope,
    actions: ActionSet,
}

impl Roles {
    fn assign(&mut self, principal: &str, grant: RoleAssignment) {
        self.grants.entry(principal.to_ascii_lowercase()).or_default().push(grant);
    }

    /// Whether the principal, or a group of theirs, may do this there.
    pub fn allow(&self, principal: &Principal, action: DataAction, place: &RoleScope) -> bool {
        self.of(principal).any(|grant| grant.actions.has(action) && grant.scope.covers(place))
    }

    /// Whether there is any place where they may.
    pub fn allow_somewhere(&self, principal: &Principal, action: DataAction) -> bool {
        self.of(principal).any(|grant| grant.actions.has(action))
    }

    fn of<'a>(&'a self, principal: &'a Principal) -> impl Iterator<Item = &'a RoleAssignment> {
        principal.ids().filter_map(|id| self.grants.get(&id.to_ascii_lowercase())).flatten()
    }
}
