//! Catalog rows: the resource tree in the store, as JSON text with one row per resource.
//!
//! ```text
//! catalog │ 'b' │ job u64                → database copy in progress
//! catalog │ 'n' │                        → counters and the account's secret
//! catalog │ 'd' │ database u32           → id, version, highest LSN of deleted containers
//! catalog │ 'c' │ database u32 · u32     → kind, definition, partition map, version, schema version,
//!                                          index transformation
//! catalog │ 'e' │ database u32 · u64     → encryption key, version
//! catalog │ 'g' │ database u32 · u32     → progress of a global secondary index
//! catalog │ 'j' │ job u64                → split or merge in progress
//! catalog │ 'o' │ offer u32              → owner, throughput, version
//! catalog │ 'p' │ database u32 · user u32 · u64
//!                                        → permission, version
//! catalog │ 's' │ database u32 · container u32 · kind u8 · u64
//!                                        → script, version
//! catalog │ 'u' │ database u32 · u32     → user, version
//! catalog │ 'x' │ shard u64              → (empty) orphaned shard, still to be dropped
//! ```

mod containers; // containers: kind, definition, partition map, index transformation
mod copies; // database copies in progress
mod high_water_marks; // after a restore: raises counters above what clients have seen
mod users; // users and permissions

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use pleiad_model::env::Env;
use pleiad_model::partition_map::{PartitionKeyRange, PartitionMap};
use pleiad_model::resource_id::{
    ClientEncryptionKeyRid, ContainerRid, DatabaseRid, OfferRid, PermissionRid, ScriptKind, ScriptRid, UserRid,
};
use pleiad_model::{Error, Object, Result, Value, json};
use pleiad_partition::governor::{BucketId, Caps};
use pleiad_partition::shard_state::ShardState;
use pleiad_partition::{Committer, Partition};
use pleiad_storage::{AnySnapshot, AnyStore, Batch, Blocking, Direction, Limit, Snapshot, Store, keyspace};

use super::job::RepartitionJob;
use super::progress::{self, IndexProgress, SourceCursor};
use super::script::{Script, ScriptDefinition, Scripts};
use super::tree::{CatalogTree, CatalogVersion, Container, Database, EncryptionKey, Offer, OfferOwner};
use crate::PartitionLimits;
use crate::throughput::{ProvisionedThroughput, Redistribution};
pub(super) use containers::{delete_container, put_container};
pub(super) use copies::{delete_copy, put_copy};
pub(super) use high_water_marks::{
    ContainerMarks, HighWaterMark, HighWaterMarks, raise_after_loss, raise_high_water_marks,
};
pub(super) use users::{delete_permission, delete_user, put_permission, put_user};

const COUNTERS: u8 = b'n';
const DATABASE: u8 = b'd';
const CONTAINER: u8 = b'c';
const ENCRYPTION_KEY: u8 = b'e';
const PROGRESS: u8 = b'g';
const OFFER: u8 = b'o';
const JOB: u8 = b'j';
const SCRIPT: u8 = b's';
const DROPPED_SHARD: u8 = b'x';

/// A member of a database's row.
const DELETED_LSN: &str = "deletedLsn";

const CHUNK: Limit = Limit { rows: 256, bytes: 1 << 20 };

/// Counters whose values are assigned once, and the account's secret.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    pub version: u64,
    pub database: u32,
    pub container: u32,
    pub encryption_key: u64,
    pub offer: u32,
    pub shard: u64,
    pub user: u32,
    pub permission: u64,
    /// The maximum over all deleted containers.
    pub deleted: HighWaterMark,
    pub secret: [u8; 32],
}

impl Counters {
    fn new(env: &dyn Env) -> Self {
        let mut secret = [0; 32];
        secret.as_chunks_mut::<8>().0.iter_mut().for_each(|chunk| *chunk = env.random_u64().to_be_bytes());
        let (version, database, container, encryption_key, offer, shard, user, permission) = Default::default();
        Counters {
            version,
            database,
            container,
            encryption_key,
            offer,
            shard,
            user,
            permission,
            deleted: HighWaterMark::default(),
            secret,
        }
    }

    /// The counters of a restored snapshot, raised so that no number assigned since is assigned again.
    pub fn raised_to(&self, assigned: &Counters) -> Counters {
        Counters {
            version: self.version.max(assigned.version),
            database: self.database.max(assigned.database),
            container: self.container.max(assigned.container),
            encryption_key: self.encryption_key.max(assigned.encryption_key),
            offer: self.offer.max(assigned.offer),
            shard: self.shard.max(assigned.shard),
            user: self.user.max(assigned.user),
            permission: self.permission.max(assigned.permission),
            deleted: self.deleted.raised_to(assigned.deleted),
            secret: self.secret,
        }
    }

