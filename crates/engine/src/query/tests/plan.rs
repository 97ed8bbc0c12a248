//! The exam of query plans, with a number of seeds; and single cases of it.
//!
//! A failure prints the smallest set of items that still shows it, with the seed of its world:
//!
//! ```text
//! again: PLEIAD_PLAN_SEED=17 cargo test --release -p pleiad-engine query::tests::plan
//! longer: PLEIAD_PLAN_WORLDS=5000 cargo test …
//! without an end: cargo +nightly fuzz run worlds
//! ```

use pleiad_model::policy::Geospatial;
use pleiad_model::{Kind, Value, json};
use pleiad_sql::testing::{Choices, TestQuery, exam, query};

use crate::query::exam::{
    Case, PAGES_MAX, PARALLEL, PathCounts, QueryWorld, Question, check, check_world, covered,
    every_access_path_returns_the_rows_of_a_scan, item_query,
};
use crate::query::{PageSize, QueryPage};
use crate::{FeedRange, PageLimit};

const WORLDS: u64 = 260;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worlds_by_seed_pass_the_exam() {
    let mut counts = PathCounts::new();
    let only = setting("PLEIAD_PLAN_SEED");
    let from = only.unwrap_or_else(|| setting("PLEIAD_PLAN_FROM").unwrap_or(0));
    let worlds = if only.is_some() { 1 } else { setting("PLEIAD_PLAN_WORLDS").unwrap_or(WORLDS) };
    for seed in from..from + worlds {
        check_world(&mut Choices::of_seed(seed), &format!("PLEIAD_PLAN_SEED={seed}"), &mut counts).await;
    }
    if only.is_none() {
        for kind in ["scan", "key", "index", "composite", "order", "over a split", "behind a cut key"] {
            assert!(counts.get(kind).is_some_and(|times| *times > 10), "{kind} is hardly ever executed: {counts:?}");
        }
    }
}

/// The bytes of a fuzzer may end anywhere.
#[test]
fn short_inputs_make_worlds_too() {
    for length in [0, 1, 40, 300] {
        let bytes: Vec<u8> = (0..length).map(|at: usize| (at * 151 + length * 29) as u8).collect();
        every_access_path_returns_the_rows_of_a_scan(&bytes);
    }
}

/// Items are replaced and deleted while a client reads: whatever the query, its pages continue and come to an end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_continue_while_items_change() {
    for seed in 0..12 {
        let chance = &mut Choices::of_seed(seed + 1_000_000);
        let case = Case::random(chance);
        let world = QueryWorld::open(&case).await;
        for _ in 0..6 {
            let asked = query(chance, &world.known);
            if exam::compiled(&asked, case.geospatial).is_none() {
                continue;
            }
            let size = PageSize { rows: 1 + chance.below(4), bytes: 1 << 20 };
            let mut from = None;
            for page in 0.. {
                assert!(page < PAGES_MAX, "pages without an end: {asked}");
                let query = item_query(&asked, FeedRange::Container, size, from, true);
                let answer = world.engine.query_items(&world.at, query, None).await;
                let page = match answer.result {
                    // In some worlds the clock jumps at each reading.
                    Err(error) if error.kind == Kind::TimedOut && case.step_ms > 0 => break,
                    result => result.unwrap_or_else(|error| panic!("{error}: {asked}\n{case}seed {seed}")),
                };
                assert!(page.rows.len() <= size.rows);
                let Some(next) = page.next else { break };
                from = Some(next);
                world.change_random_item(chance, &case).await;
            }
        }
        let all =
            world.engine.list_items(&world.at, &FeedRange::Container, None, PageLimit { items: 1, bytes: 1 }, None);
        assert!(all.await.result.is_ok());
    }
}

/// Checks a query, in pages of one row, over items with these values at `s` among many items without.
async fn check_items_with_values(policy: &str, values: &[String], fillers: usize, sql: &str) {
    let item = |at: usize, s: Option<&String>| {
        let item = pleiad_model::Object::new().with("id", at.to_string()).with("pk", at as i64);
        (Value::from(s.map_or(item.clone(), |s| item.with("s", s.as_str()).with("a", 1i64))), None)
    };
    let known = values.iter().map(Some).chain(std::iter::repeat_n(None, fillers));
    let items = known.enumerate().map(|(at, s)| item(at, s)).collect();
    let policy = json::parse(policy.as_bytes()).unwrap();
    let world = QueryWorld::open(&Case::of(policy, 1, items)).await;
    let asked = TestQuery { text: sql.to_owned(), parameters: Vec::new() };
    let block = exam::compiled(&asked, Geospatial::Geography).unwrap();
    let size = PageSize { rows: 1, bytes: 1 << 20 };
    let question =
        Question { query: asked, block, scope: FeedRange::Container, size, truncates_keys: false, splits: false };
    let keys = covered(&world, &question.scope);
    if let Err(story) = check(&world, &question, &keys, &mut PathCounts::new()).await {
        panic!("{story}");
    }
}

