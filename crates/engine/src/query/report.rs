//! Query metrics: what a page read and by which access paths; which indexes serve the query, and which would help.

use std::collections::BTreeMap;
use std::time::Duration;

use pleiad_model::policy::{COMPOSITE_PATHS_PER_INDEX_MAX, PathStep, VectorIndexType, is_made_when_read};
use pleiad_partition::index::UsableIndex;
use pleiad_sql::index_predicate::{
    IndexPredicate, OrderPath, PathPredicate, TextScoreOrder, ValuePredicate, VectorOrder, path_text,
};
use pleiad_sql::run::RowSet;

use super::composite_seek::seeks;
use super::index_spec::{IndexSpec, named};
use super::planner::{AccessPath, OrderStrategy};

/// How many predicates of a filter are reported.
const LOOKUPS_TOLD: usize = 32;

/// What a scan read and how long it took: the basis of the charge, and diagnostics on request.
#[derive(Debug, Default)]
pub struct ScanStats {
    pub slices: usize,
    pub items: u64,
    /// The items that passed the filter.
    pub items_kept: u64,
    pub item_bytes: u64,
    pub index_rows: u64,
    /// Parsing and compiling the text.
    pub compiling: Duration,
    /// Planning with its index lookups, summed over all threads.
    pub looking_up: Duration,
    /// Loading items, and evaluating rows from them, if timings were requested; summed over all threads.
    pub loading: Duration,
    pub evaluating: Duration,
    /// By partition, if index metrics were requested.
    pub ways: BTreeMap<u32, ExecutedPath>,
}

/// The access path that was executed in a partition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutedPath {
    pub way: String,
    /// The indexes that it used.
    pub parts: Vec<IndexSpec>,
}

impl ScanStats {
    pub fn add(&mut self, other: ScanStats) {
        self.slices += other.slices;
        self.items += other.items;
        self.items_kept += other.items_kept;
        self.item_bytes += other.item_bytes;
        self.index_rows += other.index_rows;
        self.compiling += other.compiling;
        self.looking_up += other.looking_up;
        self.loading += other.loading;
        self.evaluating += other.evaluating;
        self.ways.extend(other.ways);
    }

    pub fn chose(&mut self, choice: &AccessPath) {
        self.slices += 1;
        self.index_rows += rows_of(choice);
    }

    /// Adds an access path that finds items; the first one still decides which of them match.
    pub fn chose_as_well(&mut self, choice: &AccessPath) {
        self.index_rows += rows_of(choice);
    }

    /// Records the access path of a partition; it replaces an earlier attempt.
    pub fn went(&mut self, range: u32, choice: &AccessPath) {
        self.ways.insert(range, ExecutedPath { way: way_of(choice), parts: parts_of(choice) });
    }

    pub fn went_as_well(&mut self, range: u32, choice: &AccessPath) {
        self.ways.entry(range).or_default().way = way_of(choice);
        self.used(range, parts_of(choice));
    }

    pub fn used(&mut self, range: u32, parts: Vec<IndexSpec>) {
        self.ways.entry(range).or_default().parts.extend(parts);
    }

    /// The indexes that any partition used, without duplicates.
    pub fn parts(&self) -> Vec<&IndexSpec> {
        let mut parts = Vec::new();
        for part in self.ways.values().flat_map(|gone| &gone.parts) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts
    }
}

fn rows_of(choice: &AccessPath) -> u64 {
    match choice {
        AccessPath::IndexLookup(found) => found.docnums.len() as u64,
        _ => 0,
    }
}

fn way_of(choice: &AccessPath) -> String {
    match choice {
        AccessPath::FullScan => "scan".to_owned(),
        AccessPath::LogicalPartition(_) => "items of one partition key".to_owned(),
        AccessPath::KeyRange(_) => "items of a range of partition keys".to_owned(),
        AccessPath::IndexLookup(found) if found.parts.is_empty() => "nothing".to_owned(),
        AccessPath::IndexLookup(found) => named(&found.parts),
        AccessPath::OrderedScan(walk) if walk.backward => format!("{} backwards", walk.part),
        AccessPath::OrderedScan(walk) => format!("{} in order", walk.part),
        AccessPath::VectorScan(nearby) => {
            let how = match (nearby.list, nearby.rule.index) {
                (None, _) => "every vector",
                (Some(_), VectorIndexType::DiskAnn) => "graph",
                (Some(_), _) => "codes",
            };
            format!("{}, {how}", IndexSpec::Vector(nearby.rule.steps.clone()))
        }
        AccessPath::ItemCount(_) => "count of items".to_owned(),
        AccessPath::TextCounts(_) => "full-text statistics".to_owned(),
    }
}