    pub fn put(&self, batch: &mut Batch) {
        let secret: String = self.secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let row = Object::new()
            .with("version", self.version)
            .with("database", u64::from(self.database))
            .with("container", u64::from(self.container))
            .with("encryptionKey", self.encryption_key)
            .with("offer", u64::from(self.offer))
            .with("shard", self.shard)
            .with("user", u64::from(self.user))
            .with("permission", self.permission)
            .with("deletedLsn", self.deleted.lsn)
            .with("goneItem", self.deleted.last_item)
            .with("goneRange", u64::from(self.deleted.next_range))
            .with("goneEpoch", self.deleted.epoch)
            .with("secret", secret);
        put(batch, COUNTERS, &[], row);
    }

    fn from_value(value: &Value) -> Result<Self> {
        let hex = text(value, "secret")?;
        let mut secret = [0; 32];
        for (at, byte) in secret.iter_mut().enumerate() {
            let digits = hex.get(2 * at..2 * at + 2).ok_or_else(|| Error::corrupt("account secret"))?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| Error::corrupt("account secret"))?;
        }
        // Rows that earlier versions wrote do not have all counters.
        let optional = |name| value.get(name).map_or(Ok(0), |_| number(value, name));
        let optional_u32 = |name| value.get(name).map_or(Ok(0), |_| number_u32(value, name));
        Ok(Counters {
            version: number(value, "version")?,
            database: number_u32(value, "database")?,
            container: number_u32(value, "container")?,
            encryption_key: number(value, "encryptionKey")?,
            offer: number_u32(value, "offer")?,
            shard: number(value, "shard")?,
            user: optional_u32("user")?,
            permission: optional("permission")?,
            deleted: HighWaterMark {
                lsn: optional("deletedLsn")?,
                last_item: optional("goneItem")?,
                next_range: optional_u32("goneRange")?,
                epoch: optional("goneEpoch")?,
            },
            secret,
        })
    }
}

pub(super) fn put_database(batch: &mut Batch, database: &Database) {
    let mut row = versioned(database.version).with("id", database.id.as_str());
    if database.deleted_lsn > 0 {
        row.set(DELETED_LSN, database.deleted_lsn);
    }
    put(batch, DATABASE, &database.rid.0.to_be_bytes(), row);
}

pub(super) fn delete_database(batch: &mut Batch, database: &Database) {
    batch.delete(keyspace::catalog(DATABASE, &database.rid.0.to_be_bytes()));
}

pub(crate) fn put_progress(batch: &mut Batch, index: ContainerRid, cursors: &[SourceCursor]) {
    put(batch, PROGRESS, &pair(index.database.0, index.number), progress::to_object(cursors));
}

fn delete_progress(batch: &mut Batch, index: ContainerRid) {
    batch.delete(progress_key(index));
}

pub(super) fn put_script(batch: &mut Batch, script: &Script) {
    let row = versioned(script.version).with("script", script.definition.to_object());
    put(batch, SCRIPT, &script_key(script.rid), row);
}

pub(super) fn delete_script(batch: &mut Batch, script: &Script) {
    batch.delete(keyspace::catalog(SCRIPT, &script_key(script.rid)));
}

pub(super) fn put_job(batch: &mut Batch, job: &RepartitionJob) {
    put(batch, JOB, &job.id.to_be_bytes(), job.to_object());
}

pub(super) fn delete_job(batch: &mut Batch, id: u64) {
    batch.delete(keyspace::catalog(JOB, &id.to_be_bytes()));
}

pub(super) fn put_dropped_shard(batch: &mut Batch, shard: u64) {
    batch.put(keyspace::catalog(DROPPED_SHARD, &shard.to_be_bytes()), Bytes::new());
}

pub(super) fn put_encryption_key(batch: &mut Batch, key: &EncryptionKey) {
    let row = versioned(key.version).with("id", key.id.as_str()).with("properties", key.properties.clone());
    put(batch, ENCRYPTION_KEY, &encryption_key(key.rid), row);
}

pub(super) fn delete_encryption_key(batch: &mut Batch, key: &EncryptionKey) {
    batch.delete(keyspace::catalog(ENCRYPTION_KEY, &encryption_key(key.rid)));
}

