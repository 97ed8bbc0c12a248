//! The change feed of a container against the writes that were made.

use super::*;
use crate::testing::*;
use crate::{Container, Target, Verb, WriteOptions};
use pleiad_model::Kind;
use pleiad_model::partition_key::EffectiveKey;
use std::collections::BTreeMap;
use std::sync::Arc;

const UNLIMITED: usize = 1 << 30;

fn request(scope: FeedRange, from: ChangeFrom, items: usize) -> ChangeRequest {
    ChangeRequest {
        mode: ChangeMode::LatestVersion,
        scope,
        from,
        since_s: None,
        filter: None,
        limit: PageLimit { items, bytes: UNLIMITED },
    }
}

struct World {
    engine: Arc<Engine>,
    container: Arc<Container>,
    at: Admitted,
}

struct Page {
    records: Vec<Record>,
    next: Vec<ChangeCursor>,
}

async fn world(partitions: i64) -> World {
    let limits = crate::PartitionLimits { partition_ru_initial: if partitions == 1 { 10_000 } else { 400 }, ..LIMITS };
    let engine = open(pleiad_storage::Memory::new(), limits).await;
    engine.catalog.create_database("db", crate::ThroughputRequest::Unspecified).await.unwrap();
    let container = container(&engine, "c", &["/pk"], partitions * 4).await;
    assert_eq!(container.partitions.len() as i64, partitions);
    let at = admit(&engine, "c");
    World { engine, container, at }
}

impl World {
    async fn upsert(&self, id: &str, key: &str) -> u64 {
        let options = WriteOptions::default();
        let answer = self.engine.create_item(&self.at, Some(&pk(key)), Verb::Upsert, item(id, key), &options).await;
        answer.result.unwrap().lsn
    }

    async fn page(&self, request: &ChangeRequest) -> Page {
        let answer = self.engine.change_feed(&self.at, request, None).await;
        assert!(answer.charge_ru >= 1.0 && answer.served_by.is_some());
        let page = answer.result.unwrap();
        let ChangedItems::Latest(records) = page.changes else { panic!("versions were not requested") };
        Page { records, next: page.next }
    }

    /// Reads until there are no more changes: the changes, and where to continue.
    async fn drain(&self, scope: &FeedRange, from: ChangeFrom, items: usize) -> (Vec<Record>, ChangeFrom) {
        let (mut records, mut from) = (Vec::new(), from);
        loop {
            let page = self.page(&request(scope.clone(), from, items)).await;
            assert!(page.records.len() <= items);
            from = ChangeFrom::Cursors(page.next);
            if page.records.is_empty() {
                return (records, from);
            }
            records.extend(page.records);
        }
    }
}

