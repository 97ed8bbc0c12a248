//! Pages of the read feed against the complete list of items.

use super::*;
use crate::testing::*;
use crate::{Container, Verb, WriteOptions};
use pleiad_model::{Kind, Object, Value};
use std::sync::Arc;

const UNLIMITED: usize = 1 << 30;
const ITEMS: usize = 40;

struct World {
    engine: Arc<Engine>,
    container: Arc<Container>,
    at: Admitted,
    /// In the order of the container's read feed.
    all: Vec<Record>,
}

/// Items of two tenants with five users each, of very different sizes.
async fn world(partitions: i64) -> World {
    let limits = crate::PartitionLimits { partition_ru_initial: if partitions == 1 { 10_000 } else { 400 }, ..LIMITS };
    let engine = open(pleiad_storage::Memory::new(), limits).await;
    engine.catalog.create_database("db", crate::ThroughputRequest::Unspecified).await.unwrap();
    let container = container(&engine, "c", &["/tenant", "/user"], partitions * 4).await;
    assert_eq!(container.partitions.len() as i64, partitions);
    let at = admit(&engine, "c");
    let mut all = Vec::new();
    for n in 0..ITEMS {
        let (tenant, user) = (format!("t{}", n % 2), format!("u{}", n * 7 % 5));
        let body = Object::new().with("id", n.to_string()).with("tenant", &*tenant).with("user", &*user);
        let body = body.with("text", "x".repeat(n * 31 % 97));
        let key = key(&[&tenant, &user]);
        let written =
            engine.create_item(&at, Some(&key), Verb::Create, Value::from(body), &WriteOptions::default()).await;
        all.push(written.result.unwrap().record.unwrap());
    }
    all.sort_by_key(|record| container.map.locate(&record.epk)); // stable: insertion order within a partition
    World { engine, container, at, all }
}

fn key(levels: &[&str]) -> PartitionKey {
    PartitionKey::parse(&format!("[{}]", levels.iter().map(|level| format!("{level:?}")).collect::<Vec<_>>().join(",")))
        .unwrap()
}

impl World {
    async fn page(&self, scope: &FeedRange, from: Option<FeedCursor>, limit: PageLimit) -> ItemPage {
        let answer = self.engine.list_items(&self.at, scope, from, limit, None).await;
        assert!(answer.charge_ru >= 1.0);
        answer.result.unwrap()
    }

    /// Reads to the end; every page stays within its limit.
    async fn pages(&self, scope: &FeedRange, limit: PageLimit) -> Vec<Record> {
        let (mut records, mut from) = (Vec::new(), None);
        loop {
            let page = self.page(scope, from, limit).await;
            assert!(page.records.len() <= limit.items);
            assert!(
                page.records.len() == 1 || total_bytes(&page.records) <= limit.bytes,
                "{scope:?} of {} bytes",
                limit.bytes
            );
            assert!(page.next.is_none() || !page.records.is_empty());
            records.extend(page.records);
            match page.next {
                Some(next) => from = Some(next),
                None => return records,
            }
        }
    }

    /// Every kind of feed range, with the items it must return.
    fn scopes(&self) -> Vec<(FeedRange, Vec<Record>)> {
        let definition = self.container.schema.key.as_ref().unwrap();
        let tenant = key(&["t1"]).effective(definition);
        let user = key(&["t0", "u2"]).effective(definition);
        let between = EpkRange { min: tenant.clone().min(user.clone()), max: tenant.clone().max(user.clone()) };
        let mut scopes = vec![
            (FeedRange::Container, EpkRange::FULL),
            (FeedRange::PartitionKey(key(&["t1"])), EpkRange::of_prefix(tenant)),
            (FeedRange::PartitionKey(key(&["t0", "u2"])), EpkRange::of_point(user)),
            (
                FeedRange::PartitionKey(key(&["t0", "nobody"])),
                EpkRange { min: EffectiveKey::MAX, max: EffectiveKey::MAX },
            ),
            (FeedRange::EffectiveKeys(between.clone(), None), between.clone()),
        ];
        for range in self.container.map.ranges() {
            scopes.push((FeedRange::PartitionKeyRange(range.id), range.keys.clone()));
            if let Some(inside) = range.keys.intersect(&between) {
                scopes.push((FeedRange::EffectiveKeys(between.clone(), Some(range.id)), inside));
            }
        }
        let held = |keys: &EpkRange| self.all.iter().filter(|record| keys.contains(&record.epk)).cloned().collect();
        scopes.into_iter().map(|(scope, keys)| (scope, held(&keys))).collect()
    }
}

fn total_bytes(records: &[Record]) -> usize {
    records.iter().map(|record| record.body().len()).sum()
}

#[tokio::test]
async fn s2_s39_pages_of_every_size_return_all_items_of_one_three_and_sixteen_partitions() {
    for partitions in [1, 3, 16] {
        let world = world(partitions).await;
        for (scope, want) in world.scopes() {
            for items in 1..=ITEMS + 1 {
                assert_eq!(
                    world.pages(&scope, PageLimit { items, bytes: UNLIMITED }).await,
                    want,
                    "{scope:?} by {items}"
                );
            }
            for bytes in [1, 80, 150, 333, 1000, 5000] {
                assert_eq!(
                    world.pages(&scope, PageLimit { items: UNLIMITED, bytes }).await,
                    want,
                    "{scope:?} of {bytes} bytes"
                );
                assert_eq!(world.pages(&scope, PageLimit { items: 3, bytes }).await, want);
            }
        }
    }
}

