//! The first row of one item, without a collector: for queries that make at most one row of an item.

use pleiad_model::Result;

use super::Flow;
use super::nested_loop::each_matching_row;
use super::project::write;
use crate::block::{Block, OutputExpr};
use crate::document::{SlotFrame, SlotValue};
use crate::expr::Context;

/// The row as JSON text; `None` if the filters drop the item or the row is undefined.
pub fn first_row(block: &Block, output: &OutputExpr, item: SlotValue<'_>, cx: &Context<'_>) -> Result<Option<Vec<u8>>> {
    let (mut row, mut is_there) = (Vec::new(), false);
    each_matching_row(block, Some(&SlotFrame { slot: 0, bound: item, outer: None }), cx, &mut |rows| {
        is_there = write(output, rows, cx, &mut row)?;
        Ok(Flow::Stop)
    })?;
    Ok(is_there.then_some(row))
}
