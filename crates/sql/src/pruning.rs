//! Partition pruning: the partition keys that a filter allows.
//!
//! Guarantees: an item whose key is not among the pruned keys does not satisfy the filter. The converse does not hold:
//! only predicates that the service itself routes by narrow the keys, so that clients get the same fan-out as from the
//! service.
//!
//! ```text
//! key /k       c.k = 'a' AND c.n > 1                ["a"]
//!              c.k IN ('a', @b) OR c.k = null       ["a"] [@b] [null]
//!              c.k = 'a' AND c.k = 'b'              no keys
//!              c.k > 'a'                            all keys
//! keys /t /u   c.t = 1                              [1] and all keys with this prefix
//!              c.u = 1                              all keys: the first level is unknown
//! ```
//!
//! One exception follows the service: `c.k = 0` is routed to the key `0` and not to `-0.0`, which is equal but hashes
//! elsewhere.

use std::borrow::Cow;
use std::collections::HashSet;

use pleiad_model::Value;
use pleiad_model::partition_key::{EpkRange, KeyComponent, PartitionKey, PartitionKeyDefinition};

use crate::compile::{BindContext, constant};
use crate::expr::MemoryBudget;
use crate::parse::ast::{AstStep, BinaryOp, Expr, ExprKind, Select, UnaryOp};

/// A filter that allows more keys than this is treated as allowing all.
pub const KEYS_MAX: usize = 16 * 1024;

/// The memory budget of evaluating constants; a filter that exceeds it is not pruned.
const KEYS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The largest number of key pairs that an `AND` compares; with more it uses the keys of one side only.
const PAIRS_MAX: usize = 64 * 1024;

#[derive(Clone, Debug, PartialEq)]
pub enum PrunedKeys {
    All,
    /// Whole keys, or the first levels of hierarchical ones, sorted by effective key.
    Keys(Vec<PartitionKey>),
    None,
}

/// A range of effective keys, as query plans return it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryRange {
    pub min: String,
    pub max: String,
    pub min_inclusive: bool,
    pub max_inclusive: bool,
}

pub fn prune(select: &Select, bind: BindContext<'_>, definition: &PartitionKeyDefinition) -> PrunedKeys {
    if !select.reads_items() {
        return PrunedKeys::None;
    }
    let (Some(filter), Some(root)) = (&select.filter, RootAlias::of(select)) else { return PrunedKeys::All };
    let pruner = KeyPruner { bind, definition, root, memory: MemoryBudget::new(KEYS_BYTES_MAX) };
    match pruner.allowed(filter) {
        AllowedKeys::Any => PrunedKeys::All,
        AllowedKeys::Among(keys) => pruned_keys(keys, definition),
    }
}