#[tokio::test]
async fn an_exactly_full_last_page_has_no_continuation() {
    for partitions in [1, 3, 16] {
        let world = world(partitions).await;
        for (scope, want) in world.scopes() {
            for limit in [
                PageLimit { items: want.len().max(1), bytes: UNLIMITED },
                PageLimit { items: UNLIMITED, bytes: total_bytes(&want).max(1) },
            ] {
                let page = world.page(&scope, None, limit).await;
                assert_eq!((page.records.len(), page.next), (want.len(), None), "{scope:?} over {partitions}");
            }
        }
    }
}

#[tokio::test]
async fn s41_with_one_partition_every_request_is_served_by_it() {
    let world = world(1).await;
    for (scope, _) in world.scopes() {
        let limit = PageLimit { items: 1, bytes: UNLIMITED };
        let answer = world.engine.list_items(&world.at, &scope, None, limit, None).await;
        assert_eq!(answer.served_by.map(|served_by| served_by.range), Some(0), "{scope:?}");
    }
}

#[tokio::test]
async fn s42_items_of_one_key_are_listed_in_insertion_order() {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    let ids: Vec<String> = (0..100).map(|n: u32| (n * 37 % 100).to_string()).collect();
    for id in &ids {
        create(&engine, &at, id, "same").await.result.unwrap();
    }
    for scope in [FeedRange::Container, FeedRange::PartitionKey(pk("same"))] {
        let page = engine
            .list_items(&at, &scope, None, PageLimit { items: 1000, bytes: UNLIMITED }, None)
            .await
            .result
            .unwrap();
        assert!(page.records.iter().map(Record::id).eq(ids.iter().map(String::as_str)));
    }
}

#[tokio::test]
async fn a_missing_range_is_reported_as_moved() {
    let world = world(3).await;
    let list = async |scope: FeedRange| {
        let answer = world.engine.list_items(&world.at, &scope, None, PageLimit { items: 1, bytes: 1 }, None).await;
        kind(answer)
    };
    assert!(matches!(list(FeedRange::PartitionKeyRange(99)).await, Kind::Moved { .. }));
    let elsewhere = world.container.map.ranges()[2].keys.clone();
    assert!(matches!(list(FeedRange::EffectiveKeys(elsewhere, Some(0))).await, Kind::Moved { .. }));
    assert_eq!(list(FeedRange::PartitionKey(key(&["a", "b", "c"]))).await, Kind::KeyMismatch);
}

#[tokio::test]
async fn a_cursor_of_another_request_is_rejected() {
    let world = world(3).await;
    let position = world.page(&FeedRange::Container, None, PageLimit { items: 1, bytes: UNLIMITED }).await.next;
    let scope = FeedRange::PartitionKey(key(&["t1"]));
    let answer =
        world.engine.list_items(&world.at, &scope, position, PageLimit { items: 1, bytes: UNLIMITED }, None).await;
    assert_eq!(kind(answer), Kind::Invalid);
}

/// However a request names the stretch: by range id, by effective keys or by partition key.
#[tokio::test]
async fn a_cursor_is_valid_within_its_stretch_only() {
    let world = world(3).await;
    let limit = PageLimit { items: 1, bytes: UNLIMITED };
    let ranges = world.container.map.ranges();
    let (of, other) = ranges
        .iter()
        .zip(ranges.iter().cycle().skip(1))
        .find(|(range, _)| world.all.iter().filter(|record| range.keys.contains(&record.epk)).count() > 1)
        .unwrap();
    let position = world.page(&FeedRange::PartitionKeyRange(of.id), None, limit).await.next;
    let rest = async |scope: FeedRange| world.engine.list_items(&world.at, &scope, position.clone(), limit, None).await;
    let expected = rest(FeedRange::PartitionKeyRange(of.id)).await.result.unwrap().records;
    let by_keys = rest(FeedRange::EffectiveKeys(of.keys.clone(), None)).await.result.unwrap().records;
    assert_eq!((by_keys.len(), by_keys[0].docnum), (1, expected[0].docnum));
    for elsewhere in [
        FeedRange::PartitionKeyRange(other.id),
        FeedRange::EffectiveKeys(other.keys.clone(), None),
        FeedRange::EffectiveKeys(EpkRange::FULL, None),
        FeedRange::Container,
    ] {
        assert_eq!(kind(rest(elsewhere).await), Kind::Invalid);
    }
    let (tenant, limit) = (key(&["t0", "u2"]), PageLimit { items: 1, bytes: UNLIMITED });
    let position = world.page(&FeedRange::PartitionKey(tenant.clone()), None, limit).await.next;
    let epk = tenant.effective(world.container.schema.key.as_ref().unwrap());
    let by_key = world.page(&FeedRange::PartitionKey(tenant), position.clone(), limit).await.records;
    let keys = EpkRange::of_prefix(epk);
    let by_keys = world.page(&FeedRange::EffectiveKeys(keys, None), position, limit).await;
    assert_eq!(by_key[0].docnum, by_keys.records[0].docnum);
    let by_key = world.page(&FeedRange::PartitionKey(key(&["t0", "u2"])), by_keys.next, limit).await;
    assert_eq!(by_key.records.len(), 1, "the position by effective keys is valid for the key");
}
