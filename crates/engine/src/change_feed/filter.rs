//! Filters of a change feed: a query that drops changes and projects the others.
//!
//! Guarantees: the feed's position moves over dropped changes too. The query sees a change as the feed returns it: the
//! item with its system properties and `_lsn`; of a delete, an object without properties.

use std::borrow::Cow;
use std::sync::Arc;

use pleiad_model::env::Env;
use pleiad_model::resource_id::ContainerRid;
use pleiad_model::{Error, Kind, Result};
use pleiad_partition::Record;
use pleiad_sql::Parameters;
use pleiad_sql::compile::BindContext;
use pleiad_sql::document::{Document, PropertyName};
use pleiad_sql::expr::CheckLimit;
use pleiad_sql::feed_query::FeedQuery;
use tokio::sync::Semaphore;

use super::ChangedItems;
use crate::query::{StoredItem, write_item};
use crate::{Admitted, Container, Engine};

/// The limit on interrupt checks of one page.
const CHECKS_MAX: u32 = 16 * 1024;
/// The limit on the rows of one page. Projections can be larger than the items.
const ROWS_BYTES_MAX: usize = 64 << 20;

/// A query over changes.
#[derive(Clone, Debug)]
pub struct ChangeFilter {
    pub text: String,
    pub parameters: Parameters,
}

/// The changes that pass a filter, and the row of each as JSON text.
pub(super) struct Filtered {
    pub changes: ChangedItems,
    pub rows: Vec<Vec<u8>>,
}

pub(super) struct CompiledFilter {
    query: Arc<FeedQuery>,
    container: Arc<Container>,
    env: Arc<dyn Env>,
    permits: Arc<Semaphore>,
}

impl CompiledFilter {
    pub fn compile(engine: &Engine, at: &Admitted, filter: &ChangeFilter) -> Result<CompiledFilter> {
        let container = at.container().clone();
        let definition = &container.definition;
        let bind = BindContext {
            parameters: &filter.parameters,
            geospatial: definition.geospatial,
            embeddings: &definition.vector_embeddings,
            full_text: definition.full_text.as_ref(),
            started_ms: Some(engine.now_ms()),
        };
        let query = Arc::new(FeedQuery::compile(&filter.text, bind)?);
        Ok(CompiledFilter { query, container, env: engine.env.clone(), permits: engine.query_permits.clone() })
    }

    /// Runs on a blocking thread: expressions may take long.
    pub async fn apply(&self, changes: ChangedItems) -> Result<Filtered> {
        let run = FilterRun { query: self.query.clone(), container: self.container.clone(), env: self.env.clone() };
        // The permit moves with the work, which may outlive the request of a client that disconnects. The semaphore is
        // never closed.
        let permit = self.permits.clone().acquire_owned().await;
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            run.filter(changes)
        });
        done.await.unwrap_or_else(|_| Err(Error::internal("the filter of a change feed stopped unexpectedly")))
    }
}

struct FilterRun {
    query: Arc<FeedQuery>,
    container: Arc<Container>,
    env: Arc<dyn Env>,
}

impl FilterRun {
    fn filter(&self, changes: ChangedItems) -> Result<Filtered> {
        let mut rows = Vec::new();
        let changes = match changes {
            ChangedItems::Latest(records) => {
                ChangedItems::Latest(self.keep(records, |record| Some(record), &mut rows)?)
            }
            ChangedItems::Versions(versions) => {
                ChangedItems::Versions(self.keep(versions, |version| version.current.as_ref(), &mut rows)?)
            }
        };
        Ok(Filtered { changes, rows })
    }

    fn keep<T>(
        &self,
        changes: Vec<T>,
        current: impl Fn(&T) -> Option<&Record>,
        rows: &mut Vec<Vec<u8>>,
    ) -> Result<Vec<T>> {
        let (limit, mut bytes, mut kept) = (CheckLimit::new(CHECKS_MAX), 0, Vec::new());
        for change in changes {
            let Some(row) = self.row(current(&change), &limit)? else { continue };
            bytes += row.len();
            if bytes > ROWS_BYTES_MAX {
                let message = "The rows of the page are too large. Ask for fewer changes, or select fewer properties.";
                return Err(Error::new(Kind::TooLarge, message));
            }
            rows.push(row);
            kept.push(change);
        }
        Ok(kept)
    }

    fn row(&self, current: Option<&Record>, limit: &CheckLimit) -> Result<Option<Vec<u8>>> {
        let Some(record) = current else { return self.query.row(&DeletedItem, self.env.as_ref(), limit) };
        let computed = &self.container.computed.queried;
        let item = StoredItem { container: self.container.rid, record: record.view(), computed };
        self.query.row(&ChangedItem { item, record }, self.env.as_ref(), limit)
    }
}

/// An item as the change feed returns it.
struct ChangedItem<'a> {
    item: StoredItem<'a>,
    record: &'a Record,
}

impl Document for ChangedItem<'_> {
    fn property(&self, name: &PropertyName) -> Option<Cow<'_, [u8]>> {
        match name.text.as_str() {
            "_lsn" => Some(Cow::Owned(self.record.lsn.to_string().into_bytes())),
            _ => self.item.property(name),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_changed_item(self.item.container, self.record, out);
    }
}

struct DeletedItem;

impl Document for DeletedItem {
    fn property(&self, _: &PropertyName) -> Option<Cow<'_, [u8]>> {
        None
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{}");
    }
}

/// Appends an item with its system properties and the LSN of its change.
pub fn write_changed_item(container: ContainerRid, record: &Record, out: &mut Vec<u8>) {
    write_item(container, &record.view(), out);
    if out.last() == Some(&b'}') {
        out.pop();
    }
    out.extend_from_slice(format!(",\"_lsn\":{}}}", record.lsn).as_bytes());
}
