//! What clients may hold of an account that is about to go back to an earlier moment.
//!
//! Promise: asked when nobody writes any more, it knows every LSN, item number and range id that was given. How rows are made to
//! follow it is `rows::carry`'s business; when, `live`'s.

use std::sync::Arc;

use pleiad_model::Result;
use pleiad_storage::AnyStore;

use super::Catalog;
use super::rows::{self, ContainerMarks, HighWaterMark, HighWaterMarks};
use super::tree::Container;

/// Makes `store`, which holds the account as it once was, follow what `of` has shown since.
pub(crate) async fn carry_over(store: &AnyStore, of: &Catalog) -> Result<()> {
    let counters = of.change.lock().await.clone();
    let tree = of.tree();
    let containers = tree.databases.values().flat_map(|database| database.containers.values());
    let containers = containers.map(|container| (container.rid, seen(container))).collect();
    rows::carry_over(store, &HighWaterMarks { counters, containers }).await
}

fn seen(container: &Arc<Container>) -> ContainerMarks {
    ContainerMarks { map: container.map.clone(), came: HighWaterMark::of(container) }
}
