//! The property: whatever way a plan goes, over any partitions, in pages of any size, the rows are those of a scan.
//!
//! A failure prints the smallest set of items that still shows it, with the seed of its world:
//!
//! ```text
//! again: PLEIAD_PLAN_SEED=17 cargo test --release -p pleiad-engine query::tests::plan
//! longer: PLEIAD_PLAN_WORLDS=5000 cargo test …
//! ```

use std::collections::BTreeMap;

use pleiad_model::{Kind, Result, Value, json};
use pleiad_query::access::order_paths;
use pleiad_query::block::{Block, Output};
use pleiad_query::testing::{Asked, Chance, exam, query};

use super::world::{Case, SHARED, World, size};
use crate::query::{Across, ItemQuery, PageSize, QueryCursor, QueryPage, Tell};
use crate::{ListScope, Quota};

const WORLDS: u64 = 200;
const QUERIES_PER_WORLD: usize = 20;
const PAGES_MAX: usize = 3_000;

/// One query, and how its pages are asked for.
struct Question {
    asked: Asked,
    block: Block,
    scope: ListScope,
    size: PageSize,
    /// Cursors are found again by counting, as when a client wants short tokens.
    counted: bool,
}

/// How often each way was gone.
type Ways = BTreeMap<&'static str, usize>;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_plan_gives_what_a_scan_gives() {
    let mut ways = Ways::new();
    let only = setting("PLEIAD_PLAN_SEED");
    let from = only.unwrap_or_else(|| setting("PLEIAD_PLAN_FROM").unwrap_or(0));
    let worlds = if only.is_some() { 1 } else { setting("PLEIAD_PLAN_WORLDS").unwrap_or(WORLDS) };
    for seed in from..from + worlds {
        check_world(seed, &mut ways).await;
    }
    if only.is_none() {
        for way in ["scan", "key", "index", "composite", "order"] {
            assert!(ways.get(way).is_some_and(|times| *times > 10), "{way} is hardly ever gone: {ways:?}");
        }
    }
}

async fn check_world(seed: u64, ways: &mut Ways) {
    let chance = &mut Chance::of_seed(seed);
    let case = Case::by_chance(chance);
    let world = World::open(&case).await;
    let bare = World::open(&case.without_index()).await;
    for _ in 0..QUERIES_PER_WORLD {
        let asked = query(chance, &world.known);
        let (scope, keys) = world.scope(chance);
        let Some(block) = exam::compiled(&asked) else {
            refused_alike(&world, &asked).await;
            continue;
        };
        let many = exam::scan(&block, &world.within(&keys), true).map_or(0, |rows| rows.rows.len());
        let question = Question { asked, block, scope, size: size(chance, many), counted: chance.once_in(6) };
        for (world, case) in [(&world, &case), (&bare, &case.without_index())] {
            if let Err(story) = check(world, &question, &keys, ways).await {
                let (case, story) = smallest(case, &question, story).await;
                panic!("{story}\n{case}again: PLEIAD_PLAN_SEED={seed}");
            }
        }
    }
}

/// What `check` or `compile` refuses is refused here.
async fn refused_alike(world: &World, asked: &Asked) {
    let size = PageSize { rows: 10, bytes: 1 << 20 };
    let answer = world.engine.query_items(&world.at, sent(asked, ListScope::Container, size, None, true), None).await;
    assert!(answer.result.is_err(), "{asked}");
}

/// Leaves out items as long as the question is still answered wrongly.
async fn smallest(case: &Case, question: &Question, story: String) -> (Case, String) {
    let (mut case, mut story) = (case.clone(), story);
    let mut chunk = case.items.len() / 2;
    while chunk > 0 {
        let mut at = 0;
        while at < case.items.len() {
            let mut less = case.clone();
            less.items.drain(at..(at + chunk).min(less.items.len()));
            let world = World::open(&less).await;
            let keys = covered(&world, &question.scope);
            match check(&world, question, &keys, &mut Ways::new()).await {
                Err(again) => (case, story) = (less, again),
                Ok(()) => at += chunk,
            }
        }
        chunk /= 2;
    }
    (case, story)
}

fn covered(world: &World, scope: &ListScope) -> pleiad_model::partition_key::KeyRange {
    use pleiad_model::partition_key::KeyRange;
    let definition = world.at.container.schema.key.as_ref().unwrap();
    match scope {
        ListScope::Container => KeyRange::FULL,
        ListScope::Range(id) => {
            world.at.container.map.ranges().iter().find(|range| range.id == *id).unwrap().keys.clone()
        }
        ListScope::Keys(keys, _) => keys.clone(),
        ListScope::Key(key) if key.matches_shape(definition) => KeyRange::of_point(key.effective(definition)),
        ListScope::Key(key) => KeyRange::of_prefix(key.effective(definition)),
    }
}

