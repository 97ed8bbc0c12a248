//! Resume filters: clients that merge the sorted rows of partitions themselves resume by the sort keys of the row that
//! they returned last.
//!
//! A filter becomes a resume key, the position after which a page continues, so that both resume in the same way. The
//! end of the key, docnum and row number, decides on which side of it the rows with equal sort keys are:
//!
//! ```text
//!   keys                 keys │ 00 × 12                 before all rows with these keys
//!   keys, excluded       keys │ FF × 12                 after all of them
//!   keys, item           keys │ docnum │ row 0, less 1  before the rows of the item
//!   keys, item, excluded keys │ docnum │ FF × 4         after the rows of the item
//! ```
//!
//! No item has the docnum 0 or the largest one.

use pleiad_model::{Error, Result};

use super::pipeline::{encode_sort_value, ties_descend};
use super::resume_key::{END_BYTES, ResumeKey};
use crate::block::{Block, Output};
use crate::sort_encoding::SortValue;

/// The rows from a position in the order of `ORDER BY` on.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumeFilter {
    /// One for each key of `ORDER BY`.
    pub values: Vec<SortValue<'static>>,
    /// The item with these keys at which the rows begin.
    pub docnum: Option<u64>,
    /// The rows begin after this position, not at it.
    pub exclude: bool,
}

impl ResumeFilter {
    /// The position after which the rows of the filter begin.
    pub fn resume_key(&self, block: &Block) -> Result<ResumeKey> {
        if block.order.is_empty() || !block.reads_items || !matches!(block.output, Output::Rows(_)) {
            return Err(not_resumable());
        }
        let (given, wanted) = (self.values.len(), block.order.len());
        if given != wanted {
            let message =
                format!("The resume filter needs a value for each of the {wanted} keys of ORDER BY, not {given}.");
            return Err(Error::invalid(message));
        }
        let mut key = Vec::new();
        for (value, part) in self.values.iter().zip(&block.order) {
            encode_sort_value(part, value, &mut key);
        }
        key.extend_from_slice(&self.end(block)?);
        Ok(ResumeKey::whole(key))
    }

    /// Docnum and row number before the first row of the filter.
    fn end(&self, block: &Block) -> Result<[u8; END_BYTES]> {
        let Some(docnum) = self.docnum else {
            return Ok(if self.exclude { [0xFF; END_BYTES] } else { [0; END_BYTES] });
        };
        if block.distinct {
            let message = "The resume filter of a DISTINCT query names no item: several may have the same row.";
            return Err(Error::invalid(message));
        }
        let docnum = if ties_descend(block) { !docnum } else { docnum };
        let first_row = u128::from(docnum) << u32::BITS;
        let end = if self.exclude { first_row | u128::from(u32::MAX) } else { first_row.saturating_sub(1) };
        Ok(end.to_be_bytes().last_chunk().copied().unwrap_or_default())
    }
}

/// For a query whose rows have no sort keys.
pub fn not_resumable() -> Error {
    Error::invalid("A resume filter needs a query that sorts items by ORDER BY.")
}
