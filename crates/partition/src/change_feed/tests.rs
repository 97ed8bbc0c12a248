//! Pages of changes against a naive list of them.

use super::*;
use crate::partition::{Precondition, Verb};
use crate::record::{Contents, FieldOffsets};
use crate::schema::Schema;
use crate::shard_state::ShardState;
use crate::testing::{Dice, draft, item, key, memory, open, range, schema};
use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_storage::testing::{FaultPlan, FaultPoint, Faulty};
use pleiad_storage::{AnyStore, Batch, Durability, Memory, Store, keyspace};
use std::collections::BTreeMap;
use std::sync::Arc;

const WIDE: usize = 1 << 30;
const SHARD: u64 = 7;

fn everything(after: u64) -> ChangeQuery {
    ChangeQuery { scope: KeyScope::Keys(EpkRange::FULL), after, since_s: 0, expiry: Expiry::new(None, 7) }
}

fn page_of(items: usize) -> PageLimit {
    PageLimit { items, bytes: WIDE }
}

/// The LSN of the newest change of each item, by partition key and id.
#[derive(Default)]
struct Model {
    lsns: BTreeMap<(String, String), u64>,
    lsn: u64,
}

impl Model {
    async fn step(&mut self, partition: &Partition, schema: &Schema, dice: &mut Dice) {
        let name = (format!("k{}", dice.below(3)), format!("i{}", dice.below(8)));
        self.lsn += 1;
        if dice.below(4) == 0 && self.lsns.remove(&name).is_some() {
            partition.delete(schema, &key(schema, &name.0, &name.1), &Precondition::None, 7).await.unwrap();
            return;
        }
        let draft = draft(schema, &name.1, item(&name.0, &name.1, dice.below(100) as i64));
        partition.write(schema, Verb::Upsert, &draft, &Precondition::None, 7).await.unwrap();
        self.lsns.insert(name, self.lsn);
    }

    fn changes(&self, schema: &Schema, query: &ChangeQuery) -> Vec<u64> {
        let wanted = |((pk, id), lsn): (&(String, String), &u64)| {
            let epk = key(schema, pk, id).logical.epk;
            (*lsn > query.after && query.scope.contains(&epk)).then_some(*lsn)
        };
        let mut lsns: Vec<u64> = self.lsns.iter().filter_map(wanted).collect();
        lsns.sort_unstable();
        lsns
    }
}

fn lsns(page: &LatestPage) -> Vec<u64> {
    page.records.iter().map(|record| record.lsn).collect()
}

/// Readers of every scope, each continuing where it stopped, while items are written and deleted between their pages.
#[tokio::test]
async fn every_changed_item_is_returned_once_in_lsn_order() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    let one = key(&schema, "k1", "").logical.epk;
    let half = EpkRange { min: EffectiveKey::MIN, max: one.clone() };
    let scopes = [KeyScope::Keys(EpkRange::FULL), KeyScope::Keys(half), KeyScope::Key(one)];
    let mut readers: Vec<ChangeQuery> = scopes
        .iter()
        .cloned()
        .map(|scope| ChangeQuery { scope, after: 0, since_s: 0, expiry: Expiry::new(None, 7) })
        .collect();
    let (mut model, mut dice) = (Model::default(), Dice(5));
    for _ in 0..600 {
        for _ in 0..dice.below(6) {
            model.step(&partition, &schema, &mut dice).await;
        }
        let at = dice.below(readers.len() as u64) as usize;
        let items = 1 + dice.below(5) as usize;
        let want = model.changes(&schema, &readers[at]);
        let page = partition.changes(&readers[at], page_of(items)).await.unwrap();
        assert_eq!(lsns(&page), want[..want.len().min(items)]);
        match want.get(items) {
            Some(next) => assert_eq!(page.lsn, next - 1, "everything before the next change has been seen"),
            None => assert_eq!(page.lsn, model.lsn, "no change is left"),
        }
        readers[at].after = page.lsn;
    }
}

#[tokio::test]
async fn a_page_respects_its_byte_limit_and_has_at_least_one_item() {
    let (partition, schema) = (open(&memory()).await, schema(&["/pk"]));
    for n in 0..5 {
        let draft = draft(&schema, &n.to_string(), item("a", &n.to_string(), n));
        partition.write(&schema, Verb::Create, &draft, &Precondition::None, 7).await.unwrap();
    }
    let size = r#"{"id":"0","pk":"a","n":0}"#.len();
    for (bytes, items) in [(1, 1), (size, 1), (size + 1, 2), (2 * size, 2), (WIDE, 5)] {
        let page = partition.changes(&everything(0), PageLimit { items: 100, bytes }).await.unwrap();
        assert_eq!(page.records.len(), items, "{bytes} bytes");
        assert_eq!(page.lsn, items as u64);
    }
}

