//! Patch: partial update of one item.
//!
//! Guarantees: the item is read, tested and written without another write in between. `model::patch` applies the
//! operations.

use pleiad_model::env::Env;
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::patch::Patch;
use pleiad_model::{Error, Kind, Result, json};
use pleiad_partition::partition::{PRECONDITION_NOT_MET, RESOURCE_NOT_FOUND, Rejected};
use pleiad_partition::{ItemKey, OperationEffect, Precondition, Record, Transaction, Verb, Written, price};
use pleiad_sql::InMemoryQuery;

use crate::item::{Target, draft, locate};
use crate::query::StoredItem;
use crate::write_retry::{WriteOutcome, WriteTarget};
use crate::{Admitted, Container, Engine, EngineResponse, WriteOptions};

impl Engine {
    pub async fn patch_item(
        &self,
        at: &Admitted,
        key: Option<&PartitionKey>,
        target: Target<'_>,
        patch: &Patch,
        condition: &Precondition,
    ) -> EngineResponse<Written> {
        let target = match locate(at, key, target).await {
            Ok((_, target)) => target,
            Err(error) => return EngineResponse::failed(error),
        };
        let change = match PreparedPatch::new(at, patch) {
            Ok(change) => change,
            Err(error) => return EngineResponse::failed(error),
        };
        let (target, change, ts_s) = (&target, &change, self.now_s());
        let write = |write_target: WriteTarget| async move {
            let mut tx = write_target
                .partition
                .begin_latched(&write_target.container.schema, target.logical.clone(), ts_s)
                .await;
            match change.apply(at, &*self.env, &mut tx, key, target, condition).await {
                Ok(effect) => Ok(WriteOutcome::from(written(effect, tx.commit().await?))),
                Err(rejected) => Err(tx.abort(rejected).await),
            }
        };
        self.with_writable_partition(at, &target.logical, write).await
    }
}

fn written(effect: OperationEffect, lsn: u64) -> Written {
    let OperationEffect { record, created, charge_ru } = effect;
    Written { record: record.map(|record| record.with_lsn(lsn, 0)), created, lsn, charge_ru }
}

/// A patch that is valid for the items of this container.
pub(crate) struct PreparedPatch<'p> {
    patch: &'p Patch,
    condition: Option<InMemoryQuery>,
}

impl<'p> PreparedPatch<'p> {
    pub fn new(at: &Admitted, patch: &'p Patch) -> Result<Self> {
        let paths = at.container.schema.key.iter().flat_map(|key| &key.paths);
        paths.into_iter().try_for_each(|path| patch.check_partition_key(path))?;
        let condition = patch.condition.as_ref().map(|text| pleiad_sql::parse(&format!("SELECT VALUE 1 {text}")));
        Ok(PreparedPatch { patch, condition: condition.transpose()? })
    }

    /// Replaces the item with the patched one.
    pub async fn apply(
        &self,
        at: &Admitted,
        env: &dyn Env,
        tx: &mut Transaction<'_>,
        key: Option<&PartitionKey>,
        target: &ItemKey,
        condition: &Precondition,
    ) -> Result<OperationEffect, Rejected> {
        let old = tx.read(target).await?.ok_or_else(|| Error::not_found(RESOURCE_NOT_FOUND))?;
        let reject = |error: Error| Rejected { error, charge_ru: price::rejected_write(old.body().len()) };
        if !condition.holds(&old) || !self.is_met(at, env, &old).map_err(reject)? {
            return Err(reject(Error::new(Kind::PreconditionFailed, PRECONDITION_NOT_MET)));
        }
        let mut body = json::parse(old.body())?;
        self.patch.apply(&mut body).map_err(reject)?;
        let options = WriteOptions { indexed: Some(old.indexed), ..WriteOptions::default() };
        let draft = draft(at, key, body, &options, Some(target.clone())).map_err(reject)?;
        let effect = tx.put(Verb::Replace, &draft, &Precondition::None).await?;
        Ok(OperationEffect {
            charge_ru: effect.charge_ru + price::PATCH_OPERATION_RU * self.patch.len() as f64,
            ..effect
        })
    }

    fn is_met(&self, at: &Admitted, env: &dyn Env, old: &Record) -> Result<bool> {
        let Some(query) = &self.condition else { return Ok(true) };
        let Container { rid, computed, definition, .. } = &*at.container;
        let item = StoredItem { container: *rid, record: old.view(), computed: &computed.queried };
        query.matches(&item, definition.geospatial, env)
    }
}

#[cfg(test)]
mod tests;