impl PrunedKeys {
    /// The logical partition, if only one can match.
    pub fn single(&self, definition: &PartitionKeyDefinition) -> Option<&PartitionKey> {
        match self {
            PrunedKeys::Keys(keys) => match keys.as_slice() {
                [key] if key.matches_shape(definition) => Some(key),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Ranges sorted by `min`, without overlaps.
pub fn ranges(pruned: &PrunedKeys, definition: &PartitionKeyDefinition) -> Vec<QueryRange> {
    match pruned {
        PrunedKeys::All => vec![QueryRange::full()],
        PrunedKeys::None => vec![QueryRange::empty()],
        PrunedKeys::Keys(keys) => {
            let mut ranges: Vec<QueryRange> = keys.iter().map(|key| range(key, definition)).collect();
            ranges.sort_by(|a, b| a.min.cmp(&b.min).then_with(|| b.max.cmp(&a.max)));
            ranges.dedup_by(|next, kept| next.max <= kept.max);
            ranges
        }
    }
}

fn range(key: &PartitionKey, definition: &PartitionKeyDefinition) -> QueryRange {
    let at = key.effective(definition);
    if key.components().is_empty() {
        QueryRange::half_open(&EpkRange::of_point(at))
    } else if key.matches_shape(definition) {
        QueryRange::point(at.to_string())
    } else {
        QueryRange::half_open(&EpkRange::of_prefix(at))
    }
}

impl QueryRange {
    pub fn full() -> Self {
        QueryRange::half_open(&EpkRange::FULL)
    }

    /// Plans cannot be empty: clients query the partition that owns the first key.
    pub fn empty() -> Self {
        QueryRange::point(String::new())
    }

    fn half_open(range: &EpkRange) -> Self {
        QueryRange { min: range.min.to_string(), max: range.max.to_string(), min_inclusive: true, max_inclusive: false }
    }

    fn point(at: String) -> Self {
        QueryRange { min: at.clone(), max: at, min_inclusive: true, max_inclusive: true }
    }
}

/// The known components of a key, one per level; `None` for an unknown level.
type PartialKey = Vec<Option<KeyComponent>>;

enum AllowedKeys {
    Any,
    Among(HashSet<PartialKey>),
}

/// The alias of the item, or of a part of it.
struct RootAlias<'q> {
    name: &'q str,
    path: Vec<&'q str>,
}

impl<'q> RootAlias<'q> {
    fn of(select: &'q Select) -> Option<Self> {
        let source = select.from.first().filter(|source| !source.unnest)?;
        let path = match &source.expr.kind {
            ExprKind::Name(_) => Vec::new(),
            ExprKind::Access { base, steps } if matches!(base.kind, ExprKind::Name(_)) => {
                steps.iter().map(AstStep::property).collect::<Option<_>>()?
            }
            _ => return None,
        };
        Some(RootAlias { name: source.name()?, path })
    }
}

struct KeyPruner<'q> {
    bind: BindContext<'q>,
    definition: &'q PartitionKeyDefinition,
    root: RootAlias<'q>,
    /// For evaluating constants.
    memory: MemoryBudget,
}

impl KeyPruner<'_> {
    /// The keys of the items for which the filter may be true.
    fn allowed(&self, filter: &Expr) -> AllowedKeys {
        match &filter.kind {
            ExprKind::And(terms) => terms.iter().map(|term| self.allowed(term)).fold(AllowedKeys::Any, intersect),
            ExprKind::Or(terms) => terms.iter().map(|term| self.allowed(term)).fold(no_keys(), unite),
            _ => match self.constant(filter) {
                Some(Some(Value::Bool(true))) => AllowedKeys::Any,
                Some(_) => no_keys(),
                None => self.predicate(filter).unwrap_or(AllowedKeys::Any),
            },
        }
    }

    /// `None` if the predicate does not restrict the key.
    fn predicate(&self, filter: &Expr) -> Option<AllowedKeys> {
        match &filter.kind {
            ExprKind::Access { .. } => Some(self.key_is(self.level(filter)?, [&Value::Bool(true)])),
            ExprKind::Unary { op: UnaryOp::Not, operand } => {
                Some(self.key_is(self.level(operand)?, [&Value::Bool(false)]))
            }
            ExprKind::Binary { first, rest } => match rest.as_slice() {
                [(BinaryOp::Equal, right)] => self.equal(first, right).or_else(|| self.equal(right, first)),
                _ => None,
            },
            ExprKind::In { not: false, operand, list } => {
                let level = self.level(operand)?;
                let values = list.iter().map(|item| self.constant(item)).collect::<Option<Vec<_>>>()?;
                Some(self.key_is(level, values.iter().flatten()))
            }
            ExprKind::Like { not: false, operand, pattern, escape: None } => {
                let level = self.level(operand)?;
                let pattern = self.constant(pattern)??;
                is_literal(pattern.as_str()?).then(|| self.key_is(level, [&pattern]))
            }
            ExprKind::Call { function, arguments } => self.call(function, arguments),
            _ => None,
        }
    }

    fn equal(&self, left: &Expr, right: &Expr) -> Option<AllowedKeys> {
        if let ExprKind::Call { function, arguments } = &left.kind {
            let [of] = arguments.as_slice() else { return None };
            let level = self.level(of).filter(|_| function.eq_ignore_ascii_case("ABS"))?;
            let size = self.constant(right)?.and_then(|value| value.as_number()).map_or(-1.0, |n| n.as_f64());
            let signs = [Value::from(size), Value::from(-size)];
            return Some(if size >= 0.0 { self.key_is(level, &signs) } else { no_keys() });
        }
        let level = self.level(left)?;
        Some(self.key_is(level, self.constant(right)?.iter()))
    }

    fn call(&self, function: &str, arguments: &[Expr]) -> Option<AllowedKeys> {
        let is = |name: &str| function.eq_ignore_ascii_case(name);
        match arguments {
            [of] if is("IS_NULL") => Some(self.key_is(self.level(of)?, [&Value::Null])),
            [of] if is("IS_BOOL") || is("IS_BOOLEAN") => {
                Some(self.key_is(self.level(of)?, [&Value::Bool(false), &Value::Bool(true)]))
            }
            [list, of, ..] if is("ARRAY_CONTAINS") || is("_TRY_ARRAY_CONTAINS") => {
                let level = self.level(of)?;
                let list = self.constant(list)?;
                Some(self.key_is(level, list.iter().filter_map(Value::as_array).flatten()))
            }
            [left, right, rest @ ..] if is("STRINGEQUALS") && rest.iter().all(|flag| self.is_false(flag)) => {
                self.equal_text(left, right).or_else(|| self.equal_text(right, left))
            }
            _ => None,
        }
    }

    fn equal_text(&self, left: &Expr, right: &Expr) -> Option<AllowedKeys> {
        let level = self.level(left)?;
        let text = self.constant(right)?;
        Some(self.key_is(level, text.iter().filter(|value| value.as_str().is_some())))
    }

    fn is_false(&self, expr: &Expr) -> bool {
        self.constant(expr) == Some(Some(Value::Bool(false)))
    }

    fn constant(&self, expr: &Expr) -> Option<Option<Value>> {
        constant(expr, self.bind, &self.memory)
    }

    /// The level of the key whose path this is.
    fn level(&self, expr: &Expr) -> Option<usize> {
        let ExprKind::Access { base, steps } = &expr.kind else { return None };
        let ExprKind::Name(name) = &base.kind else { return None };
        if name != self.root.name {
            return None;
        }
        let steps = steps.iter().map(|step| self.property(step)).collect::<Option<Vec<_>>>()?;
        let path = || self.root.path.iter().copied().chain(steps.iter().map(AsRef::as_ref));
        self.definition.paths.iter().position(|key| key.segments().iter().map(AsRef::<str>::as_ref).eq(path()))
    }

    fn property<'s>(&self, step: &'s AstStep) -> Option<Cow<'s, str>> {
        match step {
            AstStep::Property(name) => Some(Cow::Borrowed(name)),
            AstStep::Index(index) => match self.constant(index)?? {
                Value::String(name) => Some(Cow::Owned(name)),
                _ => None,
            },
        }
    }

    fn key_is<'v>(&self, level: usize, values: impl IntoIterator<Item = &'v Value>) -> AllowedKeys {
        let known = |component| {
            let mut known = vec![None; self.definition.paths.len()];
            known[level] = Some(component);
            known
        };
        bounded(values.into_iter().flat_map(components).map(known).collect())
    }
}