fn ids(records: &[Record]) -> Vec<String> {
    let mut ids: Vec<String> = records.iter().map(|record| record.id().to_owned()).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn s2_every_change_is_returned_once_for_any_partition_count_and_page_size() {
    for partitions in [1, 3, 16] {
        let world = world(partitions).await;
        for n in 0..30 {
            world.upsert(&n.to_string(), &format!("k{}", n % 7)).await;
        }
        for items in [1, 2, 7, 100] {
            let (records, from) = world.drain(&FeedRange::Container, ChangeFrom::Beginning, items).await;
            assert_eq!(records.len(), 30, "{partitions} partitions by {items}");
            let mut last = BTreeMap::new();
            for record in &records {
                let partition = world.container.map.locate(&record.epk);
                assert!(
                    last.insert(partition, record.lsn).is_none_or(|before| before < record.lsn),
                    "not in LSN order"
                );
            }
            world.upsert("3", "k3").await;
            let (records, _) = world.drain(&FeedRange::Container, from, items).await;
            assert_eq!(ids(&records), ["3"], "only the new change");
        }
    }
}

#[tokio::test]
async fn a_scope_returns_only_its_own_changes() {
    let world = world(3).await;
    for n in 0..30 {
        world.upsert(&n.to_string(), &format!("k{}", n % 7)).await;
    }
    let all = world.drain(&FeedRange::Container, ChangeFrom::Beginning, 100).await.0;
    let definition = world.container.schema.key.as_ref().unwrap();
    let key = pk("k2").effective(definition);
    let low = EpkRange { min: EffectiveKey::MIN, max: key.clone() };
    let mut scopes = vec![
        (FeedRange::PartitionKey(pk("k2")), EpkRange::of_point(key)),
        (FeedRange::EffectiveKeys(low.clone(), None), low),
        (FeedRange::PartitionKey(pk("nobody")), EpkRange { min: EffectiveKey::MAX, max: EffectiveKey::MAX }),
    ];
    scopes.extend(
        world.container.map.ranges().iter().map(|range| (FeedRange::PartitionKeyRange(range.id), range.keys.clone())),
    );
    for (scope, keys) in scopes {
        let want: Vec<Record> = all.iter().filter(|record| keys.contains(&record.epk)).cloned().collect();
        let got = world.drain(&scope, ChangeFrom::Beginning, 4).await.0;
        assert_eq!(ids(&got), ids(&want), "{scope:?}");
    }
}

#[tokio::test]
async fn a_busy_partition_does_not_starve_the_others() {
    let world = world(3).await;
    for n in 0..12 {
        world.upsert(&n.to_string(), &format!("k{n}")).await;
    }
    let mut from = ChangeFrom::Beginning;
    let mut served = Vec::new();
    for _ in 0..3 {
        let page = world.page(&request(FeedRange::Container, from, 1)).await;
        served.push(world.container.map.locate(&page.records[0].epk));
        from = ChangeFrom::Cursors(page.next);
    }
    assert_eq!(served, [0, 1, 2], "the partitions take turns");
}

#[tokio::test]
async fn reading_from_now_returns_only_later_changes() {
    for partitions in [1, 3] {
        let world = world(partitions).await;
        world.upsert("old", "a").await;
        let page = world.page(&request(FeedRange::Container, ChangeFrom::Now, 10)).await;
        assert!(page.records.is_empty());
        world.upsert("new", "a").await;
        let (records, _) = world.drain(&FeedRange::Container, ChangeFrom::Cursors(page.next), 10).await;
        assert_eq!(ids(&records), ["new"]);
    }
}

#[tokio::test]
async fn one_lsn_applies_to_all_partitions_of_a_request() {
    let world = world(3).await;
    for n in 0..12 {
        world.upsert(&n.to_string(), &format!("k{n}")).await;
    }
    let all = world.drain(&FeedRange::Container, ChangeFrom::Beginning, 100).await.0;
    let later: Vec<Record> = all.into_iter().filter(|record| record.lsn > 2).collect();
    let got = world.drain(&FeedRange::Container, ChangeFrom::Lsn(2), 100).await.0;
    assert_eq!(ids(&got), ids(&later), "the children of a split accept their parent's LSN");
}

/// A position has one range for each partition, however often it was cut in between.
#[tokio::test]
async fn adjacent_cursors_with_equal_lsns_are_merged_within_a_partition() {
    let world = world(3).await;
    for n in 0..12 {
        world.upsert(&n.to_string(), &format!("k{n}")).await;
    }
    let position = world.drain(&FeedRange::Container, ChangeFrom::Beginning, 100).await.1;
    let ChangeFrom::Cursors(whole) = &position else { panic!() };
    assert_eq!(whole.len(), 3);
    let bytes = (1..0x40).map(|at| EffectiveKey::from_bytes(&[at]));
    let cuts: Vec<EffectiveKey> = [EffectiveKey::MIN].into_iter().chain(bytes).chain([EffectiveKey::MAX]).collect();
    let mut pieces: Vec<ChangeCursor> = Vec::new();
    for ChangeCursor { keys, lsn } in whole {
        let ranges = cuts.windows(2).map(|pair| EpkRange { min: pair[0].clone(), max: pair[1].clone() });
        pieces.extend(ranges.filter_map(|range| Some(ChangeCursor { keys: range.intersect(keys)?, lsn: *lsn })));
    }
    let mut hash = 7;
    pieces.sort_by_cached_key(|_| {
        hash = hash * 5 % 97;
        hash
    });
    assert!(pieces.len() > 64);
    let page = world.page(&request(FeedRange::Container, ChangeFrom::Cursors(pieces), 100)).await;
    let sorted = |cursors: &[ChangeCursor]| {
        let mut stretches = cursors.to_vec();
        stretches.sort_by(|one, other| one.keys.min.cmp(&other.keys.min));
        stretches
    };
    assert_eq!(sorted(&page.next), sorted(whole));
}

#[tokio::test]
async fn deleted_items_are_omitted_and_cursors_pass_them() {
    let world = world(1).await;
    world.upsert("1", "a").await;
    world.upsert("2", "a").await;
    delete(&world.engine, &world.at, "1", "a").await.result.unwrap();
    let page = world.page(&request(FeedRange::Container, ChangeFrom::Beginning, 10)).await;
    assert_eq!(ids(&page.records), ["2"]);
    assert_eq!(page.next[0].lsn, 4, "the cursor is past the delete");
}

#[tokio::test]
async fn missing_ranges_and_cursors_of_other_requests_are_rejected() {
    let world = world(3).await;
    let refused = async |request| kind(world.engine.change_feed(&world.at, &request, None).await);
    let gone = request(FeedRange::PartitionKeyRange(99), ChangeFrom::Beginning, 10);
    assert!(matches!(refused(gone).await, Kind::Moved { .. }));
    let all = vec![ChangeCursor { keys: EpkRange::FULL, lsn: 1 }];
    assert_eq!(refused(request(FeedRange::PartitionKeyRange(0), ChangeFrom::Cursors(all), 10)).await, Kind::Invalid);
    let none = request(FeedRange::Container, ChangeFrom::Cursors(vec![]), 10);
    assert_eq!(refused(none).await, Kind::Invalid);
}

#[tokio::test]
async fn session_tokens_are_honoured() {
    let world = world(1).await;
    let lsn = world.upsert("1", "a").await;
    let request = request(FeedRange::Container, ChangeFrom::Beginning, 10);
    let asked = |lsn| SessionToken(vec![(0, lsn)]);
    assert!(world.engine.change_feed(&world.at, &request, Some(&asked(lsn))).await.result.is_ok());
    let ahead = world.engine.change_feed(&world.at, &request, Some(&asked(lsn + 1))).await;
    assert_eq!(kind(ahead), Kind::SessionNotAvailable);
}

/// A reader follows concurrent writers: in the end it has the last version of each item, and no version twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_concurrent_writes_no_version_repeats_and_the_last_is_returned() {
    let world = Arc::new(world(3).await);
    let writers: Vec<_> = (0..6)
        .map(|writer| {
            let world = world.clone();
            tokio::spawn(async move {
                for n in 0..150 {
                    world.upsert(&format!("{writer}-{}", n % 20), &format!("k{}", n % 20)).await;
                }
            })
        })
        .collect();
    let mut from = ChangeFrom::Beginning;
    let mut seen: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut idle = 0;
    while idle < 2 {
        let done = writers.iter().all(tokio::task::JoinHandle::is_finished);
        let page = world.page(&request(FeedRange::Container, from, 7)).await;
        idle = if done && page.records.is_empty() { idle + 1 } else { 0 };
        for record in page.records {
            seen.entry(record.id().to_owned()).or_default().push(record.lsn);
        }
        from = ChangeFrom::Cursors(page.next);
        tokio::task::yield_now().await;
    }
    assert_eq!(seen.len(), 120);
    for (id, lsns) in seen {
        assert!(lsns.windows(2).all(|pair| pair[0] < pair[1]), "{id}: {lsns:?}");
        let number: usize = id.split_once('-').unwrap().1.parse().unwrap();
        let key = pk(&format!("k{number}"));
        let newest =
            world.engine.read_item(&world.at, Some(&key), Target::Named(&id), None, None).await.result.unwrap();
        assert_eq!(lsns.last(), Some(&newest.record.lsn), "{id}");
    }
}