pub(super) fn put_offer(batch: &mut Batch, offer: &Offer) {
    let mut row = versioned(offer.version).with("highest", u64::from(offer.highest_ru));
    match offer.owner {
        OfferOwner::Database(rid) => row.set("database", rid.to_string()),
        OfferOwner::Container(rid) => row.set("container", rid.to_string()),
    }
    match offer.throughput {
        ProvisionedThroughput::Manual(ru) => row.set("manual", u64::from(ru)),
        ProvisionedThroughput::Autoscale { max, increment_percent } => {
            row.set("autoscale", u64::from(max));
            row.set("increment", increment_percent.map_or(Value::Null, Value::from));
        }
    }
    if !offer.redistribution.0.is_empty() {
        let ranges = offer.redistribution.0.iter();
        let ranges = ranges.map(|(id, ru)| Object::new().with("id", u64::from(*id)).with("ru", u64::from(*ru)).into());
        row.set("redistribution", ranges.collect::<Vec<Value>>());
    }
    if offer.caps != Caps::default() {
        row.set(
            "buckets",
            offer.caps.percent.iter().map(|percent| Value::from(u64::from(*percent))).collect::<Vec<_>>(),
        );
        row.set("defaultBucket", offer.caps.default_bucket.map_or(Value::Null, |id| u64::from(id.number()).into()));
    }
    put(batch, OFFER, &offer.rid.0.to_be_bytes(), row);
}

pub(super) fn delete_offer(batch: &mut Batch, offer: &Offer) {
    batch.delete(keyspace::catalog(OFFER, &offer.rid.0.to_be_bytes()));
}

pub(crate) fn delete_dropped_shard(batch: &mut Batch, shard: u64) {
    batch.delete(keyspace::catalog(DROPPED_SHARD, &shard.to_be_bytes()));
}

/// Shards of deleted containers and former partitions whose rows are still stored.
pub(crate) async fn load_dropped_shards(store: &AnyStore) -> Result<Vec<u64>> {
    let rows = scan(store, DROPPED_SHARD).await?;
    rows.iter().map(|(key, _)| Ok(u64::from_be_bytes(*tail::<8>(key)?))).collect()
}

/// What opening the partitions of a container needs.
pub(super) struct Loader<'a> {
    pub store: &'a Arc<AnyStore>,
    pub committer: &'a Committer,
    pub limits: &'a PartitionLimits,
}

pub(super) async fn load(loader: &Loader<'_>, env: &dyn Env) -> Result<(CatalogTree, Counters)> {
    let store = loader.store;
    let counters = match load_counters(store).await? {
        Some(counters) => counters,
        None => create_account(loader.committer, env).await?,
    };
    let mut tree = CatalogTree::default();
    for (key, row) in scan(store, DATABASE).await? {
        tree.put_database(load_database(loader, DatabaseRid(u32::from_be_bytes(*tail(&key)?)), &row).await?);
    }
    for (key, row) in scan(store, OFFER).await? {
        let offer = load_offer(OfferRid(u32::from_be_bytes(*tail(&key)?)), &json::parse(&row)?)?;
        tree.offers.insert(offer.rid.0, Arc::new(offer));
    }
    for (key, row) in scan(store, JOB).await? {
        let job = RepartitionJob::from_value(u64::from_be_bytes(*tail(&key)?), &json::parse(&row)?)?;
        tree.jobs.insert(job.id, Arc::new(job));
    }
    copies::load_copies(store, &mut tree).await?;
    Ok((tree, counters))
}

async fn load_counters(store: &AnyStore) -> Result<Option<Counters>> {
    let row = store.get(&keyspace::catalog(COUNTERS, &[])).await?;
    row.map(|row| Counters::from_value(&json::parse(&row)?)).transpose()
}

/// The first start on an empty store: the secret must be durable before it signs anything.
async fn create_account(committer: &Committer, env: &dyn Env) -> Result<Counters> {
    let counters = Counters::new(env);
    let mut batch = Batch::default();
    counters.put(&mut batch);
    committer.commit(batch).await?;
    Ok(counters)
}

async fn load_database(loader: &Loader<'_>, rid: DatabaseRid, row: &[u8]) -> Result<Database> {
    let store = loader.store;
    let row = json::parse(row)?;
    let mut database = Database::new(text(&row, "id")?.to_owned(), rid, version(&row)?);
    database.deleted_lsn = deleted_lsn(&row)?;
    let mut scripts = load_scripts(store, rid).await?;
    for (key, row) in scan_prefix(store, CONTAINER, &rid.0.to_be_bytes()).await? {
        let rid = ContainerRid { database: rid, number: u32::from_be_bytes(*tail(&key)?) };
        let container = containers::load_container(loader, &database.id, rid, &json::parse(&row)?).await?;
        let scripts = Arc::new(scripts.remove(&rid).unwrap_or_default());
        database.put_container(Arc::new(Container { scripts, ..container }));
    }
    for (key, row) in scan_prefix(store, ENCRYPTION_KEY, &rid.0.to_be_bytes()).await? {
        let rid = ClientEncryptionKeyRid { database: rid, number: u64::from_be_bytes(*tail(&key)?) };
        let key = load_encryption_key(rid, &json::parse(&row)?)?;
        database.encryption_keys.insert(key.rid.number, Arc::new(key));
    }
    users::load_users(store, &mut database).await?;
    Ok(database)
}

