//! Spatial terms: the grid cells that cover an item's geometry.
//!
//! Invariant: every valid geometry at a path that the index covers has rows, whatever its type and also outside the
//! bounding box; so a search that reads all cells of its region misses none. A value that is no valid geometry
//! satisfies no spatial predicate and has no rows.
//!
//! `/loc/?` covers the value at loc, `/loc/*` also the values below it, each under its own path.

use pleiad_model::Value;
use pleiad_model::policy::{End, Geospatial, PathStep, SpatialIndex};
use pleiad_spatial::Geometry;
use pleiad_spatial::cells::{self, Space};

use super::IndexTerm;
use super::path::PathHash;

/// One spatial index of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct SpatialRule {
    steps: Vec<PathStep>,
    covers_subtree: bool,
    geospatial: Geospatial,
    space: Space,
}

impl SpatialRule {
    pub fn new(index: &SpatialIndex, geospatial: Geospatial) -> SpatialRule {
        let (steps, covers_subtree) = (index.path.steps.clone(), index.path.end == End::Subtree);
        SpatialRule { steps, covers_subtree, geospatial, space: Space::new(geospatial, index.bounding_box) }
    }

    pub fn covers(&self, steps: &[PathStep]) -> bool {
        if self.covers_subtree { steps.starts_with(&self.steps) } else { steps == self.steps }
    }

    pub fn space(&self) -> Space {
        self.space
    }

    pub fn collect(&self, item: &Value, found: &mut Vec<IndexTerm>) {
        self.traverse(item, &self.steps, PathHash::spatial_root(), found);
    }

    fn traverse(&self, value: &Value, steps: &[PathStep], path: PathHash, found: &mut Vec<IndexTerm>) {
        match (steps, value) {
            ([], _) => self.visit(value, path, found),
            ([PathStep::Property(name), rest @ ..], _) => {
                if let Some(child) = value.get(name) {
                    self.traverse(child, rest, path.property(name), found);
                }
            }
            ([PathStep::Element, rest @ ..], Value::Array(items)) => {
                items.iter().for_each(|child| self.traverse(child, rest, path.element(), found));
            }
            ([PathStep::Element, ..], _) => {}
        }
    }

    fn visit(&self, value: &Value, path: PathHash, found: &mut Vec<IndexTerm>) {
        if let Ok(shape) = Geometry::parse(value, self.geospatial) {
            let cells = cells::cover(&shape, &self.space);
            found.extend(cells.iter().map(|cell| IndexTerm::index(path.finish(), cell.to_bytes())));
        }
        // A geometry object may have other members that contain geometry.
        if self.covers_subtree {
            self.visit_children(value, path, found);
        }
    }

    fn visit_children(&self, value: &Value, path: PathHash, found: &mut Vec<IndexTerm>) {
        match value {
            Value::Object(object) => {
                object.iter().for_each(|(name, child)| self.visit(child, path.property(name), found));
            }
            Value::Array(items) => items.iter().for_each(|child| self.visit(child, path.element(), found)),
            _ => {}
        }
    }
}