/// A container that retains its versions for ten minutes.
async fn versioned() -> World {
    let engine = account().await;
    let mut definition = definition("c", &["/pk"]);
    definition.change_feed = Some(pleiad_model::policy::ChangeFeedPolicy { retention_minutes: 10 });
    let database = find_database(&engine, "db").unwrap().rid;
    let new = crate::catalog::NewContainer { definition, throughput: crate::ThroughputRequest::Manual(400) };
    let container = engine.catalog.create_container(database, new).await.unwrap();
    let at = admit(&engine, "c");
    World { engine, container, at }
}

fn all_versions(from: ChangeFrom) -> ChangeRequest {
    ChangeRequest { mode: ChangeMode::AllVersions, ..request(FeedRange::Container, from, 100) }
}

/// Reads until there are no more versions.
async fn versions(world: &World, from: ChangeFrom) -> (Vec<crate::VersionKind>, ChangeFrom) {
    let (mut kinds, mut from) = (Vec::new(), from);
    loop {
        let page = world.engine.change_feed(&world.at, &all_versions(from), None).await.result.unwrap();
        from = ChangeFrom::Cursors(page.next);
        match page.changes {
            ChangedItems::Versions(versions) if !versions.is_empty() => {
                kinds.extend(versions.iter().map(|version| version.kind))
            }
            _ => return (kinds, from),
        }
    }
}

#[tokio::test]
async fn all_versions_include_what_the_latest_version_hides() {
    use crate::VersionKind::{Create, Delete, Replace};
    let world = versioned().await;
    let (none, from) = versions(&world, ChangeFrom::Now).await;
    assert!(none.is_empty());
    for _ in 0..3 {
        world.upsert("1", "a").await;
    }
    delete(&world.engine, &world.at, "1", "a").await.result.unwrap();
    assert_eq!(versions(&world, from).await.0, [Create, Replace, Replace, Delete]);
    assert!(world.drain(&FeedRange::Container, ChangeFrom::Beginning, 10).await.0.is_empty());
}

