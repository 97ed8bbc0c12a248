//! Stored procedures, triggers and user-defined functions as resources: storing and reading them. `procedures` executes
//! them.

use std::sync::Arc;

use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_engine::{Addressed, Admitted, ConditionalRid, PutMode, Script, ScriptDefinition};
use pleiad_model::resource_id::{ScriptKind, ScriptRid};
use pleiad_model::{Error, Result};

use super::metadata::{MetadataRows, one};
use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::operation::{Operation, OperationKind};
use crate::nosql::reply::{Handled, Reply, in_container};
use crate::nosql::status::Status;

impl RequestContext<'_> {
    pub(super) async fn scripts(&self, operation: &Operation<'_>, kind: ScriptKind) -> Handled {
        let at = self.admit_container(operation, Addressed::Parent)?;
        let at = at.in_class(operation.class()?);
        in_container(self.scripts_of(operation, &at, kind).await, at.container())
    }

    async fn scripts_of(&self, operation: &Operation<'_>, at: &Admitted, kind: ScriptKind) -> Handled {
        let versioned = || {
            let script = find(operation, at, kind)?;
            Ok::<_, Error>(ConditionalRid::new(script.rid, operation.write_condition()))
        };
        match operation.kind {
            OperationKind::List => self.list(operation, rows(at, kind, &at.container().rid.to_string())),
            OperationKind::Query => self.query(operation, rows(at, kind, &at.container().rid.to_string())),
            OperationKind::Create => self.put_script(operation, at, kind, PutMode::Create).await,
            OperationKind::Upsert => {
                self.put_script(operation, at, kind, PutMode::Upsert(operation.write_condition())).await
            }
            OperationKind::Read => Ok(one(operation, Status::Ok, &encode::script(&*find(operation, at, kind)?))),
            OperationKind::Replace => self.put_script(operation, at, kind, PutMode::Replace(versioned()?)).await,
            OperationKind::Delete => {
                self.engine.delete_script(at, versioned()?).await?;
                Ok(Reply::empty(Status::NoContent).charged(METADATA_WRITE_RU))
            }
            OperationKind::Execute if kind == ScriptKind::StoredProcedure => {
                self.execute(operation, at, &find(operation, at, kind)?).await
            }
            _ => Err(not_allowed()),
        }
    }

    async fn put_script(
        &self,
        operation: &Operation<'_>,
        at: &Admitted,
        kind: ScriptKind,
        put: PutMode<ScriptRid>,
    ) -> Handled {
        let definition = ScriptDefinition::parse(kind, &operation.json()?)?;
        let (script, is_new) = self.engine.put_script(at, kind, definition, put).await?;
        let status = if is_new { Status::Created } else { Status::Ok };
        Ok(one(operation, status, &encode::script(&script)).charged(METADATA_WRITE_RU))
    }
}

fn rows<'a>(at: &Admitted, kind: ScriptKind, owner: &'a str) -> MetadataRows<'a> {
    let array = match kind {
        ScriptKind::StoredProcedure => "StoredProcedures",
        ScriptKind::Trigger => "Triggers",
        ScriptKind::UserDefinedFunction => "UserDefinedFunctions",
    };
    let scripts = at.container().scripts.of(kind);
    MetadataRows { owner, array, numbered: scripts.map(|script| (script.rid.number, encode::script(script))).collect() }
}

/// The script that the path names.
pub(super) fn find(operation: &Operation<'_>, at: &Admitted, kind: ScriptKind) -> Result<Arc<Script>> {
    let name = operation.address.segment(2).unwrap_or_default();
    let scripts = &at.container().scripts;
    let found = match operation.address.by_rid {
        true => ScriptRid::parse(name).filter(|rid| rid.kind == kind).and_then(|rid| scripts.get(rid)),
        false => scripts.named(kind, name),
    };
    found.cloned().ok_or_else(|| Error::not_found("Entity with the specified id does not exist in the system."))
}
