//! Delete by partition key: deletes all items of one partition key value atomically.
//!
//! Guarantees: after the response, no reader sees an item that existed before; items that are written later are not
//! affected. The rows are purged in the background, across restarts and splits.

use pleiad_model::partition_key::PartitionKey;
use pleiad_partition::key::LogicalKey;
use pleiad_partition::price;

use crate::item::key_of_request;
use crate::write_retry::{WriteOutcome, WriteTarget};
use crate::{Admitted, Engine, EngineResponse};

impl Engine {
    pub async fn delete_by_partition_key(&self, at: &Admitted, key: Option<&PartitionKey>) -> EngineResponse<()> {
        let key = match key_of_request(at, key) {
            Ok(key) => key,
            Err(error) => return EngineResponse::failed(error),
        };
        let logical = &LogicalKey::new(at.container.schema.key.as_ref(), &key);
        let ts_s = self.now_s();
        let delete = |write_target: WriteTarget| async move {
            let lsn =
                write_target.partition.delete_by_partition_key(&write_target.container.schema, logical, ts_s).await?;
            Ok(WriteOutcome { value: (), lsn, charge_ru: price::DELETE_BY_KEY_RU })
        };
        self.with_writable_partition(at, logical, delete).await
    }
}

#[cfg(test)]
mod tests;