fn parts_of(choice: &AccessPath) -> Vec<IndexSpec> {
    match choice {
        AccessPath::IndexLookup(found) => found.parts.clone(),
        AccessPath::OrderedScan(walk) => vec![walk.part.clone()],
        AccessPath::VectorScan(nearby) => vec![IndexSpec::Vector(nearby.rule.steps.clone())],
        _ => Vec::new(),
    }
}

/// What clients can request about a page.
#[derive(Clone, Debug, Default)]
pub struct QueryReport {
    pub items: u64,
    /// The items that passed the filter.
    pub items_kept: u64,
    pub item_bytes: u64,
    pub rows: u64,
    pub row_bytes: u64,
    pub index_rows: u64,
    pub compiling: Duration,
    pub looking_up: Duration,
    /// Zero, like `calling`, unless timings were requested.
    pub loading: Duration,
    /// Time in user-defined functions.
    pub calling: Duration,
    /// Access paths, each with the number of partitions that executed it.
    pub ways: Vec<(String, usize)>,
    pub single: Vec<IndexMetric>,
    pub composite: Vec<IndexMetric>,
    /// Rules of `pleiad_sql::advice` that apply.
    pub advice: Vec<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexMetric {
    /// `/a/?`, or `/a ASC`, `/b DESC`.
    pub specs: Vec<String>,
    /// The index exists and serves the query; otherwise it would help.
    pub utilized: bool,
    /// It finds exactly the items that match the filter.
    pub precise: bool,
    pub impact_is_high: bool,
}

impl QueryReport {
    /// The same work, for a query that returns other rows from it.
    pub fn giving(self, rows: &RowSet) -> Self {
        QueryReport { rows: rows.len() as u64, row_bytes: rows.bytes() as u64, ..self }
    }

    /// The sum of both, for a page that took several queries.
    pub fn and(mut self, other: QueryReport) -> Self {
        self.items += other.items;
        self.items_kept += other.items_kept;
        self.item_bytes += other.item_bytes;
        self.index_rows += other.index_rows;
        self.compiling += other.compiling;
        self.looking_up += other.looking_up;
        self.loading += other.loading;
        self.calling = self.calling.max(other.calling); // each is the total of the page so far
        for (way, partitions) in other.ways {
            match self.ways.iter_mut().find(|(known, _)| *known == way) {
                Some((_, known)) => *known = partitions.max(*known),
                None => self.ways.push((way, partitions)),
            }
        }
        other.single.into_iter().for_each(|seen| note(&mut self.single, seen));
        other.composite.into_iter().for_each(|seen| note(&mut self.composite, seen));
        self
    }

    pub fn new(work: &ScanStats, rows: &RowSet) -> Self {
        let mut ways: Vec<(String, usize)> = Vec::new();
        for ExecutedPath { way, .. } in work.ways.values() {
            match ways.iter_mut().find(|(known, _)| known == way) {
                Some((_, partitions)) => *partitions += 1,
                None => ways.push((way.clone(), 1)),
            }
        }
        QueryReport {
            items: work.items,
            items_kept: work.items_kept,
            item_bytes: work.item_bytes,
            rows: rows.len() as u64,
            row_bytes: rows.bytes() as u64,
            index_rows: work.index_rows,
            compiling: work.compiling,
            looking_up: work.looking_up,
            loading: work.loading,
            calling: Duration::ZERO,
            ways,
            single: Vec::new(),
            composite: Vec::new(),
            advice: Vec::new(),
        }
    }

