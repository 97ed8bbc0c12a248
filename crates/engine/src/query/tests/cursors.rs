//! What a cursor is valid for, and how much of a cross-partition query one page reads.

use pleiad_model::partition_key::{EpkRange, PartitionKey, midpoint};
use pleiad_model::{Kind, Object, Value, json};
use pleiad_sql::testing::TestQuery;

use crate::query::PageSize;
use crate::query::exam::{Case, QueryWorld, item_query};
use crate::{CrossPartition, CursorBinding, CursorPosition, FeedRange, PageReach, QueryCursor, QueryPage, RangeCursor};

const ITEMS: usize = 40;
const ALL: &str = "SELECT VALUE c.n FROM c";

/// Items of forty keys in four partitions.
async fn world() -> QueryWorld {
    let item = |n: usize| {
        let item = Object::new().with("id", n.to_string()).with("pk", format!("key {n}"));
        let tags: Vec<Value> = [n as i64, 100, 101].map(Value::from).to_vec();
        (Value::from(item.with("n", n as i64).with("tags", tags)), None)
    };
    let policy = json::parse(br#"{"includedPaths":[{"path":"/*"}]}"#).unwrap();
    QueryWorld::open(&Case::of(policy, 4, (0..ITEMS).map(item).collect())).await
}

struct Request<'q> {
    text: &'q str,
    scope: FeedRange,
    cross_partition: CrossPartition,
    rows: usize,
}

impl Default for Request<'_> {
    fn default() -> Self {
        Request { text: ALL, scope: FeedRange::Container, cross_partition: CrossPartition::ByServer, rows: 3 }
    }
}

async fn page(world: &QueryWorld, request: &Request<'_>, from: Option<QueryCursor>) -> Result<QueryPage, Kind> {
    let asked = TestQuery { text: request.text.to_owned(), parameters: Vec::new() };
    let size = PageSize { rows: request.rows, bytes: 1 << 20 };
    let mut query = item_query(&asked, request.scope.clone(), size, from, false);
    query.cross_partition = request.cross_partition;
    world.engine.query_items(&world.at, query, None).await.result.map_err(|error| error.kind)
}

fn numbers(page: &QueryPage) -> Vec<i64> {
    page.rows.iter().map(|row| json::parse(row).unwrap().as_i64().unwrap()).collect()
}

/// Reads to the end; returns the numbers of rows of the pages.
async fn page_lengths(world: &QueryWorld, request: &Request<'_>) -> Vec<usize> {
    let (mut lengths, mut found, mut from) = (Vec::new(), Vec::new(), None);
    loop {
        let page = page(world, request, from).await.unwrap();
        lengths.push(page.rows.len());
        found.extend(numbers(&page));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), lengths.iter().sum::<usize>(), "no row twice");
    lengths
}

#[tokio::test]
async fn a_page_of_a_client_that_merges_reads_one_partition() {
    let world = world().await;
    let held = crate::testing::items_per_partition(world.at.container());
    let by_client =
        |reach| Request { cross_partition: CrossPartition::ByClient(reach), rows: 100, ..Request::default() };
    let each: Vec<usize> = held.iter().map(|items| *items as usize).collect();
    assert_eq!(page_lengths(&world, &by_client(PageReach::Partition)).await, each);
    assert_eq!(page_lengths(&world, &by_client(PageReach::Container)).await, [ITEMS]);
    let nothing = Request { text: "SELECT VALUE c.n FROM c WHERE c.n < 0", ..by_client(PageReach::Partition) };
    assert_eq!(page_lengths(&world, &nothing).await, [0, 0, 0, 0], "an empty page is not the end");
    let small = Request { rows: 3, ..by_client(PageReach::Partition) };
    let pages: usize = each.iter().map(|items| items.div_ceil(3).max(1)).sum();
    assert_eq!(page_lengths(&world, &small).await.len(), pages);
    let two_keys = r#"SELECT VALUE c.n FROM c WHERE c.pk IN ("key 1", "key 2", "key 3", "key 4", "key 5")"#;
    let few = page_lengths(&world, &Request { text: two_keys, ..by_client(PageReach::Partition) }).await;
    assert!(few.len() <= 4 && few.iter().sum::<usize>() == 5, "keys of one partition are in one page: {few:?}");
}

