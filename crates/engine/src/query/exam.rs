//! The exam of query plans: whatever access path a plan has, over any partitions, in pages of any size, the rows are
//! those of a scan.
//!
//! Unit tests run it with seeds, a fuzzer with its bytes. A failure prints the smallest set of items that still shows
//! it.

// A panic is how an exam fails.
#![allow(clippy::unwrap_used)]

mod world; // random items in an account

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pleiad_model::partition_key::EpkRange;
use pleiad_model::{Kind, Object, Result, Value, json};
use pleiad_sql::block::{Block, Output};
use pleiad_sql::testing::{Choices, TestQuery, exam, query};
use tokio::runtime::Runtime;

pub use self::world::{Case, LIMITS, PARALLEL, QueryWorld, page_size};
use crate::query::{CrossPartition, ItemQuery, PageSize, QueryCursor, QueryPage, ReportOptions};
use crate::{Admitted, FeedRange};

const QUERIES_PER_WORLD: usize = 20;
pub const PAGES_MAX: usize = 3_000;
const TRUNCATED_KEY_BYTES: usize = 12;

/// One query, and how its pages are requested.
pub struct Question {
    pub query: TestQuery,
    pub block: Block,
    pub scope: FeedRange,
    pub size: PageSize,
    /// Cursors have truncated keys, as when a client limits the length of tokens.
    pub truncates_keys: bool,
    /// The largest partition is split after the first page. No later query uses that world.
    pub splits: bool,
}

/// How often each kind of access path was executed.
pub type PathCounts = BTreeMap<&'static str, usize>;

/// For a fuzzer.
pub fn every_access_path_returns_the_rows_of_a_scan(bytes: &[u8]) {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    RUNTIME.block_on(check_world(&mut Choices::of_bytes(bytes), "this input", &mut PathCounts::new()));
}

/// Random queries over random items; `again` tells how to reproduce a failure.
pub async fn check_world(chance: &mut Choices<'_>, again: &str, counts: &mut PathCounts) {
    let case = Case::random(chance);
    let world = QueryWorld::open(&case).await;
    let bare = QueryWorld::open(&case.without_index()).await;
    for at in 0..QUERIES_PER_WORLD {
        let asked = query(chance, &world.known);
        let (scope, keys) = world.scope(chance);
        let Some(block) = exam::compiled(&asked, case.geospatial) else {
            check_rejected(&world, &asked).await;
            continue;
        };
        let many = exam::scan(&block, &world.documents_in(&keys), case.geospatial).map_or(0, |rows| rows.rows.len());
        let (mut size, cut) = (page_size(chance, many), chance.once_in(6));
        // A query that names a partition key range fails when the range has been split.
        let splits = at + 1 == QUERIES_PER_WORLD && case.splits && !matches!(scope, FeedRange::PartitionKeyRange(_));
        if splits {
            size.rows = size.rows.min(many / 2).max(1); // there is a second page
        }
        let question = Question { query: asked, block, scope, size, truncates_keys: cut, splits };
        for (world, case) in [(&world, &case), (&bare, &case.without_index())] {
            if let Err(story) = check(world, &question, &keys, counts).await {
                let (case, story) = smallest(case, &question, story).await;
                panic!("{story}\n{case}again: {again}");
            }
        }
        if chance.is_exhausted() {
            break;
        }
    }
}

/// The engine rejects what `check` or `compile` rejects.
async fn check_rejected(world: &QueryWorld, asked: &TestQuery) {
    let size = PageSize { rows: 10, bytes: 1 << 20 };
    let answer =
        world.engine.query_items(&world.at, item_query(asked, FeedRange::Container, size, None, true), None).await;
    assert!(answer.result.is_err(), "{asked}");
}

/// Removes items as long as the result of the query is still wrong.
async fn smallest(case: &Case, question: &Question, story: String) -> (Case, String) {
    let (mut case, mut story) = (case.clone(), story);
    let mut chunk = case.items.len() / 2;
    while chunk > 0 {
        let mut at = 0;
        while at < case.items.len() {
            let mut less = case.clone();
            less.items.drain(at..(at + chunk).min(less.items.len()));
            let world = QueryWorld::open(&less).await;
            let keys = covered(&world, &question.scope);
            match check(&world, question, &keys, &mut PathCounts::new()).await {
                Err(again) => (case, story) = (less, again),
                Ok(()) => at += chunk,
            }
        }
        chunk /= 2;
    }
    (case, story)
}

