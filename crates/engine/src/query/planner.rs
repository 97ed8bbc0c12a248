//! Query planner: the cheapest access path for one slice.
//!
//! Invariant: every access path gives the same rows. An `ORDER BY` without an index that has its order is rejected
//! here, as the service rejects it.

use std::borrow::Cow;

use pleiad_model::partition_key::EffectiveKey;
use pleiad_model::policy::{CompositeIndex, CompositePath, SortOrder, VectorIndexType};
use pleiad_model::{Error, Result, Value};
use pleiad_partition::index::encoding::{Decoded, decode_component, encode_component, encode_scalar};
use pleiad_partition::index::{PathHash, TermRange, UsableIndex, VectorRule, composite_id};
use pleiad_sql::block::Block;
use pleiad_sql::index_predicate::{IndexPredicate, OrderPath, PathPredicate, ValuePredicate, VectorOrder, path_text};
use pleiad_sql::run::{PageSize, PageStart, ResumePoint};
use pleiad_storage::not_at_hand;

use super::index_lookup::{Cost, DocnumList, Finder, ITEM_US, PROBE_US, PostingList, SCANNED_ITEM_US, in_order, span};
use super::index_spec::IndexSpec;
use super::route::PartitionSlice;

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
    pub part: IndexSpec,
    /// The index has a row for every item; otherwise the items without a value are read separately.
    pub has_all: bool,
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
    pub fn listed(&self) -> TermRange {
        match self.has_all {
            true => self.range.clone(),
            false => self.range.clone().and(TermRange::defined()),
        }
    }

    /// The sort key of an index value, as a sort would encode it.
    pub fn sorted<'v>(&self, value: &'v [u8]) -> Cow<'v, [u8]> {
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
        has_all: bool,
    },
    Composite {
        index: CompositeIndex,
        backward: bool,
    },
    /// No index has the order: the rows are sorted.
    Sort,
}

/// Finds the index for `ORDER BY`; the error names the index that is missing.
pub fn ordering(
    block: &Block,
    order: Option<&[OrderPath]>,
    index: UsableIndex<'_>,
    enable_scan: bool,
) -> Result<OrderStrategy> {
    match (block.order.len(), order) {
        (0, _) => Ok(OrderStrategy::None),
        (1, Some([path])) if index.indexes(&path.path) => {
            Ok(OrderStrategy::Path { path: path.clone(), has_all: index.is_explicit(&path.path) })
        }
        (1, Some([path])) if index.wants(&path.path) => Ok(OrderStrategy::Sort),
        (1, Some([path])) if !enable_scan && !path.path.is_empty() => Err(no_path(path, index)),
        (1, _) => Ok(OrderStrategy::Sort),
        (_, Some(paths)) => match index.composites().iter().find_map(|composite| matching(composite, paths)) {
            Some((index, backward)) => Ok(OrderStrategy::Composite { index, backward }),
            None if enable_scan => Ok(OrderStrategy::Sort),
            None => Err(no_composite(paths, index)),
        },
        (_, None) => Ok(OrderStrategy::Sort),
    }
}

/// The remedy for an index that is being built: the client should wait; another policy would not help.
const BEING_BUILT: &str =
    "The container's indexing policy has it, and its index is being built: ask again when that is done.";

fn no_path(path: &OrderPath, index: UsableIndex<'_>) -> Error {
    let text = path_text(&path.path);
    let remedy = match index.will_index(&path.path) {
        true => format!("\"{text}/?\" cannot be used yet. {BEING_BUILT}"),
        false => format!("Include \"{text}/?\" in the container's indexing policy."),
    };
    Error::invalid(format!("Order-by item requires a corresponding index path. {remedy}"))
}

fn no_composite(paths: &[OrderPath], index: UsableIndex<'_>) -> Error {
    let text = composite_text(paths);
    let remedy = match index.composites_to_be().iter().any(|composite| matching(composite, paths).is_some()) {
        true => format!("{text} cannot be used yet. {BEING_BUILT}"),
        false => format!("Add {text} to compositeIndexes in the container's indexing policy."),
    };
    let what = "The order by query does not have a corresponding composite index that it can be served from.";
    Error::invalid(format!("{what} {remedy}"))
}

