//! The roles file: parses role definitions and assignments.
//!
//! Guarantees: a file with any error is rejected as a whole, and the message names the position. Properties are spelt
//! as in the service's resources (`roleName`) or as its command line takes them (`RoleName`), at the top level or below
//! `properties`.
//!
//! Two built-in roles need no definition: `…01` reads, `…02` reads and writes. Both are assignable in any scope.

use std::collections::HashMap;

use pleiad_engine::{Action, ActionSet};
use pleiad_model::{Error, Object, Result, Value, json};

use super::{DATA_ACTIONS, RoleAssignment, RoleScope, Roles, actions_named};

pub const DEFINITIONS_MAX: usize = 100;
pub const ASSIGNMENTS_MAX: usize = 2000;

const DATA_READER: &str = "00000000-0000-0000-0000-000000000001";
const DATA_CONTRIBUTOR: &str = "00000000-0000-0000-0000-000000000002";

/// The actions that a role allows, and where it may be assigned.
struct Role {
    actions: ActionSet,
    assignable: Vec<RoleScope>,
}

pub fn parse(text: &[u8]) -> Result<Roles> {
    let file = json::parse(text)?;
    let file = file.as_object().ok_or_else(|| Error::invalid("A file of roles is a JSON object."))?;
    let known = ["sqlRoleDefinitions", "sqlRoleAssignments"];
    if let Some((name, _)) = file.iter().find(|(name, _)| !known.contains(name)) {
        return Err(Error::invalid(format!("A file of roles has {}, but no {name:?}.", known.join(" and "))));
    }
    let definitions = entries(file, "sqlRoleDefinitions", DEFINITIONS_MAX)?;
    let assignments = entries(file, "sqlRoleAssignments", ASSIGNMENTS_MAX)?;
    let mut known = built_in();
    for (at, definition) in definitions.iter().enumerate() {
        define(&mut known, definition).map_err(|error| within("sqlRoleDefinitions", at, error))?;
    }
    let mut roles = Roles::default();
    for (at, assignment) in assignments.iter().enumerate() {
        assign(&mut roles, &known, assignment).map_err(|error| within("sqlRoleAssignments", at, error))?;
    }
    Ok(roles)
}

fn entries<'a>(file: &'a Object, name: &str, count_max: usize) -> Result<&'a [Value]> {
    let Some(value) = file.get(name) else { return Ok(&[]) };
    let entries = value.as_array().ok_or_else(|| Error::invalid(format!("{name} is not an array.")))?;
    if entries.len() > count_max {
        return Err(Error::invalid(format!(
            "{name} has {} entries; an account has at most {count_max}.",
            entries.len()
        )));
    }
    Ok(entries)
}

fn within(array: &str, at: usize, error: Error) -> Error {
    Error::invalid(format!("{array}[{at}]: {error}"))
}

fn built_in() -> HashMap<String, Role> {
    use Action::*;
    let everywhere = |actions| Role { actions, assignable: vec![RoleScope::account()] };
    let reader = ActionSet::of(&[ReadMetadata, ReadItem, ExecuteQuery, ReadChangeFeed]);
    [(DATA_READER, reader), (DATA_CONTRIBUTOR, contributor())]
        .map(|(id, actions)| (id.to_owned(), everywhere(actions)))
        .into()
}

/// All data actions.
pub fn contributor() -> ActionSet {
    ActionSet::of(&DATA_ACTIONS)
}

fn define(known: &mut HashMap<String, Role>, definition: &Value) -> Result<()> {
    let properties = RoleProperties::of(definition)?;
    let id = properties.id(&["name", "id"])?;
    if let Some(kind) = properties.text("type").filter(|kind| !kind.contains('/'))
        && !kind.eq_ignore_ascii_case("CustomRole")
    {
        return Err(Error::invalid(format!("'type' is {kind:?}; a role of one's own is a CustomRole.")));
    }
    properties.required("roleName")?;
    let scopes = properties.array("assignableScopes")?;
    let role = Role {
        actions: permissions(properties.array("permissions")?)?,
        assignable: scopes.iter().map(|scope| RoleScope::parse(string(scope)?)).collect::<Result<_>>()?,
    };
    if role.assignable.is_empty() {
        return Err(Error::invalid("'assignableScopes' is empty, so that nobody could have the role."));
    }
    match known.insert(id.clone(), role) {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!("There is another role with the id {id}."))),
    }
}

fn permissions(permissions: &[Value]) -> Result<ActionSet> {
    let mut all = ActionSet::default();
    for permission in permissions {
        let properties = RoleProperties::of(permission)?;
        let allowed = actions(properties.array("dataActions")?)?;
        let denied = if properties.get("notDataActions").is_some() { properties.array("notDataActions")? } else { &[] };
        all = all.with(allowed.without(actions(denied)?));
    }
    Ok(all)
}

fn actions(names: &[Value]) -> Result<ActionSet> {
    names.iter().try_fold(ActionSet::default(), |all, name| Ok(all.with(actions_named(string(name)?)?)))
}

fn assign(roles: &mut Roles, known: &HashMap<String, Role>, assignment: &Value) -> Result<()> {
    let properties = RoleProperties::of(assignment)?;
    let id = properties.id(&["roleDefinitionId"])?;
    let role = known.get(&id).ok_or_else(|| Error::invalid(format!("There is no role with the id {id}.")))?;
    let scope = RoleScope::parse(properties.required("scope")?)?;
    if !role.assignable.iter().any(|assignable| assignable.covers(&scope)) {
        return Err(Error::invalid(format!("The role {id} is not assignable at '{scope}'.")));
    }
    roles.assign(properties.required("principalId")?, RoleAssignment { scope, actions: role.actions });
    Ok(())
}

/// The properties of a resource, at the top level or below `properties`.
struct RoleProperties<'a> {
    outer: &'a Object,
    inner: Option<&'a Object>,
}

impl<'a> RoleProperties<'a> {
    fn of(value: &'a Value) -> Result<RoleProperties<'a>> {
        let outer = value.as_object().ok_or_else(|| Error::invalid("An object was expected."))?;
        let inner = find(outer, "properties").and_then(Value::as_object);
        Ok(RoleProperties { outer, inner })
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.inner.and_then(|inner| find(inner, name)).or_else(|| find(self.outer, name))
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    fn required(&self, name: &str) -> Result<&'a str> {
        self.text(name).ok_or_else(|| Error::invalid(format!("'{name}' is missing or not a string.")))
    }

    fn array(&self, name: &str) -> Result<&'a [Value]> {
        let array = self.get(name).and_then(Value::as_array);
        array.ok_or_else(|| Error::invalid(format!("'{name}' is missing or not an array.")))
    }

    /// The service writes ids as paths; only the last segment counts.
    fn id(&self, names: &[&str]) -> Result<String> {
        let text = names.iter().find_map(|name| self.text(name));
        let id = text.and_then(|text| text.rsplit('/').next()).filter(|id| !id.is_empty());
        let missing = || Error::invalid(format!("'{}' is missing or not a string.", names.last().unwrap_or(&"id")));
        id.map(str::to_ascii_lowercase).ok_or_else(missing)
    }
}

fn find<'a>(object: &'a Object, name: &str) -> Option<&'a Value> {
    object.iter().find(|(member, _)| member.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn string(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(|| Error::invalid("A string was expected."))
}
