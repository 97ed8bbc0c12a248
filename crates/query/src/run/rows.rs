//! Rows from sources, filtered as soon as it is possible; and what a subquery's rows amount to.

use std::borrow::Cow;
use std::collections::HashSet;

use pleiad_model::json::lazy;
use pleiad_model::{Error, Result, Value};

use super::Flow;
use super::groups::GroupTable;
use super::project::project;
use crate::block::{Block, Filter, Node, Output, Source, SourceOf};
use crate::document::{Bound, Frame, Rows, lookup};
use crate::expr::{Context, Term, both, evaluate, is_true, truth};
use crate::language::ast::SubqueryForm;
use crate::order;

type Visit<'v> = &'v mut dyn FnMut(Rows<'_>) -> Result<Flow>;

/// Every row of the block whose filters are all true, in order. Behind a row that was visited all that it built is gone.
pub fn each_row(block: &Block, outer: Rows<'_>, cx: &Context<'_>, visit: Visit<'_>) -> Result<Flow> {
    rows_of(block, outer, cx, &mut |rows| {
        let before = cx.room.mark();
        let flow = visit(rows);
        cx.room.back_to(before);
        flow
    })
}

fn rows_of(block: &Block, outer: Rows<'_>, cx: &Context<'_>, visit: Visit<'_>) -> Result<Flow> {
    let mut walk = Walk { filters: &block.filters, cx, visit };
    walk.level(&block.sources, 0, outer, first_slot(block))
}

fn first_slot(block: &Block) -> usize {
    block.base + usize::from(block.reads_items)
}

struct Walk<'w, 'v> {
    filters: &'w [Filter],
    cx: &'w Context<'w>,
    visit: Visit<'v>,
}

impl Walk<'_, '_> {
    fn level(&mut self, sources: &[Source], level: usize, rows: Rows<'_>, slot: usize) -> Result<Flow> {
        self.cx.row()?;
        if !self.passes(level, rows)? {
            return Ok(Flow::Go);
        }
        let Some((source, rest)) = sources.split_first() else { return (self.visit)(rows) };
        // What a source gives is held while it is gone through.
        let before = self.cx.room.mark();
        let flow = match &source.of {
            SourceOf::Scalar(node) => self.scalar(node, source.each, rest, level, rows, slot),
            SourceOf::Rows(block) => self.rows(&all_rows(block, rows, self.cx)?, source.each, rest, level, rows, slot),
        };
        self.cx.room.back_to(before);
        flow
    }

    fn passes(&self, level: usize, rows: Rows<'_>) -> Result<bool> {
        let before = self.cx.room.mark();
        for filter in self.filters.iter().filter(|filter| filter.level == level) {
            if !is_true(&filter.node, rows, self.cx)? {
                self.cx.room.back_to(before);
                return Ok(false);
            }
        }
        self.cx.room.back_to(before);
        Ok(true)
    }

    fn rows(
        &mut self,
        values: &[Value],
        each: bool,
        rest: &[Source],
        level: usize,
        outer: Rows<'_>,
        slot: usize,
    ) -> Result<Flow> {
        for value in values {
            if self.bind(value, each, rest, level, outer, slot)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Go)
    }

    fn scalar(
        &mut self,
        node: &Node,
        each: bool,
        rest: &[Source],
        level: usize,
        rows: Rows<'_>,
        slot: usize,
    ) -> Result<Flow> {
        // `FROM c` inside a subquery: the item is not copied.
        if let (Node::Slot(from), false) = (node, each)
            && let Some(bound) = lookup(rows, *from)
        {
            return self.level(rest, level + 1, Some(&Frame { slot, bound, outer: rows }), slot + 1);
        }
        if let (Some(text), true) = (text_of(node, rows), each) {
            return self.elements(&text, rest, level, rows, slot);
        }
        match self.cx.hold(|| evaluate(node, rows, self.cx))? {
            Some(value) => self.bind(&value, each, rest, level, rows, slot),
            None => Ok(Flow::Go),
        }
    }

    /// The elements of an array as they stand in the item.
    fn elements(&mut self, array: &[u8], rest: &[Source], level: usize, outer: Rows<'_>, slot: usize) -> Result<Flow> {
        if lazy::kind(array) != Some(lazy::Kind::Array) {
            return Ok(Flow::Go);
        }
        for element in lazy::elements(array) {
            let frame = Frame { slot, bound: Bound::Text(element), outer };
            if self.level(rest, level + 1, Some(&frame), slot + 1)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Go)
    }

    fn bind(
        &mut self,
        value: &Value,
        each: bool,
        rest: &[Source],
        level: usize,
        outer: Rows<'_>,
        slot: usize,
    ) -> Result<Flow> {
        let elements = match (each, value) {
            (false, value) => std::slice::from_ref(value),
            (true, Value::Array(items)) => items.as_slice(),
            (true, _) => &[],
        };
        for element in elements {
            let frame = Frame { slot, bound: Bound::Value(element), outer };
            if self.level(rest, level + 1, Some(&frame), slot + 1)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Go)
    }
}

/// The text of what a node reads, when it is a part of an item.
fn text_of<'a>(node: &Node, rows: Rows<'a>) -> Option<Cow<'a, [u8]>> {
    match node {
        Node::Path { slot, steps } => lookup(rows, *slot)?.text(steps),
        Node::Slot(slot) => lookup(rows, *slot)?.text(&[]),
        _ => None,
    }
}

