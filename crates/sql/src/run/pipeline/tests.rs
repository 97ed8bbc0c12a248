use pleiad_model::env::ManualEnv;
use pleiad_model::policy::Geospatial;
use pleiad_model::{Object, Value, json};

use super::RowPipeline;
use crate::Parameters;
use crate::block::Block;
use crate::compile::{BindContext, compile};
use crate::document::SlotValue;
use crate::expr::{Context, MemoryBudget};
use crate::run::in_memory::RUN_BYTES_MAX;
use crate::run::page::{Finished, PageSize, PageStart};
use crate::run::parse;

/// One query, run with pages of this many rows.
struct PagedQuery {
    env: ManualEnv,
    block: Block,
    rows: usize,
}

impl PagedQuery {
    fn of(text: &str, rows: usize) -> PagedQuery {
        let query = parse(text).unwrap();
        let bind = BindContext {
            parameters: &Parameters::default(),
            geospatial: Geospatial::Geography,
            embeddings: &[],
            full_text: None,
            started_ms: None,
        };
        let block = compile(query.select(), query.text(), bind).unwrap();
        PagedQuery { env: ManualEnv::default(), block, rows }
    }

    fn pipeline(&self, start: PageStart) -> RowPipeline<'_> {
        let (geospatial, memory) = (Geospatial::Geography, MemoryBudget::new(RUN_BYTES_MAX));
        let cx = Context { env: &self.env, started_ms: 0, geospatial, user_functions: None, memory, interrupt: None };
        let size = PageSize { rows: self.rows, bytes: RUN_BYTES_MAX };
        RowPipeline::new(&self.block, cx, start, size)
    }

    /// All rows of all pages, each page merged from one pipeline per morsel.
    fn pages(&self, morsels: &[Vec<Value>]) -> Vec<(String, usize)> {
        let (mut pages, mut start) = (Vec::new(), Some(PageStart::beginning(0, None)));
        while let Some(at) = start {
            let mut merged = self.pipeline(at.clone());
            for morsel in morsels {
                let mut pass = self.pipeline(at.clone());
                feed(&mut pass, morsel);
                merged.merge(pass).unwrap();
            }
            let finished = merged.finish(None).unwrap();
            pages.push((text(&finished), finished.rows.len()));
            start = finished.next;
        }
        pages
    }
}

fn feed(pipeline: &mut RowPipeline<'_>, items: &[Value]) {
    for (docnum, item) in items.iter().enumerate() {
        pipeline.add_item(docnum as u64 + 1, SlotValue::Value(item)).unwrap();
    }
}

fn text(finished: &Finished) -> String {
    let mut text = Vec::new();
    finished.rows.join(&mut text);
    String::from_utf8(text).unwrap()
}

/// Two partly read ranges, as after a split: the rows already returned for each item are not returned again.
#[test]
fn each_range_resumes_at_its_own_position() {
    let query = PagedQuery::of("SELECT VALUE t FROM c JOIN t IN c.tags", 100);
    let mut pass = query.pipeline(PageStart::beginning(0, None));
    let items = ["[1,2,3]", "[4,5,6]"].map(|tags| json::parse(format!(r#"{{"tags":{tags}}}"#).as_bytes()).unwrap());
    for (docnum, returned, item) in [(7, 1, &items[0]), (9, 2, &items[1])] {
        pass.resume(docnum, returned);
        pass.add_item(docnum, SlotValue::Value(item)).unwrap();
    }
    assert_eq!(text(&pass.finish(None).unwrap()), "2,3,6");
}

/// Items inserted or deleted between two pages neither move the other rows nor repeat one.
#[test]
fn sorted_distinct_pages_resume_after_their_last_row() {
    let query = PagedQuery::of("SELECT DISTINCT VALUE c.n FROM c ORDER BY c.k DESC", 2);
    let page = |start: PageStart, items: &[(u64, i64, i64)]| {
        let mut pass = query.pipeline(start);
        for (docnum, k, n) in items {
            let item = Object::new().with("k", *k).with("n", *n).into();
            pass.add_item(*docnum, SlotValue::Value(&item)).unwrap();
        }
        let finished = pass.finish(None).unwrap();
        (text(&finished), finished.next)
    };
    let before = [(1, 9, 90), (2, 9, 91), (3, 9, 91), (4, 8, 80), (5, 8, 90), (6, 7, 70)];
    let (rows, next) = page(PageStart::beginning(0, None), &before);
    assert_eq!(rows, "90,91");
    let after = [(1, 9, 90), (3, 9, 91), (4, 8, 80), (6, 7, 70), (7, 10, 100), (8, 9, 85)];
    let (rows, next) = page(next.unwrap(), &after);
    assert_eq!((rows.as_str(), next), ("80,70", None));
}

/// A hundred morsels with the same four rows need as much memory as one: the page is not cut short.
#[test]
fn duplicate_rows_of_many_morsels_are_stored_once() {
    let query = PagedQuery::of("SELECT DISTINCT VALUE c.n FROM c", 100);
    let morsel = || ["a", "b", "c", "d"].map(|n| Object::new().with("n", n.repeat(256 << 10)).into()).to_vec();
    let morsels: Vec<Vec<Value>> = (0..100).map(|_| morsel()).collect();
    let rows: Vec<usize> = query.pages(&morsels).into_iter().map(|(_, rows)| rows).collect();
    assert_eq!(rows, [4]);
}

/// Of numbers with equal encodings, the first one read is the row.
#[test]
fn distinct_returns_the_first_of_equal_rows() {
    let query = PagedQuery::of("SELECT DISTINCT VALUE c.n FROM c", 100);
    let morsel = |n: i64| vec![Object::new().with("n", n).into()];
    let pages = query.pages(&[morsel(9_007_199_254_740_993), morsel(9_007_199_254_740_992)]);
    assert_eq!(pages, [("9007199254740993".to_owned(), 1)]);
}

/// Lists in forty groups that grow with every morsel: memory stays bounded, and later pages return the rest.
#[test]
fn groups_that_outgrow_memory_when_merged_move_to_later_pages() {
    let query = PagedQuery::of("SELECT c.g, ARRAY_LENGTH(MAKELIST(c.n)) AS n FROM c GROUP BY c.g", 100);
    let long = "x".repeat(1 << 20);
    let item = |g: i64| Object::new().with("g", g).with("n", long.as_str()).into();
    let morsels: Vec<Vec<Value>> = (0..3).map(|_| (10..50).map(item).collect()).collect();
    let pages = query.pages(&morsels);
    assert!(pages.len() > 1, "all groups together are 120 MB");
    let rows: Vec<&str> = pages.iter().map(|(text, _)| text.as_str()).collect();
    let want: Vec<String> = (10..50).map(|g| format!(r#"{{"g":{g},"n":3}}"#)).collect();
    assert_eq!(rows.join(","), want.join(","));
}
