//! Computed properties: values that a container computes from each item, for queries and for its index.
//!
//! Guarantees: an accepted definition depends on one item only, and not on a clock, random numbers or another computed
//! property. So its value can be indexed, and computed again to delete the index entry. A value that JSON cannot
//! represent, or that is too large, is undefined, so an item can always be written and read.
//!
//! ```text
//! {"name":"low","query":"SELECT VALUE LOWER(c.name) FROM c"}      c.low in a query     item {"name":"Ann"} has "ann" there
//! ```
//!
//! `model` checks their number and names with the container's definition.

use pleiad_model::env::ManualEnv;
use pleiad_model::item::SYSTEM_PROPERTIES;
use pleiad_model::policy::{ComputedProperty, Geospatial};
use pleiad_model::{Error, Result, Value, json};

use crate::Parameters;
use crate::block::{Block, Output, OutputExpr, ScalarExpr};
use crate::check::{self, has_aggregate};
use crate::compile::{BindContext, compile};
use crate::document::{Document, SlotFrame, SlotValue};
use crate::expr::functions::Varies;
use crate::expr::{CheckLimit, Context, MemoryBudget, evaluate};
use crate::parse::ast::{Expr, ExprKind, Select, SelectSpec};
use crate::run::is_json;

/// The memory budget of evaluating a value.
const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A value that takes more interrupt checks than this is undefined: every write evaluates it.
const VALUE_CHECKS_MAX: u32 = 32;

/// The compiled computed properties of a container.
pub struct ComputedExprs {
    properties: Vec<ComputedExpr>,
    geospatial: Geospatial,
}

struct ComputedExpr {
    name: String,
    node: ScalarExpr,
}

impl ComputedExprs {
    /// Compiles definitions; an error names the definition and the rule it violates.
    pub fn compile(definitions: &[ComputedProperty], geospatial: Geospatial) -> Result<ComputedExprs> {
        let property = |definition: &ComputedProperty| {
            let node =
                parse_definition(definition, geospatial).map_err(|error| definition_error(definition, &error))?;
            check_node(&node, definition, definitions)?;
            Ok(ComputedExpr { name: definition.name.clone(), node })
        };
        Ok(ComputedExprs { properties: definitions.iter().map(property).collect::<Result<_>>()?, geospatial })
    }

    pub fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    /// The JSON text of a property; `None` if the name is not a computed property, `Some(None)` if its value is
    /// undefined.
    pub fn text(&self, name: &str, item: &dyn Document) -> Option<Option<Vec<u8>>> {
        let property = self.properties.iter().find(|property| property.name == name)?;
        let value = self.value(property, SlotValue::Item(item));
        Some(value.map(|value| json::to_string(&value).into_bytes()))
    }

    /// Name and value of each property, for an item with the system properties that `check_node` allows.
    pub fn values<'c>(&'c self, item: &'c Value) -> impl Iterator<Item = (&'c str, Option<Value>)> {
        self.properties.iter().map(|property| (property.name.as_str(), self.value(property, SlotValue::Value(item))))
    }

    fn value(&self, property: &ComputedExpr, item: SlotValue<'_>) -> Option<Value> {
        let frame = SlotFrame { slot: 0, bound: item, outer: None };
        let cx = Context {
            env: &ManualEnv::default(),
            started_ms: 0,
            geospatial: self.geospatial,
            user_functions: None,
            memory: MemoryBudget::new(VALUE_BYTES_MAX),
            interrupt: Some(&CheckLimit::new(VALUE_CHECKS_MAX)),
        };
        let value = evaluate(&property.node, Some(&frame), &cx).ok()??.into_owned();
        is_json(&value).then_some(value)
    }
}

/// `SELECT VALUE <scalar> FROM c`, and nothing else.
fn parse_definition(definition: &ComputedProperty, geospatial: Geospatial) -> Result<ScalarExpr> {
    let text = &definition.query;
    let select = check::parse_and_check(text)?;
    check_shape(&select)?;
    let parameters = Parameters::default();
    check::check_parameters(&select, &parameters, text)?;
    let Block { output, .. } = compile(
        &select,
        text,
        BindContext { parameters: &parameters, geospatial, embeddings: &[], full_text: None, started_ms: None },
    )?;
    match output {
        Output::Rows(OutputExpr::Value(node)) => Ok(node),
        _ => Err(Error::invalid("it selects one value with SELECT VALUE")),
    }
}

fn check_shape(select: &Select) -> Result<()> {
    let from_root =
        matches!(select.from.as_slice(), [root] if !root.unnest && matches!(root.expr.kind, ExprKind::Name(_)));
    let wrong = [
        (!matches!(select.spec, SelectSpec::Value(_)), "it selects one value with SELECT VALUE"),
        (!from_root, "its FROM names the container and nothing else"),
        (select.filter.is_some(), "it has no WHERE"),
        (!select.group_by.is_empty(), "it has no GROUP BY"),
        (select.order_by.is_some(), "it has no ORDER BY"),
        (select.distinct, "it has no DISTINCT"),
        (select.top.is_some() || select.offset_limit.is_some(), "it has no TOP, OFFSET or LIMIT"),
        (has_aggregate(&select.spec), "it has no aggregate"),
        (select.each_scalar(&mut no_parameter).is_err(), "it has no parameters"),
    ];
    match wrong.into_iter().find(|(is, _)| *is) {
        Some((_, rule)) => Err(Error::invalid(rule)),
        None => Ok(()),
    }
}

fn no_parameter(expr: &Expr) -> Result<(), ()> {
    if matches!(expr.kind, ExprKind::Parameter(_)) { Err(()) } else { expr.each_child(&mut no_parameter) }
}

/// Checks what the value depends on.
fn check_node(node: &ScalarExpr, definition: &ComputedProperty, all: &[ComputedProperty]) -> Result<()> {
    let violation = match node {
        ScalarExpr::Slot(_) => Some("it names properties of the item, not the item as a whole"),
        ScalarExpr::Path { steps, .. } => steps.first().and_then(|first| name_violation(&first.text, definition, all)),
        ScalarExpr::Subquery { .. } => Some("it has no subquery"),
        ScalarExpr::UserCall { .. } => Some("it calls no user-defined function"),
        ScalarExpr::Call { function, .. } if function.varies != Varies::Never => {
            Some("it calls no function of time or chance")
        }
        ScalarExpr::Distance(_) => Some("it calls no vector function"),
        ScalarExpr::Call { function, .. } if function.name.starts_with("ST_") => Some("it calls no spatial function"),
        _ => None,
    };
    if let Some(rule) = violation {
        return Err(definition_error(definition, &Error::invalid(rule)));
    }
    let mut result = Ok(());
    node.each_child(&mut |child| {
        if result.is_ok() {
            result = check_node(child, definition, all);
        }
    });
    result
}

fn name_violation(name: &str, definition: &ComputedProperty, all: &[ComputedProperty]) -> Option<&'static str> {
    if all.iter().any(|other| other.name == name && other.name != definition.name) {
        return Some("it names no other computed property");
    }
    // The other system properties are generated on reads: they do not exist when an item is indexed.
    let is_generated = name != "_ts" && SYSTEM_PROPERTIES.contains(&name);
    is_generated.then_some("of the system properties it names only _ts")
}

fn definition_error(definition: &ComputedProperty, error: &Error) -> Error {
    let name = &definition.name;
    Error::new(error.kind, format!("The definition of the computed property '{name}' is invalid: {error}"))
}

#[cfg(test)]
mod tests;