/// The value a subquery stands for.
pub fn subquery(form: SubqueryForm, block: &Block, outer: Rows<'_>, cx: &Context<'_>) -> Result<Option<Value>> {
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
fn holds_for_all(block: &Block, outer: Rows<'_>, cx: &Context<'_>) -> Result<bool> {
    let mut holds = true;
    let mut walk = Walk {
        filters: &[],
        cx,
        visit: &mut |rows| {
            let mut so_far = Some(true);
            for filter in &block.filters {
                so_far = both(so_far, truth(&filter.node, rows, cx)?);
            }
            holds = so_far != Some(false);
            Ok(if holds { Flow::Go } else { Flow::Stop })
        },
    };
    walk.level(&block.sources, 0, outer, first_slot(block))?;
    Ok(holds)
}

fn all_rows(block: &Block, outer: Rows<'_>, cx: &Context<'_>) -> Result<Vec<Value>> {
    some_rows(block, outer, cx, usize::MAX)
}

/// The first rows of a subquery, projected; undefined ones are none.
fn some_rows(block: &Block, outer: Rows<'_>, cx: &Context<'_>, most: usize) -> Result<Vec<Value>> {
    let mut found = Found { values: Vec::new(), seen: block.distinct.then(HashSet::new), most };
    match &block.output {
        Output::Rows(output) => {
            rows_of(block, outer, cx, &mut |rows| found.add(|| project(output, rows, cx), cx))?;
        }
        Output::Groups(grouping, output) => {
            let mut table = GroupTable::new(grouping);
            each_row(block, outer, cx, &mut |rows| table.add(rows, cx).map(|()| Flow::Go))?;
            table.check_complete()?;
            for group in table.finish(grouping.whole) {
                let frame = Frame { slot: block.base, bound: Bound::Group(&group), outer };
                found.add(|| project(output, Some(&frame), cx), cx)?;
            }
        }
    }
    Ok(found.values)
}

struct Found {
    values: Vec<Value>,
    seen: Option<HashSet<Vec<u8>>>,
    most: usize,
}

impl Found {
    fn add<'a>(&mut self, row: impl FnOnce() -> Result<Term<'a>>, cx: &Context<'_>) -> Result<Flow> {
        let before = cx.room.mark();
        let Some(value) = cx.keep(row)? else { return Ok(Flow::Go) };
        if let Some(seen) = &mut self.seen {
            let mut key = Vec::new();
            order::encode(Some(&value), &mut key);
            cx.room.take(key.len())?;
            if !seen.insert(key) {
                cx.room.back_to(before);
                return Ok(Flow::Go);
            }
        }
        if self.values.len() < self.most {
            self.values.push(value);
        }
        Ok(if self.values.len() < self.most { Flow::Go } else { Flow::Stop })
    }
}
