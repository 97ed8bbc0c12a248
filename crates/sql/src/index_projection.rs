//! The projection of a global secondary index: the properties that it stores of its source's items.
//!
//! Guarantees: an accepted definition selects properties, or all of them, and nothing else, so an item of the index
//! follows from one item of the source and can be computed again. A missing property is null. The source's id is stored
//! as `_id`, because items of the index have ids of their own.
//!
//! ```text
//! SELECT c.id, c.name.first, c.total FROM c      {"id":"7","name":{"first":"Ann"},"x":1}  →  {"_id":"7","first":"Ann","total":null}
//! SELECT * FROM c                                {"id":"7","x":1}                         →  {"_id":"7","x":1}
//! ```

use pleiad_model::item::SYSTEM_PROPERTIES;
use pleiad_model::{Error, Object, Result, Value};

use crate::check;
use crate::parse::ast::{AstStep, Expr, ExprKind, Select, SelectItem, SelectSpec};

/// The property of the index that holds the source item's id.
pub const SOURCE_ID: &str = "_id";

/// The projected properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projection {
    All,
    Properties(Vec<ProjectedPath>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectedPath {
    path: Vec<String>,
    name: String,
}

impl Projection {
    pub fn parse(definition: &str) -> Result<Projection> {
        let select = check::parse_and_check(definition)?;
        check_shape(&select)?;
        match &select.spec {
            SelectSpec::Star(_) => Ok(Projection::All),
            SelectSpec::List(items) => {
                check_distinct_names(items.iter().map(|item| property(&select, item)).collect::<Result<_>>()?)
            }
            SelectSpec::Value(_) => Err(invalid_definition("it does not select VALUE")),
        }
    }

    /// The item of the index, without its id.
    pub fn apply(&self, item: &Value) -> Object {
        match self {
            Projection::All => all_properties(item),
            Projection::Properties(properties) => properties
                .iter()
                .fold(Object::new(), |object, property| object.with(property.name.as_str(), property.value_in(item))),
        }
    }
}

impl ProjectedPath {
    fn value_in(&self, item: &Value) -> Value {
        let found = self.path.iter().try_fold(item, |value, step| value.get(step));
        found.cloned().unwrap_or(Value::Null)
    }
}

fn all_properties(item: &Value) -> Object {
    let members = item.as_object().into_iter().flat_map(Object::iter);
    let members = members.filter(|(name, _)| !SYSTEM_PROPERTIES.contains(name) && *name != SOURCE_ID);
    members.fold(Object::new(), |object, (name, value)| object.with(index_name(name), value.clone()))
}

fn index_name(property: &str) -> &str {
    if property == "id" { SOURCE_ID } else { property }
}

/// Accepts only `SELECT … FROM c`.
fn check_shape(select: &Select) -> Result<()> {
    let from_one = match &select.from[..] {
        [source] => !source.unnest && matches!(source.expr.kind, ExprKind::Name(_)),
        _ => false,
    };
    let plain = !select.distinct
        && select.top.is_none()
        && select.filter.is_none()
        && select.group_by.is_empty()
        && select.order_by.is_none()
        && select.offset_limit.is_none();
    match (from_one, plain) {
        (false, _) => Err(invalid_definition("it selects from the container, without JOIN")),
        (_, false) => Err(invalid_definition("it has SELECT and FROM and no other clause")),
        _ => Ok(()),
    }
}

fn property(select: &Select, item: &SelectItem) -> Result<ProjectedPath> {
    if item.alias.is_some() {
        return Err(invalid_definition("it has no AS: a property keeps its name"));
    }
    let path = path(select, &item.expr)
        .ok_or_else(|| invalid_definition("it selects properties, as in c.a.b, and nothing else"))?;
    let name = path.last().map(String::as_str).unwrap_or_default();
    if SYSTEM_PROPERTIES.contains(&name) {
        return Err(invalid_definition("the index has system properties of its own"));
    }
    Ok(ProjectedPath { name: if path.len() == 1 { index_name(name) } else { name }.to_owned(), path })
}

/// The path of a property, without the container's alias.
fn path(select: &Select, expr: &Expr) -> Option<Vec<String>> {
    let ExprKind::Access { base, steps } = &expr.kind else { return None };
    let ExprKind::Name(base) = &base.kind else { return None };
    let source = select.from.first()?;
    let alias = source.alias.as_ref().map(|alias| &alias.text);
    let alias = alias.or(match &source.expr.kind {
        ExprKind::Name(name) => Some(name),
        _ => None,
    })?;
    if base != alias {
        return None;
    }
    steps.iter().map(step).collect()
}

fn step(step: &AstStep) -> Option<String> {
    match step {
        AstStep::Property(name) => Some(name.clone()),
        AstStep::Index(Expr { kind: ExprKind::Constant(Value::String(name)), .. }) => Some(name.clone()),
        AstStep::Index(_) => None,
    }
}

fn check_distinct_names(properties: Vec<ProjectedPath>) -> Result<Projection> {
    let is_taken = |name: &str| name == "id" || properties.iter().filter(|property| property.name == name).count() > 1;
    match properties.iter().find(|property| is_taken(&property.name)) {
        Some(property) => Err(invalid_definition(&format!("two of its properties would be '{}'", property.name))),
        None => Ok(Projection::Properties(properties)),
    }
}

fn invalid_definition(rule: &str) -> Error {
    Error::invalid(format!("The definition of a global secondary index is a projection: {rule}."))
}

#[cfg(test)]
mod tests;