    /// Which indexes serve the query under the policy, in the order in which it mentions their paths, and which ones
    /// would help. As in the service, this depends on the query alone; whether a page used them, or a scan of few items
    /// was cheaper, is in `access_paths`.
    pub fn with_indexes(mut self, work: &ScanStats, asked: &IndexNeeds<'_, '_>, index: UsableIndex<'_>) -> Self {
        let composite = asked.composite(index);
        let mut lookups = Vec::new();
        asked.condition.iter().for_each(|condition| gather(condition, &mut lookups));
        // The report has to fit into a header.
        lookups.truncate(LOOKUPS_TOLD);
        for lookup in &lookups {
            match &composite {
                Some(part) if part.speaks_of(&lookup.path) => self.note(part.clone(), true, true),
                _ => {
                    let part = IndexSpec::Path(lookup.path.clone());
                    self.note(part, index.indexes(&lookup.path), is_precise(lookup));
                }
            }
        }
        self = self.with_order(asked, index).with_places(asked, index).with_suggestion(asked, composite.is_some());
        work.parts().into_iter().for_each(|part| self.note(part.clone(), true, true));
        self
    }

    /// Adds the index that has the order of `ORDER BY`, or that would have it.
    fn with_order(mut self, asked: &IndexNeeds<'_, '_>, index: UsableIndex<'_>) -> Self {
        match (asked.ordering, asked.order) {
            (OrderStrategy::Path { path, .. }, _) => self.note(IndexSpec::Path(path.path.clone()), true, true),
            (OrderStrategy::Composite { index, .. }, _) => self.note(IndexSpec::Composite(index.clone()), true, true),
            (OrderStrategy::None, _) | (OrderStrategy::Sort, []) => {}
            (OrderStrategy::Sort, [only]) if only.path.is_empty() || index.indexes(&only.path) => {}
            (OrderStrategy::Sort, [only]) => self.note(IndexSpec::Path(only.path.clone()), false, true),
            (OrderStrategy::Sort, order) => note(&mut self.composite, composite(order)),
        }
        self
    }

    /// Adds spatial, full-text and vector indexes.
    fn with_places(mut self, asked: &IndexNeeds<'_, '_>, index: UsableIndex<'_>) -> Self {
        let mut places = Vec::new();
        asked.condition.iter().for_each(|condition| gather_places(condition, &mut places));
        asked.relevant.iter().for_each(|relevant| gather_places(&relevant.condition, &mut places));
        places.extend(asked.nearest.map(|nearest| IndexSpec::Vector(nearest.path.clone())));
        for part in places {
            let is_there = match &part {
                IndexSpec::Spatial(path) => index.spatial(path).is_some(),
                IndexSpec::FullText(path) => index.full_text(path).is_some(),
                IndexSpec::Vector(path) => {
                    index.vector(path).zip(asked.nearest).is_some_and(|(rule, nearest)| rule.fits(&nearest.measure))
                }
                IndexSpec::Path(_) | IndexSpec::Composite(_) => true,
            };
            self.note(part, is_there, true);
        }
        self
    }

    /// Suggests a composite index for a conjunction on several paths, the last of which is a range: it is one range of
    /// that index.
    fn with_suggestion(mut self, asked: &IndexNeeds<'_, '_>, has_it: bool) -> Self {
        let Some(IndexPredicate::And(all)) = asked.condition else { return self };
        let wanted = suggestion(all);
        if !wanted.is_empty() && !has_it && self.composite.is_empty() {
            let specs = wanted.iter().map(|path| format!("{} ASC", path_text(path))).collect();
            self.composite.push(IndexMetric { specs, utilized: false, precise: true, impact_is_high: true });
        }
        self
    }

    /// Partition keys route a request; the service counts that as an index on their paths.
    pub fn with_keys<'k>(mut self, paths: impl Iterator<Item = &'k str>) -> Self {
        for path in paths {
            let specs = vec![format!("{path}/?")];
            note(&mut self.single, IndexMetric { specs, utilized: true, precise: true, impact_is_high: true });
        }
        self
    }