/// A page of unordered rows ends when its time has elapsed; a query that needs all items times out after a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_must_read_all_items_times_out_after_a_minute() {
    let item =
        |at: i64| (pleiad_model::Object::new().with("id", at.to_string()).with("pk", at).with("n", at).into(), None);
    let policy = json::parse(br#"{"indexingMode":"none","automatic":false}"#).unwrap();
    let case = |step_ms| Case { step_ms, ..Case::of(policy.clone(), 3, (0..9).map(item).collect()) };
    for (step_ms, ends) in [(1, true), (61_000, false)] {
        let world = QueryWorld::open(&case(step_ms)).await;
        let asked = TestQuery { text: "SELECT VALUE MAX(c.n) FROM c WHERE c.n > 0".to_owned(), parameters: Vec::new() };
        let sent = item_query(&asked, FeedRange::Container, PageSize { rows: 10, bytes: 1 << 20 }, None, true);
        match world.engine.query_items(&world.at, sent, None).await.result {
            Ok(page) => assert!(ends && page.rows.iter().eq([b"8"])),
            Err(error) => assert!(!ends && error.kind == Kind::TimedOut, "{error}"),
        }
    }
}

/// A page can end early after few items, if their evaluation takes up its time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_items_end_a_page_early() {
    const ITEMS: i64 = 8;
    let list = Value::Array((0..24i64).map(Value::from).collect());
    let item = |at: i64| {
        let item = pleiad_model::Object::new().with("id", at.to_string()).with("pk", at);
        (item.with("list", list.clone()).into(), None)
    };
    let policy = json::parse(br#"{"indexingMode":"none","automatic":false}"#).unwrap();
    let case = Case { step_ms: 1000, ..Case::of(policy, 1, (0..ITEMS).map(item).collect()) };
    let world = QueryWorld::open(&case).await;
    let text = "SELECT VALUE (SELECT VALUE COUNT(1) FROM a IN c.list JOIN b IN c.list JOIN d IN c.list WHERE a + b + d > 0) FROM c";
    let asked = TestQuery { text: text.to_owned(), parameters: Vec::new() };
    let (mut rows, mut pages, mut from) = (0, 0, None);
    loop {
        let sent = item_query(&asked, FeedRange::Container, PageSize { rows: 100, bytes: 1 << 20 }, from, true);
        let page = world.engine.query_items(&world.at, sent, None).await.result.unwrap();
        rows += page.rows.len();
        pages += 1;
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(rows, ITEMS as usize);
    assert!((2..=ITEMS).contains(&pages), "{pages}");
}

/// A query that fails half-way is charged for what it has read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_query_is_charged() {
    let item =
        |at: i64| (pleiad_model::Object::new().with("id", at.to_string()).with("pk", at).with("n", at).into(), None);
    let policy = json::parse(br#"{"indexingMode":"none","automatic":false}"#).unwrap();
    let mut most_ru: f64 = 0.0;
    for step_ms in (1..60).map(|seconds| seconds * 1000) {
        let case = Case::of(policy.clone(), 3, (0..90).map(item).collect());
        let world = QueryWorld::open(&Case { step_ms, ..case }).await;
        let asked = TestQuery { text: "SELECT VALUE MAX(c.n) FROM c WHERE c.n > 0".to_owned(), parameters: Vec::new() };
        let sent = item_query(&asked, FeedRange::Container, PageSize { rows: 10, bytes: 1 << 20 }, None, true);
        let answer = world.engine.query_items(&world.new_request(), sent, None).await;
        if answer.result.is_err() {
            most_ru = most_ru.max(answer.charge_ru);
        }
    }
    // Two of three partitions were read before the time elapsed.
    assert!(most_ru > 2.0 * pleiad_partition::price::QUERY_RU, "{most_ru}");
}

/// Short queries are tried without blocking. One that turns out to be long is retried on a blocking thread, and counts
/// once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_retried_on_a_blocking_thread_counts_once() {
    let item =
        |at: i64| (pleiad_model::Object::new().with("id", at.to_string()).with("pk", at).with("n", at).into(), None);
    let (items, policy) = ((0..2000).map(item).collect(), json::parse(b"{}").unwrap());
    let world = QueryWorld::open(&Case::of(policy, 1, items)).await;
    let usage = || world.at.container().partitions[0].governor.usage();
    for filter in ["c.n = 3", "c.n + 1 = 4", "EXISTS(SELECT VALUE 1 WHERE c.n = 3)"] {
        let (requests, total_ru) = (usage().requests(), usage().total_ru());
        let asked = TestQuery { text: format!("SELECT VALUE c.id FROM c WHERE {filter}"), parameters: Vec::new() };
        let sent = item_query(&asked, FeedRange::Container, PageSize { rows: 10, bytes: 1 << 20 }, None, true);
        let answer = world.engine.query_items(&world.at, sent, None).await;
        assert!(answer.result.unwrap().rows.iter().eq([br#""3""#]), "{filter}");
        assert_eq!(usage().requests(), requests + 1, "{filter}");
        assert!((usage().total_ru() - total_ru - answer.charge_ru).abs() < 0.011, "{filter}");
    }
}

/// Morsels change neither the charge nor the report.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parallel_query_has_the_report_and_charge_of_a_serial_one() {
    let item = |at: i64| {
        let item = pleiad_model::Object::new().with("id", at.to_string()).with("pk", at);
        (item.with("n", at as f64 / 10.0).with("even", at % 2 == 0).into(), None)
    };
    let case = Case::of(json::parse(b"{}").unwrap(), 2, (0..500).map(item).collect());
    let serial = QueryWorld::open(&case).await;
    let parallel = QueryWorld::open(&Case { parallelism: PARALLEL, ..case }).await;
    for sql in [
        "SELECT VALUE COUNT(1) FROM c WHERE c.n * 2 > 5",
        "SELECT c.even, MAX(c.n) AS most, COUNT(1) AS items FROM c GROUP BY c.even",
        "SELECT VALUE COUNT(c.pk) FROM c WHERE c.even = true AND c.n > 3",
        "SELECT DISTINCT VALUE c.pk % 7 FROM c",
        "SELECT VALUE MAKELIST(c.pk) FROM c WHERE c.n * 2 > 90",
    ] {
        let mut reports = Vec::new();
        for world in [&serial, &parallel] {
            let asked = TestQuery { text: sql.to_owned(), parameters: Vec::new() };
            let sent = item_query(&asked, FeedRange::Container, PageSize { rows: 100, bytes: 1 << 20 }, None, true);
            let answer = world.engine.query_items(&world.at, sent, None).await;
            let QueryPage { rows, report, .. } = answer.result.unwrap();
            let rows: Vec<_> = rows.iter().map(<[u8]>::to_vec).collect();
            reports.push((rows, answer.charge_ru, report.items, report.index_rows, report.access_paths));
        }
        assert_eq!(reports[0], reports[1], "{sql}");
    }
}

/// An index distinguishes strings longer than 1,000 bytes (300 in a composite index), but does not order them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_strings_are_paged_in_order() {
    const COMPOSITE: &str = r#"{"compositeIndexes":[[{"path":"/s"},{"path":"/a","order":"descending"}]]}"#;
    for length in [299, 300, 301, 999, 1000, 1001] {
        let long = "x".repeat(length);
        let values: Vec<String> = ["e", "a", "", "c", "b", "\u{0}", "ex"].map(|end| format!("{long}{end}")).into();
        let others = ["x", "xy", "y", "z", "a"].map(str::to_owned);
        let values = [values.as_slice(), &others].concat();
        for direction in ["ASC", "DESC"] {
            check_items_with_values("{}", &values, 200, &format!("SELECT VALUE c.id FROM c ORDER BY c.s {direction}"))
                .await;
            let other = if direction == "ASC" { "DESC" } else { "ASC" };
            let sql = format!("SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.s) ORDER BY c.s {direction}, c.a {other}");
            check_items_with_values(COMPOSITE, &values, 200, &sql).await;
        }
    }
}
