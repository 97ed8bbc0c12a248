//! Query metrics: what a page read and by which access paths; which indexes serve the query, and which would help.

use std::collections::BTreeMap;
use std::time::Duration;

use pleiad_model::policy::{COMPOSITE_PATHS_PER_INDEX_MAX, PathStep, VectorIndexType, is_generated_on_read};
use pleiad_partition::index::UsableIndex;
use pleiad_sql::advice::Advice;
use pleiad_sql::index_predicate::{
    IndexPredicate, OrderPath, PathPredicate, TextScoreOrder, ValuePredicate, VectorOrder, path_text,
};
use pleiad_sql::run::RowSet;

use super::composite_seek::seeks;
use super::index_spec::{IndexSpec, index_names};
use super::planner::{AccessPath, OrderStrategy};

/// How many predicates of a filter are reported.
const LOOKUPS_REPORTED: usize = 32;

/// What a scan read and how long it took: the basis of the charge, and diagnostics on request.
#[derive(Debug, Default)]
pub struct ScanStats {
    pub slices: usize,
    pub items: u64,
    /// The items that passed the filter.
    pub items_matched: u64,
    pub item_bytes: u64,
    pub index_rows: u64,
    /// Parsing and compiling the text.
    pub compiling: Duration,
    /// Planning with its index lookups, summed over all threads.
    pub looking_up: Duration,
    /// Loading items, and evaluating rows from them, if timings were requested; summed over all threads.
    pub loading: Duration,
    pub evaluating: Duration,
    /// By the ID of the partition key range, if index metrics were requested.
    pub access_paths: BTreeMap<u32, ExecutedPath>,
}

/// The access path that was executed in a partition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutedPath {
    pub description: String,
    /// The indexes that it used.
    pub indexes: Vec<IndexSpec>,
}

impl ScanStats {
    pub fn add(&mut self, other: ScanStats) {
        self.slices += other.slices;
        self.items += other.items;
        self.items_matched += other.items_matched;
        self.item_bytes += other.item_bytes;
        self.index_rows += other.index_rows;
        self.compiling += other.compiling;
        self.looking_up += other.looking_up;
        self.loading += other.loading;
        self.evaluating += other.evaluating;
        self.access_paths.extend(other.access_paths);
    }

    pub fn record_plan(&mut self, choice: &AccessPath) {
        self.slices += 1;
        self.index_rows += rows_of(choice);
    }

    /// Adds a second access path of the same slice, such as the full-text lookup of a ranked query. The slice counts
    /// once.
    pub fn add_plan(&mut self, choice: &AccessPath) {
        self.index_rows += rows_of(choice);
    }

    /// Records the access path of a partition; it replaces an earlier attempt.
    pub fn record_path(&mut self, range: u32, choice: &AccessPath) {
        self.access_paths.insert(range, ExecutedPath { description: describe(choice), indexes: indexes_of(choice) });
    }

    pub fn add_path(&mut self, range: u32, choice: &AccessPath) {
        self.access_paths.entry(range).or_default().description = describe(choice);
        self.add_indexes(range, indexes_of(choice));
    }

    pub fn add_indexes(&mut self, range: u32, indexes: Vec<IndexSpec>) {
        self.access_paths.entry(range).or_default().indexes.extend(indexes);
    }

    /// The indexes that any partition used, without duplicates.
    pub fn indexes_used(&self) -> Vec<&IndexSpec> {
        let mut indexes = Vec::new();
        for index in self.access_paths.values().flat_map(|executed| &executed.indexes) {
            if !indexes.contains(&index) {
                indexes.push(index);
            }
        }
        indexes
    }
}

fn rows_of(choice: &AccessPath) -> u64 {
    match choice {
        AccessPath::IndexLookup(found) => found.docnums.len() as u64,
        _ => 0,
    }
}

fn describe(choice: &AccessPath) -> String {
    match choice {
        AccessPath::FullScan => "scan".to_owned(),
        AccessPath::LogicalPartition(_) => "items of one partition key".to_owned(),
        AccessPath::KeyRange(_) => "items of a range of partition keys".to_owned(),
        AccessPath::IndexLookup(found) if found.indexes.is_empty() => "nothing".to_owned(),
        AccessPath::IndexLookup(found) => index_names(&found.indexes),
        AccessPath::OrderedScan(scan) if scan.backward => format!("{} backwards", scan.spec),
        AccessPath::OrderedScan(scan) => format!("{} in order", scan.spec),
        AccessPath::VectorScan(plan) => {
            let how = match (plan.list, plan.rule.index) {
                (None, _) => "every vector",
                (Some(_), VectorIndexType::DiskAnn) => "graph",
                (Some(_), _) => "codes",
            };
            format!("{}, {how}", IndexSpec::Vector(plan.rule.steps.clone()))
        }
        AccessPath::ItemCount(_) => "count of items".to_owned(),
        AccessPath::TextCounts(_) => "full-text statistics".to_owned(),
    }
}

