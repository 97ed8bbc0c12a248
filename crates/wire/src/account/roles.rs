//! Role-based access control: the data actions that a principal may perform in a scope.
//!
//! Invariant: without an assignment a principal may do nothing. A role definition is a set of data actions; an
//! assignment grants it to a principal (a user, an application, a group) within a scope: the account, a database or a
//! container. `definition` parses both from the operator's file, `store` holds the newest valid file. Each API determines
//! the actions that its operations need.
//!
//! ```text
//! {"sqlRoleDefinitions": [{"id": "…", "roleName": "Writes", "type": "CustomRole", "assignableScopes": ["/"],
//!                          "permissions": [{"dataActions": ["Microsoft.DocumentDB/databaseAccounts/readMetadata", …]}]}],
//!  "sqlRoleAssignments": [{"roleDefinitionId": "…", "principalId": "…", "scope": "/dbs/shop/colls/orders"}]}
//! ```

mod action; // data actions by their documented names
pub mod store; // the newest valid roles file
mod definition; // parses the roles file
mod scope; // account, database or container

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use pleiad_engine::{Action, ActionSet};

pub use action::{DATA_ACTIONS, action_name, actions_named};
pub use definition::parse;
pub use scope::RoleScope;

use super::Principal;

/// The role assignments of all principals.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// Keyed by the principal's id in lower case: GUIDs are compared case-insensitively.
    assignments: HashMap<String, Vec<RoleAssignment>>,
}

/// One assignment with the actions of its role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleAssignment {
    scope: RoleScope,
    actions: ActionSet,
}

impl Roles {
    fn assign(&mut self, principal: &str, assignment: RoleAssignment) {
        self.assignments.entry(principal.to_ascii_lowercase()).or_default().push(assignment);
    }

    /// Whether the principal, or one of its groups, may perform the action in this scope.
    pub fn allow(&self, principal: &Principal, action: Action, scope: &RoleScope) -> bool {
        self.assignments_of(principal)
            .any(|assignment| assignment.actions.has(action) && assignment.scope.covers(scope))
    }

    /// Whether the principal may perform the action in any scope.
    pub fn allow_in_any_scope(&self, principal: &Principal, action: Action) -> bool {
        self.assignments_of(principal).any(|assignment| assignment.actions.has(action))
    }

    fn assignments_of<'a>(&'a self, principal: &'a Principal) -> impl Iterator<Item = &'a RoleAssignment> {
        principal.ids().filter_map(|id| self.assignments.get(&id.to_ascii_lowercase())).flatten()
    }
}