#[tokio::test]
async fn a_cursor_is_valid_for_its_query_within_its_stretch() {
    let world = world().await;
    let ranges = world.at.container().map.ranges();
    let scopes = |range: &pleiad_model::partition_map::PartitionKeyRange| {
        [FeedRange::PartitionKeyRange(range.id), FeedRange::EffectiveKeys(range.keys.clone(), None)]
    };
    for text in
        [ALL, "SELECT VALUE c.n FROM c ORDER BY c.n", "SELECT VALUE x FROM (SELECT DISTINCT VALUE c.n FROM c) AS x"]
    {
        let request = |scope| Request { text, scope, ..Request::default() };
        let first = page(&world, &request(FeedRange::PartitionKeyRange(ranges[1].id)), None).await.unwrap();
        let second =
            page(&world, &request(FeedRange::PartitionKeyRange(ranges[1].id)), first.next.clone()).await.unwrap();
        for scope in scopes(&ranges[1]) {
            let again = page(&world, &request(scope), first.next.clone()).await.unwrap();
            assert_eq!(numbers(&again), numbers(&second), "{text}");
        }
        for scope in [scopes(&ranges[0]), scopes(&ranges[2])].concat() {
            assert_eq!(page(&world, &request(scope), first.next.clone()).await.unwrap_err(), Kind::Invalid, "{text}");
        }
        let other = Request { text: "SELECT VALUE c.id FROM c", ..request(FeedRange::PartitionKeyRange(ranges[1].id)) };
        assert_eq!(page(&world, &other, first.next.clone()).await.unwrap_err(), Kind::Invalid, "{text}");
        let definition = world.at.container().schema.key.clone().unwrap();
        let half = EpkRange { max: midpoint(&definition, &ranges[1].keys).unwrap(), ..ranges[1].keys.clone() };
        let half = page(&world, &request(FeedRange::EffectiveKeys(half, None)), first.next.clone()).await;
        match text.contains('(') {
            true => assert_eq!(half.unwrap_err(), Kind::Invalid, "a part has other rows"),
            false => assert!(numbers(&half.unwrap()).iter().all(|n| !numbers(&first).contains(n)), "{text}"),
        }
    }
}

#[tokio::test]
async fn a_cursor_of_a_key_is_valid_for_its_effective_keys() {
    let world = world().await;
    let key = PartitionKey::parse(r#"["key 7"]"#).unwrap();
    let epk = key.effective(world.at.container().schema.key.as_ref().unwrap());
    let join = "SELECT VALUE x FROM c JOIN x IN c.tags";
    let request = |scope| Request { text: join, scope, rows: 1, ..Request::default() };
    let by_key = page(&world, &request(FeedRange::PartitionKey(key.clone())), None).await.unwrap();
    let by_keys = request(FeedRange::EffectiveKeys(EpkRange::of_prefix(epk), None));
    let next = page(&world, &by_keys, by_key.next).await.unwrap();
    assert_eq!(numbers(&next), [100]);
    let last = page(&world, &request(FeedRange::PartitionKey(key)), next.next.clone()).await.unwrap();
    assert_eq!(numbers(&last), [101]);
    let other = PartitionKey::parse(r#"["key 8"]"#).unwrap();
    assert_eq!(page(&world, &request(FeedRange::PartitionKey(other)), next.next).await.unwrap_err(), Kind::Invalid);
}

/// As the service's own continuations are: without a query, after an item.
#[tokio::test]
async fn a_query_continues_after_an_item_if_it_has_one_row_of_each() {
    let world = world().await;
    let range = &world.at.container().map.ranges()[1];
    let scope = FeedRange::PartitionKeyRange(range.id);
    let first = page(&world, &Request { scope: scope.clone(), ..Request::default() }, None).await.unwrap();
    let Some(QueryCursor { at: CursorPosition::Ranges(ranges), .. }) = &first.next else { panic!("{:?}", first.next) };
    // The cursor is before the next item.
    let docnum = ranges[0].after();
    let at = CursorPosition::Ranges(vec![RangeCursor { keys: EpkRange::FULL, docnum, rows: crate::WHOLE_ITEM }]);
    let cursor = QueryCursor { bound_to: CursorBinding::Item, skip: 0, take: None, passed: 3, at };
    let request = |text| Request { text, scope: scope.clone(), ..Request::default() };
    let expected = page(&world, &request(ALL), first.next.clone()).await.unwrap();
    let resumed = page(&world, &request(ALL), Some(cursor.clone())).await.unwrap();
    assert_eq!(numbers(&resumed), numbers(&expected));
    let top = page(&world, &request("SELECT TOP 4 VALUE c.n FROM c"), Some(cursor.clone())).await.unwrap();
    assert_eq!((numbers(&top), top.next), (numbers(&expected)[..1].to_vec(), None), "three rows were returned before");
    for text in [
        "SELECT VALUE c.n FROM c ORDER BY c.n",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE x FROM c JOIN x IN c.tags",
    ] {
        assert_eq!(page(&world, &request(text), Some(cursor.clone())).await.unwrap_err(), Kind::Invalid, "{text}");
    }
}