fn indexes_of(choice: &AccessPath) -> Vec<IndexSpec> {
    match choice {
        AccessPath::IndexLookup(found) => found.indexes.clone(),
        AccessPath::OrderedScan(scan) => vec![scan.spec.clone()],
        AccessPath::VectorScan(plan) => vec![IndexSpec::Vector(plan.rule.steps.clone())],
        _ => Vec::new(),
    }
}

/// What clients can request about a page.
#[derive(Clone, Debug, Default)]
pub struct QueryReport {
    pub items: u64,
    /// The items that passed the filter.
    pub items_matched: u64,
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
    pub access_paths: Vec<(String, usize)>,
    pub single: Vec<IndexMetric>,
    pub composite: Vec<IndexMetric>,
    /// Rules of `pleiad_sql::advice` that apply.
    pub advice: Vec<Advice>,
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
    pub fn with_rows(self, rows: &RowSet) -> Self {
        QueryReport { rows: rows.len() as u64, row_bytes: rows.bytes() as u64, ..self }
    }

    /// The sum of both, for a page that took several queries.
    pub fn and(mut self, other: QueryReport) -> Self {
        self.items += other.items;
        self.items_matched += other.items_matched;
        self.item_bytes += other.item_bytes;
        self.index_rows += other.index_rows;
        self.compiling += other.compiling;
        self.looking_up += other.looking_up;
        self.loading += other.loading;
        self.calling = self.calling.max(other.calling); // each is the total of the page so far
        for (access_path, partitions) in other.access_paths {
            match self.access_paths.iter_mut().find(|(known, _)| *known == access_path) {
                Some((_, known)) => *known = partitions.max(*known),
                None => self.access_paths.push((access_path, partitions)),
            }
        }
        other.single.into_iter().for_each(|seen| note(&mut self.single, seen));
        other.composite.into_iter().for_each(|seen| note(&mut self.composite, seen));
        self
    }

    pub fn new(work: &ScanStats, rows: &RowSet) -> Self {
        let mut access_paths: Vec<(String, usize)> = Vec::new();
        for ExecutedPath { description, .. } in work.access_paths.values() {
            match access_paths.iter_mut().find(|(known, _)| known == description) {
                Some((_, partitions)) => *partitions += 1,
                None => access_paths.push((description.clone(), 1)),
            }
        }
        QueryReport {
            items: work.items,
            items_matched: work.items_matched,
            item_bytes: work.item_bytes,
            rows: rows.len() as u64,
            row_bytes: rows.bytes() as u64,
            index_rows: work.index_rows,
            compiling: work.compiling,
            looking_up: work.looking_up,
            loading: work.loading,
            calling: Duration::ZERO,
            access_paths,
            single: Vec::new(),
            composite: Vec::new(),
            advice: Vec::new(),
        }
    }

    /// Which indexes serve the query under the policy, and which ones would help. As in the service, this depends on
    /// the query alone; whether a page used them, or a scan of few items was cheaper, is in `access_paths`. Also as in
    /// the service, the last path of the filter comes first.
    pub fn with_indexes(mut self, work: &ScanStats, needs: &IndexNeeds<'_, '_>, index: UsableIndex<'_>) -> Self {
        let composite = needs.composite(index);
        let mut lookups = Vec::new();
        needs.predicate.iter().for_each(|condition| collect_predicates(condition, &mut lookups));
        // The report has to fit into a header.
        lookups.truncate(LOOKUPS_REPORTED);
        let unused = needs.unused_order(&lookups, composite.is_some());
        let is_used = |path: &[PathStep]| unused != Some(path);
        for lookup in lookups.iter().rev().filter(|lookup| is_used(&lookup.path)) {
            match &composite {
                Some(spec) if spec.covers_path(&lookup.path) => self.note(spec.clone(), true, true),
                _ => {
                    let spec = IndexSpec::Path(lookup.path.clone());
                    let precise = lookups.iter().any(|other| other.path == lookup.path && is_precise(other));
                    self.note(spec, index.indexes(&lookup.path), precise);
                }
            }
        }
        if unused.is_none() {
            self = self.with_order(needs, index);
        }
        self = self
            .with_projection(needs, index)
            .with_special_indexes(needs, index)
            .with_suggestion(needs, composite.is_some());
        for spec in work.indexes_used() {
            if !matches!(spec, IndexSpec::Path(path) if !is_used(path)) {
                self.note(spec.clone(), true, true);
            }
        }
        self
    }

