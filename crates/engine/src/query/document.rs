//! An item as queries see it: its stored text, with the system properties that are not in the text.
//!
//! Invariant: `SELECT *` returns byte for byte what a point read returns.

use std::borrow::Cow;
use std::fmt::Write;

use pleiad_model::resource_id::{ContainerRid, ItemRid};
use pleiad_partition::RecordView;
use pleiad_sql::computed::ComputedExprs;
use pleiad_sql::document::{Document, PropertyName};

/// A stored item in its container.
pub struct StoredItem<'a> {
    pub container: ContainerRid,
    pub record: RecordView<'a>,
    /// The container's computed properties, which `SELECT *` does not return.
    pub computed: &'a ComputedExprs,
}

impl StoredItem<'_> {
    fn rid(&self) -> ItemRid {
        ItemRid { container: self.container, docnum: self.record.docnum }
    }

    fn system_property(&self, name: &str) -> Option<Vec<u8>> {
        match name {
            "_rid" => Some(format!("\"{}\"", self.rid()).into_bytes()),
            "_self" => Some(format!("\"{}\"", self_link(self.rid())).into_bytes()),
            "_ts" => Some(self.record.ts_s.to_string().into_bytes()),
            "_attachments" => Some(b"\"attachments/\"".to_vec()),
            "_etag" => {
                let mut text = Vec::new();
                self.record.etag().write_json(&mut text);
                Some(text)
            }
            _ => None,
        }
    }
}

/// The item as its computed properties see it: without computed properties.
struct WithoutComputed<'a>(&'a StoredItem<'a>);

impl Document for StoredItem<'_> {
    fn property(&self, name: &PropertyName) -> Option<Cow<'_, [u8]>> {
        if !self.computed.is_empty()
            && let Some(value) = self.computed.text(&name.text, &WithoutComputed(self))
        {
            return value.map(Cow::Owned);
        }
        self.stored_or_system(name)
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_item(self.container, &self.record, out);
    }
}

impl Document for WithoutComputed<'_> {
    fn property(&self, name: &PropertyName) -> Option<Cow<'_, [u8]>> {
        self.0.stored_or_system(name)
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

impl StoredItem<'_> {
    /// A stored property, or a system property.
    fn stored_or_system(&self, name: &PropertyName) -> Option<Cow<'_, [u8]>> {
        if name.text.starts_with('_')
            && let Some(text) = self.system_property(&name.text)
        {
            return Some(Cow::Owned(text));
        }
        self.record.property(&name.text, name.hash).map(Cow::Borrowed)
    }
}

fn self_link(rid: ItemRid) -> String {
    format!("dbs/{}/colls/{}/docs/{rid}/", rid.container.database, rid.container)
}

/// Appends an item: its stored text without the closing brace, then the system properties.
pub fn write_item(container: ContainerRid, record: &RecordView<'_>, out: &mut Vec<u8>) {
    let body = record.body();
    let opened = body.strip_suffix(b"}").unwrap_or(body);
    out.reserve(body.len() + 256);
    out.extend_from_slice(opened);
    let rid = ItemRid { container, docnum: record.docnum };
    let mut tail = String::with_capacity(160);
    // Writing to a String cannot fail.
    let _ = write!(
        tail,
        ",\"_rid\":\"{rid}\",\"_self\":\"dbs/{}/colls/{container}/docs/{rid}/\",\"_etag\":",
        container.database
    );
    out.extend_from_slice(tail.as_bytes());
    record.etag().write_json(out);
    out.extend_from_slice(b",\"_attachments\":\"attachments/\",\"_ts\":");
    out.extend_from_slice(record.ts_s.to_string().as_bytes());
    out.push(b'}');
}