#[tokio::test]
async fn all_versions_need_a_policy_and_a_position() {
    let world = versioned().await;
    let beginning = world.engine.change_feed(&world.at, &all_versions(ChangeFrom::Beginning), None).await;
    let refusal = beginning.result.unwrap_err();
    assert_eq!((refusal.kind, refusal.fact()), (Kind::Invalid, Some(&Fact::AllVersionsFromStart)));
    container(&world.engine, "plain", &["/pk"], 4).await;
    let plain = admit(&world.engine, "plain");
    let answer = world.engine.change_feed(&plain, &all_versions(ChangeFrom::Now), None).await;
    assert_eq!(answer.result.unwrap_err().fact(), Some(&Fact::AllVersionsDisabled));
}

#[tokio::test]
async fn versions_are_purged_after_retention_and_when_the_policy_is_removed() {
    let world = versioned().await;
    let (_, from) = versions(&world, ChangeFrom::Now).await;
    world.upsert("1", "a").await;
    let purge = async |later_s: u64| {
        let env = pleiad_model::env::ManualEnv::at(world.engine.now_ms() + later_s * 1000, 1);
        crate::jobs::purge_account(
            &world.engine.catalog.current().upgrade().unwrap(),
            &mut crate::jobs::PurgeScans::default(),
            &env,
            async || true,
        )
        .await;
    };
    purge(599).await;
    assert_eq!(versions(&world, from.clone()).await.0.len(), 1);
    purge(601).await;
    let late = world.engine.change_feed(&world.at, &all_versions(from), None).await;
    assert_eq!(kind(late), Kind::Invalid, "some versions have been purged");

    world.upsert("1", "a").await;
    let off = |old: &pleiad_model::policy::ContainerDefinition| {
        Ok(pleiad_model::policy::ContainerDefinition { change_feed: None, ..old.clone() })
    };
    world.engine.catalog.replace_container(world.container.rid, off).await.unwrap();
    purge(0).await;
    let kept = world.container.partitions.iter().filter(|partition| partition.shard_state().versions_from.is_some());
    assert_eq!(kept.count(), 0);
    assert_sound(&world.engine).await;
}

/// The partition was restored from an earlier copy of its data, or lost its last writes.
#[tokio::test]
async fn a_position_ahead_of_the_partition_is_rejected() {
    let world = versioned().await;
    let lsn = world.upsert("1", "a").await;
    let scope = FeedRange::PartitionKey(pk("a"));
    for mode in [ChangeMode::LatestVersion, ChangeMode::AllVersions] {
        let read = async |from| {
            let request = ChangeRequest { mode, ..request(scope.clone(), from, 10) };
            world.engine.change_feed(&world.at, &request, None).await.result
        };
        assert!(!read(ChangeFrom::Lsn(lsn)).await.unwrap().is_modified);
        let ahead = read(ChangeFrom::Lsn(lsn + 1)).await.unwrap_err();
        let fact = Fact::ChangesAhead { after_lsn: lsn + 1, reached_lsn: lsn };
        assert_eq!((ahead.kind, ahead.fact()), (Kind::Invalid, Some(&fact)));
        assert!(read(ChangeFrom::Lsn(u64::MAX)).await.is_err());
    }
}

/// A filter changes what is returned, not how far the reader gets nor what it is charged.
#[tokio::test]
async fn a_filter_drops_changes_and_the_position_moves_over_them() {
    let world = world(3).await;
    for n in 0..30 {
        world.upsert(&n.to_string(), &format!("k{}", n % 7)).await;
    }
    let filter = ChangeFilter {
        text: "SELECT VALUE c.id FROM c WHERE c.pk = @pk".to_owned(),
        parameters: crate::Parameters::from_value(Some(&parse(r#"[{"name":"@pk","value":"k3"}]"#))).unwrap(),
    };
    let (mut ids, mut from, mut position) = (Vec::new(), ChangeFrom::Beginning, ChangeFrom::Beginning);
    loop {
        let plain = request(FeedRange::Container, from, 4);
        let filtered = ChangeRequest { filter: Some(filter.clone()), from: position, ..plain.clone() };
        let plain = world.engine.change_feed(&world.at, &plain, None).await;
        let filtered = world.engine.change_feed(&world.at, &filtered, None).await;
        assert_eq!(plain.charge_ru, filtered.charge_ru);
        let (plain, filtered) = (plain.result.unwrap(), filtered.result.unwrap());
        assert_eq!((plain.is_modified, &plain.next), (filtered.is_modified, &filtered.next));
        let rows = filtered.rows.unwrap();
        assert_eq!(rows.len(), filtered.changes.len());
        ids.extend(rows.into_iter().map(|row| String::from_utf8(row).unwrap()));
        (from, position) = (ChangeFrom::Cursors(plain.next), ChangeFrom::Cursors(filtered.next));
        if !filtered.is_modified {
            break;
        }
    }
    assert_eq!(ids, [r#""3""#, r#""10""#, r#""17""#, r#""24""#]);
}
