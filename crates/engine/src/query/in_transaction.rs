//! Queries inside a transaction: at its snapshot, with its own writes.
//!
//! Invariant: the rows are those that the query would return if the transaction had run alone and were committed now.
//! Indexes find the items of the snapshot; the transaction's own writes are read in addition. The query needs no
//! admission at the partition: it is charged to the transaction.

use std::sync::{Arc, OnceLock};

use pleiad_model::env::Env;
use pleiad_partition::Outdated;
use pleiad_storage::Blocking;
use tokio::runtime::Handle;

use super::page::{ItemQuery, PageDeadline, PageTask, QueryPage};
use super::parallel::Parallelism;
use super::reader::TransactionSnapshot;
use crate::meter::Meter;
use crate::script_runtime::Interpreters;
use crate::{Admitted, EngineResponse};

/// What such a query needs from the engine.
pub(crate) struct TransactionQuery {
    pub at: Admitted,
    pub env: Arc<dyn Env>,
    pub meter: Meter,
    pub scripts: Interpreters,
    pub parallelism: Parallelism,
    pub handle: Handle,
}

impl TransactionQuery {
    /// Call it on a blocking thread. Fails if the transaction has to begin again under a newer schema.
    pub fn query(
        &self,
        query: ItemQuery,
        transaction: TransactionSnapshot,
    ) -> Result<EngineResponse<QueryPage>, Outdated> {
        let task = PageTask {
            at: self.at.clone(),
            meter: self.meter.clone(),
            query: Arc::new(query),
            session: None,
            deadline: PageDeadline::begin(self.env.clone(), &self.at),
            scripts: self.scripts.clone(),
            functions: OnceLock::new(),
            started_ms: self.env.now_ms(),
            handle: self.handle.clone(),
            parallelism: self.parallelism,
            transaction: Some(transaction),
        };
        // On a blocking thread a page never refuses to block.
        task.run(Blocking::Thread).map_err(|_| Outdated)
    }
}
