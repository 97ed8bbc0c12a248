//! Nested-loop join over the FROM sources, with each filter applied as early as possible; and evaluation of subqueries.

use std::borrow::Cow;
use std::collections::HashSet;

use pleiad_model::json::lazy;
use pleiad_model::{Error, Result, Value};

use super::Flow;
use super::aggregate::GroupTable;
use super::project::project;
use crate::block::{Block, Filter, Output, RowSource, RowSourceKind, ScalarExpr};
use crate::document::{Bindings, SlotFrame, SlotValue, lookup};
use crate::expr::{Context, Datum, both, evaluate, is_true, truth};
use crate::parse::ast::SubqueryForm;
use crate::sort_encoding;

type RowVisitor<'v> = &'v mut dyn FnMut(Bindings<'_>) -> Result<Flow>;

/// Visits every row of the block that passes its filters, in order. After each visit the memory that the row used is
/// released.
pub fn each_matching_row(block: &Block, outer: Bindings<'_>, cx: &Context<'_>, visit: RowVisitor<'_>) -> Result<Flow> {
    visit_rows(block, &block.filters, outer, cx, &mut |rows| {
        let before = cx.memory.mark();
        let flow = visit(rows);
        cx.memory.release_to(before);
        flow
    })
}

/// Visits every row, without applying the filters.
pub fn each_unfiltered_row(
    block: &Block,
    outer: Bindings<'_>,
    cx: &Context<'_>,
    visit: RowVisitor<'_>,
) -> Result<Flow> {
    visit_rows(block, &[], outer, cx, visit)
}

fn visit_rows(
    block: &Block,
    filters: &[Filter],
    outer: Bindings<'_>,
    cx: &Context<'_>,
    visit: RowVisitor<'_>,
) -> Result<Flow> {
    let mut nested_loop = NestedLoop { filters, cx, visit };
    nested_loop.level(&block.sources, 0, outer, first_slot(block))
}

fn first_slot(block: &Block) -> usize {
    block.base + usize::from(block.reads_items)
}

struct NestedLoop<'w, 'v> {
    filters: &'w [Filter],
    cx: &'w Context<'w>,
    visit: RowVisitor<'v>,
}

/// The loop of one source: its level and slot, and the sources nested inside it.
#[derive(Clone, Copy)]
struct LoopLevel<'w> {
    unnest: bool,
    rest: &'w [RowSource],
    level: usize,
    outer: Bindings<'w>,
    slot: usize,
}

impl NestedLoop<'_, '_> {
    fn level(&mut self, sources: &[RowSource], level: usize, rows: Bindings<'_>, slot: usize) -> Result<Flow> {
        self.cx.count_row()?;
        if !self.passes(level, rows)? {
            return Ok(Flow::Continue);
        }
        let Some((source, rest)) = sources.split_first() else { return (self.visit)(rows) };
        let loop_level = LoopLevel { unnest: source.unnest, rest, level, outer: rows, slot };
        // The values of a source stay in memory while the loop iterates over them.
        let before = self.cx.memory.mark();
        let flow = match &source.kind {
            RowSourceKind::Scalar(node) => self.scalar(node, loop_level),
            RowSourceKind::Rows(block) => {
                let values = all_rows(block, rows, self.cx)?;
                until_stop(values.iter(), |value| self.bind(value, loop_level))
            }
        };
        self.cx.memory.release_to(before);
        flow
    }

    fn passes(&self, level: usize, rows: Bindings<'_>) -> Result<bool> {
        let before = self.cx.memory.mark();
        let mut passes = true;
        for filter in self.filters.iter().filter(|filter| filter.level == level) {
            passes = is_true(&filter.node, rows, self.cx)?;
            if !passes {
                break;
            }
        }
        self.cx.memory.release_to(before);
        Ok(passes)
    }

    fn scalar(&mut self, node: &ScalarExpr, loop_level: LoopLevel<'_>) -> Result<Flow> {
        // `FROM c` inside a subquery: the item is not copied.
        if let (ScalarExpr::Slot(from), false) = (node, loop_level.unnest)
            && let Some(bound) = lookup(loop_level.outer, *from)
        {
            return self.next_level(bound, loop_level);
        }
        if let (Some(text), true) = (text_of(node, loop_level.outer), loop_level.unnest) {
            return self.elements(&text, loop_level);
        }
        match self.cx.charge_result(|| evaluate(node, loop_level.outer, self.cx))? {
            Some(value) => self.bind(&value, loop_level),
            None => Ok(Flow::Continue),
        }
    }

    /// Iterates over the elements of an array as JSON text, without parsing them.
    fn elements(&mut self, array: &[u8], loop_level: LoopLevel<'_>) -> Result<Flow> {
        if lazy::json_type(array) != Some(lazy::JsonType::Array) {
            return Ok(Flow::Continue);
        }
        until_stop(lazy::elements(array), |element| self.next_level(SlotValue::Text(element), loop_level))
    }

    fn bind(&mut self, value: &Value, loop_level: LoopLevel<'_>) -> Result<Flow> {
        let elements = match (loop_level.unnest, value) {
            (false, value) => std::slice::from_ref(value),
            (true, Value::Array(items)) => items.as_slice(),
            (true, _) => &[],
        };
        until_stop(elements.iter(), |element| self.next_level(SlotValue::Value(element), loop_level))
    }

