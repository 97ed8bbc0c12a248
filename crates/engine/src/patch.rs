//! Patch: partial update of one item.
//!
//! Guarantees: the item is read, tested and written without another write in between. `model::patch` applies the
//! operations.

use pleiad_model::env::Env;
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::patch::Patch;
use pleiad_model::{Error, Fact, Result, json};
use pleiad_partition::{
    ItemKey, OperationEffect, Precondition, Record, Rejected, Transaction, Verb, WriteError, Written, price,
};
use pleiad_sql::InMemoryQuery;

use crate::item::{LocatedItem, Target, draft};
use crate::query::StoredItem;
use crate::write_retry::WriteOutcome;
use crate::{Action, Admitted, Container, Engine, EngineResponse, WriteOptions};

impl Engine {
    pub async fn patch_item(
        &self,
        at: &Admitted,
        key: Option<&PartitionKey>,
        target: Target<'_>,
        patch: &Patch,
        condition: &Precondition,
    ) -> EngineResponse<Written> {
        if let Err(error) = at.check(Action::ReplaceItem) {
            return EngineResponse::failed(error);
        }
        let prepared = LocatedItem::new(at, key, target).and_then(|item| Ok((item, PreparedPatch::new(at, patch)?)));
        let (item, change) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return EngineResponse::failed(error),
        };
        let (item, change, ts_s) = (&item, &change, self.now_s());
        self.with_writable_partition(at, item.logical(), |mut target| async move {
            let outcome = async {
                let (schema, item_key) = (&target.container.schema, item.resolve(&target.partition).await?);
                let mut tx = target.partition.begin_latched(schema, item_key.logical.clone(), ts_s).await;
                let decided = match change.apply(at, &*self.env, &mut tx, key, &item_key, condition).await {
                    Ok(effect) => tx.enqueue().await.map(|queued| queued.map(|lsn| written(effect, lsn))),
                    Err(rejected) => {
                        drop(tx); // the latch: the rejection waits for queued writes without it
                        Err(WriteError::from(rejected))
                    }
                };
                target.await_write(decided).await.map(WriteOutcome::from)
            };
            let outcome = outcome.await;
            (target.admission, outcome)
        })
        .await
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
        let paths = at.container().schema.key.iter().flat_map(|key| &key.paths);
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
        let old = tx.read(target).await?.ok_or_else(|| Error::from(Fact::ItemMissing))?;
        let reject = |error: Error| Rejected { error, charge_ru: price::rejected_write(old.body().len()) };
        if !condition.holds(&old) || !self.is_met(at, env, &old).map_err(reject)? {
            return Err(reject(Fact::PreconditionNotMet.into()));
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
        let Container { rid, computed, definition, .. } = &**at.container();
        let item = StoredItem { container: *rid, record: old.view(), computed: &computed.queried };
        query.matches(&item, definition.geospatial, env)
    }
}

#[cfg(test)]
mod tests;
