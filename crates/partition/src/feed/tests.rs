//! Pages of one partition against the list of its items.

use super::*;
use crate::partition::{Precondition, Verb};
use crate::schema::Schema;
use crate::testing::{Dice, draft, memory, open, schema};
use pleiad_model::partition_key::{KeyComponent, PartitionKey};
use pleiad_model::{Object, Value};

const WIDE: usize = 1 << 30;

/// Items of six logical partitions in two tenants, of very different sizes, with gaps between their docnums.
async fn filled() -> (Partition, Schema, Vec<Record>) {
    let (partition, schema) = (open(&memory()).await, schema(&["/tenant", "/user"]));
    let mut dice = Dice(11);
    let mut records = Vec::new();
    for n in 0..60 {
        let (tenant, user) = (format!("t{}", dice.below(2)), format!("u{}", dice.below(3)));
        let text = "x".repeat(dice.below(200) as usize);
        let id = n.to_string();
        let body = Object::new().with("id", &*id).with("tenant", tenant).with("user", user).with("text", text);
        let draft = draft(&schema, &id, Value::from(body));
        let target = draft.target.clone();
        let written = partition.write(&schema, Verb::Create, &draft, &Precondition::None, 7).await.unwrap();
        match dice.below(4) {
            0 => drop(partition.delete(&schema, &target, &Precondition::None, 7).await.unwrap()),
            _ => records.push(written.record.unwrap()),
        }
    }
    (partition, schema, records)
}

fn key(schema: &Schema, levels: &[&str]) -> EffectiveKey {
    let levels = levels.iter().map(|level| KeyComponent::String((*level).to_owned())).collect();
    PartitionKey::new(levels).effective(schema.key.as_ref().unwrap())
}

fn scopes(schema: &Schema) -> Vec<KeyScope> {
    let tenant = key(schema, &["t1"]);
    let one = key(schema, &["t0", "u2"]);
    let half = EpkRange { min: EffectiveKey::MIN, max: tenant.clone().max(key(schema, &["t0"])) };
    let none = EpkRange { min: EffectiveKey::MAX, max: EffectiveKey::MAX };
    vec![
        KeyScope::Keys(EpkRange::FULL),
        KeyScope::Keys(EpkRange::of_prefix(tenant)),
        KeyScope::Keys(EpkRange::of_point(one.clone())),
        KeyScope::Keys(half),
        KeyScope::Keys(none),
        KeyScope::Key(one),
        KeyScope::Key(key(schema, &["t0", "nobody"])),
    ]
}

fn sizes(records: &[Record]) -> usize {
    records.iter().map(|record| record.body().len()).sum()
}

/// Reads all pages; every page respects its limit, and only the last has no next page.
async fn pages(partition: &Partition, scope: &KeyScope, limit: PageLimit) -> Vec<Record> {
    let mut records = Vec::new();
    let mut after = 0;
    loop {
        let page = partition.page(scope, after, limit, Expiry::new(None, 7)).await.unwrap();
        assert!(page.records.len() <= limit.items);
        assert!(page.records.len() == 1 || sizes(&page.records) <= limit.bytes);
        assert!(page.next.is_none() || !page.records.is_empty(), "a page with a next page is not empty");
        records.extend(page.records);
        match page.next {
            Some(next) => after = next,
            None => return records,
        }
    }
}

#[tokio::test]
async fn pages_of_every_size_return_all_items_in_insertion_order() {
    let (partition, schema, all) = filled().await;
    for scope in scopes(&schema) {
        let want: Vec<Record> = all.iter().filter(|record| scope.contains(&record.epk)).cloned().collect();
        for items in 1..=all.len() + 1 {
            assert_eq!(pages(&partition, &scope, PageLimit { items, bytes: WIDE }).await, want, "{scope:?} by {items}");
        }
        for bytes in [1, 50, 100, 333, 1000, 5000] {
            assert_eq!(
                pages(&partition, &scope, PageLimit { items: 1000, bytes }).await,
                want,
                "{scope:?} of {bytes} bytes"
            );
            assert_eq!(pages(&partition, &scope, PageLimit { items: 3, bytes }).await, want);
        }
    }
}

