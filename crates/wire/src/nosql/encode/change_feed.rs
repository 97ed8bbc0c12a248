//! Change feed items as JSON.
//!
//! ```text
//! latest version   {…, "_lsn": 7}, or in the newer form {"current": {…, "_lsn": 7}, "metadata": {"lsn", "crts"}}
//! all versions     {"current": {…}, "metadata": {"operationType", "lsn", "crts", "previousImageLSN", …}}
//! a delete         {"current": {}, "previous": {…}, "metadata": {…}}, without `previous` unless a setting asks for it
//! ```

use pleiad_engine::{Container, ItemVersion, Record, VersionKind, write_changed_item};
use pleiad_model::partition_key::{PartitionKey, PartitionKeyDefinition};
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Object, Value, json};

use super::{close_feed, open_feed};

/// The rows that a query has made of the changes, one of each; `None` if there is no query.
pub type ChangeRows<'a> = Option<&'a [Vec<u8>]>;

/// Each item with the LSN of its change, or in an envelope whose metadata has the LSN.
pub fn changed_items(container: ContainerRid, records: &[Record], rows: ChangeRows<'_>, enveloped: bool) -> Vec<u8> {
    feed(container, records, rows, |record, row, out| {
        if !enveloped {
            return write_current(container, Some(record), row, out);
        }
        out.extend_from_slice(b"{\"current\":");
        write_current(container, Some(record), row, out);
        let metadata = format!(",\"metadata\":{{\"lsn\":{},\"crts\":{}}}}}", record.lsn, record.ts_s);
        out.extend_from_slice(metadata.as_bytes());
    })
}

/// With `previous_images`, a delete has the deleted item.
pub fn versions(
    container: &Container,
    versions: &[ItemVersion],
    rows: ChangeRows<'_>,
    previous_images: bool,
) -> Vec<u8> {
    feed(container.rid, versions, rows, |version, row, out| {
        out.extend_from_slice(b"{\"current\":");
        write_current(container.rid, version.current.as_ref(), row, out);
        if let Some(deleted) = version.previous.as_ref()
            && previous_images
            && version.kind == VersionKind::Delete
        {
            out.extend_from_slice(b",\"previous\":");
            write_changed_item(container.rid, deleted, out);
        }
        out.extend_from_slice(b",\"metadata\":");
        json::write(&metadata(container, version).into(), out);
        out.push(b'}');
    })
}

fn feed<T>(
    container: ContainerRid,
    changes: &[T],
    rows: ChangeRows<'_>,
    write: impl Fn(&T, Option<&[u8]>, &mut Vec<u8>),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024 * changes.len());
    open_feed(&container.to_string(), "Documents", &mut out);
    for (at, change) in changes.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(change, rows.and_then(|rows| rows.get(at)).map(Vec::as_slice), &mut out);
    }
    close_feed(changes.len(), &mut out);
    out
}

/// A deleted item has an empty `current`.
fn write_current(container: ContainerRid, record: Option<&Record>, row: Option<&[u8]>, out: &mut Vec<u8>) {
    match (row, record) {
        (Some(row), _) => out.extend_from_slice(row),
        (None, Some(record)) => write_changed_item(container, record, out),
        (None, None) => out.extend_from_slice(b"{}"),
    }
}

fn metadata(container: &Container, version: &ItemVersion) -> Object {
    let operation = match version.kind {
        VersionKind::Create => "create",
        VersionKind::Replace => "replace",
        VersionKind::Delete | VersionKind::Expire => "delete",
    };
    let mut metadata = Object::new().with("operationType", operation).with("lsn", version.lsn);
    metadata.set("crts", u64::from(version.ts_s));
    if let Some(previous) = &version.previous {
        metadata.set("previousImageLSN", previous.lsn);
        if version.current.is_none() {
            metadata.set("timeToLiveExpired", version.kind == VersionKind::Expire);
            metadata.set("id", previous.id());
            metadata.set("partitionKey", partition_key(container, previous));
        }
    }
    metadata
}

/// The key of a deleted item by the names of its paths: `{"pk": "a"}`. Components without a value are omitted: clients
/// take every value as a component, and expect no objects.
fn partition_key(container: &Container, record: &Record) -> Object {
    let Some(definition) = &container.definition.partition_key else { return Object::new() };
    let body = json::parse(record.body()).unwrap_or(Value::Null);
    let values = json::parse(PartitionKey::extract(definition, &body).to_json().as_bytes()).unwrap_or(Value::Null);
    let named = names(definition).zip(values.as_array().unwrap_or_default());
    let present = named.filter(|(_, value)| !matches!(value, Value::Object(_)));
    present.fold(Object::new(), |key, (name, value)| key.with(&name, value.clone()))
}

fn names(definition: &PartitionKeyDefinition) -> impl Iterator<Item = String> {
    definition.paths.iter().map(|path| path.segments().join("/"))
}