async fn check(
    world: &World,
    question: &Question,
    keys: &pleiad_model::partition_key::KeyRange,
    ways: &mut Ways,
) -> std::result::Result<(), String> {
    let documents = match arrives_by_key(question) {
        true => world.by_key(keys, &question.asked),
        false => world.within(keys),
    };
    let want = exam::scan(&question.block, &documents, keeps_undefined(world, &question.block));
    let got = match pages(world, question, false, ways).await {
        // `ORDER BY` without its index is refused, unless the client allows a sort.
        Err(error) if !question.block.order.is_empty() && error.kind == Kind::Invalid => {
            pages(world, question, true, ways).await
        }
        got => got,
    };
    // Where time flies, what has to see everything does not get far.
    if got.as_ref().is_err_and(|error| error.kind == Kind::TimedOut) {
        return Ok(());
    }
    let told = |what: &str| {
        let Question { asked, scope, size, counted, .. } = question;
        format!("{what}\n{asked}\nin {scope:?} by {size:?}{}", if *counted { ", counted" } else { "" })
    };
    match (want, got) {
        (Ok(want), Ok(got)) => {
            let want: Vec<&[u8]> = want.rows.iter().collect();
            let same = got.len() == want.len() && got.iter().zip(&want).all(|(got, want)| alike(question, got, want));
            let lines = |rows: &mut dyn Iterator<Item = &[u8]>| {
                rows.map(|row| format!("  {}\n", String::from_utf8_lossy(row))).collect::<String>()
            };
            let (got, want) = (lines(&mut got.iter().map(Vec::as_slice)), lines(&mut want.into_iter()));
            if same { Ok(()) } else { Err(told(&format!("got\n{got}instead of\n{want}for"))) }
        }
        (Err(_), Err(_)) => Ok(()),
        (Err(want), Ok(_)) => Err(told(&format!("rows instead of the error: {want}"))),
        (Ok(_), Err(got)) => Err(told(&format!("failed: {got}"))),
    }
}

/// Rows that nobody sorts come from one partition key after the other when the filter names several.
fn arrives_by_key(question: &Question) -> bool {
    let Block { output, distinct, order, .. } = &question.block;
    let is_sorted = *distinct || !order.is_empty() || matches!(output, Output::Groups(..));
    question.scope == ListScope::Container && !is_sorted
}

/// An item without the key of `ORDER BY` is there when the policy names the path.
fn keeps_undefined(world: &World, block: &Block) -> bool {
    let index = world.at.container.schema.usable_index();
    match order_paths(block).as_deref() {
        Some([key]) => index.indexes(&key.path) && index.is_explicit(&key.path),
        _ => false,
    }
}

fn sent(asked: &Asked, scope: ListScope, size: PageSize, from: Option<QueryCursor>, enable_scan: bool) -> ItemQuery {
    ItemQuery {
        text: asked.text.clone(),
        parameters: asked.parameters(),
        scope,
        across: Across::ByServer,
        size,
        from,
        enable_scan,
        tell: Tell { indexes: true, times: true, advice: false },
    }
}

/// Reads to the end; every page keeps its size.
async fn pages(world: &World, question: &Question, enable_scan: bool, ways: &mut Ways) -> Result<Vec<Vec<u8>>> {
    let (mut rows, mut from) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let query = sent(&question.asked, question.scope.clone(), question.size, from, enable_scan);
        let page = world.engine.query_items(&world.at, query, None).await.result?;
        assert!(page.rows.len() <= question.size.rows);
        assert!(page.rows.len() < 2 || page.rows.bytes() <= question.size.bytes);
        page.report.ways.iter().for_each(|(way, _)| *ways.entry(kind_of(way)).or_default() += 1);
        rows.extend(page.rows.iter().map(<[u8]>::to_vec));
        from = match page.next {
            Some(next) if question.counted => Some(next.counted()),
            Some(next) => Some(next),
            None => return Ok(rows),
        };
    }
    panic!("pages without an end: {}", question.asked);
}

fn kind_of(way: &str) -> &'static str {
    match way {
        "scan" => "scan",
        way if way.ends_with(" in order") || way.ends_with(" backwards") => "order",
        way if way.starts_with("index (") => "composite",
        way if way.contains("index ") => "index",
        _ => "key",
    }
}

/// Byte for byte; groups and distinct rows are told by one of their rows, and which one is open, and sums may round.
fn alike(question: &Question, got: &[u8], want: &[u8]) -> bool {
    let is_told_by_one = question.block.distinct || matches!(question.block.output, Output::Groups(..));
    got == want || is_told_by_one && near(&json::parse(got).unwrap(), &json::parse(want).unwrap())
}