/// Zero in rows that earlier versions wrote, and before the first container is deleted.
fn deleted_lsn(database: &Value) -> Result<u64> {
    database.get(DELETED_LSN).map_or(Ok(0), |_| number(database, DELETED_LSN))
}

async fn load_progress(store: &AnyStore, rid: ContainerRid) -> Result<Arc<IndexProgress>> {
    read_progress(store.get(&progress_key(rid)).await?)
}

/// The progress in a snapshot.
pub(super) async fn progress_in(snapshot: &AnySnapshot, rid: ContainerRid) -> Result<Arc<IndexProgress>> {
    read_progress(snapshot.get_many(&[progress_key(rid)]).await?.pop().flatten())
}

fn read_progress(row: Option<Bytes>) -> Result<Arc<IndexProgress>> {
    row.map_or(Ok(Arc::default()), |row| IndexProgress::load(&json::parse(&row)?).map(Arc::new))
}

fn progress_key(rid: ContainerRid) -> Bytes {
    keyspace::catalog(PROGRESS, &pair(rid.database.0, rid.number))
}

/// The scripts of all containers of a database.
async fn load_scripts(store: &AnyStore, database: DatabaseRid) -> Result<BTreeMap<ContainerRid, Scripts>> {
    let mut scripts: BTreeMap<ContainerRid, Scripts> = BTreeMap::new();
    for (key, row) in scan_prefix(store, SCRIPT, &database.0.to_be_bytes()).await? {
        let rid = script_rid(database, &key)?;
        let row = json::parse(&row)?;
        let definition = row.get("script").ok_or_else(|| Error::corrupt("script row"))?;
        let definition = ScriptDefinition::parse(rid.kind, definition)?;
        scripts.entry(rid.container).or_default().put(Script::new(rid, version(&row)?, definition));
    }
    Ok(scripts)
}

fn script_rid(database: DatabaseRid, key: &[u8]) -> Result<ScriptRid> {
    let [container @ .., _, _, _, _, _, _, _, _, _] = tail::<13>(key)?;
    let [kind, ..] = tail::<9>(key)?;
    let container = ContainerRid { database, number: u32::from_be_bytes(*container) };
    let kind = ScriptKind::from_nibble(*kind).ok_or_else(|| Error::corrupt("kind of a script"))?;
    Ok(ScriptRid { container, kind, number: u64::from_be_bytes(*tail(key)?) })
}

/// The partitions of a new container, whose states the batch writes.
pub(super) fn create_partitions(
    batch: &mut Batch,
    map: &PartitionMap,
    state: &ShardState,
    store: &Arc<AnyStore>,
    committer: &Committer,
) -> Vec<Arc<Partition>> {
    let create = |range: &PartitionKeyRange| {
        batch.put(keyspace::state(range.shard), state.encode());
        Arc::new(Partition::with_state(range.clone(), store.clone(), committer.clone(), state.clone()))
    };
    map.ranges().iter().map(create).collect()
}

pub(super) async fn open_partitions(
    map: &PartitionMap,
    store: &Arc<AnyStore>,
    committer: &Committer,
) -> Result<Vec<Arc<Partition>>> {
    let mut partitions = Vec::with_capacity(map.ranges().len());
    for range in map.ranges() {
        partitions.push(Arc::new(Partition::open(range.clone(), store.clone(), committer.clone()).await?));
    }
    Ok(partitions)
}

fn load_encryption_key(rid: ClientEncryptionKeyRid, row: &Value) -> Result<EncryptionKey> {
    let properties = row.get("properties").and_then(Value::as_object);
    let properties = properties.cloned().ok_or_else(|| Error::corrupt("encryption key row"))?;
    Ok(EncryptionKey { id: text(row, "id")?.to_owned(), rid, version: version(row)?, properties })
}

