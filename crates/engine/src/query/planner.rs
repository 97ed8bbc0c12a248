//! Query planner: the cheapest access path for one slice.
//!
//! Invariant: every access path gives the same rows, except an approximate vector search, which may miss a few. An
//! `ORDER BY` on paths is rejected here if no index has its order, as the service rejects it, unless the client allows
//! a sort.

use std::borrow::Cow;

use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::policy::{CompositeIndex, CompositePath, SortOrder, VectorIndexType};
use pleiad_model::{Error, Result, Value};
use pleiad_partition::index::encoding::{Decoded, decode_component, encode_component, encode_scalar};
use pleiad_partition::index::{PathHash, TermRange, UsableIndex, VectorRule, composite_id};
use pleiad_sql::block::Block;
use pleiad_sql::index_predicate::{IndexPredicate, OrderPath, PathPredicate, ValuePredicate, VectorOrder, path_text};
use pleiad_sql::run::{PageSize, PageStart, ResumePoint};

use super::index_lookup::{
    Cost, DocnumList, ITEM_US, IndexSearcher, PROBE_US, PostingList, SCANNED_ITEM_US, sorted_unique, value_range,
};
use super::index_spec::IndexSpec;
use super::route::PartitionSlice;
use super::stop::Stop;

/// How the items of a slice are read.
#[derive(Debug)]
pub enum AccessPath {
    /// All items, in docnum order.
    FullScan,
    /// The items of one logical partition, in docnum order.
    LogicalPartition(EffectiveKey),
    /// The items of an EPK range, in docnum order.
    KeyRange(DocnumList),
    /// The items that an index lookup found, in docnum order.
    IndexLookup(PostingList),
    /// The items in `ORDER BY` order, from an index.
    OrderedScan(OrderedScan),
    /// The items by their distance to a vector, the nearest first.
    VectorScan(VectorScanPlan),
    /// No item is read: their number is known.
    ItemCount(u64),
    /// No item is read: one figure for each aggregate, from the full-text index.
    TextCounts(Vec<u64>),
}

/// An ordered index scan: reads items in the order of the query's sort keys.
#[derive(Clone, Debug)]
pub struct OrderedScan {
    pub path: u64,
    pub range: TermRange,
    pub backward: bool,
    pub spec: IndexSpec,
    /// The index has a row for every item; otherwise the items without a value are read separately.
    pub covers_all_items: bool,
}

impl AccessPath {
    /// The docnums of the items, if the access path has them as a list.
    pub fn docnums(&self) -> Option<&[u64]> {
        match self {
            AccessPath::KeyRange(docnums) | AccessPath::IndexLookup(PostingList { docnums, .. }) => Some(docnums),
            _ => None,
        }
    }
}

impl OrderedScan {
    /// The part of the range that has index rows.
    pub fn indexed_range(&self) -> TermRange {
        match self.covers_all_items {
            true => self.range.clone(),
            false => self.range.clone().intersect(TermRange::defined()),
        }
    }

    /// The sort key of an index value, as a sort would encode it.
    pub fn sort_key<'v>(&self, value: &'v [u8]) -> Cow<'v, [u8]> {
        match self.backward {
            false => Cow::Borrowed(value),
            true => value.iter().map(|byte| !byte).collect(),
        }
    }
}

/// A vector scan: items in the order of their distance, from a vector index.
#[derive(Clone, Debug)]
pub struct VectorScanPlan {
    pub rule: VectorRule,
    /// Number of candidates to request from the ANN index; `None`: exact k-NN, which reads every vector.
    pub list: Option<usize>,
}

/// Which index supplies the `ORDER BY` order, if the query has one.
#[derive(Clone, Debug)]
pub enum OrderStrategy {
    None,
    Path {
        path: OrderPath,
        /// The index has a row for every item, with or without a value, because the policy names the path.
        covers_all_items: bool,
    },
    Composite {
        index: CompositeIndex,
        backward: bool,
    },
    /// No index has the order: the rows are sorted.
    Sort,
}

