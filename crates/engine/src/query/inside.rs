//! A query inside a transaction: at its moment, with its own writes.
//!
//! Promise: the rows are those that the query would give if the transaction had been alone and were committed now. Indexes
//! find what is of its moment; what it has written is looked at as well. The partition is not entered again: who runs the
//! transaction pays.

use std::sync::{Arc, OnceLock};

use pleiad_model::env::Env;
use tokio::runtime::Handle;

use super::page::{Budget, ItemQuery, Job, QueryPage};
use super::reader::Moment;
use super::threads::Sharing;
use crate::meter::Meter;
use crate::script::Interpreters;
use crate::{Admitted, Answer};

/// What such a query needs of the engine.
pub(crate) struct Inside {
    pub at: Admitted,
    pub env: Arc<dyn Env>,
    pub meter: Meter,
    pub scripts: Interpreters,
    pub handle: Handle,
}

impl Inside {
    /// On a thread that may wait.
    pub fn query(&self, query: ItemQuery, moment: Moment) -> Answer<QueryPage> {
        let job = Job {
            at: self.at.clone(),
            meter: self.meter.clone(),
            query: Arc::new(query),
            session: None,
            budget: Budget::begin(self.env.clone()),
            scripts: self.scripts.clone(),
            functions: OnceLock::new(),
            started_ms: self.env.now_ms(),
            handle: self.handle.clone(),
            sharing: Sharing::USUAL,
            moment: Some(moment),
        };
        job.run()
    }
}
