//! Row pipeline: items in, a page out. Joins the sources, filters, projects and collects the rows of each item.
//!
//! Invariant: pipelines over disjoint items of one query, merged in the order of the items, produce the page that one
//! pipeline over all the items would produce. Unordered rows (`Collector::Stream`) cannot be merged.

use pleiad_model::{Error, Result, Value};

use super::Flow;
use super::aggregate::GroupTable;
use super::collector::{DistinctSorted, StreamCollector, TopK, page_by_key, page_by_row_number};
use super::nested_loop::{each_matching_row, each_unfiltered_row};
use super::page::{Finished, PageSize, PageStart, ResumePoint, RowSet};
use super::project::{project, write, write_value};
use super::resume_key::ResumeKey;
use crate::block::{Block, Output, OutputExpr, ScalarExpr, SortKey};
use crate::document::{Bindings, SlotFrame, SlotValue};
use crate::expr::{Context, evaluate};
use crate::sort_encoding::{self, SortValue};

pub struct RowPipeline<'q> {
    block: &'q Block,
    cx: Context<'q>,
    start: PageStart,
    size: PageSize,
    collector: Collector<'q>,
    /// The following items are known to have the score 0.
    unscored: bool,
    matched: u64,
    key: Vec<u8>,
}

enum Collector<'q> {
    Stream(StreamCollector),
    TopK(TopK),
    DistinctSorted(DistinctSorted),
    Groups(GroupTable<'q>),
}

impl<'q> RowPipeline<'q> {
    pub fn new(block: &'q Block, cx: Context<'q>, start: PageStart, size: PageSize) -> Self {
        let collector = match &block.output {
            Output::Groups(grouping, _) => {
                let mut table = GroupTable::new(grouping);
                if let ResumePoint::Key(after) = &start.at {
                    table.after = Some(after.clone());
                }
                Collector::Groups(table)
            }
            Output::Rows(_) if block.distinct && !block.order.is_empty() => {
                Collector::DistinctSorted(DistinctSorted::new(start.clone(), size))
            }
            Output::Rows(_) if block.distinct => Collector::TopK(TopK::new(start.clone(), size)),
            Output::Rows(_) if !block.order.is_empty() => Collector::TopK(TopK::new(start.clone(), size)),
            Output::Rows(_) => Collector::Stream(StreamCollector::new(start.clone(), size)),
        };
        RowPipeline { block, cx, start, size, collector, unscored: false, matched: 0, key: Vec::new() }
    }

    /// For unordered rows: the scan resumes after this many rows of this item.
    pub fn resume(&mut self, docnum: u64, rows: u64) {
        if let Collector::Stream(stream) = &mut self.collector {
            stream.resume(docnum, rows);
        }
    }

    /// Whether items of several slices can be added to one pipeline in any order, with the same page as from merged
    /// pipelines. True for top-k, but not for sums.
    pub fn accepts_any_order(&self) -> bool {
        matches!(&self.collector, Collector::TopK(_))
    }

    /// Sets whether the following items are sorted as `ORDER BY` requires.
    pub fn expect_order(&mut self, ordered: bool) {
        if let Collector::TopK(smallest) = &mut self.collector {
            smallest.expect_order(ordered);
        }
    }

    /// Sets whether the following items can contain one of the terms that `ORDER BY` scores.
    pub fn expect_hits(&mut self, hits: bool) {
        self.unscored = !hits;
    }

    /// Whether an item that an index of scores does not find, with this docnum or a lower one, can change the page: it
    /// has the full-text score 0, or no score.
    pub fn admits_unscored(&self, newest: u64) -> bool {
        let mut least = Vec::new();
        match self.block.order.first() {
            Some(SortKey { node: ScalarExpr::FullText(_), descending: true, .. }) => {
                sort_encoding::encode_key(&SortValue::of(Some(&Value::from(0.0))), true, &mut least);
            }
            _ => least.push(NO_SCORE),
        }
        least.extend_from_slice(&(!newest).to_be_bytes());
        self.admits(&least)
    }

    /// Whether an item whose sort key has this prefix can change the page.
    pub fn admits(&self, prefix: &[u8]) -> bool {
        match &self.collector {
            Collector::TopK(smallest) => smallest.admits(prefix),
            _ => true,
        }
    }

    /// Adds one item. `Stop`: no further item can change the page.
    pub fn add_item(&mut self, docnum: u64, item: SlotValue<'_>) -> Result<Flow> {
        self.process(docnum, Some(&SlotFrame { slot: 0, bound: item, outer: None }))
    }

    /// Adds the single row of a query that reads no items.
    pub fn add_constant_row(&mut self) -> Result<Flow> {
        self.process(0, None)
    }

    /// The docnum of the item from which a truncated resume key can be restored. `None` if the key is whole or does not
    /// end with a docnum.
    pub fn resume_docnum(&self, resume_key: &ResumeKey) -> Option<u64> {
        let is_sorted = matches!(self.collector, Collector::TopK(_)) && !self.block.distinct;
        resume_key.docnum(ties_descend(self.block)).filter(|_| is_sorted)
    }

