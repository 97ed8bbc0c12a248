//! Covering cells: the grid cells under which a spatial index stores a shape, and the cell ranges that a search
//! reads.
//!
//! Invariant: if a shape intersects a region, or comes within the given distance of it, then one of the shape's cells
//! lies in one of the region's ranges. The converse does not hold: an index returns candidates.
//!
//! The space (all longitudes and latitudes, or the policy's bounding box) is divided into 4 × 4 squares, each of
//! these again, twelve times. A shape is stored in at most eight cells of the finest level at which eight are enough.
//! A search for a region reads the cells that cover it, all cells below them, and the larger cells around them, where
//! large shapes are stored.
//!
//! ```text
//! bytes of a cell       digit 10…1f, one per level │ end 00
//!   the whole space                                  00
//!   a sixteenth of a sixteenth    13 │ 1e          │ 00      column 3 row 0, in it column 2 row 3
//!   outside the bounding box      20               │ 00
//!
//! order    00 < 13 00 < 13 1e 00 < 13 1e 11 00 < 13 1f 00 < 14 00 < 20 00
//!               └── all below 13 begin with 13 ──────┘
//! ```
//!
//! The end byte makes a cell's bytes prefix-free, so that other fields may follow in an index key.

mod grid; // coordinates to columns and rows

use pleiad_model::policy::{BoundingBox, Geospatial};

use crate::globe::bounding_boxes;
use crate::plane::extents;
use crate::{Geometry, Surface};
use grid::{CellBlock, Grid};

pub const LEVELS: usize = 12;
pub const COVER_CELLS_MAX: usize = 8;
/// More and smaller cells than a stored shape has: they are read once, not stored with every item.
const SEARCH_CELLS_MAX: usize = 32;

const END: u8 = 0x00;
const DIGIT: u8 = 0x10;
const PAST_DIGITS: u8 = 0x20;

/// The space that an index divides into cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Space {
    Globe,
    Plane { x: (f64, f64), y: (f64, f64) },
}

/// One square of the grid; ordered like its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// One digit per level, 0x10…0x1f, or 0x20 alone.
    digits: Vec<u8>,
}

/// Half-open: `from` is included, `to` is not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellRange {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

impl Space {
    /// In a plane without a bounding box every shape is outside, and is a candidate of every search.
    pub fn new(geospatial: Geospatial, bounds: Option<BoundingBox>) -> Space {
        match (geospatial, bounds) {
            (Geospatial::Geography, _) => Space::Globe,
            (Geospatial::Geometry, None) => Space::Plane { x: (0.0, 0.0), y: (0.0, 0.0) },
            (Geospatial::Geometry, Some(b)) => {
                Space::Plane { x: (b.xmin.as_f64(), b.xmax.as_f64()), y: (b.ymin.as_f64(), b.ymax.as_f64()) }
            }
        }
    }
}

impl Cell {
    /// For shapes that do not fit into the space; every search reads this cell, too.
    pub fn outside() -> Cell {
        Cell { digits: vec![PAST_DIGITS] }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.digits.iter().copied().chain([END]).collect()
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Cell> {
        let (&end, digits) = bytes.split_last()?;
        let inside = digits.len() <= LEVELS && digits.iter().all(|digit| (DIGIT..PAST_DIGITS).contains(digit));
        (end == END && (inside || digits == [PAST_DIGITS])).then(|| Cell { digits: digits.to_vec() })
    }

    /// The cell and all cells below it.
    fn subtree_range(&self) -> CellRange {
        match self.digits.split_last() {
            None => CellRange { from: vec![END], to: vec![PAST_DIGITS] },
            Some((last, parents)) => CellRange { from: self.digits.clone(), to: [parents, &[last + 1]].concat() },
        }
    }

    /// The cell without the cells below it.
    fn exact_range(&self) -> CellRange {
        CellRange { from: self.to_bytes(), to: [&self.digits[..], &[END + 1]].concat() }
    }

    /// The larger cells around it, the whole space last.
    fn ancestors(&self) -> impl Iterator<Item = Cell> {
        (0..self.digits.len()).rev().map(|length| Cell { digits: self.digits[..length].to_vec() })
    }
}

impl CellRange {
    pub fn contains(&self, cell: &Cell) -> bool {
        let bytes = cell.to_bytes();
        self.from <= bytes && bytes < self.to
    }
}

/// The cells under which an index stores the shape, sorted: at least one, at most `COVER_CELLS_MAX`.
pub fn cover(shape: &Geometry, space: &Space) -> Vec<Cell> {
    match blocks(shape, 0.0, space) {
        CellBlocks { is_complete: true, blocks } if !blocks.is_empty() => coarsen(&blocks, COVER_CELLS_MAX),
        _ => vec![Cell::outside()],
    }
}

/// The ranges in which an index stores shapes that may be within `reach` (metres or units) of the region, sorted and
/// disjoint. A reach of 0 is for shapes that intersect the region.
pub fn search_ranges(region: &Geometry, reach: f64, space: &Space) -> Vec<CellRange> {
    let cells = coarsen(&blocks(region, reach.max(0.0), space).blocks, SEARCH_CELLS_MAX);
    let ancestors = cells.iter().flat_map(Cell::ancestors).map(|cell| cell.exact_range());
    let subtrees = cells.iter().map(Cell::subtree_range).chain([Cell::outside().subtree_range()]);
    merge_ranges(ancestors.chain(subtrees).collect())
}

struct CellBlocks {
    blocks: Vec<CellBlock>,
    /// Whether the blocks contain all of the shape.
    is_complete: bool,
}

fn blocks(shape: &Geometry, reach: f64, space: &Space) -> CellBlocks {
    match (&shape.surface, space) {
        (Surface::Globe(figure), Space::Globe) => {
            let boxes = bounding_boxes(figure, reach);
            CellBlocks {
                blocks: boxes.iter().flat_map(|area| Grid::GLOBE.blocks_of_lon_lat_box(area)).collect(),
                is_complete: true,
            }
        }
        (Surface::Plane(figure), Space::Plane { x, y }) => {
            let grid = Grid { x: *x, y: *y };
            let boxes = extents(figure);
            let is_complete = boxes.iter().all(|area| grid.contains(area));
            let wide = boxes.iter().map(|area| area.widened(reach));
            CellBlocks { blocks: wide.filter_map(|area| grid.block_of_extent(&area)).collect(), is_complete }
        }
        _ => CellBlocks { blocks: Vec::new(), is_complete: false },
    }
}

/// At most `cells_max` cells that contain all blocks.
fn coarsen(blocks: &[CellBlock], cells_max: usize) -> Vec<Cell> {
    let mut cells = outermost(blocks.iter().flat_map(|block| block.cells(cells_max)).collect());
    while cells.len() > cells_max {
        let deepest = cells.iter().map(|cell| cell.digits.len()).max().unwrap_or(0);
        for cell in cells.iter_mut().filter(|cell| cell.digits.len() == deepest) {
            cell.digits.pop();
        }
        cells = outermost(cells);
    }
    cells
}

/// Sorted, without cells that are below another one.
fn outermost(mut cells: Vec<Cell>) -> Vec<Cell> {
    cells.sort();
    cells.dedup_by(|next, kept| next.digits.starts_with(&kept.digits));
    cells
}

fn merge_ranges(mut ranges: Vec<CellRange>) -> Vec<CellRange> {
    ranges.sort();
    ranges.dedup_by(|next, kept| {
        let touches = next.from <= kept.to;
        if touches && next.to > kept.to {
            kept.to = std::mem::take(&mut next.to);
        }
        touches
    });
    ranges
}

#[cfg(test)]
mod tests;
