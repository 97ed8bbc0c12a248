//! Proves: searches find nearly all nearest neighbors and never a removed item, and an index survives being restored
//! from rows and rebuilt without removed nodes.

use std::collections::HashSet;

use super::*;
use crate::distance;
use DistanceFunction::{Cosine, DotProduct, Euclidean};

/// Points in clusters: a centre each, and noise around it. The same seed generates the same points.
pub struct Points {
    state: u64,
    centres: Vec<Vec<f32>>,
}

impl Points {
    pub fn new(seed: u64, clusters: usize, dimensions: usize) -> Points {
        let mut points = Points { state: seed | 1, centres: Vec::new() };
        points.centres = (0..clusters).map(|_| (0..dimensions).map(|_| points.normal()).collect()).collect();
        points
    }

    fn uniform(&mut self) -> f32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 40) as f32 / (1u64 << 24) as f32
    }

    fn normal(&mut self) -> f32 {
        (0..6).map(|_| self.uniform()).sum::<f32>() * 1.414 - 4.243
    }

    pub fn point(&mut self) -> Vec<f32> {
        let centre = (self.uniform() * self.centres.len() as f32) as usize % self.centres.len();
        let centre = self.centres[centre].clone();
        centre.into_iter().map(|element| element + 0.6 * self.normal()).collect()
    }
}

fn nearest(points: &[(u64, Vec<f32>)], to: &[f32], function: DistanceFunction, count: usize) -> HashSet<u64> {
    let mut all: Vec<(f64, u64)> =
        points.iter().filter_map(|(docnum, point)| Some((distance::distance(function, point, to)?, *docnum))).collect();
    all.sort_by(|a, b| distance::compare_nearness(function, a.0, b.0));
    all.into_iter().take(count).map(|(_, docnum)| docnum).collect()
}

fn recall(index: &AnnIndex, points: &[(u64, Vec<f32>)], source: &mut Points, function: DistanceFunction) -> f64 {
    let (mut found, queries) = (0, 50);
    for _ in 0..queries {
        let to = source.point();
        let want = nearest(points, &to, function, 10);
        let got = index.search(&to, 100);
        assert!(got.iter().all(|docnum| points.iter().any(|(known, _)| known == docnum)));
        assert_eq!(got.iter().collect::<HashSet<_>>().len(), got.len(), "an item is returned twice");
        found += got.iter().filter(|docnum| want.contains(docnum)).count();
    }
    found as f64 / (queries * 10) as f64
}

fn built(list: Option<usize>, function: DistanceFunction, points: &[(u64, Vec<f32>)]) -> AnnIndex {
    let mut index = AnnIndex::new(AnnConfig { dimensions: points[0].1.len(), function, search_list_size: list });
    points.iter().for_each(|(docnum, point)| index.put(*docnum, point));
    index
}

fn points(source: &mut Points, count: u64) -> Vec<(u64, Vec<f32>)> {
    (1..=count).map(|docnum| (docnum, source.point())).collect()
}

#[test]
fn searches_find_nearly_all_nearest_neighbors() {
    for function in [Cosine, DotProduct, Euclidean] {
        for list in [None, Some(100)] {
            let mut source = Points::new(7, 40, 48);
            let points = points(&mut source, 3_000);
            let index = built(list, function, &points);
            let recall = recall(&index, &points, &mut source, function);
            assert!(recall > 0.97, "{function:?} {list:?}: {recall}");
        }
    }
}

#[test]
fn removed_and_replaced_vectors_are_not_found() {
    let mut source = Points::new(11, 20, 32);
    let mut points = points(&mut source, 2_500);
    let mut index = built(Some(100), Euclidean, &points);
    let removed: Vec<u64> = points.iter().map(|(docnum, _)| *docnum).filter(|docnum| docnum % 3 == 0).collect();
    removed.iter().for_each(|docnum| index.remove(*docnum));
    points.retain(|(docnum, _)| docnum % 3 != 0);
    for (docnum, point) in points.iter_mut().filter(|(docnum, _)| docnum % 7 == 0) {
        *point = source.point();
        index.put(*docnum, point);
    }
    assert!(index.len() == points.len() && index.needs_rebuild());
    assert!(recall(&index, &points, &mut source, Euclidean) > 0.95);
    let rebuilt = index.rebuilt();
    assert!(rebuilt.len() == points.len() && !rebuilt.needs_rebuild());
    let recall = recall(&rebuilt, &points, &mut source, Euclidean);
    assert!(recall > 0.97, "{recall}");
}

