//! The grid: coordinates to columns and rows of the finest squares, and blocks of these to cells.
//!
//! Invariant: a larger coordinate never has a smaller column, so the blocks of overlapping boxes overlap. Rounding
//! may move the border between two squares, but equally for all shapes.

use super::{Cell, DIGIT, LEVELS};
use crate::globe::LonLatBox;
use crate::plane::Extent;

const SQUARES_PER_SIDE: u32 = 1 << (2 * LEVELS);

pub struct Grid {
    pub x: (f64, f64),
    pub y: (f64, f64),
}

/// A rectangle of finest squares: first and last column and row, both included.
#[derive(Clone, Copy, Debug)]
pub struct CellBlock {
    columns: (u32, u32),
    rows: (u32, u32),
}

impl Grid {
    pub const GLOBE: Grid = Grid { x: (-180.0, 180.0), y: (-90.0, 90.0) };

    /// Two blocks if the box crosses the antimeridian.
    pub fn blocks_of_lon_lat_box(&self, area: &LonLatBox) -> Vec<CellBlock> {
        let (west, east) = (area.west, area.east);
        let shift = if west < -180.0 { 360.0 } else { 0.0 };
        let shift = if west >= 180.0 { -360.0 } else { shift };
        let (west, east) = (west + shift, east + shift);
        let rows = (area.south, area.north);
        match east > 180.0 {
            true => vec![self.block((west, 180.0), rows), self.block((-180.0, east - 360.0), rows)],
            false => vec![self.block((west, east), rows)],
        }
    }

    /// `None` if the box lies outside the space, with a margin: a shape stored at the border could still touch a box
    /// close to it.
    pub fn block_of_extent(&self, area: &Extent) -> Option<CellBlock> {
        let overlaps = |side: (f64, f64), space: (f64, f64)| {
            let margin = 1e-9 * (space.1.abs().max(space.0.abs()));
            side.0 <= space.1 + margin && side.1 >= space.0 - margin
        };
        (overlaps(area.x, self.x) && overlaps(area.y, self.y)).then(|| self.block(area.x, area.y))
    }

    pub fn contains(&self, area: &Extent) -> bool {
        let inside = |side: (f64, f64), space: (f64, f64)| side.0 >= space.0 && side.1 <= space.1;
        inside(area.x, self.x) && inside(area.y, self.y)
    }

    fn block(&self, x: (f64, f64), y: (f64, f64)) -> CellBlock {
        CellBlock {
            columns: (square_index(x.0, self.x), square_index(x.1, self.x)),
            rows: (square_index(y.0, self.y), square_index(y.1, self.y)),
        }
    }
}

/// A coordinate outside the space maps to the first or the last square.
fn square_index(at: f64, side: (f64, f64)) -> u32 {
    let part = (at - side.0) / (side.1 - side.0) * f64::from(SQUARES_PER_SIDE);
    (part as u32).min(SQUARES_PER_SIDE - 1) // the cast saturates
}

impl CellBlock {
    /// The cells of the finest level at which at most `cells_max` contain the block.
    pub fn cells(&self, cells_max: usize) -> Vec<Cell> {
        let level = (0..=LEVELS).rev().find(|&level| self.at_level(level).count() <= cells_max as u64).unwrap_or(0);
        let block = self.at_level(level);
        let rows = block.rows.0..=block.rows.1;
        rows.flat_map(|row| (block.columns.0..=block.columns.1).map(move |column| cell(level, column, row))).collect()
    }

    /// The block in squares of that level.
    fn at_level(&self, level: usize) -> CellBlock {
        let up = 2 * (LEVELS - level);
        let coarse = |(first, last): (u32, u32)| (first >> up, last >> up);
        CellBlock { columns: coarse(self.columns), rows: coarse(self.rows) }
    }

    fn count(&self) -> u64 {
        let number = |(first, last): (u32, u32)| u64::from(last.saturating_sub(first)) + 1;
        number(self.columns) * number(self.rows)
    }
}

/// A digit is two bits of the row and two of the column; the largest squares come first.
fn cell(level: usize, column: u32, row: u32) -> Cell {
    let digit = |up: usize| DIGIT | ((row >> (2 * up) & 3) << 2 | column >> (2 * up) & 3) as u8;
    Cell { digits: (0..level).rev().map(digit).collect() }
}
