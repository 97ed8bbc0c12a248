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
pub fn each_row(block: &Block, outer: Bindings<'_>, cx: &Context<'_>, visit: RowVisitor<'_>) -> Result<Flow> {
    rows_of(block, &block.filters, outer, cx, &mut |rows| {
        let before = cx.room.mark();
        let flow = visit(rows);
        cx.room.back_to(before);
        flow
    })
}

/// Visits every row, without applying the filters.
pub fn every_row(block: &Block, outer: Bindings<'_>, cx: &Context<'_>, visit: RowVisitor<'_>) -> Result<Flow> {
    rows_of(block, &[], outer, cx, visit)
}

fn rows_of(
    block: &Block,
    filters: &[Filter],
    outer: Bindings<'_>,
    cx: &Context<'_>,
    visit: RowVisitor<'_>,
) -> Result<Flow> {
    let mut walk = NestedLoop { filters, cx, visit };
    walk.level(&block.sources, 0, outer, first_slot(block))
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
    each: bool,
    rest: &'w [RowSource],
    level: usize,
    outer: Bindings<'w>,
    slot: usize,
}

impl NestedLoop<'_, '_> {
    fn level(&mut self, sources: &[RowSource], level: usize, rows: Bindings<'_>, slot: usize) -> Result<Flow> {
        self.cx.row()?;
        if !self.passes(level, rows)? {
            return Ok(Flow::Continue);
        }
        let Some((source, rest)) = sources.split_first() else { return (self.visit)(rows) };
        let below = LoopLevel { each: source.each, rest, level, outer: rows, slot };
        // The values of a source stay in memory while the loop iterates over them.
        let before = self.cx.room.mark();
        let flow = match &source.of {
            RowSourceKind::Scalar(node) => self.scalar(node, below),
            RowSourceKind::Rows(block) => {
                let values = all_rows(block, rows, self.cx)?;
                until_stop(values.iter(), |value| self.bind(value, below))
            }
        };
        self.cx.room.back_to(before);
        flow
    }

    fn passes(&self, level: usize, rows: Bindings<'_>) -> Result<bool> {
        let before = self.cx.room.mark();
        let mut passes = true;
        for filter in self.filters.iter().filter(|filter| filter.level == level) {
            passes = is_true(&filter.node, rows, self.cx)?;
            if !passes {
                break;
            }
        }
        self.cx.room.back_to(before);
        Ok(passes)
    }

    fn scalar(&mut self, node: &ScalarExpr, below: LoopLevel<'_>) -> Result<Flow> {
        // `FROM c` inside a subquery: the item is not copied.
        if let (ScalarExpr::Slot(from), false) = (node, below.each)
            && let Some(bound) = lookup(below.outer, *from)
        {
            return self.go_on(bound, below);
        }
        if let (Some(text), true) = (text_of(node, below.outer), below.each) {
            return self.elements(&text, below);
        }
        match self.cx.hold(|| evaluate(node, below.outer, self.cx))? {
            Some(value) => self.bind(&value, below),
            None => Ok(Flow::Continue),
        }
    }

    /// Iterates over the elements of an array as JSON text, without parsing them.
    fn elements(&mut self, array: &[u8], below: LoopLevel<'_>) -> Result<Flow> {
        if lazy::kind(array) != Some(lazy::JsonType::Array) {
            return Ok(Flow::Continue);
        }
        until_stop(lazy::elements(array), |element| self.go_on(SlotValue::Text(element), below))
    }

    fn bind(&mut self, value: &Value, below: LoopLevel<'_>) -> Result<Flow> {
        let elements = match (below.each, value) {
            (false, value) => std::slice::from_ref(value),
            (true, Value::Array(items)) => items.as_slice(),
            (true, _) => &[],
        };
        until_stop(elements.iter(), |element| self.go_on(SlotValue::Value(element), below))
    }

    /// Binds one row of the source and continues with the next source.
    fn go_on(
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
        SubqueryForm::Exists => Ok(Some(Value::Bool(!some_rows(block, outer, cx, 1)?.is_empty()))),
        SubqueryForm::First => Ok(some_rows(block, outer, cx, 1)?.pop()),
        SubqueryForm::Array => all_rows(block, outer, cx).map(|rows| Some(Value::Array(rows))),
        SubqueryForm::Last => Ok(all_rows(block, outer, cx)?.pop()),
        SubqueryForm::All => holds_for_all(block, outer, cx).map(|holds| Some(Value::Bool(holds))),
        SubqueryForm::Scalar => {
            let mut rows = some_rows(block, outer, cx, 2)?;
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
    let mut walk = NestedLoop {
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
    walk.level(&block.sources, 0, outer, first_slot(block))?;
    Ok(holds)
}

fn all_rows(block: &Block, outer: Bindings<'_>, cx: &Context<'_>) -> Result<Vec<Value>> {
    some_rows(block, outer, cx, usize::MAX)
}

/// The first rows of a subquery, projected; undefined rows are skipped.
fn some_rows(block: &Block, outer: Bindings<'_>, cx: &Context<'_>, most: usize) -> Result<Vec<Value>> {
    let mut found = SubqueryRows { values: Vec::new(), seen: block.distinct.then(HashSet::new), most };
    match &block.output {
        Output::Rows(output) => {
            rows_of(block, &block.filters, outer, cx, &mut |rows| found.add(|| project(output, rows, cx), cx))?;
        }
        Output::Groups(grouping, output) => {
            let mut table = GroupTable::new(grouping);
            each_row(block, outer, cx, &mut |rows| table.add(rows, cx).map(|()| Flow::Continue))?;
            table.check_complete()?;
            for group in table.finish(grouping.whole) {
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
    most: usize,
}

impl SubqueryRows {
    fn add<'a>(&mut self, row: impl FnOnce() -> Result<Datum<'a>>, cx: &Context<'_>) -> Result<Flow> {
        let before = cx.room.mark();
        let Some(value) = cx.keep(row)? else { return Ok(Flow::Continue) };
        if let Some(seen) = &mut self.seen {
            let mut key = Vec::new();
            sort_encoding::encode(Some(&value), &mut key);
            cx.room.take(key.len())?;
            if !seen.insert(key) {
                cx.room.back_to(before);
                return Ok(Flow::Continue);
            }
        }
        if self.values.len() < self.most {
            self.values.push(value);
        }
        Ok(if self.values.len() < self.most { Flow::Continue } else { Flow::Stop })
    }
}