#[test]
fn a_graph_is_restored_from_rows() {
    let mut source = Points::new(3, 20, 32);
    let mut points = points(&mut source, 2_000);
    let mut index = built(Some(100), Cosine, &points);
    let mut rows: HashMap<u64, Vec<u64>> = HashMap::new();
    let write = |index: &mut AnnIndex, rows: &mut HashMap<u64, Vec<u64>>| {
        for (docnum, neighbors) in index.take_changed() {
            match neighbors {
                Some(neighbors) => rows.insert(docnum, neighbors),
                None => rows.remove(&docnum),
            };
        }
    };
    write(&mut index, &mut rows);
    assert_eq!(rows.len(), 2_000);
    index.remove(5);
    points.retain(|(docnum, _)| *docnum != 5);
    write(&mut index, &mut rows);
    assert!(index.changed_count() == 0 && !rows.contains_key(&5));

    let mut restored = AnnIndex::new(AnnConfig { dimensions: 32, function: Cosine, search_list_size: Some(100) });
    points.iter().for_each(|(docnum, point)| restored.restore(*docnum, point));
    restored.restore(9_999, &points[0].1);
    rows.iter().for_each(|(docnum, neighbors)| restored.restore_neighbors(*docnum, neighbors.iter().copied()));
    restored.finish_restore();
    assert_eq!(restored.unlinked(), [9_999]);
    restored.remove(9_999);
    assert!(recall(&restored, &points, &mut source, Cosine) > 0.97);

    // Lists that are newer than the others refer to items without a list.
    let mut partly_restored =
        AnnIndex::new(AnnConfig { dimensions: 32, function: Cosine, search_list_size: Some(100) });
    points.iter().for_each(|(docnum, point)| partly_restored.restore(*docnum, point));
    let even_rows = rows.iter().filter(|(docnum, _)| *docnum % 2 == 0);
    even_rows.for_each(|(docnum, neighbors)| partly_restored.restore_neighbors(*docnum, neighbors.iter().copied()));
    partly_restored.finish_restore();
    let unlinked = partly_restored.unlinked();
    assert!(unlinked.len() >= points.len() / 2);
    unlinked.into_iter().for_each(|docnum| partly_restored.reinsert(docnum));
    assert!(partly_restored.unlinked().is_empty() && partly_restored.len() == points.len());
    assert!(recall(&partly_restored, &points, &mut source, Cosine) > 0.97);
}

/// The neighbors of a node in a large cluster are all inside it, so no edge leads in from outside.
#[test]
fn every_node_is_near_an_entry_even_in_isolated_clusters() {
    let mut source = Points::new(11, 40, 64);
    let points = points(&mut source, 40 * 60);
    let mut index = built(Some(100), Cosine, &points);
    let mut restored = AnnIndex::new(AnnConfig { dimensions: 64, function: Cosine, search_list_size: Some(100) });
    points.iter().for_each(|(docnum, point)| restored.restore(*docnum, point));
    for (docnum, neighbors) in index.take_changed() {
        restored.restore_neighbors(docnum, neighbors.into_iter().flatten());
    }
    restored.finish_restore();
    for index in [&index, &restored] {
        assert!(recall(index, &points, &mut source, Cosine) > 0.97);
    }
    let slots = 0..u32::try_from(points.len()).unwrap();
    assert!(slots.clone().all(|at| restored.graph.is_covered(at)));
    assert!(slots.filter(|at| restored.graph.is_entry(*at)).count() < points.len() / 8, "few nodes are entry points");
}

#[test]
fn small_indexes_return_every_item() {
    let mut index = AnnIndex::new(AnnConfig { dimensions: 2, function: Euclidean, search_list_size: Some(50) });
    assert!(index.search(&[1.0, 1.0], 10).is_empty());
    index.put(4, &[1.0, 1.0]);
    index.put(4, &[2.0, 2.0]);
    index.put(5, &[0.0, 0.0]);
    assert_eq!(index.search(&[0.5, 0.0], 10), [5, 4]);
    index.remove(5);
    index.remove(5);
    assert_eq!(index.search(&[0.5, 0.0], 10), [4]);
    assert!(index.len() == 1 && !index.is_empty() && index.contains(4) && index.bytes() > 0);
}
