//! Scopes: where a role applies and where a request operates: the account, a database, or a container.
//!
//! ```text
//! /                        the account
//! /dbs/shop                a database and its containers
//! /dbs/shop/colls/orders   a container
//! /subscriptions/…/databaseAccounts/any/dbs/shop   as the service spells it: the part up to the account is ignored
//! /dbs/databaseAccounts    a database that happens to have this name
//! ```

use std::fmt;

use pleiad_model::{Error, Result};

const SUBSCRIPTION: &str = "/subscriptions/";
const ACCOUNT: &str = "/databaseaccounts/";

/// Names, not resource ids; no names means the account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleScope {
    names: Vec<String>,
}

impl RoleScope {
    pub fn account() -> RoleScope {
        RoleScope::default()
    }

    pub fn database(database: &str) -> RoleScope {
        RoleScope { names: vec![database.to_owned()] }
    }

    pub fn container(database: &str, container: &str) -> RoleScope {
        RoleScope { names: vec![database.to_owned(), container.to_owned()] }
    }

    pub fn parse(text: &str) -> Result<RoleScope> {
        let wrong = || {
            Error::invalid(format!(
                "The scope {text:?} is neither '/' nor '/dbs/{{name}}' nor '/dbs/{{name}}/colls/{{name}}'."
            ))
        };
        let parts: Vec<&str> =
            below_account(text).ok_or_else(wrong)?.split('/').filter(|part| !part.is_empty()).collect();
        match parts[..] {
            [] => Ok(RoleScope::account()),
            ["dbs", database] => Ok(RoleScope::database(database)),
            ["dbs", database, "colls", container] => Ok(RoleScope::container(database, container)),
            _ => Err(wrong()),
        }
    }

    /// Whether a role in this scope applies to the other scope.
    pub fn covers(&self, other: &RoleScope) -> bool {
        other.names.starts_with(&self.names)
    }
}

/// The text after the account's name; all of it if no account is named.
fn below_account(text: &str) -> Option<&str> {
    if !text.starts_with('/') {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    if !lower.starts_with(SUBSCRIPTION) {
        return Some(text);
    }
    let named = text.get(lower.find(ACCOUNT)? + ACCOUNT.len()..)?;
    Some(named.find('/').and_then(|end| named.get(end..)).unwrap_or_default())
}

/// As error messages name a resource.
impl fmt::Display for RoleScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.names[..] {
            [database] => write!(f, "dbs/{database}"),
            [database, container, ..] => write!(f, "dbs/{database}/colls/{container}"),
            [] => f.write_str("/"),
        }
    }
}
