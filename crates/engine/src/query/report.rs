//! How a page was made: what was read, which index found what, and which index would have helped.

use std::collections::BTreeMap;
use std::time::Duration;

use pleiad_model::policy::{Step, VectorIndexType};
use pleiad_partition::index::UsableIndex;
use pleiad_query::access::{Condition, Lookup, Nearest, OrderPath, Relevant, What, path_text};
use pleiad_query::run::RowSet;

use super::choose::{Choice, Ordering};

/// How many of a filter's conditions are told of.
const LOOKUPS_TOLD: usize = 32;

/// What reading cost.
#[derive(Debug, Default)]
pub struct Work {
    pub slices: usize,
    pub items: u64,
    pub item_bytes: u64,
    pub index_rows: u64,
    /// From the text to something that can be run.
    pub compiling: Duration,
    /// Finding out what the index knows, on all threads together.
    pub looking_up: Duration,
    /// Getting items, and making rows of them, if somebody wants to know; on all threads together.
    pub loading: Duration,
    pub evaluating: Duration,
    /// Partition and way, in order of the partitions.
    pub ways: BTreeMap<u32, String>,
}

impl Work {
    pub fn add(&mut self, other: Work) {
        self.slices += other.slices;
        self.items += other.items;
        self.item_bytes += other.item_bytes;
        self.index_rows += other.index_rows;
        self.compiling += other.compiling;
        self.looking_up += other.looking_up;
        self.loading += other.loading;
        self.evaluating += other.evaluating;
        self.ways.extend(other.ways);
    }

    pub fn chose(&mut self, range: u32, choice: &Choice) {
        self.slices += 1;
        let way = match choice {
            Choice::Scan => "scan".to_owned(),
            Choice::Members(_) => "items of one partition key".to_owned(),
            Choice::Part(_) => "items of a range of partition keys".to_owned(),
            Choice::Found(found) => {
                self.index_rows += found.len() as u64;
                "index".to_owned()
            }
            Choice::Walk(walk) if walk.backward => format!("index {} backwards", walk.name),
            Choice::Walk(walk) => format!("index {}", walk.name),
            Choice::Nearest(nearby) => match (nearby.list, nearby.rule.index) {
                (None, _) => format!("vector index {}, every vector", nearby.name),
                (Some(_), VectorIndexType::DiskAnn) => format!("vector index {}, graph", nearby.name),
                (Some(_), _) => format!("vector index {}, codes", nearby.name),
            },
            Choice::Count(_) => "count of items".to_owned(),
            Choice::Tally(_) => "full-text statistics".to_owned(),
        };
        self.ways.insert(range, way);
    }
}

impl Work {
    /// Items were found in another way than was chosen first.
    pub fn found(&mut self, range: u32, way: String, rows: usize) {
        self.index_rows += rows as u64;
        self.ways.insert(range, way);
    }
}

/// What clients can ask to be told.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub items: u64,
    pub item_bytes: u64,
    pub rows: u64,
    pub row_bytes: u64,
    pub index_rows: u64,
    pub compiling: Duration,
    pub looking_up: Duration,
    /// Zero, as are the calls, unless it was asked for.
    pub loading: Duration,
    /// Of user-defined functions.
    pub calling: Duration,
    /// Way and number of partitions that went it.
    pub ways: Vec<(String, usize)>,
    pub single: Vec<IndexUse>,
    pub composite: Vec<IndexUse>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexUse {
    /// `/a/?`, or `/a ASC`, `/b DESC`.
    pub specs: Vec<String>,
    /// It is there and was at hand; otherwise it would have helped.
    pub utilized: bool,
    /// It finds exactly what the filter asks for.
    pub precise: bool,
    pub impact_is_high: bool,
}

impl Report {
    /// The same work, for a query that makes other rows of it.
    pub fn giving(self, rows: &RowSet) -> Self {
        Report { rows: rows.len() as u64, row_bytes: rows.bytes() as u64, ..self }
    }

    /// Both together, for a page that took several queries.
    pub fn and(mut self, other: Report) -> Self {
        self.items += other.items;
        self.item_bytes += other.item_bytes;
        self.index_rows += other.index_rows;
        self.compiling += other.compiling;
        self.looking_up += other.looking_up;
        self.loading += other.loading;
        self.calling = self.calling.max(other.calling); // one page, one sum
        for (way, partitions) in other.ways {
            match self.ways.iter_mut().find(|(known, _)| *known == way) {
                Some((_, known)) => *known = partitions.max(*known),
                None => self.ways.push((way, partitions)),
            }
        }
        other.single.into_iter().for_each(|seen| self.note(seen));
        self.composite.extend(other.composite);
        self
    }

    pub fn new(work: &Work, rows: &RowSet) -> Self {
        let mut ways: Vec<(String, usize)> = Vec::new();
        for way in work.ways.values() {
            match ways.iter_mut().find(|(known, _)| known == way) {
                Some((_, partitions)) => *partitions += 1,
                None => ways.push((way.clone(), 1)),
            }
        }
        Report {
            items: work.items,
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
        }
    }

