//! Resources as JSON, in the form that clients of this protocol expect.

mod change_feed; // items in a change feed

use pleiad_engine::{
    Caps, Container, Database, EncryptionKey, LargeKey, OfferOwner, OfferReport, PartitionKeyReport, Permission,
    ProvisionedThroughput, Record, RowSet, Script, User, write_item,
};
use pleiad_model::etag::Etag;
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::resource_id::{ContainerRid, RangeRid, ScriptKind};
use pleiad_model::{Object, Value, json};

pub use change_feed::{changed_items, versions};

pub fn database(database: &Database) -> Value {
    let rid = database.rid.to_string();
    let object = Object::new().with("id", database.id.as_str());
    let object =
        with_system_properties(object, &rid, format!("dbs/{rid}/"), database.version.etag(), database.version.ts_s);
    object.with("_colls", "colls/").with("_users", "users/").into()
}

pub fn container(container: &Container) -> Value {
    let rid = container.rid.to_string();
    let version = container.version;
    let link = container_link(container.rid);
    let mut object = with_system_properties(container.definition.to_object(), &rid, link, version.etag(), version.ts_s);
    if let Some(index) = &container.definition.global_index {
        object.set(index.member(), index.to_object().with("status", container.index_status()));
    }
    object
        .with("_docs", "docs/")
        .with("_sprocs", "sprocs/")
        .with("_triggers", "triggers/")
        .with("_udfs", "udfs/")
        .with("_conflicts", "conflicts/")
        .into()
}

/// `statistics`, one entry per physical partition.
pub fn partition_statistics(reports: &[PartitionKeyReport]) -> Value {
    reports.iter().map(statistics_of).collect::<Vec<Value>>().into()
}

fn statistics_of(report: &PartitionKeyReport) -> Value {
    let stands_out = |large: &&LargeKey| large.stats.items.saturating_mul(100) >= report.items;
    let largest = report.keys.largest.iter().filter(stands_out).filter_map(large_key).collect::<Vec<_>>();
    Object::new()
        .with("id", report.range.to_string())
        .with("sizeInKB", report.item_bytes.div_ceil(1024))
        .with("documentCount", report.items)
        .with("sampledDistinctPartitionKeyCount", report.keys.keys)
        .with("partitionKeys", largest)
        .into()
}

/// `{"partitionKey": ["a"], "sizeInKB": 7}`
fn large_key(large: &LargeKey) -> Option<Value> {
    let key = PartitionKey::decode_components(&large.components).ok()?;
    let key = json::parse(key.to_json().as_bytes()).ok()?;
    Some(Object::new().with("partitionKey", key).with("sizeInKB", large.stats.bytes.div_ceil(1024)).into())
}

pub fn offer(report: &OfferReport) -> Value {
    let offer = &report.offer;
    let rid = offer.rid.to_string();
    let (resource, owner) = match offer.owner {
        OfferOwner::Database(rid) => (format!("dbs/{rid}/"), rid.to_string()),
        OfferOwner::Container(rid) => (container_link(rid), rid.to_string()),
    };
    let object = Object::new()
        .with("resource", resource)
        .with("offerType", "Invalid")
        .with("offerResourceId", owner)
        .with("offerVersion", "V2")
        .with("content", offer_content(report))
        .with("id", rid.as_str());
    with_system_properties(object, &rid, format!("offers/{rid}/"), offer.version.etag(), offer.version.ts_s).into()
}

fn offer_content(report: &OfferReport) -> Object {
    let offer = &report.offer;
    let mut content = Object::new()
        .with("offerThroughput", u64::from(offer.throughput.reported_ru()))
        .with("offerIsRUPerMinuteThroughputEnabled", false);
    let minimum = Object::new()
        .with("maxThroughputEverProvisioned", u64::from(offer.highest_ru))
        .with("maxConsumedStorageEverInKB", report.stored_bytes / 1024);
    content.set("offerMinimumThroughputParameters", minimum);
    if report.is_scaling {
        content.set("isOfferReplacePending", true);
    }
    if let ProvisionedThroughput::Autoscale { max, increment_percent } = offer.throughput {
        let mut settings = Object::new().with("maxThroughput", u64::from(max));
        if let Some(percent) = increment_percent {
            let policy = Object::new().with("incrementPercent", percent);
            settings.set("autoUpgradePolicy", Object::new().with("throughputPolicy", policy));
        }
        content.set("offerAutopilotSettings", settings);
    }
    let buckets = buckets(&offer.caps);
    if !buckets.is_empty() {
        content.set("throughputBuckets", buckets);
    }
    content
}