fn load_offer(rid: OfferRid, row: &Value) -> Result<Offer> {
    let missing = || Error::corrupt("offer row");
    let owner = match row.get("database").and_then(Value::as_str) {
        Some(database) => OfferOwner::Database(DatabaseRid::parse(database).ok_or_else(missing)?),
        None => OfferOwner::Container(ContainerRid::parse(text(row, "container")?).ok_or_else(missing)?),
    };
    let throughput = match row.get("manual") {
        Some(_) => ProvisionedThroughput::Manual(number_u32(row, "manual")?),
        None => ProvisionedThroughput::Autoscale {
            max: number_u32(row, "autoscale")?,
            increment_percent: row.get("increment").and_then(Value::as_i64),
        },
    };
    let (redistribution, caps) = (load_redistribution(row)?, load_caps(row)?);
    let highest_ru = number_u32(row, "highest")?;
    Ok(Offer { rid, owner, version: version(row)?, throughput, highest_ru, redistribution, caps })
}

fn load_redistribution(row: &Value) -> Result<Redistribution> {
    let ranges = row.get("redistribution").and_then(Value::as_array).unwrap_or_default();
    let ranges = ranges.iter().map(|range| Ok((number_u32(range, "id")?, number_u32(range, "ru")?)));
    ranges.collect::<Result<_>>().map(Redistribution)
}

fn load_caps(row: &Value) -> Result<Caps> {
    let Some(buckets) = row.get("buckets").and_then(Value::as_array) else { return Ok(Caps::default()) };
    let corrupt = || Error::corrupt("throughput buckets");
    let percent = |cap: &Value| cap.as_i64().and_then(|cap| u8::try_from(cap).ok()).ok_or_else(corrupt);
    let percents = buckets.iter().map(percent).collect::<Result<Vec<u8>>>()?;
    let default_bucket = row.get("defaultBucket").and_then(Value::as_i64).and_then(BucketId::new);
    Ok(Caps { percent: percents.try_into().map_err(|_| corrupt())?, default_bucket })
}

fn put(batch: &mut Batch, kind: u8, suffix: &[u8], row: Object) {
    let mut text = Vec::new();
    json::write(&row.into(), &mut text);
    batch.put(keyspace::catalog(kind, suffix), text);
}

fn pair(database: u32, number: u32) -> [u8; 8] {
    (u64::from(database) << 32 | u64::from(number)).to_be_bytes()
}

fn script_key(rid: ScriptRid) -> Vec<u8> {
    let container = pair(rid.container.database.0, rid.container.number);
    [&container[..], &[rid.kind as u8], &rid.number.to_be_bytes()].concat()
}

fn encryption_key(rid: ClientEncryptionKeyRid) -> Vec<u8> {
    [&rid.database.0.to_be_bytes()[..], &rid.number.to_be_bytes()].concat()
}

fn versioned(version: CatalogVersion) -> Object {
    Object::new().with("version", version.number).with("ts", u64::from(version.ts_s))
}

fn version(row: &Value) -> Result<CatalogVersion> {
    Ok(CatalogVersion { number: number(row, "version")?, ts_s: number_u32(row, "ts")? })
}

async fn scan(store: &AnyStore, kind: u8) -> Result<Vec<(Bytes, Bytes)>> {
    scan_prefix(store, kind, &[]).await
}

async fn scan_prefix(store: &AnyStore, kind: u8, prefix: &[u8]) -> Result<Vec<(Bytes, Bytes)>> {
    let snapshot = store.snapshot(Blocking::Suspend).await?;
    let (mut from, to) = keyspace::catalog_range(kind, prefix);
    let mut rows = Vec::new();
    loop {
        let chunk = snapshot.scan(&from, &to, Direction::Forward, CHUNK).await?;
        rows.extend(chunk.pairs);
        match rows.last() {
            Some((last, _)) if chunk.more => from = keyspace::after(last),
            _ => return Ok(rows),
        }
    }
}

fn tail<const N: usize>(key: &[u8]) -> Result<&[u8; N]> {
    key.last_chunk().ok_or_else(|| Error::corrupt("catalog key"))
}

fn text<'a>(row: &'a Value, name: &str) -> Result<&'a str> {
    row.get(name).and_then(Value::as_str).ok_or_else(|| Error::corrupt(format_args!("catalog row without {name}")))
}

fn number(row: &Value, name: &str) -> Result<u64> {
    let found = row.get(name).and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok());
    found.ok_or_else(|| Error::corrupt(format_args!("catalog row without {name}")))
}

fn number_u32(row: &Value, name: &str) -> Result<u32> {
    u32::try_from(number(row, name)?).map_err(|_| Error::corrupt(format_args!("catalog row with a large {name}")))
}
