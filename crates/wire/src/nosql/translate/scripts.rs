//! Stored procedures, triggers and user-defined functions as resources: storing and reading them. `procedures` executes
//! them.

use std::sync::Arc;

use http::{Method, StatusCode};
use pleiad_engine::price::METADATA_WRITE_RU;
use pleiad_engine::{Admitted, ConditionalRid, PutMode, Script, ScriptDefinition};
use pleiad_model::resource_id::{ScriptKind, ScriptRid};
use pleiad_model::{Error, Result};

use super::items::{tell, told};
use super::metadata::{MetadataRows, one};
use super::not_allowed;
use crate::nosql::RequestContext;
use crate::nosql::encode;
use crate::nosql::reply::{Handled, Reply};
use crate::nosql::request::{PostKind, Request};

impl RequestContext<'_> {
    pub(super) async fn scripts(&self, request: &Request<'_>, kind: ScriptKind) -> Handled {
        let at = self.engine.admit(request.container_name()?, request.intended_rid())?.in_class(request.class()?);
        let reply = match (request.method, request.address.is_feed) {
            (&Method::GET, true) => self.list(request, rows(&at, kind, &at.container().rid.to_string())),
            (&Method::POST, true) => self.post_script(request, &at, kind).await,
            (&Method::GET, false) => Ok(one(request, StatusCode::OK, &encode::script(&*find(request, &at, kind)?))),
            (&Method::PUT, false) => {
                let meant = ConditionalRid::new(find(request, &at, kind)?.rid, request.write_condition());
                self.put_script(request, &at, kind, PutMode::Replace(meant)).await
            }
            (&Method::DELETE, false) => {
                let meant = ConditionalRid::new(find(request, &at, kind)?.rid, request.write_condition());
                self.engine.catalog.delete_script(meant).await?;
                Ok(Reply::empty(StatusCode::NO_CONTENT).charged(METADATA_WRITE_RU))
            }
            (&Method::POST, false) if kind == ScriptKind::StoredProcedure => {
                self.execute(request, &at, &find(request, &at, kind)?).await
            }
            _ => Err(not_allowed()),
        };
        match reply {
            Ok(reply) => Ok(told(reply, &at)),
            Err(mut refusal) => {
                tell(&mut refusal.headers, &at);
                Err(refusal)
            }
        }
    }

    async fn post_script(&self, request: &Request<'_>, at: &Admitted, kind: ScriptKind) -> Handled {
        match request.post_kind() {
            PostKind::Query => self.query(request, rows(at, kind, &at.container().rid.to_string())),
            PostKind::Create => self.put_script(request, at, kind, PutMode::Create).await,
            PostKind::Upsert => self.put_script(request, at, kind, PutMode::Upsert(request.write_condition())).await,
            PostKind::QueryPlan | PostKind::Batch => Err(not_allowed()),
        }
    }

    async fn put_script(
        &self,
        request: &Request<'_>,
        at: &Admitted,
        kind: ScriptKind,
        put: PutMode<ScriptRid>,
    ) -> Handled {
        let definition = ScriptDefinition::parse(kind, &request.json()?)?;
        let (script, is_new) = self.engine.catalog.put_script(at.container().rid, kind, definition, put).await?;
        let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
        Ok(one(request, status, &encode::script(&script)).charged(METADATA_WRITE_RU))
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
pub(super) fn find(request: &Request<'_>, at: &Admitted, kind: ScriptKind) -> Result<Arc<Script>> {
    let name = request.address.segment(2).unwrap_or_default();
    let scripts = &at.container().scripts;
    let found = match request.address.by_rid {
        true => ScriptRid::parse(name).filter(|rid| rid.kind == kind).and_then(|rid| scripts.get(rid)),
        false => scripts.named(kind, name),
    };
    found.cloned().ok_or_else(|| Error::not_found("Entity with the specified id does not exist in the system."))
}
