//! The cheapest way to the items of one slice.
//!
//! Promise: every way gives the same rows. What `ORDER BY` asks for without an index that has it is refused here,
//! as the service refuses it.

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

/// How the items of a slice are come by.
#[derive(Debug)]
pub enum AccessPath {
    /// All items, in order.
    FullScan,
    /// Those of one logical partition, in order.
    LogicalPartition(EffectiveKey),
    /// Those of a part of the hash space, in order.
    KeyRange(DocnumList),
    /// Those that the index found, in order.
    IndexLookup(PostingList),
    /// In the order that the query asks for.
    OrderedScan(OrderedScan),
    /// The nearest to a vector first.
    VectorScan(VectorScanPlan),
    /// They need not be seen: so many are there.
    ItemCount(u64),
    /// The same of several figures, one for each aggregate.
    TextCounts(Vec<u64>),
}

/// A way through an index that meets items in the order of the query's keys.
#[derive(Clone, Debug)]
pub struct OrderedScan {
    pub path: u64,
    pub range: TermRange,
    pub backward: bool,
    pub part: IndexSpec,
    /// Whether the index has a row of every item; otherwise those without a value are met apart.
    pub has_all: bool,
}

impl AccessPath {
    /// The numbers of the items, where they are known.
    pub fn docnums(&self) -> Option<&[u64]> {
        match self {
            AccessPath::KeyRange(docnums) | AccessPath::IndexLookup(PostingList { docnums, .. }) => Some(docnums),
            _ => None,
        }
    }
}

impl OrderedScan {
    /// What of it the index has rows of.
    pub fn listed(&self) -> TermRange {
        match self.has_all {
            true => self.range.clone(),
            false => self.range.clone().and(TermRange::defined()),
        }
    }

    /// How a sort would write what the index says.
    pub fn sorted<'v>(&self, value: &'v [u8]) -> Cow<'v, [u8]> {
        match self.backward {
            false => Cow::Borrowed(value),
            true => value.iter().map(|byte| !byte).collect(),
        }
    }
}

/// Items in the order of their distance, from a vector index.
#[derive(Clone, Debug)]
pub struct VectorScanPlan {
    pub rule: VectorRule,
    /// Candidates that are asked of a sketch; without, every vector is looked at.
    pub list: Option<usize>,
}

/// The index that has the order a query asks for, if it asks for one.
#[derive(Clone, Debug)]
pub enum OrderStrategy {
    None,
    Path {
        path: OrderPath,
        /// The index has a row of every item, also of those without a value: the policy names the path.
        has_all: bool,
    },
    Composite {
        index: CompositeIndex,
        backward: bool,
    },
    /// None has it, and the client allows a sort.
    Sort,
}

/// Finds the index for `ORDER BY`, or says which one is missing.
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

/// An index that is there soon is worth waiting for, and nothing that the policy could be asked for.
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

/// The same paths, all in the same directions or all in the other ones.
fn matching(composite: &CompositeIndex, order: &[OrderPath]) -> Option<(CompositeIndex, bool)> {
    if composite.paths.len() != order.len() {
        return None;
    }
    let same_paths = composite.paths.iter().zip(order).all(|(own, asked)| own.path.steps == asked.path);
    let descends = |at: usize| composite.paths.get(at).is_some_and(|path| path.order() == SortOrder::Descending);
    let flips = || order.iter().enumerate().map(|(at, asked)| descends(at) != asked.descending);
    let one_way = flips().all(|flip| flip) || !flips().any(|flip| flip);
    // Rows of an index are laid out with its first path ascending.
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
    /// Walking in the order of the query pays: the pass can stop, and the index has the order of all that is there.
    pub may_walk: bool,
    /// The last item that an earlier page was done with.
    pub after: u64,
}

/// So many values are always looked up.
const LOOKUPS_FEW: usize = 8;

