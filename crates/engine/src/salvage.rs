//! Salvage: writes out everything that can be read of an account whose data is damaged.
//!
//! Guarantees: each readable item is written once, with its container if the catalog can be read, otherwise with its
//! shard. Problems are collected, not returned as errors: what follows them is still written. Items that have expired,
//! or were deleted by partition key and not purged yet, are written as well.

use std::collections::BTreeSet;
use std::sync::Arc;

use pleiad_model::env::Env;
use pleiad_model::{Object, Result};
use pleiad_partition::salvage::salvage_items;
use pleiad_storage::{AnySnapshot, AnyStore, Blocking, Direction, Limit, Snapshot, Store, keyspace};

use crate::catalog::load_dropped_shards;
use crate::{Engine, PartitionLimits, SyncPolicy};

/// Where salvaged items go.
pub trait SalvageOutput {
    /// Items that follow belong here.
    fn begin(&mut self, origin: &SalvageOrigin) -> Result<()>;
    fn item(&mut self, text: &[u8]) -> Result<()>;
}

pub enum SalvageOrigin {
    Container {
        database: String,
        container: String,
        definition: Object,
    },
    /// Rows that belong to no container that is known.
    Shard(u64),
}

#[derive(Debug, Default)]
pub struct SalvageReport {
    pub containers: u64,
    pub items: u64,
    pub problems: Vec<String>,
}

pub async fn salvage(store: AnyStore, env: Arc<dyn Env>, output: &mut dyn SalvageOutput) -> Result<SalvageReport> {
    let store = Arc::new(store);
    let mut report = SalvageReport::default();
    let mut written = BTreeSet::from([keyspace::CATALOG_SHARD]);
    let snapshot = store.snapshot(Blocking::Suspend).await?;
    match Engine::open_on(store.clone(), SyncPolicy::Synced, PartitionLimits::default(), env).await {
        Ok(engine) => {
            let containers = salvage_containers(&engine, &snapshot, &mut written, &mut report, output).await;
            // Their rows are those of a split or merge in progress, or of a container that was deleted.
            written.extend(engine.catalog.tree().jobs.values().flat_map(|job| &job.children).map(|child| child.shard));
            written.extend(load_dropped_shards(&store).await.unwrap_or_default());
            engine.close().await;
            containers?;
        }
        Err(error) => report.problems.push(format!("the catalog cannot be read: {error}")),
    }
    salvage_shards(&snapshot, &written, &mut report, output).await?;
    Ok(report)
}

async fn salvage_containers(
    engine: &Engine,
    snapshot: &AnySnapshot,
    written: &mut BTreeSet<u64>,
    report: &mut SalvageReport,
    output: &mut dyn SalvageOutput,
) -> Result<()> {
    let tree = engine.catalog.tree();
    for database in tree.databases.values() {
        for container in database.containers.values() {
            report.containers += 1;
            output.begin(&SalvageOrigin::Container {
                database: database.id.clone(),
                container: container.definition.id.clone(),
                definition: container.definition.to_object(),
            })?;
            for range in container.map.ranges() {
                written.insert(range.shard);
                salvage_shard(snapshot, range.shard, report, output).await?;
            }
        }
    }
    Ok(())
}

/// The shards with rows that are not written yet.
async fn salvage_shards(
    snapshot: &AnySnapshot,
    written: &BTreeSet<u64>,
    report: &mut SalvageReport,
    output: &mut dyn SalvageOutput,
) -> Result<()> {
    let (mut from, _) = keyspace::shard_range(0);
    let (_, to) = keyspace::shard_range(u64::MAX);
    loop {
        let first = match snapshot.scan(&from, &to, Direction::Forward, Limit::rows(1)).await {
            Ok(chunk) => chunk.pairs.into_iter().next(),
            Err(error) => {
                report.problems.push(format!("the shards cannot be listed: {error}"));
                return Ok(());
            }
        };
        let Some((row, _)) = first else { return Ok(()) };
        let shard = keyspace::shard_of(&row)?;
        if !written.contains(&shard) {
            output.begin(&SalvageOrigin::Shard(shard))?;
            salvage_shard(snapshot, shard, report, output).await?;
        }
        from = keyspace::shard_range(shard).1;
    }
}

async fn salvage_shard(
    snapshot: &AnySnapshot,
    shard: u64,
    report: &mut SalvageReport,
    output: &mut dyn SalvageOutput,
) -> Result<()> {
    let salvaged = salvage_items(snapshot, shard, |text| output.item(text)).await?;
    report.items += salvaged.items;
    report.problems.extend(salvaged.problems);
    Ok(())
}