    fn note(&mut self, part: IndexSpec, utilized: bool, precise: bool) {
        let list = if matches!(part, IndexSpec::Composite(_)) { &mut self.composite } else { &mut self.single };
        note(list, IndexMetric { specs: part.specs(), utilized, precise, impact_is_high: precise });
    }
}

/// What a query needs from the indexes.
#[derive(Clone, Copy)]
pub struct IndexNeeds<'a, 'b> {
    pub condition: Option<&'a IndexPredicate<'b>>,
    pub order: &'a [OrderPath],
    pub ordering: &'a OrderStrategy,
    pub nearest: Option<&'a VectorOrder<'b>>,
    pub relevant: Option<&'a TextScoreOrder<'b>>,
}

impl IndexNeeds<'_, '_> {
    /// The composite index that covers most predicates of the filter.
    fn composite(&self, index: UsableIndex<'_>) -> Option<IndexSpec> {
        let Some(IndexPredicate::And(all)) = self.condition else { return None };
        let seek = seeks(all, index).into_iter().max_by_key(|seek| seek.answers.len())?;
        Some(IndexSpec::Composite(seek.index.clone()))
    }
}

/// An index that is utilized anywhere counts as utilized.
fn note(list: &mut Vec<IndexMetric>, seen: IndexMetric) {
    match list.iter_mut().find(|known| known.specs == seen.specs) {
        Some(known) => known.utilized |= seen.utilized,
        None => list.push(seen),
    }
}

fn gather<'c, 'b>(condition: &'c IndexPredicate<'b>, found: &mut Vec<&'c PathPredicate<'b>>) {
    match condition {
        IndexPredicate::Path(lookup) => found.push(lookup),
        IndexPredicate::And(all) | IndexPredicate::Or(all) => all.iter().for_each(|condition| gather(condition, found)),
        IndexPredicate::Never | IndexPredicate::Spatial(_) | IndexPredicate::Term(_) => {}
    }
}

/// The full-text and spatial indexes that the predicate searches.
fn gather_places(condition: &IndexPredicate<'_>, found: &mut Vec<IndexSpec>) {
    match condition {
        IndexPredicate::Term(word) => found.push(IndexSpec::FullText(word.path.clone())),
        IndexPredicate::Spatial(near) => found.push(IndexSpec::Spatial(near.path.clone())),
        IndexPredicate::And(all) | IndexPredicate::Or(all) => {
            all.iter().for_each(|condition| gather_places(condition, found))
        }
        IndexPredicate::Never | IndexPredicate::Path(_) => {}
    }
}

/// Paths with an equality, then one with a range. Without a range the single-path indexes are as good.
fn suggestion<'c>(all: &'c [IndexPredicate<'_>]) -> Vec<&'c [PathStep]> {
    let (mut equal, mut ranges): (Vec<&[PathStep]>, Vec<&[PathStep]>) = Default::default();
    for condition in all {
        let IndexPredicate::Path(PathPredicate { path, what }) = condition else { continue };
        match what {
            _ if path.contains(&PathStep::Element) || is_made_when_read(path) => {}
            ValuePredicate::Equal(_) if !equal.contains(&path.as_slice()) => equal.push(path),
            ValuePredicate::Range(..) if !ranges.contains(&path.as_slice()) => ranges.push(path),
            _ => {}
        }
    }
    match ranges.into_iter().find(|path| !equal.contains(path)) {
        // Two ranges are not one range of a composite index.
        Some(range) if !equal.is_empty() => {
            equal.truncate(COMPOSITE_PATHS_PER_INDEX_MAX - 1);
            equal.into_iter().chain([range]).collect()
        }
        _ => Vec::new(),
    }
}

fn is_precise(lookup: &PathPredicate<'_>) -> bool {
    matches!(lookup.what, ValuePredicate::Equal(_) | ValuePredicate::Range(..) | ValuePredicate::Prefix(_))
}

fn composite(order: &[OrderPath]) -> IndexMetric {
    let spec = |key: &OrderPath| format!("{} {}", path_text(&key.path), if key.descending { "DESC" } else { "ASC" });
    IndexMetric { specs: order.iter().map(spec).collect(), utilized: false, precise: true, impact_is_high: true }
}