pub fn covered(world: &QueryWorld, scope: &FeedRange) -> EpkRange {
    let definition = world.at.container().schema.key.as_ref().unwrap();
    match scope {
        FeedRange::Container => EpkRange::FULL,
        FeedRange::PartitionKeyRange(id) => {
            world.at.container().map.ranges().iter().find(|range| range.id == *id).unwrap().keys.clone()
        }
        FeedRange::EffectiveKeys(keys, _) => keys.clone(),
        FeedRange::PartitionKey(key) if key.matches_shape(definition) => EpkRange::of_point(key.effective(definition)),
        FeedRange::PartitionKey(key) => EpkRange::of_prefix(key.effective(definition)),
    }
}

pub async fn check(
    world: &QueryWorld,
    question: &Question,
    keys: &EpkRange,
    counts: &mut PathCounts,
) -> std::result::Result<(), String> {
    let documents = match is_scanned_by_key(question) {
        true => world.documents_by_key(keys, &question.query),
        false => world.documents_in(keys),
    };
    let geospatial = world.at.container().definition.geospatial;
    let want = exam::scan(&question.block, &documents, geospatial);
    let got = match pages(world, question, false, counts).await {
        // `ORDER BY` without its index is rejected, unless the client allows a sort.
        Err(error) if !question.block.order.is_empty() && error.kind == Kind::Invalid => {
            pages(world, question, true, counts).await
        }
        got => got,
    };
    // With a clock that jumps, a query that has to read all items times out.
    if got.as_ref().is_err_and(|error| error.kind == Kind::TimedOut) {
        return Ok(());
    }
    let failure = |what: &str| {
        let Question { query: asked, scope, size, truncates_keys: cut, splits, .. } = question;
        let how = [(*cut, ", after truncated keys"), (*splits, ", split after the first page")];
        let how = how.into_iter().filter(|(is, _)| *is).map(|(_, how)| how).collect::<String>();
        format!("{what}\n{asked}\nin {scope:?} by {size:?}{how}")
    };
    match (want, got) {
        (Ok(want), Ok(got)) => {
            let (mut got, mut want): (Vec<Vec<u8>>, Vec<Vec<u8>>) =
                (got, want.rows.iter().map(<[u8]>::to_vec).collect());
            if question.splits && !is_sorted(&question.block) {
                sort_both(question, &mut got, &mut want);
            }
            let same =
                got.len() == want.len() && got.iter().zip(&want).all(|(got, want)| is_equivalent(question, got, want));
            let lines = |rows: &mut dyn Iterator<Item = &[u8]>| {
                rows.map(|row| format!("  {}\n", String::from_utf8_lossy(row))).collect::<String>()
            };
            let (got, want) = (lines(&mut got.iter().map(Vec::as_slice)), lines(&mut want.iter().map(Vec::as_slice)));
            if same { Ok(()) } else { Err(failure(&format!("got\n{got}instead of\n{want}for"))) }
        }
        (Err(_), Err(_)) => Ok(()),
        (Err(want), Ok(_)) => Err(failure(&format!("rows instead of the error: {want}"))),
        (Ok(_), Err(got)) => Err(failure(&format!("failed: {got}"))),
    }
}

/// Unordered rows come from one partition key after the other if the filter names several.
fn is_scanned_by_key(question: &Question) -> bool {
    question.scope == FeedRange::Container && !is_sorted(&question.block)
}

fn is_sorted(block: &Block) -> bool {
    block.distinct || !block.order.is_empty() || matches!(block.output, Output::Groups(..))
}

/// After a split, the remaining rows come in the order of the new partitions; which rows a limit returns is undefined,
/// but not how many.
fn sort_both(question: &Question, got: &mut [Vec<u8>], want: &mut [Vec<u8>]) {
    got.sort_unstable();
    want.sort_unstable();
    if question.block.take.is_some() && want.len() == got.len() {
        want.clone_from_slice(got);
    }
}