    /// Which indexes the filter and the order speak to.
    pub fn with_indexes(
        mut self,
        condition: Option<&Condition<'_>>,
        order: &[OrderPath],
        ordering: &Ordering,
        index: UsableIndex<'_>,
    ) -> Self {
        let mut lookups = Vec::new();
        condition.iter().for_each(|condition| gather(condition, &mut lookups));
        // It has to fit into a header.
        lookups.truncate(LOOKUPS_TOLD);
        for lookup in &lookups {
            self.note(use_of(lookup, index));
        }
        match ordering {
            Ordering::Path { path, .. } => self.note(single(&path.path, true, true, true)),
            Ordering::Composite { .. } => self.composite.push(composite(order, true)),
            Ordering::Sort if order.len() > 1 => self.composite.push(composite(order, false)),
            Ordering::None | Ordering::Sort => {}
        }
        self.suggest(&lookups);
        self
    }

    /// The vector index that the order speaks to.
    pub fn with_nearest(mut self, nearest: Option<&Nearest<'_>>, index: UsableIndex<'_>) -> Self {
        if let Some(nearest) = nearest {
            let utilized = index.vector(&nearest.path).is_some_and(|rule| rule.fits(&nearest.measure));
            let specs = vec![path_text(&nearest.path)];
            self.note(IndexUse { specs, utilized, precise: true, impact_is_high: true });
        }
        self
    }

    /// Which full-text indexes the filter and the order speak to.
    pub fn with_texts(
        mut self,
        condition: Option<&Condition<'_>>,
        relevant: Option<&Relevant<'_>>,
        index: UsableIndex<'_>,
    ) -> Self {
        let mut paths = Vec::new();
        condition.iter().for_each(|condition| texts(condition, &mut paths));
        relevant.iter().for_each(|relevant| texts(&relevant.condition, &mut paths));
        for path in paths {
            let (specs, utilized) = (vec![path_text(path)], index.full_text(path).is_some());
            self.note(IndexUse { specs, utilized, precise: true, impact_is_high: true });
        }
        self
    }

    /// Partition keys route a request; the service counts that as an index on their paths.
    pub fn with_keys<'k>(mut self, paths: impl Iterator<Item = &'k str>) -> Self {
        for path in paths {
            self.note(IndexUse {
                specs: vec![format!("{path}/?")],
                utilized: true,
                precise: true,
                impact_is_high: true,
            });
        }
        self
    }

    fn note(&mut self, seen: IndexUse) {
        if !self.single.iter().any(|known| known.specs == seen.specs) {
            self.single.push(seen);
        }
    }

    /// Two or more filters on different paths, the last of which may be a range, can share a composite index.
    fn suggest(&mut self, lookups: &[&Lookup<'_>]) {
        let is_plain = |lookup: &&&Lookup<'_>| {
            lookup.path.iter().all(|step| matches!(step, pleiad_model::policy::Step::Property(_)))
        };
        let mut equal: Vec<String> = Vec::new();
        let mut ranges: Vec<String> = Vec::new();
        for lookup in lookups.iter().filter(is_plain) {
            let spec = format!("{} ASC", path_text(&lookup.path));
            match lookup.what {
                What::Equal(_) if !equal.contains(&spec) => equal.push(spec),
                What::Range(..) if !ranges.contains(&spec) => ranges.push(spec),
                _ => {}
            }
        }
        ranges.truncate(1);
        if equal.is_empty() || equal.len() + ranges.len() < 2 || !self.composite.is_empty() {
            return;
        }
        equal.extend(ranges);
        self.composite.push(IndexUse { specs: equal, utilized: false, precise: true, impact_is_high: true });
    }
}

fn gather<'c, 'b>(condition: &'c Condition<'b>, found: &mut Vec<&'c Lookup<'b>>) {
    match condition {
        Condition::Is(lookup) => found.push(lookup),
        Condition::All(all) | Condition::Any(all) => all.iter().for_each(|condition| gather(condition, found)),
        Condition::Nothing | Condition::Near(_) | Condition::Word(_) => {}
    }
}

/// The paths whose texts are searched.
fn texts<'c>(condition: &'c Condition<'_>, found: &mut Vec<&'c [Step]>) {
    match condition {
        Condition::Word(word) if !found.contains(&word.path.as_slice()) => found.push(&word.path),
        Condition::All(all) | Condition::Any(all) => all.iter().for_each(|condition| texts(condition, found)),
        _ => {}
    }
}

fn use_of(lookup: &Lookup<'_>, index: UsableIndex<'_>) -> IndexUse {
    let precise = matches!(lookup.what, What::Equal(_) | What::Range(..) | What::Prefix(_));
    single(&lookup.path, index.indexes(&lookup.path), precise, precise)
}

fn single(path: &[pleiad_model::policy::Step], utilized: bool, precise: bool, impact_is_high: bool) -> IndexUse {
    IndexUse { specs: vec![format!("{}/?", path_text(path))], utilized, precise, impact_is_high }
}

fn composite(order: &[OrderPath], utilized: bool) -> IndexUse {
    let spec = |key: &OrderPath| format!("{} {}", path_text(&key.path), if key.descending { "DESC" } else { "ASC" });
    IndexUse { specs: order.iter().map(spec).collect(), utilized, precise: true, impact_is_high: true }
}