/// Finds the index for `ORDER BY`; the error names the index that is missing.
pub fn order_strategy(
    block: &Block,
    order: Option<&[OrderPath]>,
    index: UsableIndex<'_>,
    enable_scan: bool,
) -> Result<OrderStrategy> {
    match (block.order.len(), order) {
        (0, _) => Ok(OrderStrategy::None),
        (1, Some([path])) if index.indexes(&path.path) => {
            Ok(OrderStrategy::Path { path: path.clone(), covers_all_items: index.is_explicit(&path.path) })
        }
        (1, Some([path])) if index.policy_includes(&path.path) => Ok(OrderStrategy::Sort),
        (1, Some([path])) if !enable_scan && !path.path.is_empty() => Err(missing_path_error(path, index)),
        (1, _) => Ok(OrderStrategy::Sort),
        (_, Some(paths)) => match index.composites().iter().find_map(|composite| match_composite(composite, paths)) {
            Some((index, backward)) => Ok(OrderStrategy::Composite { index, backward }),
            None if enable_scan => Ok(OrderStrategy::Sort),
            None => Err(missing_composite_error(paths, index)),
        },
        (_, None) => Ok(OrderStrategy::Sort),
    }
}

/// The remedy for an index that is being built: the client should wait; another policy would not help.
const BEING_BUILT: &str =
    "The container's indexing policy has it, and its index is being built: ask again when that is done.";

fn missing_path_error(path: &OrderPath, index: UsableIndex<'_>) -> Error {
    let text = path_text(&path.path);
    let remedy = match index.will_index(&path.path) {
        true => format!("\"{text}/?\" cannot be used yet. {BEING_BUILT}"),
        false => format!("Include \"{text}/?\" in the container's indexing policy."),
    };
    Error::invalid(format!("Order-by item requires a corresponding index path. {remedy}"))
}

fn missing_composite_error(paths: &[OrderPath], index: UsableIndex<'_>) -> Error {
    let text = composite_text(paths);
    let remedy = match index.planned_composites().iter().any(|composite| match_composite(composite, paths).is_some()) {
        true => format!("{text} cannot be used yet. {BEING_BUILT}"),
        false => format!("Add {text} to compositeIndexes in the container's indexing policy."),
    };
    let what = "The order by query does not have a corresponding composite index that it can be served from.";
    Error::invalid(format!("{what} {remedy}"))
}

/// The composite index and whether to scan it backward, if it has the paths of `ORDER BY` with all directions equal or
/// all reversed.
fn match_composite(composite: &CompositeIndex, order: &[OrderPath]) -> Option<(CompositeIndex, bool)> {
    if composite.paths.len() != order.len() {
        return None;
    }
    let same_paths = composite.paths.iter().zip(order).all(|(own, asked)| own.path.steps == asked.path);
    let descends = |at: usize| composite.paths.get(at).is_some_and(|path| path.order() == SortOrder::Descending);
    let flips = || order.iter().enumerate().map(|(at, asked)| descends(at) != asked.descending);
    let same_directions = flips().all(|flip| flip) || !flips().any(|flip| flip);
    // Index rows are stored with the first path ascending.
    (same_paths && same_directions).then(|| (composite.clone(), order.first().is_some_and(|first| first.descending)))
}

fn composite_text(order: &[OrderPath]) -> String {
    let path = |key: &OrderPath| {
        let order = if key.descending { "descending" } else { "ascending" };
        format!("{{\"path\":\"{}\",\"order\":\"{order}\"}}", path_text(&key.path))
    };
    format!("[{}]", order.iter().map(path).collect::<Vec<_>>().join(","))
}

pub struct PlanRequest<'a> {
    pub slice: &'a PartitionSlice,
    pub predicate: Option<&'a IndexPredicate<'a>>,
    pub ordering: &'a OrderStrategy,
    pub vector_order: Option<&'a VectorOrder<'a>>,
    pub start: &'a PageStart,
    pub size: PageSize,
    /// An ordered scan is allowed: the pipeline can stop early, and the index has the order of all items.
    pub may_scan_in_order: bool,
    /// Docnum of the last item that an earlier page finished.
    pub after: u64,
}

/// A predicate with at most this many lookups is always costed.
const LOOKUPS_ALWAYS_COSTED: usize = 8;