    /// Restores a truncated resume key, if one of the item's rows has that key.
    pub fn expand_key(
        &mut self,
        docnum: u64,
        item: SlotValue<'_>,
        resume_key: &ResumeKey,
    ) -> Result<Option<ResumeKey>> {
        self.cx.memory.reset();
        let sorting = SortKeyBuilder { block: self.block, cx: &self.cx, docnum, row: 0, unscored: false };
        let (mut whole, mut key) = (None, Vec::new());
        each_unfiltered_row(
            self.block,
            Some(&SlotFrame { slot: 0, bound: item, outer: None }),
            &self.cx,
            &mut |rows| {
                sorting.order_by_key(rows, &mut key)?;
                whole = resume_key.expand(&key);
                Ok(if whole.is_some() { Flow::Stop } else { Flow::Continue })
            },
        )?;
        Ok(whole)
    }

    /// The number of added items that passed the filters.
    pub fn matched_items(&self) -> u64 {
        self.matched
    }

    fn process(&mut self, docnum: u64, outer: Bindings<'_>) -> Result<Flow> {
        let mut passed = false;
        let flow = self.collect_rows(docnum, outer, &mut passed);
        self.matched += u64::from(passed);
        flow
    }

    /// Collects the rows of one item; sets `passed` if it has any.
    fn collect_rows(&mut self, docnum: u64, outer: Bindings<'_>, passed: &mut bool) -> Result<Flow> {
        self.cx.memory.reset();
        let (block, cx) = (self.block, &self.cx);
        match (&mut self.collector, &block.output) {
            (Collector::Stream(stream), Output::Rows(output)) => {
                stream.begin_item(docnum);
                if stream.is_done() {
                    return Ok(Flow::Stop);
                }
                each_matching_row(block, outer, cx, &mut |rows| {
                    *passed = true;
                    stream.add(&mut |out| write(output, rows, cx, out))
                })
            }
            (Collector::Groups(table), _) => each_matching_row(block, outer, cx, &mut |rows| {
                *passed = true;
                table.add(rows, cx).map(|()| Flow::Continue)
            }),
            (Collector::TopK(smallest), Output::Rows(output)) if block.distinct => {
                let key = &mut self.key;
                each_matching_row(block, outer, cx, &mut |rows| {
                    *passed = true;
                    distinct(smallest, output, rows, cx, key)
                })
            }
            (Collector::TopK(smallest), Output::Rows(output)) => {
                let mut sorting = SortKeyBuilder { block, cx, docnum, row: 0, unscored: self.unscored };
                let key = &mut self.key;
                each_matching_row(block, outer, cx, &mut |rows| {
                    *passed = true;
                    sorting.full_key(rows, key)?;
                    smallest.add(key, &mut |out| write(output, rows, cx, out))
                })
            }
            (Collector::DistinctSorted(rows), Output::Rows(output)) => {
                let sorting = SortKeyBuilder { block, cx, docnum, row: 0, unscored: false };
                let key = &mut self.key;
                each_matching_row(block, outer, cx, &mut |frame| {
                    *passed = true;
                    sorting.order_by_key(frame, key)?;
                    if let Some(value) = project(output, frame, cx)? {
                        let (mut row, mut text) = (Vec::new(), Vec::new());
                        sort_encoding::encode(Some(&value), &mut row);
                        write_value(&value, &mut text)?;
                        rows.add(row, key.clone(), text)?;
                    }
                    Ok(Flow::Continue)
                })
            }
            _ => Err(Error::internal("a collector that does not fit its query")),
        }
    }

    /// Counts rows for a query that only counts items (`Block::only_counts`).
    pub fn count_rows(&mut self, rows: u64) {
        if let Collector::Groups(table) = &mut self.collector {
            table.count_rows(rows);
        }
    }

    /// Adds the totals of items that need not be read (`index_predicate::text_aggregates`), one total per aggregate.
    pub fn add_text_counts(&mut self, totals: &[u64]) {
        if let Collector::Groups(table) = &mut self.collector {
            table.add_text_counts(totals);
        }
    }

    pub fn merge(&mut self, other: RowPipeline<'q>) -> Result<()> {
        match (&mut self.collector, other.collector) {
            (Collector::TopK(own), Collector::TopK(theirs)) => {
                own.merge(theirs);
                Ok(())
            }
            (Collector::DistinctSorted(own), Collector::DistinctSorted(theirs)) => own.merge(theirs),
            (Collector::Groups(own), Collector::Groups(theirs)) => own.merge(theirs),
            _ => Err(Error::internal("rows in order of arrival cannot be merged")),
        }
    }