/// The same paths, with all directions equal or all reversed; and whether to scan backward.
fn matching(composite: &CompositeIndex, order: &[OrderPath]) -> Option<(CompositeIndex, bool)> {
    if composite.paths.len() != order.len() {
        return None;
    }
    let same_paths = composite.paths.iter().zip(order).all(|(own, asked)| own.path.steps == asked.path);
    let descends = |at: usize| composite.paths.get(at).is_some_and(|path| path.order() == SortOrder::Descending);
    let flips = || order.iter().enumerate().map(|(at, asked)| descends(at) != asked.descending);
    let one_way = flips().all(|flip| flip) || !flips().any(|flip| flip);
    // Index rows are stored with the first path ascending.
    (same_paths && one_way).then(|| (composite.clone(), order.first().is_some_and(|first| first.descending)))
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
    pub condition: Option<&'a IndexPredicate<'a>>,
    pub ordering: &'a OrderStrategy,
    pub nearest: Option<&'a VectorOrder<'a>>,
    pub start: &'a PageStart,
    pub size: PageSize,
    /// An ordered scan is allowed: the pipeline can stop early, and the index has the order of all items.
    pub may_walk: bool,
    /// Docnum of the last item that an earlier page finished.
    pub after: u64,
}

/// A predicate with at most this many lookups is always costed.
const LOOKUPS_FEW: usize = 8;

/// The access path, and its estimated cost in microseconds.
pub fn choose(finder: &Finder<'_>, question: &PlanRequest<'_>) -> Result<(AccessPath, f64)> {
    let plain = plain(finder, question)?;
    let has_unindexed = finder.reader().has_unindexed(question.slice)?;
    if let Some(rule) = vector_index(finder, question).filter(|_| question.may_walk && !has_unindexed) {
        return nearest(finder, question, rule, plain);
    }
    let walk = walk(question).filter(|_| question.may_walk && !has_unindexed);
    // A filter on the sort key alone: every item of the ordered scan matches, so the scan is as short as the page.
    let bound = match (&walk, question.condition) {
        (Some(walk), Some(IndexPredicate::Path(lookup))) => {
            is_bound_by(walk, lookup) && finder.reader().is_within(&question.slice.keys)
        }
        _ => false,
    };
    if let Some(walk) = walk.as_ref().filter(|_| bound && wanted(question) * ITEM_US < plain.us) {
        return Ok((AccessPath::OrderedScan(walk.clone()), wanted(question) * ITEM_US));
    }
    // Probing every value of a long list would cost more than reading the few items there are.
    let is_worth_a_look = |lookups: usize| lookups <= LOOKUPS_FEW || lookups as f64 * PROBE_US < plain.us;
    let cost = match question.condition {
        Some(condition) if is_worth_a_look(condition.lookups()) => {
            if condition.lookups() > LOOKUPS_FEW {
                not_at_hand()?;
            }
            finder.cost(condition)?
        }
        _ => None,
    };
    let items = finder.reader().items() as f64;
    if let Some(walk) = walk {
        let us = walk_us(question, bound, cost, items);
        if us < plain.us.min(cost.map_or(f64::INFINITY, Cost::us)) {
            return Ok((AccessPath::OrderedScan(walk), us));
        }
    }
    if let (Some(condition), Some(cost)) = (question.condition, cost)
        && cost.us() < plain.us
        && let Some(mut found) = finder.find(condition, question.after)?
        && let Some(unindexed) = if has_unindexed { finder.unindexed(question.after)? } else { Some(Vec::new()) }
    {
        if !unindexed.is_empty() {
            found.docnums.extend(unindexed);
            found.docnums = in_order(found.docnums);
        }
        return Ok((AccessPath::IndexLookup(found), cost.us()));
    }
    Ok((plain.choice, plain.us))
}

/// The vector index on the path whose vectors the query compares.
fn vector_index<'a>(finder: &Finder<'a>, question: &PlanRequest<'_>) -> Option<&'a VectorRule> {
    let nearest = question.nearest?;
    finder.index().vector(&nearest.path).filter(|rule| rule.fits(&nearest.measure))
}

