//! Delete by partition key: deletes all items of one partition key value atomically.
//!
//! Guarantees: after the response, no reader sees an item that existed before; items that are written later are not
//! affected. The rows are purged in the background, across restarts and splits.

use pleiad_model::partition_key::PartitionKey;
use pleiad_partition::key::LogicalKey;
use pleiad_partition::price;

use crate::item::key_of_request;
use crate::write_retry::WriteOutcome;
use crate::{Action, Admitted, Engine, EngineResponse};

impl Engine {
    pub async fn delete_by_partition_key(&self, at: &Admitted, key: Option<&PartitionKey>) -> EngineResponse<()> {
        if let Err(error) = at.check(Action::DeleteItem) {
            return EngineResponse::failed(error);
        }
        let key = match key_of_request(at, key) {
            Ok(key) => key,
            Err(error) => return EngineResponse::failed(error),
        };
        let logical = &LogicalKey::new(at.container().schema.key.as_ref(), &key);
        let ts_s = self.now_s();
        self.with_writable_partition(at, logical, |mut target| async move {
            let outcome = async {
                let schema = &target.container.schema;
                let queued = target.partition.enqueue_delete_by_partition_key(schema, logical, ts_s).await?;
                target.admission.charge_at_least(price::DELETE_BY_KEY_RU);
                Ok(WriteOutcome { value: (), lsn: queued.wait().await?, charge_ru: price::DELETE_BY_KEY_RU })
            };
            let outcome = outcome.await;
            (target.admission, outcome)
        })
        .await
    }
}

#[cfg(test)]
mod tests;
