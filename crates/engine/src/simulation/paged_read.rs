//! Paged reads: read feed, queries and change feed, one page at a time. Whatever happens between the pages, a paged
//! read is complete and returns nothing twice.

use std::collections::BTreeMap;

use pleiad_model::Error;

use super::SeededRng;
use super::model::{Model, assert_tolerable, rank_of, version_of};
use super::world::SimWorld;
use crate::testing::parse;
use crate::{
    ChangeFrom, ChangeMode, ChangeRequest, ChangedItems, CrossPartition, FeedCursor, FeedRange, ItemQuery, PageLimit,
    PageSize, Parameters, QueryCursor, ReportOptions,
};

const UNORDERED: &str = "SELECT VALUE c.id FROM c WHERE c.n > 0";
const ORDERED: &str = "SELECT VALUE c.id FROM c ORDER BY c.rank";

/// One paged read of each kind is always in progress.
#[derive(Default)]
pub struct PagedReads {
    list: PagedRead<FeedCursor>,
    unordered: PagedRead<QueryCursor>,
    ordered: PagedRead<QueryCursor>,
    feed: FeedReader,
    pub ended: u64,
}

/// One paged read, from its first page to its last.
struct PagedRead<P> {
    begun: bool,
    from: Option<P>,
    /// The items that existed when it began, and how often each had been deleted before.
    live_at_start: BTreeMap<String, u64>,
    seen: Vec<String>,
    /// Whether the account was restored meanwhile: the read continues, in other data.
    restored: bool,
}

impl<P> Default for PagedRead<P> {
    fn default() -> Self {
        PagedRead { begun: false, from: None, live_at_start: BTreeMap::new(), seen: Vec::new(), restored: false }
    }
}

impl<P: Clone> PagedRead<P> {
    fn begin(&mut self, model: &Model) -> Option<P> {
        if !self.begun {
            (self.begun, self.live_at_start) = (true, model.live_items());
        }
        self.from.clone()
    }

    /// True when that was the last page.
    fn add_page(&mut self, what: &str, page: Result<(Vec<String>, Option<P>), Error>, model: &Model) -> bool {
        let (ids, next) = match page {
            Ok(page) => page,
            Err(error) => {
                assert_tolerable(&error);
                return false;
            }
        };
        self.seen.extend(ids);
        self.from = next;
        if self.from.is_some() {
            return false;
        }
        std::mem::take(self).check(what, model);
        true
    }

    fn note_restore(&mut self) {
        self.restored = self.begun;
    }

    fn check(self, what: &str, model: &Model) {
        if self.restored {
            return;
        }
        let mut times: BTreeMap<&str, u64> = BTreeMap::new();
        self.seen.iter().for_each(|id| *times.entry(id).or_default() += 1);
        for (id, count) in &times {
            // Deleted and written again it is another item, with a larger docnum.
            let lives = 1 + model.deletions(id) - self.live_at_start.get(*id).copied().unwrap_or(0);
            assert!(*count <= lives, "{what}: {id} was returned {count} times and existed {lives} times");
        }
        let now = model.live_items();
        for (id, deaths) in self.live_at_start.iter().filter(|(id, deaths)| now.get(*id) == Some(*deaths)) {
            assert!(times.contains_key(id.as_str()), "{what}: {id} is missing (deleted {deaths} times before)");
        }
    }
}

impl PagedReads {
    pub async fn page(&mut self, rng: &SeededRng, world: &mut SimWorld, model: &Model) {
        let rows = usize::try_from(1 + rng.below(30)).unwrap();
        self.ended += u64::from(match rng.below(4) {
            0 => self.list_page(world, model, rows).await,
            1 => query_page(&mut self.unordered, UNORDERED, world, model, rows).await,
            2 => self.ordered_page(world, model, rows).await,
            _ => self.feed.page(world, rows).await.is_some_and(|count| count == 0),
        });
    }

    pub fn note_restore(&mut self) {
        self.list.note_restore();
        self.unordered.note_restore();
        self.ordered.note_restore();
    }

