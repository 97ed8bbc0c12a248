//! Restore of an account snapshot: collects the high-water marks, the numbers that clients may have seen before it.
//!
//! Guarantees: called after writes have stopped, it covers every `_rid`, LSN, docnum and range id that was assigned.
//! `rows::high_water_marks` raises the rows of the snapshot above them; `account_host` decides when. After a loss that
//! an operator accepted, the marks are not known; a margin takes their place.

use std::sync::Arc;

use pleiad_model::Result;
use pleiad_model::env::Env;
use pleiad_storage::AnyStore;

use super::Catalog;
use super::rows::{self, ContainerMarks, HighWaterMark, HighWaterMarks};
use super::tree::Container;

/// Raises the counters in `store`, which holds the snapshot, above everything that clients have seen of the catalog
/// `of`.
pub(crate) async fn raise_high_water_marks(store: &AnyStore, previous: &Catalog) -> Result<()> {
    let counters = previous.change.lock().await.clone();
    let tree = previous.tree();
    let containers = tree.databases.values().flat_map(|database| database.containers.values());
    let containers = containers.map(|container| (container.rid, marks_of(container))).collect();
    let deleted_lsns = tree.databases.values().map(|database| (database.rid, database.deleted_lsn)).collect();
    rows::raise_high_water_marks(store, &HighWaterMarks { counters, deleted_lsns, containers }).await
}

/// After writes were lost: skips every number that may have been assigned in them.
pub(crate) async fn settle_loss(store: &AnyStore, env: &dyn Env) -> Result<()> {
    if store.has_unsettled_loss() {
        rows::raise_after_loss(store, env).await?;
        store.settle_loss()?;
    }
    Ok(())
}

fn marks_of(container: &Arc<Container>) -> ContainerMarks {
    ContainerMarks { map: container.map.clone(), mark: HighWaterMark::of(container) }
}