/// The access path, and its estimated cost in microseconds.
pub fn plan_slice(searcher: &IndexSearcher<'_>, request: &PlanRequest<'_>) -> Result<(AccessPath, f64), Stop> {
    let base = base_path(searcher, request)?;
    let has_unindexed = searcher.reader().has_unindexed(request.slice)?;
    if let Some(rule) = vector_index(searcher, request).filter(|_| request.may_scan_in_order && !has_unindexed) {
        return vector_scan(searcher, request, rule, base);
    }
    let scan = ordered_scan(request).filter(|_| request.may_scan_in_order && !has_unindexed);
    // The index predicate is on the sort key alone: every item of the ordered scan satisfies it, so the scan is about
    // as short as the page.
    let bound = match (&scan, request.predicate) {
        (Some(scan), Some(IndexPredicate::Path(lookup))) => {
            is_bound_by(scan, lookup) && searcher.reader().is_within(&request.slice.keys)
        }
        _ => false,
    };
    if let Some(scan) = scan.as_ref().filter(|_| bound && rows_needed(request) * ITEM_US < base.cost_us) {
        return Ok((AccessPath::OrderedScan(scan.clone()), rows_needed(request) * ITEM_US));
    }
    // Probing every value of a long list would cost more than reading the few items there are.
    let is_worth_probing =
        |lookups: usize| lookups <= LOOKUPS_ALWAYS_COSTED || lookups as f64 * PROBE_US < base.cost_us;
    let cost = match request.predicate {
        Some(condition) if is_worth_probing(condition.lookups()) => {
            if condition.lookups() > LOOKUPS_ALWAYS_COSTED {
                searcher.reader().thread().check_may_block()?;
            }
            searcher.cost(condition)?
        }
        _ => None,
    };
    let items = searcher.reader().items() as f64;
    if let Some(scan) = scan {
        let us = ordered_scan_us(request, bound, cost, items);
        if us < base.cost_us.min(cost.map_or(f64::INFINITY, Cost::us)) {
            return Ok((AccessPath::OrderedScan(scan), us));
        }
    }
    if let (Some(condition), Some(cost)) = (request.predicate, cost)
        && cost.us() < base.cost_us
        && let Some(mut found) = searcher.find(condition, request.after)?
        && let Some(unindexed) = if has_unindexed { searcher.unindexed(request.after)? } else { Some(Vec::new()) }
    {
        if !unindexed.is_empty() {
            found.docnums.extend(unindexed);
            found.docnums = sorted_unique(found.docnums);
        }
        return Ok((AccessPath::IndexLookup(found), cost.us()));
    }
    Ok((base.access_path, base.cost_us))
}

/// The vector index on the path whose vectors the query compares.
fn vector_index<'a>(searcher: &IndexSearcher<'a>, request: &PlanRequest<'_>) -> Option<&'a VectorRule> {
    let nearest = request.vector_order?;
    searcher.index().vector(&nearest.path).filter(|rule| rule.fits(&nearest.metric))
}

/// Chooses between a vector scan and an access path that reads vectors from items. A stored vector is compared faster
/// than one in an item, which has to be parsed first; but a filter may leave few items.
fn vector_scan(
    searcher: &IndexSearcher<'_>,
    request: &PlanRequest<'_>,
    rule: &VectorRule,
    base: BasePath,
) -> Result<(AccessPath, f64), Stop> {
    let (items, dimensions) = (searcher.reader().items() as f64, rule.kind.dimensions as f64);
    let read_us = ITEM_US + dimensions * READ_ELEMENT_US;
    let cost = request.predicate.map_or(Ok(None), |condition| searcher.cost(condition))?;
    let lookup_us = cost.map_or(f64::INFINITY, |cost| cost.us() + cost.items * read_us);
    let base_us = base.cost_us + base.items * dimensions * READ_ELEMENT_US;
    let share = cost.map_or(1.0, |cost| (cost.items / items.max(1.0)).clamp(1e-6, 1.0));
    let items_read = (rows_needed(request) / share).min(items);
    let exact_us = items * (VECTOR_US + dimensions * ELEMENT_US);
    let ann_us = |list: usize| ANN_SEARCH_US + list as f64 * (CANDIDATE_US + dimensions * QUANTIZED_ELEMENT_US);
    let list = candidate_list_size(request, rule, items_read).filter(|list| ann_us(*list) < exact_us);
    let us = list.map_or(exact_us, ann_us) + items_read * read_us;
    if us <= lookup_us.min(base_us) {
        return Ok((AccessPath::VectorScan(VectorScanPlan { rule: rule.clone(), list }), us));
    }
    match request.predicate {
        Some(condition) if lookup_us < base_us => match searcher.find(condition, request.after)? {
            Some(found) => Ok((AccessPath::IndexLookup(found), lookup_us)),
            None => Ok((base.access_path, base_us)),
        },
        _ => Ok((base.access_path, base_us)),
    }
}