    /// Adds the indexes on paths that only the `SELECT` uses, in a predicate or an aggregate.
    fn with_projection(mut self, needs: &IndexNeeds<'_, '_>, index: UsableIndex<'_>) -> Self {
        let mut lookups = Vec::new();
        needs.projected.iter().for_each(|condition| collect_predicates(condition, &mut lookups));
        lookups.truncate(LOOKUPS_REPORTED);
        for lookup in lookups.iter().rev().filter(|lookup| index.indexes(&lookup.path)) {
            let spec = IndexSpec::Path(lookup.path.clone());
            let specs = spec.specs();
            if !self.single.iter().any(|known| known.specs == specs) {
                self.note(spec, true, true);
            }
        }
        self
    }

    /// Adds the index that has the order of `ORDER BY`, or that would have it.
    fn with_order(mut self, needs: &IndexNeeds<'_, '_>, index: UsableIndex<'_>) -> Self {
        match (needs.ordering, needs.order) {
            (OrderStrategy::Path { path, .. }, _) => self.note(IndexSpec::Path(path.path.clone()), true, true),
            (OrderStrategy::Composite { index, .. }, _) => self.note(IndexSpec::Composite(index.clone()), true, true),
            (OrderStrategy::None, _) | (OrderStrategy::Sort, []) => {}
            (OrderStrategy::Sort, [only]) if only.path.is_empty() || index.indexes(&only.path) => {}
            (OrderStrategy::Sort, [only]) => self.note(IndexSpec::Path(only.path.clone()), false, true),
            (OrderStrategy::Sort, order) => note(&mut self.composite, composite_metric(order)),
        }
        self
    }

    /// Adds spatial, full-text and vector indexes.
    fn with_special_indexes(mut self, needs: &IndexNeeds<'_, '_>, index: UsableIndex<'_>) -> Self {
        let mut specs = Vec::new();
        needs.predicate.iter().for_each(|condition| collect_special_indexes(condition, &mut specs));
        needs.text_score.iter().for_each(|order| collect_special_indexes(&order.predicate, &mut specs));
        specs.extend(needs.vector_order.map(|nearest| IndexSpec::Vector(nearest.path.clone())));
        for spec in specs {
            let exists = match &spec {
                IndexSpec::Spatial(path) => index.spatial(path).is_some(),
                IndexSpec::FullText(path) => index.full_text(path).is_some(),
                IndexSpec::Vector(path) => {
                    index.vector(path).zip(needs.vector_order).is_some_and(|(rule, nearest)| rule.fits(&nearest.metric))
                }
                IndexSpec::Path(_) | IndexSpec::Composite(_) => true,
            };
            self.note(spec, exists, true);
        }
        self
    }

    /// Suggests a composite index for a conjunction on several paths, the last of which is a range or which are all keys
    /// of `GROUP BY`: it is one range of that index.
    fn with_suggestion(mut self, needs: &IndexNeeds<'_, '_>, has_composite: bool) -> Self {
        let Some(IndexPredicate::And(all)) = needs.predicate else { return self };
        let wanted = suggestion(all, needs.groups);
        if !wanted.is_empty() && !has_composite && self.composite.is_empty() {
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

    fn note(&mut self, spec: IndexSpec, utilized: bool, precise: bool) {
        let list = if matches!(spec, IndexSpec::Composite(_)) { &mut self.composite } else { &mut self.single };
        note(list, IndexMetric { specs: spec.specs(), utilized, precise, impact_is_high: precise });
    }
}

/// What a query needs from the indexes.
#[derive(Clone, Copy)]
pub struct IndexNeeds<'a, 'b> {
    pub predicate: Option<&'a IndexPredicate<'b>>,
    pub order: &'a [OrderPath],
    pub ordering: &'a OrderStrategy,
    pub vector_order: Option<&'a VectorOrder<'b>>,
    pub text_score: Option<&'a TextScoreOrder<'b>>,
    /// Predicates in the `SELECT`.
    pub projected: &'a [IndexPredicate<'b>],
    /// The paths of `GROUP BY`.
    pub groups: &'a [Vec<PathStep>],
}

impl IndexNeeds<'_, '_> {
    /// The composite index that covers most predicates of the filter.
    fn composite(&self, index: UsableIndex<'_>) -> Option<IndexSpec> {
        let Some(IndexPredicate::And(all)) = self.predicate else { return None };
        let seek = seeks(all, index).into_iter().max_by_key(|seek| seek.covers.len())?;
        Some(IndexSpec::Composite(seek.index.clone()))
    }

