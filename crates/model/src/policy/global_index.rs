//! `materializedViewDefinition` or `globalSecondaryIndexDefinition`: a global secondary index, a container that is
//! maintained from another one.
//!
//! It names the source container and the projection. `sql::index_projection` validates the projection; the engine
//! checks that the source exists.
//!
//! ```text
//! {"sourceCollectionId":"orders","sourceCollectionRid":"…","definition":"SELECT c.customer, c.total FROM c"}
//! ```

use super::read;
use crate::resource_id::ContainerRid;
use crate::{Error, Object, Result, Value};

/// The older name and the newer one.
pub(super) const NAMES: [&str; 2] = ["materializedViewDefinition", "globalSecondaryIndexDefinition"];

/// The source and projection of a global secondary index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalIndex {
    /// The member name that the client used.
    member: &'static str,
    /// The name of the source container, in the same database.
    pub source: String,
    /// The rid of the source when the index was created; set by the engine.
    pub source_rid: Option<ContainerRid>,
    /// `SELECT … FROM c`
    pub definition: String,
}

impl GlobalIndex {
    pub(super) fn parse(body: &Object) -> Result<Option<GlobalIndex>> {
        let Some(member) = NAMES.into_iter().find(|name| read::member(body, name).is_some()) else { return Ok(None) };
        read::optional(body, member, |value| GlobalIndex::parse_member(member, read::object(value)?))
    }

    fn parse_member(member: &'static str, body: &Object) -> Result<GlobalIndex> {
        let text = |name: &str| {
            let text = read::optional(body, name, read::text)?.filter(|text| !text.is_empty());
            text.map(str::to_owned).ok_or_else(|| Error::invalid(format!("{member} needs '{name}', a string.")))
        };
        let source_rid = read::optional(body, "sourceCollectionRid", read::text)?.and_then(ContainerRid::parse);
        Ok(GlobalIndex { member, source: text("sourceCollectionId")?, source_rid, definition: text("definition")? })
    }

    /// Writes the definition under the member name that the client used.
    pub(super) fn write_member(&self, object: &mut Object) {
        object.set(self.member, self.to_object());
    }

    pub fn member(&self) -> &'static str {
        self.member
    }

    pub fn to_object(&self) -> Object {
        let object = Object::new().with("sourceCollectionId", self.source.as_str());
        let object = match self.source_rid {
            Some(rid) => object.with("sourceCollectionRid", rid.to_string()),
            None => object,
        };
        object.with("definition", self.definition.as_str())
    }

    /// Ignores the rid: clients send back what they read, or what they created the index with.
    pub(super) fn same(&self, other: &GlobalIndex) -> bool {
        self.source == other.source && self.definition == other.definition
    }
}

/// One of the global secondary indexes of a source container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedBy {
    pub id: String,
    pub rid: ContainerRid,
}

impl IndexedBy {
    pub(super) fn parse(value: &Value) -> Result<IndexedBy> {
        let body = read::object(value)?;
        let rid = ContainerRid::parse(read::required_text(body, "_rid")?).ok_or_else(read::wrong_type)?;
        Ok(IndexedBy { id: read::required_text(body, "id")?.to_owned(), rid })
    }

    pub(super) fn to_value(&self) -> Value {
        Object::new().with("id", self.id.as_str()).with("_rid", self.rid.to_string()).into()
    }
}