/// The key components of items with this value or an equal one; for 0 only its own, as in the service.
fn components(value: &Value) -> Vec<KeyComponent> {
    match KeyComponent::of_property(Some(value)) {
        KeyComponent::Number(n) if n.is_nan() => Vec::new(),
        KeyComponent::Number(0.0) if value.as_number().is_some_and(|n| n.as_f64().is_sign_negative()) => {
            vec![KeyComponent::Number(0.0), KeyComponent::Number(-0.0)]
        }
        component => vec![component],
    }
}

fn is_literal(pattern: &str) -> bool {
    !pattern.contains(['%', '_', '[', ']'])
}

fn no_keys() -> AllowedKeys {
    AllowedKeys::Among(HashSet::new())
}

fn bounded(keys: HashSet<PartialKey>) -> AllowedKeys {
    if keys.len() > KEYS_MAX { AllowedKeys::Any } else { AllowedKeys::Among(keys) }
}

/// The intersection. With too many pairs to compare it returns the smaller side, which contains the intersection.
fn intersect(one: AllowedKeys, other: AllowedKeys) -> AllowedKeys {
    let (one, other) = match (one, other) {
        (AllowedKeys::Any, allowed) | (allowed, AllowedKeys::Any) => return allowed,
        (AllowedKeys::Among(one), AllowedKeys::Among(other)) => (one, other),
    };
    if one.len().saturating_mul(other.len()) > PAIRS_MAX {
        return AllowedKeys::Among(if one.len() < other.len() { one } else { other });
    }
    let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
    bounded(pairs.filter_map(|(a, b)| merge_components(a, b)).collect())
}

fn unite(one: AllowedKeys, other: AllowedKeys) -> AllowedKeys {
    match (one, other) {
        (AllowedKeys::Among(mut one), AllowedKeys::Among(other)) => {
            one.extend(other);
            bounded(one)
        }
        _ => AllowedKeys::Any,
    }
}

/// The known components of both; `None` if they contradict each other.
fn merge_components(one: &PartialKey, other: &PartialKey) -> Option<PartialKey> {
    let level = |(a, b): (&Option<KeyComponent>, &Option<KeyComponent>)| match (a, b) {
        (Some(a), Some(b)) if a != b => None,
        (Some(known), _) | (None, Some(known)) => Some(Some(known.clone())),
        (None, None) => Some(None),
    };
    one.iter().zip(other).map(level).collect()
}

fn pruned_keys(keys: HashSet<PartialKey>, definition: &PartitionKeyDefinition) -> PrunedKeys {
    let mut prefixes = HashSet::new();
    for known in keys {
        match known_prefix(known, definition) {
            Some(key) => prefixes.insert(key),
            None => return PrunedKeys::All,
        };
    }
    let is_covered = |key: &PartitionKey| {
        let levels = key.components();
        (1..levels.len()).any(|n| prefixes.contains(&PartitionKey::new(levels[..n].to_vec())))
    };
    let mut keys: Vec<PartitionKey> = prefixes.iter().filter(|key| !is_covered(key)).cloned().collect();
    keys.sort_by_cached_key(|key| (key.effective(definition), key.to_json()));
    if keys.is_empty() { PrunedKeys::None } else { PrunedKeys::Keys(keys) }
}

/// The levels before the first unknown one; `None` if there are none.
fn known_prefix(known: PartialKey, definition: &PartitionKeyDefinition) -> Option<PartitionKey> {
    let levels: Vec<KeyComponent> = known.into_iter().map_while(|level| level).collect();
    let is_missing = definition.system_key && levels.iter().all(|level| *level == KeyComponent::Undefined);
    match levels.len() {
        0 => None,
        // Items without a key are at the empty key, not under these levels.
        n if is_missing && n < definition.paths.len() => None,
        _ if is_missing => Some(PartitionKey::new(Vec::new())),
        _ => Some(PartitionKey::new(levels)),
    }
}

#[cfg(test)]
mod tests;