/// A partition with changes as transactions and merges leave them: several with one LSN.
async fn merged(changes: &[(u64, u16, u64, u32)]) -> Partition {
    let store: Arc<AnyStore> = memory();
    let mut batch = Batch::default();
    for &(lsn, seq, docnum, ts_s) in changes {
        let (id, body) = (docnum.to_string(), format!(r#"{{"id":"{docnum}"}}"#));
        let (epk, fields) = (EffectiveKey::MIN, FieldOffsets::of(body.as_bytes()));
        let contents = Contents {
            etag_source: None,
            docnum,
            ts_s,
            terms: 0,
            indexed: true,
            epk: &epk,
            id: &id,
            fields: &fields,
            body: body.as_bytes(),
        };
        let record = Record::encode(&contents, lsn, seq).unwrap();
        batch.put(keyspace::doc(SHARD, docnum), record.bytes());
        batch.put(keyspace::feed(SHARD, lsn, seq.into(), docnum), epk.as_bytes());
    }
    let lsn = changes.iter().map(|change| change.0).max().unwrap_or(0);
    batch.put(keyspace::state(SHARD), ShardState { lsn, ..ShardState::default() }.encode());
    store.commit(&batch, Durability::Synced).await.unwrap();
    let committer = crate::Committer::start(store.clone(), crate::testing::LATER).unwrap();
    Partition::open(range(SHARD, 3), store, committer).await.unwrap()
}

#[tokio::test]
async fn pages_never_divide_a_transaction() {
    let partition = merged(&[(1, 0, 10, 7), (2, 0, 11, 7), (2, 1, 12, 7), (2, 2, 13, 7), (3, 0, 14, 7)]).await;
    for (items, first, second) in
        [(1, vec![1], vec![2, 2, 2]), (2, vec![1, 2, 2, 2], vec![3]), (4, vec![1, 2, 2, 2], vec![3])]
    {
        let page = partition.changes(&everything(0), page_of(items)).await.unwrap();
        assert_eq!(lsns(&page), first, "pages of {items}");
        assert_eq!(lsns(&partition.changes(&everything(page.lsn), page_of(items)).await.unwrap()), second);
    }
}

#[tokio::test]
async fn merged_changes_with_one_lsn_are_on_one_page() {
    let partition = merged(&[(4, 0, 10, 7), (4, 0, 1 << 41, 7), (5, 0, 11, 7)]).await;
    let page = partition.changes(&everything(0), page_of(1)).await.unwrap();
    assert_eq!((lsns(&page), page.lsn), (vec![4, 4], 4));
}

#[tokio::test]
async fn a_reader_can_start_at_a_time() {
    let times = [1000, 1001, 1001, 2000, 1999, 3000];
    let changes: Vec<_> = (1..).zip(times).map(|(lsn, ts_s)| (lsn, 0, lsn, ts_s)).collect();
    let partition = merged(&changes).await;
    for since_s in 990..3010 {
        let after = partition.lsn_at(FeedStart::Time(since_s)).await.unwrap();
        let page = partition.changes(&ChangeQuery { since_s, ..everything(after) }, page_of(100)).await.unwrap();
        let want: Vec<u64> = changes.iter().filter(|change| change.3 >= since_s).map(|change| change.0).collect();
        assert_eq!(lsns(&page), want, "since {since_s}");
    }
    assert_eq!(partition.lsn_at(FeedStart::Time(3061)).await.unwrap(), 6, "changes long before the start are not read");
    assert_eq!(partition.lsn_at(FeedStart::Now).await.unwrap(), 6);
}

#[tokio::test]
async fn a_position_after_the_last_lsn_is_rejected() {
    let partition = merged(&[(1, 0, 10, 7)]).await;
    let page = partition.changes(&everything(1), page_of(100)).await.unwrap();
    assert_eq!((lsns(&page), page.lsn), (vec![], 1));
    let error = partition.changes(&everything(2), page_of(100)).await.unwrap_err();
    assert_eq!(error.fact(), Some(&Fact::ChangesAhead { after_lsn: 2, reached_lsn: 1 }));
}

/// Even for a small page, the search for the rare changes of one key does not read a few rows at a time.
#[tokio::test]
async fn rare_changes_are_found_in_few_reads() {
    let script = FaultPlan::default();
    let store = Arc::new(AnyStore::Faulty(Faulty::new(Memory::new(), script.clone())));
    let (partition, schema) = (open(&store).await, schema(&["/pk"]));
    for n in 0..200 {
        let (pk, id) = (if n == 150 { "rare" } else { "many" }, n.to_string());
        let draft = draft(&schema, &id, item(pk, &id, n));
        partition.write(&schema, Verb::Create, &draft, &Precondition::None, 7).await.unwrap();
    }
    script.fail(FaultPoint::Read, 8);
    let scope = KeyScope::Key(key(&schema, "rare", "").logical.epk);
    let page = partition.changes(&ChangeQuery { scope, ..everything(0) }, page_of(1)).await.unwrap();
    assert_eq!(lsns(&page), [151]);
}