pub fn item_query(
    asked: &TestQuery,
    scope: FeedRange,
    size: PageSize,
    from: Option<QueryCursor>,
    enable_scan: bool,
) -> ItemQuery {
    ItemQuery {
        text: asked.text.clone(),
        parameters: asked.parameters(),
        scope,
        cross_partition: CrossPartition::ByServer,
        size,
        from,
        resume: None,
        enable_scan,
        report: ReportOptions { indexes: true, times: true, advice: false },
    }
}

/// Reads all pages, and checks the size of each.
async fn pages(
    world: &QueryWorld,
    question: &Question,
    enable_scan: bool,
    counts: &mut PathCounts,
) -> Result<Vec<Vec<u8>>> {
    let (mut rows, mut from, mut at) = (Vec::new(), None, world.at.clone());
    for page_number in 0..PAGES_MAX {
        if page_number == 1 && question.splits {
            at = world.split().await;
            let is_split = at.container().partitions.len() > world.at.container().partitions.len();
            *counts.entry("over a split").or_default() += usize::from(is_split);
        }
        let page = page(world, &at, question, from, enable_scan, counts).await?;
        assert!(page.rows.len() <= question.size.rows);
        assert!(page.rows.len() < 2 || page.rows.bytes() <= question.size.bytes);
        page.report.access_paths.iter().for_each(|(path, _)| *counts.entry(kind_of(path)).or_default() += 1);
        rows.extend(page.rows.iter().map(<[u8]>::to_vec));
        from = match page.next {
            Some(next) => Some(next),
            None => return Ok(rows),
        };
    }
    panic!("pages without an end: {}", question.query);
}

/// The page after a truncated key or, if the truncated key is ambiguous, after the whole one.
async fn page(
    world: &QueryWorld,
    at: &Admitted,
    question: &Question,
    from: Option<QueryCursor>,
    enable_scan: bool,
    counts: &mut PathCounts,
) -> Result<QueryPage> {
    let ask = |from| {
        let query = item_query(&question.query, question.scope.clone(), question.size, from, enable_scan);
        world.engine.query_items(at, query, None)
    };
    if let Some(from) = from.as_ref().filter(|_| question.truncates_keys) {
        let cut = from.shortened(TRUNCATED_KEY_BYTES);
        let is_cut = cut != *from;
        match ask(Some(cut)).await.result {
            Err(error) if error.to_string().contains("cannot be told") => {}
            told => {
                *counts.entry("behind a cut key").or_default() += usize::from(is_cut);
                return told;
            }
        }
    }
    ask(from).await.result
}

fn kind_of(path: &str) -> &'static str {
    match path {
        "scan" => "scan",
        path if path.ends_with(" in order") || path.ends_with(" backwards") => "order",
        path if path.starts_with("index (") => "composite",
        path if path.contains("index ") => "index",
        _ => "key",
    }
}

/// Byte for byte; but groups and distinct rows may be represented by any of their rows, and sums may round.
fn is_equivalent(question: &Question, got: &[u8], want: &[u8]) -> bool {
    let is_any_of_several = question.block.distinct || matches!(question.block.output, Output::Groups(..));
    let value = |row: &[u8]| normalized(json::parse(row).unwrap());
    got == want || is_any_of_several && nearly_equal(&value(got), &value(want))
}

/// `MAKELIST` returns its values in scan order, and equal numbers are the same, however they are written.
fn normalized(value: Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(normalized).collect();
            items.sort_by_cached_key(json::to_string);
            items.into()
        }
        Value::Object(object) => {
            let members = object.iter().map(|(name, value)| (name, normalized(value.clone())));
            members.fold(Object::new(), |object, (name, value)| object.with(name, value)).into()
        }
        Value::Number(number) => Value::from(number.as_f64() + 0.0),
        value => value,
    }
}

fn nearly_equal(got: &Value, want: &Value) -> bool {
    match (got, want) {
        (Value::Number(got), Value::Number(want)) => {
            let (got, want) = (got.as_f64(), want.as_f64());
            (got - want).abs() <= 1e-9 * got.abs().max(want.abs())
        }
        (Value::Array(got), Value::Array(want)) => {
            got.len() == want.len() && got.iter().zip(want).all(|(got, want)| nearly_equal(got, want))
        }
        (Value::Object(got), Value::Object(want)) => {
            got.len() == want.len()
                && got.iter().all(|(name, got)| want.get(name).is_some_and(|want| nearly_equal(got, want)))
        }
        (got, want) => got == want,
    }
}