fn near(got: &Value, want: &Value) -> bool {
    match (got, want) {
        (Value::Number(got), Value::Number(want)) => {
            let (got, want) = (got.as_f64(), want.as_f64());
            (got - want).abs() <= 1e-9 * got.abs().max(want.abs())
        }
        (Value::Array(got), Value::Array(want)) => {
            got.len() == want.len() && got.iter().zip(want).all(|(got, want)| near(got, want))
        }
        (Value::Object(got), Value::Object(want)) => {
            got.len() == want.len() && got.iter().all(|(name, got)| want.get(name).is_some_and(|want| near(got, want)))
        }
        (got, want) => got == want,
    }
}

/// Items come and go while a client reads: pages go on and end, whatever it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_go_on_while_items_change() {
    for seed in 0..12 {
        let chance = &mut Chance::of_seed(seed + 1_000_000);
        let case = Case::by_chance(chance);
        let world = World::open(&case).await;
        for _ in 0..6 {
            let asked = query(chance, &world.known);
            if exam::compiled(&asked).is_none() {
                continue;
            }
            let size = PageSize { rows: 1 + chance.below(4), bytes: 1 << 20 };
            let mut from = None;
            for page in 0.. {
                assert!(page < PAGES_MAX, "pages without an end: {asked}");
                let query = sent(&asked, ListScope::Container, size, from, true);
                let answer = world.engine.query_items(&world.at, query, None).await;
                let page = match answer.result {
                    // In some worlds the clock jumps whenever someone looks at it.
                    Err(error) if error.kind == Kind::TimedOut && case.step_ms > 0 => break,
                    result => result.unwrap_or_else(|error| panic!("{error}: {asked}\n{case}seed {seed}")),
                };
                assert!(page.rows.len() <= size.rows);
                let Some(next) = page.next else { break };
                from = Some(next);
                world.disturb(chance, &case).await;
            }
        }
        let all = world.engine.list_items(&world.at, &ListScope::Container, None, Quota { items: 1, bytes: 1 }, None);
        assert!(all.await.result.is_ok());
    }
}

/// Items with these values at `s` among many without, and what a query says of them by pages of one row.
async fn check_known(policy: &str, values: &[String], fillers: usize, sql: &str) {
    let item = |at: usize, s: Option<&String>| {
        let item = pleiad_model::Object::new().with("id", at.to_string()).with("pk", at as i64);
        (Value::from(s.map_or(item.clone(), |s| item.with("s", s.as_str()).with("a", 1i64))), None)
    };
    let known = values.iter().map(Some).chain(std::iter::repeat_n(None, fillers));
    let items = known.enumerate().map(|(at, s)| item(at, s)).collect();
    let policy = json::parse(policy.as_bytes()).unwrap();
    let world = World::open(&Case::of(policy, 1, items)).await;
    let asked = Asked { text: sql.to_owned(), parameters: Vec::new() };
    let block = exam::compiled(&asked).unwrap();
    let size = PageSize { rows: 1, bytes: 1 << 20 };
    let question = Question { asked, block, scope: ListScope::Container, size, counted: false };
    let keys = covered(&world, &question.scope);
    if let Err(story) = check(&world, &question, &keys, &mut Ways::new()).await {
        panic!("{story}");
    }
}

/// Rows in order of arrival end a page when its time is over; what needs all items is given up after a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_has_to_see_everything_is_given_up_after_a_minute() {
    let item =
        |at: i64| (pleiad_model::Object::new().with("id", at.to_string()).with("pk", at).with("n", at).into(), None);
    let policy = json::parse(br#"{"indexingMode":"none","automatic":false}"#).unwrap();
    let case = |step_ms| Case { step_ms, ..Case::of(policy.clone(), 3, (0..9).map(item).collect()) };
    for (step_ms, ends) in [(1, true), (61_000, false)] {
        let world = World::open(&case(step_ms)).await;
        let asked = Asked { text: "SELECT VALUE MAX(c.n) FROM c WHERE c.n > 0".to_owned(), parameters: Vec::new() };
        let sent = sent(&asked, ListScope::Container, PageSize { rows: 10, bytes: 1 << 20 }, None, true);
        match world.engine.query_items(&world.at, sent, None).await.result {
            Ok(page) => assert!(ends && page.rows.iter().eq([b"8"])),
            Err(error) => assert!(!ends && error.kind == Kind::TimedOut, "{error}"),
        }
    }
}

