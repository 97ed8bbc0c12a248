//! Resume filters: whatever the items, the order, the partitions and the page size, a filter that is made from a row
//! returns the rest of the answer from that row on.
//!
//! ```text
//! again: PLEIAD_RESUME_SEED=17 cargo test --release -p pleiad-engine query::tests::resume
//! ```

use pleiad_model::resource_id::ItemRid;
use pleiad_model::{Kind, Value, json};
use pleiad_sql::sort_encoding::{SortValue, encode_key};
use pleiad_sql::testing::{Choices, TestQuery};

use crate::query::exam::{Case, PAGES_MAX, QueryWorld, item_query, page_size};
use crate::query::{ItemQuery, PageSize, QueryCursor, QueryPage, ResumeFilter};
use crate::{Admitted, FeedRange};

const WORLDS: u64 = 60;
const ORDERS_PER_WORLD: usize = 6;
const ROWS_PER_ORDER: usize = 8;
const TRUNCATED_KEY_BYTES: usize = 12;

const PATHS: &[&str] = &["c.a", "c.b", "c.n", "c.s", "c.t", "c.o", "c.o.a", "c.pk", "c[\"\"]", "c.id"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_made_from_a_row_returns_the_rest_of_the_rows() {
    let only = std::env::var("PLEIAD_RESUME_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = only.map_or(0..WORLDS, |seed: u64| seed..seed + 1);
    let mut checked = 0;
    for seed in seeds {
        let chance = &mut Choices::of_seed(seed + 7_000_000);
        let mut case = Case::random(chance);
        (case.step_ms, case.splits) = (0, false);
        let world = QueryWorld::open(&case).await;
        for _ in 0..ORDERS_PER_WORLD {
            let sorted = Sorted::random(chance, &world).await;
            for _ in 0..ROWS_PER_ORDER.min(sorted.rows.len()) {
                let at = chance.below(sorted.rows.len());
                for (by_item, exclude) in [(false, false), (false, true), (true, false), (true, true)] {
                    let again = format!("PLEIAD_RESUME_SEED={seed}\n{case}");
                    sorted.check(&world, chance, at, by_item, exclude, &again).await;
                    checked += 1;
                }
            }
        }
    }
    assert!(only.is_some() || checked > 1_000, "only {checked} filters were checked");
}

/// A query with `ORDER BY`, and all of its rows.
struct Sorted {
    query: TestQuery,
    scope: FeedRange,
    size: PageSize,
    directions: Vec<bool>,
    rows: Vec<SortedRow>,
}

struct SortedRow {
    text: Vec<u8>,
    values: Vec<SortValue<'static>>,
    docnum: u64,
}

impl Sorted {
    /// Rows as in the queries of SDKs: the item's rid and the sort keys, of which a missing one is undefined.
    async fn random(chance: &mut Choices<'_>, world: &QueryWorld) -> Sorted {
        let join = if chance.once_in(3) { " JOIN j IN c.t" } else { "" };
        let filter = ["", "", " WHERE IS_DEFINED(c.a)", " WHERE c.n >= 1"][chance.below(4)];
        let keys = chance.list(1, 3, |chance| (chance.pick(PATHS), chance.once_in(2)));
        let items: Vec<String> = keys.iter().map(|(path, _)| format!("{{\"item\": {path}}}")).collect();
        let order: Vec<String> =
            keys.iter().map(|(path, down)| format!("{path} {}", if *down { "DESC" } else { "ASC" })).collect();
        let value = if join.is_empty() { "c.id" } else { "j" };
        let (items, order) = (items.join(", "), order.join(", "));
        let text = format!("SELECT c._rid, [{items}] AS keys, {value} AS v FROM c{join}{filter} ORDER BY {order}");
        let (scope, _) = world.scope(chance);
        let query = TestQuery { text, parameters: Vec::new() };
        let directions = keys.iter().map(|(_, down)| *down).collect();
        let size = PageSize { rows: 100_000, bytes: 1 << 30 };
        let mut sorted = Sorted { query, scope, size, directions, rows: Vec::new() };
        let whole = sorted.pages(world, None, None).await;
        sorted.rows = whole.iter().map(|text| SortedRow::of(text)).collect();
        sorted.size = page_size(chance, sorted.rows.len());
        sorted
    }

    async fn check(
        &self,
        world: &QueryWorld,
        chance: &mut Choices<'_>,
        at: usize,
        by_item: bool,
        exclude: bool,
        again: &str,
    ) {
        let row = &self.rows[at];
        let filter = ResumeFilter { values: row.values.clone(), docnum: by_item.then_some(row.docnum), exclude };
        let is_at = |other: &SortedRow| self.key(other) == self.key(row) && (!by_item || other.docnum == row.docnum);
        let mut start = match exclude {
            false => self.rows.iter().position(is_at).unwrap(),
            true => self.rows.iter().rposition(is_at).unwrap() + 1,
        };
        // The later of the filter and the cursor wins.
        let first = if chance.once_in(3) { Some(self.page(world, None, None).await.unwrap()) } else { None };
        let mut from = None;
        if let Some(QueryPage { rows, next: Some(next), .. }) = first {
            (start, from) = (start.max(rows.len()), Some(next));
        }
        let got = self.pages(world, from, Some(&filter)).await;
        let want: Vec<&[u8]> = self.rows[start..].iter().map(|row| row.text.as_slice()).collect();
        let lines = |rows: &[&[u8]]| rows.iter().map(|row| String::from_utf8_lossy(row) + "\n").collect::<String>();
        let got: Vec<&[u8]> = got.iter().map(Vec::as_slice).collect();
        assert!(
            got == want,
            "got\n{}instead of\n{}for {}\n{filter:?} in {:?} by {:?}\nagain: {again}",
            lines(&got),
            lines(&want),
            self.query,
            self.scope,
            self.size
        );
    }

    fn key(&self, row: &SortedRow) -> Vec<u8> {
        let mut key = Vec::new();
        row.values.iter().zip(&self.directions).for_each(|(value, down)| encode_key(value, *down, &mut key));
        key
    }

    /// All pages, each with the same filter, as SDKs request them.
    async fn pages(
        &self,
        world: &QueryWorld,
        mut from: Option<QueryCursor>,
        resume: Option<&ResumeFilter>,
    ) -> Vec<Vec<u8>> {
        let mut rows = Vec::new();
        for _ in 0..PAGES_MAX {
            let page = self.page(world, from, resume).await.unwrap();
            rows.extend(page.rows.iter().map(<[u8]>::to_vec));
            match page.next {
                Some(next) => from = Some(next),
                None => return rows,
            }
        }
        panic!("pages without an end: {}", self.query);
    }

    /// The cursor is truncated, unless that makes it ambiguous.
    async fn page(
        &self,
        world: &QueryWorld,
        from: Option<QueryCursor>,
        resume: Option<&ResumeFilter>,
    ) -> Result<QueryPage, pleiad_model::Error> {
        let cut = from.as_ref().map(|from| from.shortened(TRUNCATED_KEY_BYTES));
        match self.ask(&world.at, world, cut, resume).await {
            Err(error) if error.to_string().contains("cannot be told") => {
                self.ask(&world.at, world, from, resume).await
            }
            told => told,
        }
    }

    /// `ORDER BY` without its index is rejected, unless the client allows a sort.
    async fn ask(
        &self,
        at: &Admitted,
        world: &QueryWorld,
        from: Option<QueryCursor>,
        resume: Option<&ResumeFilter>,
    ) -> Result<QueryPage, pleiad_model::Error> {
        let ask = |enable_scan| {
            let query = item_query(&self.query, self.scope.clone(), self.size, from.clone(), enable_scan);
            world.engine.query_items(at, ItemQuery { resume: resume.cloned(), ..query }, None)
        };
        match ask(false).await.result {
            Err(error) if error.kind == Kind::Invalid && error.to_string().contains("index") => ask(true).await.result,
            answer => answer,
        }
    }
}

impl SortedRow {
    fn of(text: &[u8]) -> SortedRow {
        let row = json::parse(text).unwrap();
        let keys = row.get("keys").and_then(Value::as_array).unwrap();
        let values = keys.iter().map(|key| owned(SortValue::of(key.get("item")))).collect();
        let rid = ItemRid::parse(row.get("_rid").and_then(Value::as_str).unwrap()).unwrap();
        SortedRow { text: text.to_vec(), values, docnum: rid.docnum }
    }
}

fn owned(value: SortValue<'_>) -> SortValue<'static> {
    match value {
        SortValue::Scalar(scalar) => SortValue::Scalar(std::borrow::Cow::Owned(scalar.into_owned())),
        SortValue::Undefined => SortValue::Undefined,
        SortValue::Array(hash) => SortValue::Array(hash),
        SortValue::Object(hash) => SortValue::Object(hash),
    }
}
