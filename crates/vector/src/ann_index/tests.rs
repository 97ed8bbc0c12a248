//! Proves: searches find nearly all nearest neighbours and never a removed item, and an index survives being restored
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
    all.sort_by(|a, b| distance::nearer(function, a.0, b.0));
    all.into_iter().take(count).map(|(_, docnum)| docnum).collect()
}

fn recall(sketch: &AnnIndex, points: &[(u64, Vec<f32>)], source: &mut Points, function: DistanceFunction) -> f64 {
    let (mut found, queries) = (0, 50);
    for _ in 0..queries {
        let to = source.point();
        let want = nearest(points, &to, function, 10);
        let got = sketch.search(&to, 100);
        assert!(got.iter().all(|docnum| points.iter().any(|(known, _)| known == docnum)));
        assert_eq!(got.iter().collect::<HashSet<_>>().len(), got.len(), "an item is returned twice");
        found += got.iter().filter(|docnum| want.contains(docnum)).count();
    }
    found as f64 / (queries * 10) as f64
}

fn built(list: Option<usize>, function: DistanceFunction, points: &[(u64, Vec<f32>)]) -> AnnIndex {
    let mut sketch = AnnIndex::new(AnnConfig { dimensions: points[0].1.len(), function, list });
    points.iter().for_each(|(docnum, point)| sketch.put(*docnum, point));
    sketch
}

fn points(source: &mut Points, count: u64) -> Vec<(u64, Vec<f32>)> {
    (1..=count).map(|docnum| (docnum, source.point())).collect()
}

#[test]
fn nearly_all_of_the_nearest_are_found() {
    for function in [Cosine, DotProduct, Euclidean] {
        for list in [None, Some(100)] {
            let mut source = Points::new(7, 40, 48);
            let points = points(&mut source, 3_000);
            let sketch = built(list, function, &points);
            let recall = recall(&sketch, &points, &mut source, function);
            assert!(recall > 0.97, "{function:?} {list:?}: {recall}");
        }
    }
}

#[test]
fn what_is_removed_or_moved_is_found_no_more_where_it_was() {
    let mut source = Points::new(11, 20, 32);
    let mut points = points(&mut source, 2_500);
    let mut sketch = built(Some(100), Euclidean, &points);
    let gone: Vec<u64> = points.iter().map(|(docnum, _)| *docnum).filter(|docnum| docnum % 3 == 0).collect();
    gone.iter().for_each(|docnum| sketch.remove(*docnum));
    points.retain(|(docnum, _)| docnum % 3 != 0);
    for (docnum, point) in points.iter_mut().filter(|(docnum, _)| docnum % 7 == 0) {
        *point = source.point();
        sketch.put(*docnum, point);
    }
    assert!(sketch.len() == points.len() && sketch.is_worn());
    assert!(recall(&sketch, &points, &mut source, Euclidean) > 0.95);
    let renewed = sketch.renewed();
    assert!(renewed.len() == points.len() && !renewed.is_worn());
    let recall = recall(&renewed, &points, &mut source, Euclidean);
    assert!(recall > 0.97, "{recall}");
}

#[test]
fn rows_make_the_same_graph_again() {
    let mut source = Points::new(3, 20, 32);
    let mut points = points(&mut source, 2_000);
    let mut sketch = built(Some(100), Cosine, &points);
    let mut rows: HashMap<u64, Vec<u64>> = HashMap::new();
    let write = |sketch: &mut AnnIndex, rows: &mut HashMap<u64, Vec<u64>>| {
        for (docnum, neighbours) in sketch.take_changed() {
            match neighbours {
                Some(neighbours) => rows.insert(docnum, neighbours),
                None => rows.remove(&docnum),
            };
        }
    };
    write(&mut sketch, &mut rows);
    assert_eq!(rows.len(), 2_000);
    sketch.remove(5);
    points.retain(|(docnum, _)| *docnum != 5);
    write(&mut sketch, &mut rows);
    assert!(sketch.changed() == 0 && !rows.contains_key(&5));

    let mut again = AnnIndex::new(AnnConfig { dimensions: 32, function: Cosine, list: Some(100) });
    points.iter().for_each(|(docnum, point)| again.restore(*docnum, point));
    again.restore(9_999, &points[0].1);
    rows.iter().for_each(|(docnum, neighbours)| again.relink(*docnum, neighbours.iter().copied()));
    again.restored();
    assert_eq!(again.unlinked(), [9_999]);
    again.remove(9_999);
    assert!(recall(&again, &points, &mut source, Cosine) > 0.97);

    // Lists that are newer than the others refer to items without a list.
    let mut half = AnnIndex::new(AnnConfig { dimensions: 32, function: Cosine, list: Some(100) });
    points.iter().for_each(|(docnum, point)| half.restore(*docnum, point));
    let early = rows.iter().filter(|(docnum, _)| *docnum % 2 == 0);
    early.for_each(|(docnum, neighbours)| half.relink(*docnum, neighbours.iter().copied()));
    half.restored();
    let unlinked = half.unlinked();
    assert!(unlinked.len() >= points.len() / 2);
    unlinked.into_iter().for_each(|docnum| half.link_again(docnum));
    assert!(half.unlinked().is_empty() && half.len() == points.len());
    assert!(recall(&half, &points, &mut source, Cosine) > 0.97);
}

/// The neighbours of a node in a large cluster are all inside it, so no edge leads in from outside.
#[test]
fn walks_begin_near_every_item_also_in_clusters_without_a_way_in() {
    let mut source = Points::new(11, 40, 64);
    let points = points(&mut source, 40 * 60);
    let mut sketch = built(Some(100), Cosine, &points);
    let mut again = AnnIndex::new(AnnConfig { dimensions: 64, function: Cosine, list: Some(100) });
    points.iter().for_each(|(docnum, point)| again.restore(*docnum, point));
    for (docnum, neighbours) in sketch.take_changed() {
        again.relink(docnum, neighbours.into_iter().flatten());
    }
    again.restored();
    for sketch in [&sketch, &again] {
        assert!(recall(sketch, &points, &mut source, Cosine) > 0.97);
    }
    let places = 0..u32::try_from(points.len()).unwrap();
    assert!(places.clone().all(|at| again.graph.is_covered(at)));
    assert!(places.filter(|at| again.graph.is_entry(*at)).count() < points.len() / 8, "few nodes are entries");
}

#[test]
fn small_ones_are_whole() {
    let mut sketch = AnnIndex::new(AnnConfig { dimensions: 2, function: Euclidean, list: Some(50) });
    assert!(sketch.search(&[1.0, 1.0], 10).is_empty());
    sketch.put(4, &[1.0, 1.0]);
    sketch.put(4, &[2.0, 2.0]);
    sketch.put(5, &[0.0, 0.0]);
    assert_eq!(sketch.search(&[0.5, 0.0], 10), [5, 4]);
    sketch.remove(5);
    sketch.remove(5);
    assert_eq!(sketch.search(&[0.5, 0.0], 10), [4]);
    assert!(sketch.len() == 1 && !sketch.is_empty() && sketch.contains(4) && sketch.bytes() > 0);
}