/// Chooses between a vector scan and an access path that reads vectors from items. A stored vector is compared faster
/// than one in an item, which has to be parsed first; but a filter may leave few items.
fn nearest(
    finder: &Finder<'_>,
    question: &PlanRequest<'_>,
    rule: &VectorRule,
    plain: BasePath,
) -> Result<(AccessPath, f64)> {
    let (items, dimensions) = (finder.reader().items() as f64, rule.kind.dimensions as f64);
    let read_us = ITEM_US + dimensions * READ_ELEMENT_US;
    let cost = question.condition.map_or(Ok(None), |condition| finder.cost(condition))?;
    let found_us = cost.map_or(f64::INFINITY, |cost| cost.us() + cost.items * read_us);
    let plain_us = plain.us + plain.items * dimensions * READ_ELEMENT_US;
    let share = cost.map_or(1.0, |cost| (cost.items / items.max(1.0)).clamp(1e-6, 1.0));
    let walked = (wanted(question) / share).min(items);
    let every_us = items * (VECTOR_US + dimensions * ELEMENT_US);
    let sketch_us = |list: usize| SKETCH_US + list as f64 * (CANDIDATE_US + dimensions * CODE_US);
    let list = sketch_list(question, rule, walked).filter(|list| sketch_us(*list) < every_us);
    let us = list.map_or(every_us, sketch_us) + walked * read_us;
    if us <= found_us.min(plain_us) {
        return Ok((AccessPath::VectorScan(VectorScanPlan { rule: rule.clone(), list }), us));
    }
    match question.condition {
        Some(condition) if found_us < plain_us => match finder.find(condition, question.after)? {
            Some(found) => Ok((AccessPath::IndexLookup(found), found_us)),
            None => Ok((plain.choice, plain_us)),
        },
        _ => Ok((plain.choice, plain_us)),
    }
}

/// How many candidates to request from the ANN index. A page that continues after another one uses exact k-NN, so that
/// it returns what the approximate search of the first page missed.
fn sketch_list(question: &PlanRequest<'_>, rule: &VectorRule, walked: f64) -> Option<usize> {
    let nearest = question.nearest?;
    let may = !nearest.search.brute_force && nearest.measure.function == rule.function;
    if !may || matches!(question.start.at, ResumePoint::Key(_)) || !question.slice.partition.has_sketch(rule) {
        return None;
    }
    let (multiplier, least) = match rule.index {
        VectorIndexType::DiskAnn => (nearest.search.list_multiplier.unwrap_or(LIST_MULTIPLIER), LIST_MIN),
        _ => (nearest.search.rerank_multiplier.unwrap_or(RERANK_MULTIPLIER), RERANK_MIN),
    };
    Some((walked * multiplier).max(least) as usize)
}

/// Candidates per wanted row, and their minimum: of a graph search (`LIST_`), and of quantized vectors that are
/// reranked by their exact distance (`RERANK_`).
const LIST_MULTIPLIER: f64 = 4.0;
const LIST_MIN: f64 = 100.0;
const RERANK_MULTIPLIER: f64 = 5.0;
const RERANK_MIN: f64 = 50.0;
/// The cost of an ANN search: in itself, per candidate, and per element of a candidate.
const SKETCH_US: f64 = 50.0;
const CANDIDATE_US: f64 = 3.6;
const CODE_US: f64 = 0.006;
/// The cost of a stored vector, and per element of it; the cost of an element that is parsed from an item's text.
const VECTOR_US: f64 = 0.3;
const ELEMENT_US: f64 = 0.001;
const READ_ELEMENT_US: f64 = 0.03;

struct BasePath {
    choice: AccessPath,
    items: f64,
    us: f64,
}

/// The access path without an index: the items of one key, of a key range, or all.
fn plain(finder: &Finder<'_>, question: &PlanRequest<'_>) -> Result<BasePath> {
    let items = finder.reader().items() as f64;
    match &question.slice.point {
        Some(key) => {
            // A short probe distinguishes small keys from large ones.
            let (members, more) =
                finder.reader().members(key, question.after, pleiad_storage::Limit::rows(MEMBERS_PROBED))?;
            let members = if more { items.max(MEMBERS_PROBED as f64) } else { members.len() as f64 };
            Ok(BasePath { choice: AccessPath::LogicalPartition(key.clone()), items: members, us: members * ITEM_US })
        }
        None => {
            let scan = BasePath { choice: AccessPath::FullScan, items, us: items * SCANNED_ITEM_US };
            // A feed range, or a prefix of a hierarchical key.
            Ok(match finder.reader().part(&question.slice.keys)? {
                Some(part) if part.len() as f64 * ITEM_US < scan.us => {
                    let left = part.into_iter().filter(|docnum| *docnum > question.after).collect::<Vec<_>>();
                    BasePath {
                        items: left.len() as f64,
                        us: left.len() as f64 * ITEM_US,
                        choice: AccessPath::KeyRange(left),
                    }
                }
                _ => scan,
            })
        }
    }
}

const MEMBERS_PROBED: usize = 1024;

