//! The rows that a change puts and deletes, checked by applying it to a store.

use super::*;
use crate::record::{Contents, FieldOffsets};
use crate::schema::Schema;
use crate::testing::{item, key, memory, rows, schema, unique_schema};
use pleiad_model::json;
use pleiad_storage::keyspace::Tag;
use pleiad_storage::{AnyStore, Durability, Store};

const SHARD: u64 = 7;

struct Item {
    key: ItemKey,
    record: Record,
    terms: StoredTerms,
    claims: Vec<Claim>,
}

impl Item {
    fn new(schema: &Schema, id: &str, n: i64, docnum: u64, lsn: u64) -> Item {
        let (body, key) = (item("a", id, n), key(schema, "a", id));
        let terms = schema.terms(&body, lsn as u32, true);
        let claims = schema.unique.claims(&key.logical, &body);
        let text = json::to_string(&body);
        let (fields, body) = (&FieldOffsets::of(text.as_bytes()), text.as_bytes());
        let (terms_len, epk) = (terms.len() as u32, &key.logical.epk);
        let contents = Contents {
            docnum,
            ts_s: lsn as u32,
            terms: terms_len,
            indexed: true,
            etag_source: None,
            epk,
            id,
            fields,
            body,
        };
        let record = Record::encode(&contents, lsn, 0).unwrap();
        Item { key, record, terms: terms.into(), claims }
    }

    fn as_new(&self) -> NewVersion<'_> {
        NewVersion { key: &self.key, record: &self.record, terms: &self.terms.possible, claims: &self.claims }
    }

    fn as_old(&self) -> OldVersion<'_> {
        OldVersion { key: &self.key, record: &self.record, terms: &self.terms, claims: &self.claims }
    }
}

async fn apply(store: &AnyStore, changes: &RowChanges) {
    store.commit(&changes.batch, Durability::Written).await.unwrap();
    // The pending rows are exactly what later writers will find in the store.
    for (row, value) in &changes.pending {
        assert_eq!(store.get(row).await.unwrap(), *value);
    }
}

/// The tags of all rows, one character per row.
async fn tags(store: &AnyStore) -> String {
    rows(store, SHARD).await.keys().map(|row| char::from(row[8])).collect()
}

#[tokio::test]
async fn unique_values_are_claimed_kept_and_released() {
    let (store, schema) = (memory(), unique_schema("/n"));
    let (item, renamed, other) =
        (Item::new(&schema, "1", 5, 1, 1), Item::new(&schema, "2", 5, 1, 2), Item::new(&schema, "2", 6, 1, 3));
    let mut changes = RowChanges::default();
    changes.insert(SHARD, &item.as_new());
    apply(&store, &changes).await;
    assert_eq!(tags(&store).await, "dfimuxxxx");
    let row = item.claims[0].row(SHARD, item.record.epk.as_bytes());
    let mut changes = RowChanges::default();
    let count = changes.update(SHARD, &item.as_old(), &renamed.as_new());
    apply(&store, &changes).await;
    assert_eq!(count, TermCount { removed: 1, added: 1 }, "only the term of the id has changed");
    assert!(store.get(&row).await.unwrap().is_some());
    let mut changes = RowChanges::default();
    let count = changes.update(SHARD, &renamed.as_old(), &other.as_new());
    apply(&store, &changes).await;
    assert_eq!(count, TermCount { removed: 2, added: 2 });
    assert_eq!((store.get(&row).await.unwrap(), tags(&store).await.as_str()), (None, "dfimuxxxx"));
    let mut changes = RowChanges::default();
    changes.remove(SHARD, &other.as_old());
    apply(&store, &changes).await;
    assert_eq!(tags(&store).await, "");
}

#[tokio::test]
async fn an_item_is_inserted_and_removed_with_all_its_rows() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let item = Item::new(&schema, "1", 5, 1, 1);
    let mut changes = RowChanges::default();
    changes.insert(SHARD, &item.as_new());
    apply(&store, &changes).await;
    assert_eq!(tags(&store).await, "dfimxxxx");
    let mut changes = RowChanges::default();
    changes.remove(SHARD, &item.as_old());
    apply(&store, &changes).await;
    assert_eq!(tags(&store).await, "");
}

#[tokio::test]
async fn an_update_leaves_exactly_the_rows_of_the_new_version() {
    let (store, fresh, schema) = (memory(), memory(), schema(&["/pk"]));
    let (old, new) = (Item::new(&schema, "1", 5, 1, 1), Item::new(&schema, "2", 6, 1, 2));
    let mut changes = RowChanges::default();
    changes.insert(SHARD, &old.as_new());
    apply(&store, &changes).await;
    let mut changes = RowChanges::default();
    let count = changes.update(SHARD, &old.as_old(), &new.as_new());
    apply(&store, &changes).await;
    assert_eq!(count, TermCount { removed: 2, added: 2 }, "id and n; pk stays, and the time's term is free");

    let mut changes = RowChanges::default();
    changes.insert(SHARD, &new.as_new());
    apply(&fresh, &changes).await;
    assert_eq!(rows(&store, SHARD).await, rows(&fresh, SHARD).await);
}

#[tokio::test]
async fn s30_a_key_without_items_has_no_row() {
    let (store, schema) = (memory(), schema(&["/pk"]));
    let key = key(&schema, "a", "1");
    let row = keyspace::key_stats(SHARD, key.logical.epk.as_bytes(), &key.logical.hash());
    for (items, left) in [(2, 1), (1, 1), (0, 0)] {
        let mut changes = RowChanges::default();
        changes.put_key_stats(row.clone(), &KeyStats { items, bytes: items * 10 }, &key);
        apply(&store, &changes).await;
        assert_eq!(tags(&store).await.matches(char::from(Tag::Key as u8)).count(), left);
    }
}

#[test]
fn a_docnum_is_eight_bytes() {
    assert_eq!(docnum_from_value(&docnum_value(812)).unwrap(), 812);
    assert!(docnum_from_value(&[1; 7]).is_err());
}