/// The way, and about how many microseconds it takes.
pub fn choose(finder: &Finder<'_>, question: &PlanRequest<'_>) -> Result<(AccessPath, f64)> {
    let plain = plain(finder, question)?;
    let has_unindexed = finder.reader().has_unindexed(question.slice)?;
    if let Some(rule) = vector_index(finder, question).filter(|_| question.may_walk && !has_unindexed) {
        return nearest(finder, question, rule, plain);
    }
    let walk = walk(question).filter(|_| question.may_walk && !has_unindexed);
    // A filter on the key of the order alone: every item of the walk counts, so it is as short as the page.
    let bound = match (&walk, question.condition) {
        (Some(walk), Some(IndexPredicate::Path(lookup))) => {
            is_bound_by(walk, lookup) && finder.reader().is_within(&question.slice.keys)
        }
        _ => false,
    };
    if let Some(walk) = walk.as_ref().filter(|_| bound && wanted(question) * ITEM_US < plain.us) {
        return Ok((AccessPath::OrderedScan(walk.clone()), wanted(question) * ITEM_US));
    }
    // Looking at every value of a long list would cost more than looking at the few items there are.
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

/// The index that holds the vectors which the query compares.
fn vector_index<'a>(finder: &Finder<'a>, question: &PlanRequest<'_>) -> Option<&'a VectorRule> {
    let nearest = question.nearest?;
    finder.index().vector(&nearest.path).filter(|rule| rule.fits(&nearest.measure))
}

/// A stored vector is compared sooner than one in an item, which has to be read first; unless a filter leaves few items.
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

/// How many candidates to ask of a sketch. A page that goes on behind another looks at every vector: what the first one did not
/// find is not lost to it.
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

/// Candidates for each row that is wanted, and at least: of a walk through a graph, and of codes whose vectors are measured.
const LIST_MULTIPLIER: f64 = 4.0;
const LIST_MIN: f64 = 100.0;
const RERANK_MULTIPLIER: f64 = 5.0;
const RERANK_MIN: f64 = 50.0;
/// A search by sketch: as such, for each candidate, and for each element of one.
const SKETCH_US: f64 = 50.0;
const CANDIDATE_US: f64 = 3.6;
const CODE_US: f64 = 0.006;
/// A stored vector, and each of its elements; an element that is read from an item's text.
const VECTOR_US: f64 = 0.3;
const ELEMENT_US: f64 = 0.001;
const READ_ELEMENT_US: f64 = 0.03;

struct BasePath {
    choice: AccessPath,
    items: f64,
    us: f64,
}

/// Without an index: one key's items, or all.
fn plain(finder: &Finder<'_>, question: &PlanRequest<'_>) -> Result<BasePath> {
    let items = finder.reader().items() as f64;
    match &question.slice.point {
        Some(key) => {
            // Looking a little way tells small keys from large ones.
            let (members, more) =
                finder.reader().members(key, question.after, pleiad_storage::Limit::rows(MEMBERS_PROBED))?;
            let members = if more { items.max(MEMBERS_PROBED as f64) } else { members.len() as f64 };
            Ok(BasePath { choice: AccessPath::LogicalPartition(key.clone()), items: members, us: members * ITEM_US })
        }
        None => {
            let scan = BasePath { choice: AccessPath::FullScan, items, us: items * SCANNED_ITEM_US };
            // A feed range, or the beginning of a hierarchical key.
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

/// A filter on the key itself bounds the walk.
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

/// Goes on where the last page ended. The item itself comes again: it may have further rows. `None` when the last
/// key is not at its place in the index.
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

/// How many bytes the first component takes, if an index writes it as a sort does. It does not for long strings, of
/// which it keeps the beginning: those that share it lie before or behind their place in the order; nor for arrays and objects, of
/// which it keeps nothing.
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

/// keys │ docnum u64 │ row u32, as `run` sorts them; upside down when the first key descends.
fn split_key(key: &[u8], backward: bool) -> Option<(Vec<u8>, u64)> {
    let (value, tie) = key.split_at_checked(key.len().checked_sub(12)?)?;
    let docnum = u64::from_be_bytes(*tie.first_chunk()?);
    match backward {
        false => Some((value.to_vec(), docnum)),
        true => Some((value.iter().map(|byte| !byte).collect(), !docnum)),
    }
}

/// How many rows a page takes.
fn wanted(question: &PlanRequest<'_>) -> f64 {
    let take = question.start.take.map_or(f64::INFINITY, |take| take as f64);
    question.start.skip as f64 + take.min(question.size.rows as f64 + 1.0)
}

/// A walk meets `items / matching` items for each that stays.
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

/// Strings that are tried one by one bound nothing.
fn is_bound_by(walk: &OrderedScan, lookup: &PathPredicate<'_>) -> bool {
    !matches!(lookup.what, ValuePredicate::Strings(_)) && PathHash::of(&lookup.path).finish() == walk.path
}

#[cfg(test)]
mod tests;