fn walk(question: &PlanRequest<'_>) -> Option<OrderedScan> {
    match question.ordering {
        OrderStrategy::Path { path, has_all } => {
            let range = narrowed(question.condition, path).unwrap_or_else(TermRange::all);
            let (hash, part) = (PathHash::of(&path.path).finish(), IndexSpec::Path(path.path.clone()));
            let walk = OrderedScan { path: hash, range, backward: path.descending, part, has_all: *has_all };
            resumed(walk, question.start, |value| is_held(value, false, &mut |value, _| encode_scalar(value)).is_some())
        }
        OrderStrategy::Composite { index, backward } => {
            let (path, part) = (composite_id(index), IndexSpec::Composite(index.clone()));
            let walk = OrderedScan { path, range: TermRange::all(), backward: *backward, part, has_all: true };
            resumed(walk, question.start, |value| holds_all(index, value))
        }
        OrderStrategy::None | OrderStrategy::Sort => None,
    }
}

/// The range of the scan, if the filter bounds the sort key itself.
fn narrowed(condition: Option<&IndexPredicate<'_>>, order: &OrderPath) -> Option<TermRange> {
    let of = |condition: &IndexPredicate<'_>| match condition {
        IndexPredicate::Path(PathPredicate { path, what })
            if *path == order.path && !matches!(what, ValuePredicate::Strings(_)) =>
        {
            Some(span(what))
        }
        _ => None,
    };
    match condition? {
        IndexPredicate::And(all) => all.iter().filter_map(of).reduce(TermRange::and),
        one => of(one),
    }
}

/// Continues where the last page ended. The last item is read again: it may have further rows. `None` if the index does
/// not store the last key at its sort position.
fn resumed(mut walk: OrderedScan, start: &PageStart, is_held: impl Fn(&[u8]) -> bool) -> Option<OrderedScan> {
    let ResumePoint::Key(mark) = &start.at else { return Some(walk) };
    let (value, docnum) = split_key(mark.key()?, walk.backward).filter(|(value, _)| is_held(value))?;
    let place = |docnum: u64| [value.as_slice(), &docnum.to_be_bytes()].concat();
    if walk.backward {
        walk.range.to = walk.range.to.min(place(docnum.saturating_add(1)));
        walk.range.from = walk.range.from.min(walk.range.to.clone());
    } else {
        walk.range.from = walk.range.from.max(place(docnum));
        walk.range.to = walk.range.to.max(walk.range.from.clone());
    }
    Some(walk)
}

/// The length in bytes of the first component, if the index encodes it as a sort does. It does not for long strings: it
/// stores only their beginning, so that strings that share it may come before or after their sort position. Nor does it
/// for arrays and objects: it stores nothing of their content.
fn is_held(key: &[u8], descending: bool, write: &mut dyn FnMut(&Value, bool) -> Vec<u8>) -> Option<usize> {
    let (decoded, used) = decode_component(key, descending)?;
    match &decoded {
        Decoded::Exact(value @ Value::String(_)) => (key.get(..used)? == write(value, descending)).then_some(used),
        Decoded::Array | Decoded::Object => None,
        _ => Some(used),
    }
}

fn holds_all(index: &CompositeIndex, key: &[u8]) -> bool {
    let first = index.paths.first().map(CompositePath::order);
    let mut write = |value: &Value, descending| {
        let mut component = Vec::new();
        encode_component(Some(value), descending, &mut component);
        component
    };
    let mut rest = key;
    index.paths.iter().all(|path| match is_held(rest, Some(path.order()) != first, &mut write) {
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
fn wanted(question: &PlanRequest<'_>) -> f64 {
    let take = question.start.take.map_or(f64::INFINITY, |take| take as f64);
    question.start.skip as f64 + take.min(question.size.rows as f64 + 1.0)
}

/// An ordered scan reads `items / matching` items for each one that passes the filter.
fn walk_us(question: &PlanRequest<'_>, bound: bool, cost: Option<Cost>, items: f64) -> f64 {
    let share = match (cost, question.condition) {
        (_, None) => 1.0,
        (Some(cost), _) if bound => return wanted(question).min(cost.items) * ITEM_US,
        (Some(cost), _) => (cost.items / items.max(1.0)).clamp(1e-6, 1.0),
        (None, Some(_)) => 0.1,
    };
    let keys = if question.slice.point.is_some() { 0.01 } else { 1.0 };
    (wanted(question) / share / keys).min(items) * ITEM_US
}

/// Whether the predicate bounds the scan. A string test does not: it is evaluated on every string.
fn is_bound_by(walk: &OrderedScan, lookup: &PathPredicate<'_>) -> bool {
    !matches!(lookup.what, ValuePredicate::Strings(_)) && PathHash::of(&lookup.path).finish() == walk.path
}

#[cfg(test)]
mod tests;