    async fn list_page(&mut self, world: &SimWorld, model: &Model, items: usize) -> bool {
        let (from, quota) = (self.list.begin(model), PageLimit { items, bytes: 1 << 20 });
        let page = world.engine.list_items(&world.at(), &FeedRange::Container, from, quota, None).await.result;
        let ids = page.map(|page| (page.records.iter().map(|record| record.id().to_owned()).collect(), page.next));
        self.list.add_page("list", ids, model)
    }

    async fn ordered_page(&mut self, world: &SimWorld, model: &Model, rows: usize) -> bool {
        let ended = query_page(&mut self.ordered, ORDERED, world, model, rows).await;
        let ranks = self.ordered.seen.iter().map(|id| rank_of(id));
        assert!(ranks.is_sorted(), "not in order: {:?}", self.ordered.seen);
        ended
    }

    /// Runs all paged reads to their end, after the last change.
    pub async fn finish(&mut self, world: &SimWorld, model: &Model) {
        while !self.list_page(world, model, 50).await {
            world.wait();
        }
        while !query_page(&mut self.unordered, UNORDERED, world, model, 50).await {
            world.wait();
        }
        while !self.ordered_page(world, model, 50).await {
            world.wait();
        }
        while self.feed.page(world, 50).await != Some(0) {
            world.wait();
        }
        self.feed.check(model);
    }
}

async fn query_page(
    paged_read: &mut PagedRead<QueryCursor>,
    text: &str,
    world: &SimWorld,
    model: &Model,
    rows: usize,
) -> bool {
    let query = ItemQuery {
        text: text.to_owned(),
        parameters: Parameters::default(),
        scope: FeedRange::Container,
        cross_partition: CrossPartition::ByServer,
        size: PageSize { rows, bytes: 1 << 20 },
        from: paged_read.begin(model),
        resume: None,
        report: ReportOptions::default(),
        enable_scan: false,
    };
    let page = world.engine.query_items(&world.at(), query, None).await.result;
    let id = |row: &[u8]| parse(std::str::from_utf8(row).unwrap()).as_str().unwrap().to_owned();
    paged_read.add_page(text, page.map(|page| (page.rows.iter().map(id).collect(), page.next)), model)
}

/// A reader of the change feed that never stops.
struct FeedReader {
    from: ChangeFrom,
    /// The last version of each item that was returned.
    seen: BTreeMap<String, i64>,
}

impl Default for FeedReader {
    fn default() -> Self {
        FeedReader { from: ChangeFrom::Beginning, seen: BTreeMap::new() }
    }
}

impl FeedReader {
    /// How many changes the page has; `None` if the request failed.
    async fn page(&mut self, world: &SimWorld, items: usize) -> Option<usize> {
        let quota = PageLimit { items, bytes: 1 << 20 };
        let (mode, scope, from) = (ChangeMode::LatestVersion, FeedRange::Container, self.from.clone());
        let request = ChangeRequest { mode, scope, from, since_s: None, filter: None, limit: quota };
        match world.engine.change_feed(&world.at(), &request, None).await.result {
            Ok(page) => {
                let ChangedItems::Latest(records) = &page.changes else { unreachable!("versions were not requested") };
                records.iter().for_each(|record| self.record(record.id(), version_of(record)));
                self.from = ChangeFrom::Cursors(page.next);
                Some(page.changes.len())
            }
            Err(error) => {
                assert_tolerable(&error);
                None
            }
        }
    }

    fn record(&mut self, id: &str, version: i64) {
        let before = self.seen.insert(id.to_owned(), version);
        assert!(
            before.is_none_or(|before| before < version),
            "change feed: version {version} of {id} after {before:?}"
        );
    }

    fn check(&self, model: &Model) {
        for (id, version) in model.versions_since_restored() {
            assert_eq!(self.seen.get(id), Some(&version), "change feed: the last version of {id}");
        }
    }
}