/// How many candidates to request from the ANN index. A page that continues after another one uses exact k-NN, so that
/// it returns what the approximate search of the first page missed.
fn candidate_list_size(request: &PlanRequest<'_>, rule: &VectorRule, items_read: f64) -> Option<usize> {
    let nearest = request.vector_order?;
    let may_approximate = !nearest.search.brute_force && nearest.metric.function == rule.function;
    if !may_approximate
        || matches!(request.start.at, ResumePoint::Key(_))
        || !request.slice.partition.has_ann_index(rule)
    {
        return None;
    }
    let (multiplier, least) = match rule.index {
        VectorIndexType::DiskAnn => (nearest.search.list_multiplier.unwrap_or(LIST_MULTIPLIER), LIST_MIN),
        _ => (nearest.search.rerank_multiplier.unwrap_or(RERANK_MULTIPLIER), RERANK_MIN),
    };
    Some((items_read * multiplier).max(least) as usize)
}

/// Candidates per wanted row, and their minimum: of a graph search (`LIST_`), and of quantized vectors that are
/// reranked by their exact distance (`RERANK_`).
const LIST_MULTIPLIER: f64 = 4.0;
const LIST_MIN: f64 = 100.0;
const RERANK_MULTIPLIER: f64 = 5.0;
const RERANK_MIN: f64 = 50.0;
/// The cost of an ANN search: in itself, per candidate, and per element of a candidate.
const ANN_SEARCH_US: f64 = 50.0;
const CANDIDATE_US: f64 = 3.6;
const QUANTIZED_ELEMENT_US: f64 = 0.006;
/// The cost of a stored vector, and per element of it; the cost of an element that is parsed from an item's text.
const VECTOR_US: f64 = 0.3;
const ELEMENT_US: f64 = 0.001;
const READ_ELEMENT_US: f64 = 0.03;

struct BasePath {
    access_path: AccessPath,
    items: f64,
    cost_us: f64,
}

/// The access path without an index: the items of one key, of a key range, or all.
fn base_path(searcher: &IndexSearcher<'_>, request: &PlanRequest<'_>) -> Result<BasePath, Stop> {
    let items = searcher.reader().items() as f64;
    match &request.slice.point {
        Some(key) => {
            // A short probe distinguishes small keys from large ones.
            let (members, more) =
                searcher.reader().members(key, request.after, pleiad_storage::Limit::rows(MEMBERS_PROBED))?;
            let members = if more { items.max(MEMBERS_PROBED as f64) } else { members.len() as f64 };
            Ok(BasePath {
                access_path: AccessPath::LogicalPartition(key.clone()),
                items: members,
                cost_us: members * ITEM_US,
            })
        }
        None => {
            let scan = BasePath { access_path: AccessPath::FullScan, items, cost_us: items * SCANNED_ITEM_US };
            // A feed range, or a prefix of a hierarchical key.
            Ok(match searcher.reader().docnums_in(&request.slice.keys)? {
                Some(docnums) if docnums.len() as f64 * ITEM_US < scan.cost_us => {
                    let remaining = docnums.into_iter().filter(|docnum| *docnum > request.after).collect::<Vec<_>>();
                    BasePath {
                        items: remaining.len() as f64,
                        cost_us: remaining.len() as f64 * ITEM_US,
                        access_path: AccessPath::KeyRange(remaining),
                    }
                }
                _ => scan,
            })
        }
    }
}

const MEMBERS_PROBED: usize = 1024;

fn ordered_scan(request: &PlanRequest<'_>) -> Option<OrderedScan> {
    match request.ordering {
        OrderStrategy::Path { path, covers_all_items } => {
            let range = narrowed(request.predicate, path).unwrap_or_else(TermRange::all);
            let (hash, spec) = (PathHash::of(&path.path).finish(), IndexSpec::Path(path.path.clone()));
            let scan =
                OrderedScan { path: hash, range, backward: path.descending, spec, covers_all_items: *covers_all_items };
            resumed(scan, request.start, |value| {
                exact_component_len(value, false, &mut |value, _| encode_scalar(value)).is_some()
            })
        }
        OrderStrategy::Composite { index, backward } => {
            let (path, spec) = (composite_id(index), IndexSpec::Composite(index.clone()));
            let scan = OrderedScan { path, range: TermRange::all(), backward: *backward, spec, covers_all_items: true };
            resumed(scan, request.start, |value| all_components_exact(index, value))
        }
        OrderStrategy::None | OrderStrategy::Sort => None,
    }
}