/// A query that fails half-way has read what it has read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_fails_is_paid_for() {
    let item =
        |at: i64| (pleiad_model::Object::new().with("id", at.to_string()).with("pk", at).with("n", at).into(), None);
    let policy = json::parse(br#"{"indexingMode":"none","automatic":false}"#).unwrap();
    let mut most_ru: f64 = 0.0;
    for step_ms in (1..60).map(|seconds| seconds * 1000) {
        let case = Case::of(policy.clone(), 3, (0..90).map(item).collect());
        let world = World::open(&Case { step_ms, ..case }).await;
        let asked = Asked { text: "SELECT VALUE MAX(c.n) FROM c WHERE c.n > 0".to_owned(), parameters: Vec::new() };
        let sent = sent(&asked, ListScope::Container, PageSize { rows: 10, bytes: 1 << 20 }, None, true);
        let answer = world.engine.query_items(&world.at, sent, None).await;
        if answer.result.is_err() {
            most_ru = most_ru.max(answer.charge_ru);
        }
    }
    // Two of three partitions were read before the time was over.
    assert!(most_ru > 2.0 * pleiad_partition::price::QUERY_RU, "{most_ru}");
}

/// Short queries are tried on the spot. One that turns out to be long is done again on a thread, and counts once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_moves_to_a_thread_counts_once() {
    let item =
        |at: i64| (pleiad_model::Object::new().with("id", at.to_string()).with("pk", at).with("n", at).into(), None);
    let (items, policy) = ((0..2000).map(item).collect(), json::parse(b"{}").unwrap());
    let world = World::open(&Case::of(policy, 1, items)).await;
    let usage = || world.at.container.partitions[0].governor.usage();
    for filter in ["c.n = 3", "c.n + 1 = 4", "EXISTS(SELECT VALUE 1 WHERE c.n = 3)"] {
        let (requests, total_ru) = (usage().requests(), usage().total_ru());
        let asked = Asked { text: format!("SELECT VALUE c.id FROM c WHERE {filter}"), parameters: Vec::new() };
        let sent = sent(&asked, ListScope::Container, PageSize { rows: 10, bytes: 1 << 20 }, None, true);
        let answer = world.engine.query_items(&world.at, sent, None).await;
        assert!(answer.result.unwrap().rows.iter().eq([br#""3""#]), "{filter}");
        assert_eq!(usage().requests(), requests + 1, "{filter}");
        assert!((usage().total_ru() - total_ru - answer.charge_ru).abs() < 0.011, "{filter}");
    }
}

/// Pieces are nobody's business: not on the bill, and not in the report.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_is_shared_out_says_and_costs_what_it_does_alone() {
    let item = |at: i64| {
        let item = pleiad_model::Object::new().with("id", at.to_string()).with("pk", at);
        (item.with("n", at as f64 / 10.0).with("even", at % 2 == 0).into(), None)
    };
    let case = Case::of(json::parse(b"{}").unwrap(), 2, (0..500).map(item).collect());
    let alone = World::open(&case).await;
    let shared = World::open(&Case { sharing: SHARED, ..case }).await;
    for sql in [
        "SELECT VALUE COUNT(1) FROM c WHERE c.n * 2 > 5",
        "SELECT c.even, MAX(c.n) AS most, COUNT(1) AS items FROM c GROUP BY c.even",
        "SELECT VALUE COUNT(c.pk) FROM c WHERE c.even = true AND c.n > 3",
        "SELECT DISTINCT VALUE c.pk % 7 FROM c",
        "SELECT VALUE MAKELIST(c.pk) FROM c WHERE c.n * 2 > 90",
    ] {
        let mut told = Vec::new();
        for world in [&alone, &shared] {
            let asked = Asked { text: sql.to_owned(), parameters: Vec::new() };
            let sent = sent(&asked, ListScope::Container, PageSize { rows: 100, bytes: 1 << 20 }, None, true);
            let answer = world.engine.query_items(&world.at, sent, None).await;
            let QueryPage { rows, report, .. } = answer.result.unwrap();
            let rows: Vec<_> = rows.iter().map(<[u8]>::to_vec).collect();
            told.push((rows, answer.charge_ru, report.items, report.index_rows, report.ways));
        }
        assert_eq!(told[0], told[1], "{sql}");
    }
}

/// An index tells strings longer than 1,000 bytes apart (300 in a composite index), but does not order them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_in_the_order_of_long_strings() {
    const COMPOSITE: &str = r#"{"compositeIndexes":[[{"path":"/s"},{"path":"/a","order":"descending"}]]}"#;
    for length in [299, 300, 301, 999, 1000, 1001] {
        let long = "x".repeat(length);
        let values: Vec<String> = ["e", "a", "", "c", "b", "\u{0}", "ex"].map(|end| format!("{long}{end}")).into();
        let others = ["x", "xy", "y", "z", "a"].map(str::to_owned);
        let values = [values.as_slice(), &others].concat();
        for direction in ["ASC", "DESC"] {
            check_known("{}", &values, 200, &format!("SELECT VALUE c.id FROM c ORDER BY c.s {direction}")).await;
            let other = if direction == "ASC" { "DESC" } else { "ASC" };
            let sql = format!("SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.s) ORDER BY c.s {direction}, c.a {other}");
            check_known(COMPOSITE, &values, 200, &sql).await;
        }
    }
}