#[tokio::test]
async fn a_page_is_as_full_as_its_limit_allows() {
    let (partition, _, all) = filled().await;
    let scope = KeyScope::Keys(EpkRange::FULL);
    for count in 1..=all.len() {
        let bytes = sizes(&all[..count]);
        let exact = partition.page(&scope, 0, PageLimit { items: WIDE, bytes }, Expiry::new(None, 7)).await.unwrap();
        assert_eq!(exact.records.len(), count);
        let less =
            partition.page(&scope, 0, PageLimit { items: WIDE, bytes: bytes - 1 }, Expiry::new(None, 7)).await.unwrap();
        assert_eq!(less.records.len(), (count - 1).max(1));
    }
}

#[tokio::test]
async fn an_exactly_full_last_page_has_no_next_page() {
    let (partition, schema, all) = filled().await;
    for scope in scopes(&schema) {
        let want: Vec<Record> = all.iter().filter(|record| scope.contains(&record.epk)).cloned().collect();
        for limit in
            [PageLimit { items: want.len().max(1), bytes: WIDE }, PageLimit { items: WIDE, bytes: sizes(&want) }]
        {
            let page = partition.page(&scope, 0, limit, Expiry::new(None, 7)).await.unwrap();
            assert_eq!((page.records.len(), page.next), (want.len(), None), "{scope:?}");
        }
    }
}

#[tokio::test]
async fn a_page_starts_after_a_docnum_even_if_that_item_is_deleted() {
    let (partition, _, all) = filled().await;
    let scope = KeyScope::Keys(EpkRange::FULL);
    let last = all.last().unwrap().docnum;
    for gap in all[0].docnum - 1..=last {
        let page =
            partition.page(&scope, gap, PageLimit { items: 1, bytes: WIDE }, Expiry::new(None, 7)).await.unwrap();
        assert_eq!(page.records.first(), all.iter().find(|record| record.docnum > gap));
    }
    assert!(
        partition
            .page(&scope, u64::MAX, PageLimit { items: 1, bytes: 1 }, Expiry::new(None, 7))
            .await
            .unwrap()
            .records
            .is_empty()
    );
}

#[tokio::test]
async fn rare_and_common_keys_are_found_among_many_items() {
    let (partition, schema) = (open(&memory()).await, schema(&["/tenant", "/user"]));
    for n in 0..3000 {
        let tenant = if n % 1000 == 999 { "rare" } else { "usual" };
        let id = n.to_string();
        let body = Object::new().with("id", &*id).with("tenant", tenant).with("user", i64::from(n % 7));
        partition
            .write(&schema, Verb::Create, &draft(&schema, &id, body.into()), &Precondition::None, 7)
            .await
            .unwrap();
    }
    let scope = KeyScope::Keys(EpkRange::of_prefix(key(&schema, &["rare"])));
    for items in 1..=4 {
        let found = pages(&partition, &scope, PageLimit { items, bytes: WIDE }).await;
        assert!(found.iter().map(Record::id).eq(["999", "1999", "2999"]));
    }
    let scope = KeyScope::Keys(EpkRange::of_prefix(key(&schema, &["usual"])));
    let found = pages(&partition, &scope, PageLimit { items: 400, bytes: WIDE }).await;
    assert!(found.iter().map(Record::id).eq((0..3000).filter(|n| n % 1000 != 999).map(|n| n.to_string())));
}

#[tokio::test]
async fn an_item_created_between_pages_is_on_a_later_page_once() {
    let (partition, schema, all) = filled().await;
    let scope = KeyScope::Keys(EpkRange::FULL);
    let page = partition.page(&scope, 0, PageLimit { items: 10, bytes: WIDE }, Expiry::new(None, 7)).await.unwrap();
    // A new item sorts after all existing ones: it is on a later page, once.
    let body = Object::new().with("id", "late").with("tenant", "t0").with("user", "u0");
    partition.write(&schema, Verb::Create, &draft(&schema, "late", body.into()), &Precondition::None, 7).await.unwrap();
    let rest = partition
        .page(&scope, page.next.unwrap(), PageLimit { items: 1000, bytes: WIDE }, Expiry::new(None, 7))
        .await
        .unwrap();
    assert_eq!(page.records.len() + rest.records.len(), all.len() + 1);
    assert_eq!(rest.records.last().unwrap().id(), "late");
}