    /// The path of `ORDER BY`, if the filter has it and others. The service then uses the indexes of the others alone,
    /// unless one composite index would serve all of them.
    fn unused_order(&self, lookups: &[&PathPredicate<'_>], has_composite: bool) -> Option<&[PathStep]> {
        let (Some(IndexPredicate::And(all)), [only]) = (self.predicate, self.order) else { return None };
        let is_filtered = lookups.iter().any(|lookup| lookup.path == only.path);
        let has_others = lookups.iter().any(|lookup| lookup.path != only.path);
        let is_unused = is_filtered && has_others && !has_composite && suggestion(all, self.groups).is_empty();
        is_unused.then_some(only.path.as_slice())
    }
}

/// An index that is utilized anywhere counts as utilized.
fn note(list: &mut Vec<IndexMetric>, seen: IndexMetric) {
    match list.iter_mut().find(|known| known.specs == seen.specs) {
        Some(known) => known.utilized |= seen.utilized,
        None => list.push(seen),
    }
}

fn collect_predicates<'c, 'b>(condition: &'c IndexPredicate<'b>, found: &mut Vec<&'c PathPredicate<'b>>) {
    match condition {
        IndexPredicate::Path(lookup) => found.push(lookup),
        IndexPredicate::And(all) | IndexPredicate::Or(all) => {
            all.iter().for_each(|condition| collect_predicates(condition, found))
        }
        IndexPredicate::Never | IndexPredicate::Spatial(_) | IndexPredicate::Term(_) => {}
    }
}

/// The full-text and spatial indexes that the predicate searches.
fn collect_special_indexes(condition: &IndexPredicate<'_>, found: &mut Vec<IndexSpec>) {
    match condition {
        IndexPredicate::Term(term) => found.push(IndexSpec::FullText(term.path.clone())),
        IndexPredicate::Spatial(spatial) => found.push(IndexSpec::Spatial(spatial.path.clone())),
        IndexPredicate::And(all) | IndexPredicate::Or(all) => {
            all.iter().for_each(|condition| collect_special_indexes(condition, found))
        }
        IndexPredicate::Never | IndexPredicate::Path(_) => {}
    }
}

/// Paths with an equality, then one with a range; or, without a range, those that the query groups by. Otherwise the
/// single-path indexes are as good.
fn suggestion<'c>(all: &'c [IndexPredicate<'_>], groups: &[Vec<PathStep>]) -> Vec<&'c [PathStep]> {
    let (mut equal, mut ranges): (Vec<&[PathStep]>, Vec<&[PathStep]>) = Default::default();
    for condition in all {
        let IndexPredicate::Path(PathPredicate { path, value }) = condition else { continue };
        match value {
            _ if path.contains(&PathStep::Element) || is_generated_on_read(path) => {}
            ValuePredicate::Equal(_) if !equal.contains(&path.as_slice()) => equal.push(path),
            ValuePredicate::Range(..) if !ranges.contains(&path.as_slice()) => ranges.push(path),
            _ => {}
        }
    }
    if ranges.is_empty() {
        let mut grouped: Vec<&[PathStep]> = Vec::new();
        for key in groups {
            grouped.extend(equal.iter().copied().find(|path| *path == key.as_slice() && !grouped.contains(path)));
        }
        grouped.truncate(COMPOSITE_PATHS_PER_INDEX_MAX);
        return if grouped.len() > 1 { grouped } else { Vec::new() };
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
    matches!(lookup.value, ValuePredicate::Equal(_) | ValuePredicate::Range(..) | ValuePredicate::Prefix(_))
}

fn composite_metric(order: &[OrderPath]) -> IndexMetric {
    let spec = |key: &OrderPath| format!("{} {}", path_text(&key.path), if key.descending { "DESC" } else { "ASC" });
    IndexMetric { specs: order.iter().map(spec).collect(), utilized: false, precise: true, impact_is_high: true }
}