/// The range of the scan, if the filter bounds the sort key itself.
fn narrowed(condition: Option<&IndexPredicate<'_>>, order: &OrderPath) -> Option<TermRange> {
    let of = |condition: &IndexPredicate<'_>| match condition {
        IndexPredicate::Path(PathPredicate { path, value })
            if *path == order.path && !matches!(value, ValuePredicate::Strings(_)) =>
        {
            Some(value_range(value))
        }
        _ => None,
    };
    match condition? {
        IndexPredicate::And(all) => all.iter().filter_map(of).reduce(TermRange::intersect),
        one => of(one),
    }
}

/// Continues where the last page ended. The last item is read again: it may have further rows. `None` if the resume key
/// is truncated, or if the index does not store it at its sort position.
fn resumed(mut scan: OrderedScan, start: &PageStart, has_exact_key: impl Fn(&[u8]) -> bool) -> Option<OrderedScan> {
    let ResumePoint::Key(resume_key) = &start.at else { return Some(scan) };
    let (value, docnum) = split_key(resume_key.key()?, scan.backward).filter(|(value, _)| has_exact_key(value))?;
    let position = |docnum: u64| [value.as_slice(), &docnum.to_be_bytes()].concat();
    if scan.backward {
        scan.range.to = scan.range.to.min(position(docnum.saturating_add(1)));
        scan.range.from = scan.range.from.min(scan.range.to.clone());
    } else {
        scan.range.from = scan.range.from.max(position(docnum));
        scan.range.to = scan.range.to.max(scan.range.from.clone());
    }
    Some(scan)
}

/// The length in bytes of the first component, if the index encodes it as a sort does; otherwise `None`. Of a long
/// string the index stores only the beginning, so that strings that share it may come before or after their sort
/// position. Of an array or object it stores no content.
fn exact_component_len(key: &[u8], descending: bool, write: &mut dyn FnMut(&Value, bool) -> Vec<u8>) -> Option<usize> {
    let (decoded, used) = decode_component(key, descending)?;
    match &decoded {
        Decoded::Exact(value @ Value::String(_)) => (key.get(..used)? == write(value, descending)).then_some(used),
        Decoded::Array | Decoded::Object => None,
        _ => Some(used),
    }
}

fn all_components_exact(index: &CompositeIndex, key: &[u8]) -> bool {
    let first = index.paths.first().map(CompositePath::order);
    let mut write = |value: &Value, descending| {
        let mut component = Vec::new();
        encode_component(Some(value), descending, &mut component);
        component
    };
    let mut rest = key;
    index.paths.iter().all(|path| match exact_component_len(rest, Some(path.order()) != first, &mut write) {
        Some(used) => {
            rest = rest.get(used..).unwrap_or_default();
            true
        }
        None => false,
    })
}

/// keys │ docnum u64 │ row u32, as `sql::run` sorts them; inverted if the first key descends.
fn split_key(key: &[u8], backward: bool) -> Option<(Vec<u8>, u64)> {
    let (value, tie) = key.split_at_checked(key.len().checked_sub(12)?)?;
    let docnum = u64::from_be_bytes(*tie.first_chunk()?);
    match backward {
        false => Some((value.to_vec(), docnum)),
        true => Some((value.iter().map(|byte| !byte).collect(), !docnum)),
    }
}

/// How many rows a page needs, with the rows that it skips.
fn rows_needed(request: &PlanRequest<'_>) -> f64 {
    let take = request.start.take.map_or(f64::INFINITY, |take| take as f64);
    request.start.skip as f64 + take.min(request.size.rows as f64 + 1.0)
}

/// The estimated cost of an ordered scan, which reads `items / matching` items for each one that passes the filter. One
/// logical partition is assumed to have 1 % of the items.
fn ordered_scan_us(request: &PlanRequest<'_>, bound: bool, cost: Option<Cost>, items: f64) -> f64 {
    let share = match (cost, request.predicate) {
        (_, None) => 1.0,
        (Some(cost), _) if bound => return rows_needed(request).min(cost.items) * ITEM_US,
        (Some(cost), _) => (cost.items / items.max(1.0)).clamp(1e-6, 1.0),
        (None, Some(_)) => 0.1,
    };
    let keys = if request.slice.point.is_some() { 0.01 } else { 1.0 };
    (rows_needed(request) / share / keys).min(items) * ITEM_US
}

/// Whether the predicate bounds the scan. A string test does not: it is evaluated on every string.
fn is_bound_by(scan: &OrderedScan, lookup: &PathPredicate<'_>) -> bool {
    !matches!(lookup.value, ValuePredicate::Strings(_)) && PathHash::of(&lookup.path).finish() == scan.path
}

#[cfg(test)]
mod tests;