fn buckets(caps: &Caps) -> Vec<Value> {
    let one = |(id, percent): (u8, &u8)| {
        let bucket = Object::new().with("id", u64::from(id)).with("maxThroughputPercentage", u64::from(*percent));
        match caps.default_bucket {
            Some(default) if default.number() == id => bucket.with("isDefaultBucket", true).into(),
            _ => bucket.into(),
        }
    };
    (1..).zip(&caps.percent).filter(|(_, percent)| **percent > 0).map(one).collect()
}

pub fn encryption_key(key: &EncryptionKey) -> Value {
    let rid = key.rid.to_string();
    let link = format!("dbs/{}/clientencryptionkeys/{rid}/", key.rid.database);
    let object = Object::new().with("id", key.id.as_str());
    let object = key.properties.iter().fold(object, |object, (name, value)| object.with(name, value.clone()));
    with_system_properties(object, &rid, link, key.version.etag(), key.version.ts_s).into()
}

pub fn script(script: &Script) -> Value {
    let rid = script.rid.to_string();
    let feed = match script.rid.kind {
        ScriptKind::StoredProcedure => "sprocs",
        ScriptKind::Trigger => "triggers",
        ScriptKind::UserDefinedFunction => "udfs",
    };
    let link = format!("{}{feed}/{rid}/", container_link(script.rid.container));
    with_system_properties(script.definition.to_object(), &rid, link, script.version.etag(), script.version.ts_s).into()
}

pub fn user(user: &User) -> Value {
    let rid = user.rid.to_string();
    let link = format!("dbs/{}/users/{rid}/", user.rid.database);
    let object = Object::new().with("id", user.id.as_str());
    with_system_properties(object, &rid, link, user.version.etag(), user.version.ts_s)
        .with("_permissions", "permissions/")
        .into()
}

pub fn permission(permission: &Permission, token: &str) -> Value {
    let (rid, user) = (permission.rid.to_string(), permission.rid.user);
    let link = format!("dbs/{}/users/{user}/permissions/{rid}/", user.database);
    let object = permission.grant.add_to(Object::new().with("id", permission.id.as_str()));
    let object = with_system_properties(object, &rid, link, permission.version.etag(), permission.version.ts_s);
    object.with("_token", token).into()
}

pub fn range(container: &Container, at: usize) -> Value {
    let (Some(range), Some(lsn)) = (container.map.ranges().get(at), container.range_lsn(at)) else {
        return Value::Null;
    };
    let rid = RangeRid { container: container.rid, number: u64::from(range.id) + 1 }.to_string();
    let link = format!("{}pkranges/{rid}/", container_link(container.rid));
    let object = Object::new()
        .with("id", range.id.to_string())
        .with("minInclusive", range.keys.min.to_string())
        .with("maxExclusive", range.keys.max.to_string())
        .with("ridPrefix", u64::from(range.prefix))
        .with("throughputFraction", 1.0 / container.map.ranges().len() as f64)
        .with("status", "online")
        .with("parents", range.parents.iter().map(|id| Value::from(id.to_string())).collect::<Vec<_>>());
    let etag = Etag { lsn: range.since, seq: 0, ts_s: container.version.ts_s, space: 0 };
    with_system_properties(object, &rid, link, etag, container.version.ts_s).with("_lsn", lsn).into()
}

fn with_system_properties(object: Object, rid: &str, link: String, etag: Etag, ts_s: u32) -> Object {
    object.with("_rid", rid).with("_self", link).with("_etag", etag.to_string()).with("_ts", u64::from(ts_s))
}

pub fn container_link(rid: ContainerRid) -> String {
    format!("dbs/{}/colls/{rid}/", rid.database)
}

/// `{"_rid": …, "<Array>": […], "_count": n}`
pub fn feed(owner: &str, array: &str, rows: &[Value]) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 * (rows.len() + 1));
    open_feed(owner, array, &mut out);
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        json::write(row, &mut out);
    }
    close_feed(rows.len(), &mut out);
    out
}

pub fn item_feed(container: ContainerRid, records: &[Record]) -> Vec<u8> {
    let mut out = Vec::with_capacity(records.iter().map(|record| record.body().len() + 256).sum::<usize>() + 64);
    open_feed(&container.to_string(), "Documents", &mut out);
    for (at, record) in records.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_item(container, &record.view(), &mut out);
    }
    close_feed(records.len(), &mut out);
    out
}

/// For rows that are already JSON text.
pub fn rows(owner: &str, array: &str, rows: &RowSet) -> Vec<u8> {
    let mut out = Vec::with_capacity(rows.bytes() + rows.len() + 64);
    open_feed(owner, array, &mut out);
    rows.join(&mut out);
    close_feed(rows.len(), &mut out);
    out
}

fn open_feed(owner: &str, array: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{{\"_rid\":\"{owner}\",\"{array}\":[").as_bytes());
}

fn close_feed(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("],\"_count\":{count}}}").as_bytes());
}
