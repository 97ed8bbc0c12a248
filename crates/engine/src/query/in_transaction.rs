//! A query inside a transaction: at its moment, with its own writes.
//!
//! Promise: the rows are those that the query would give if the transaction had been alone and were committed now. Indexes
//! find what is of its moment; what it has written is looked at as well. The partition is not entered again: who runs the
//! transaction pays.

use std::sync::{Arc, OnceLock};

use pleiad_model::env::Env;
use tokio::runtime::Handle;

use super::page::{ItemQuery, PageDeadline, PageTask, QueryPage};
use super::parallel::Parallelism;
use super::reader::TransactionSnapshot;
use crate::meter::Meter;
use crate::script_runtime::Interpreters;
use crate::{Admitted, EngineResponse};

/// What such a query needs of the engine.
pub(crate) struct TransactionQuery {
    pub at: Admitted,
    pub env: Arc<dyn Env>,
    pub meter: Meter,
    pub scripts: Interpreters,
    pub handle: Handle,
}

impl TransactionQuery {
    /// On a thread that may wait.
    pub fn query(&self, query: ItemQuery, moment: TransactionSnapshot) -> EngineResponse<QueryPage> {
        let job = PageTask {
            at: self.at.clone(),
            meter: self.meter.clone(),
            query: Arc::new(query),
            session: None,
            budget: PageDeadline::begin(self.env.clone()),
            scripts: self.scripts.clone(),
            functions: OnceLock::new(),
            started_ms: self.env.now_ms(),
            handle: self.handle.clone(),
            sharing: Parallelism::USUAL,
            moment: Some(moment),
        };
        job.run()
    }
}