    /// The page. `interrupted` is the position at which the scan stopped, for unordered rows.
    pub fn finish(self, interrupted: Option<ResumePoint>) -> Result<Finished> {
        match (self.collector, &self.block.output) {
            (Collector::Stream(stream), _) => Ok(stream.finish(interrupted)),
            (Collector::TopK(smallest), _) => Ok(smallest.finish()),
            (Collector::DistinctSorted(rows), _) => rows.finish(),
            (Collector::Groups(table), Output::Groups(_, output)) => {
                finish_groups(self.block, output, &self.cx, table, self.start, self.size)
            }
            _ => Err(Error::internal("a collector that does not fit its query")),
        }
    }
}

fn distinct(
    smallest: &mut TopK,
    output: &OutputExpr,
    rows: Bindings<'_>,
    cx: &Context<'_>,
    key: &mut Vec<u8>,
) -> Result<Flow> {
    let Some(value) = project(output, rows, cx)? else { return Ok(Flow::Continue) };
    key.clear();
    sort_encoding::encode(Some(&value), key);
    smallest.add(key, &mut |out| write_value(&value, out).map(|()| true))
}

/// Builds the sort keys of the rows of one item.
struct SortKeyBuilder<'s> {
    block: &'s Block,
    cx: &'s Context<'s>,
    docnum: u64,
    row: u32,
    unscored: bool,
}

impl SortKeyBuilder<'_> {
    /// keys │ docnum │ row of the item: the last two break ties.
    fn full_key(&mut self, rows: Bindings<'_>, key: &mut Vec<u8>) -> Result<()> {
        self.order_by_key(rows, key)?;
        let docnum = if ties_descend(self.block) { !self.docnum } else { self.docnum };
        key.extend_from_slice(&docnum.to_be_bytes());
        key.extend_from_slice(&self.row.to_be_bytes());
        self.row = self.row.wrapping_add(1);
        Ok(())
    }

    /// The key without the tie-breakers.
    fn order_by_key(&self, rows: Bindings<'_>, key: &mut Vec<u8>) -> Result<()> {
        key.clear();
        let order = &self.block.order;
        for part in order {
            let value = match &part.node {
                ScalarExpr::FullText(call) if self.unscored => call.zero_score(rows, self.cx)?,
                node => evaluate(node, rows, self.cx)?,
            };
            encode_sort_value(part, &SortValue::of(value.as_deref()), key);
        }
        Ok(())
    }
}

/// The sort key of a row without a score: its value is not a vector or not a text. It sorts after every encoded score,
/// ascending or descending.
const NO_SCORE: u8 = 0xFF;

/// A distance that no item can have was compiled to undefined.
fn is_score(node: &ScalarExpr) -> bool {
    matches!(node, ScalarExpr::Distance(_) | ScalarExpr::FullText(_) | ScalarExpr::Undefined)
}

/// Encodes the value of a row at one key of `ORDER BY`.
pub(super) fn encode_sort_value(part: &SortKey, value: &SortValue<'_>, key: &mut Vec<u8>) {
    match value {
        SortValue::Undefined if is_score(&part.node) => key.push(NO_SCORE),
        value => sort_encoding::encode_key(value, part.descending, key),
    }
}

/// Whether ties are broken by descending docnum: if the first key descends, and for scores in either direction.
pub(super) fn ties_descend(block: &Block) -> bool {
    block.order.first().is_some_and(|first| first.descending || is_score(&first.node))
}

fn finish_groups(
    block: &Block,
    output: &OutputExpr,
    cx: &Context<'_>,
    table: GroupTable<'_>,
    start: PageStart,
    size: PageSize,
) -> Result<Finished> {
    let (more, single_group) =
        (table.ceiling.is_some(), matches!(&block.output, Output::Groups(g, _) if g.single_group));
    if block.distinct {
        table.check_complete()?;
    }
    let (mut rows, mut last) = (Vec::new(), None);
    for (key, group) in table.finish_keyed(single_group) {
        cx.memory.reset();
        let frame = SlotFrame { slot: block.base, bound: SlotValue::Group(&group), outer: None };
        let mut text = Vec::new();
        if write(output, Some(&frame), cx, &mut text)? {
            rows.push((key, text));
        } else {
            last = Some(key);
        }
    }
    if single_group && rows.is_empty() {
        return Ok(Finished { rows: RowSet::default(), next: None });
    }
    if block.distinct {
        let mut seen = std::collections::HashSet::new();
        let once = rows.into_iter().map(|(_, text)| text).filter(|text| seen.insert(text.clone()));
        return Ok(page_by_row_number(once, start, size));
    }
    let mut page = page_by_key(rows.into_iter(), start, size, more);
    // Groups without a value are done, too: an empty page of only such groups must not resume at the same position.
    if let (Some(PageStart { at, .. }), Some(last), true) = (&mut page.next, last, page.rows.is_empty() && more) {
        *at = ResumePoint::Key(ResumeKey::whole(last));
    }
    Ok(page)
}

#[cfg(test)]
mod tests;