    /// Binds one row of the source and continues with the next source.
    fn next_level(
        &mut self,
        bound: SlotValue<'_>,
        LoopLevel { rest, level, outer, slot, .. }: LoopLevel<'_>,
    ) -> Result<Flow> {
        self.level(rest, level + 1, Some(&SlotFrame { slot, bound, outer }), slot + 1)
    }
}

fn until_stop<T>(rows: impl Iterator<Item = T>, mut visit: impl FnMut(T) -> Result<Flow>) -> Result<Flow> {
    for row in rows {
        if visit(row)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// The JSON text of the value, if the node reads a part of an item.
fn text_of<'a>(node: &ScalarExpr, rows: Bindings<'a>) -> Option<Cow<'a, [u8]>> {
    match node {
        ScalarExpr::Path { slot, steps } => lookup(rows, *slot)?.text(steps),
        ScalarExpr::Slot(slot) => lookup(rows, *slot)?.text(&[]),
        _ => None,
    }
}

/// The value of a subquery.
pub fn subquery(form: SubqueryForm, block: &Block, outer: Bindings<'_>, cx: &Context<'_>) -> Result<Option<Value>> {
    match form {
        SubqueryForm::Exists => Ok(Some(Value::Bool(!first_rows(block, outer, cx, 1)?.is_empty()))),
        SubqueryForm::First => Ok(first_rows(block, outer, cx, 1)?.pop()),
        SubqueryForm::Array => all_rows(block, outer, cx).map(|rows| Some(Value::Array(rows))),
        SubqueryForm::Last => Ok(all_rows(block, outer, cx)?.pop()),
        SubqueryForm::All => holds_for_all(block, outer, cx).map(|holds| Some(Value::Bool(holds))),
        SubqueryForm::Scalar => {
            let mut rows = first_rows(block, outer, cx, 2)?;
            if rows.len() > 1 {
                let message = "The cardinality of a scalar subquery result set cannot be greater than one. Use ARRAY(…) or FIRST(…).";
                return Err(Error::invalid(message));
            }
            Ok(rows.pop())
        }
    }
}

/// `NOT EXISTS(… WHERE NOT filter)`: a row for which the filter is undefined does not count against it.
fn holds_for_all(block: &Block, outer: Bindings<'_>, cx: &Context<'_>) -> Result<bool> {
    let mut holds = true;
    let mut nested_loop = NestedLoop {
        filters: &[],
        cx,
        visit: &mut |rows| {
            let mut so_far = Some(true);
            for filter in &block.filters {
                so_far = both(so_far, truth(&filter.node, rows, cx)?);
            }
            holds = so_far != Some(false);
            Ok(if holds { Flow::Continue } else { Flow::Stop })
        },
    };
    nested_loop.level(&block.sources, 0, outer, first_slot(block))?;
    Ok(holds)
}

fn all_rows(block: &Block, outer: Bindings<'_>, cx: &Context<'_>) -> Result<Vec<Value>> {
    first_rows(block, outer, cx, usize::MAX)
}

/// The first rows of a subquery, projected; undefined rows are skipped.
fn first_rows(block: &Block, outer: Bindings<'_>, cx: &Context<'_>, limit: usize) -> Result<Vec<Value>> {
    let mut found = SubqueryRows { values: Vec::new(), seen: block.distinct.then(HashSet::new), limit };
    match &block.output {
        Output::Rows(output) => {
            visit_rows(block, &block.filters, outer, cx, &mut |rows| found.add(|| project(output, rows, cx), cx))?;
        }
        Output::Groups(grouping, output) => {
            let mut table = GroupTable::new(grouping);
            each_matching_row(block, outer, cx, &mut |rows| table.add(rows, cx).map(|()| Flow::Continue))?;
            table.check_complete()?;
            for group in table.finish(grouping.single_group) {
                let frame = SlotFrame { slot: block.base, bound: SlotValue::Group(&group), outer };
                found.add(|| project(output, Some(&frame), cx), cx)?;
            }
        }
    }
    Ok(found.values)
}

struct SubqueryRows {
    values: Vec<Value>,
    seen: Option<HashSet<Vec<u8>>>,
    limit: usize,
}

impl SubqueryRows {
    fn add<'a>(&mut self, row: impl FnOnce() -> Result<Datum<'a>>, cx: &Context<'_>) -> Result<Flow> {
        let before = cx.memory.mark();
        let Some(value) = cx.charge_owned(row)? else { return Ok(Flow::Continue) };
        if let Some(seen) = &mut self.seen {
            let mut key = Vec::new();
            sort_encoding::encode(Some(&value), &mut key);
            cx.memory.reserve(key.len())?;
            if !seen.insert(key) {
                cx.memory.release_to(before);
                return Ok(Flow::Continue);
            }
        }
        if self.values.len() < self.limit {
            self.values.push(value);
        }
        Ok(if self.values.len() < self.limit { Flow::Continue } else { Flow::Stop })
    }
}
