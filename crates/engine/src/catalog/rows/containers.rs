//! Rows of containers.
//!
//! ```text
//! {"version":7,"ts":1700000000,"kind":"nosql","definition":{…},"map":{…},"schema":7,"layout":2,"analyzer":2}
//! ```
//!
//! A row of format 3 or earlier has no `kind`: its container is nosql. Such a row is valid as it is, in the current
//! store and in account snapshots, and gets its kind when the container is written again. So the upgrade to format 4
//! rewrites no row, and there is no moment at which an interruption could leave it half done.
//!
//! A row of format 4 or earlier has no `analyzer`: version 1 wrote its full-text indexes. They are dropped and built
//! again, and the row gets the current version at the end. Until then every start begins again; the rows of the current
//! version that are already there stay. Containers without full-text indexes have nothing to rebuild.

use pleiad_model::policy::{ContainerDefinition, ContainerKind};
use pleiad_partition::index::IndexRules;
use pleiad_partition::index::full_text::TextRule;
use pleiad_partition::{IndexingConfig, Schema};
use pleiad_text::ANALYZER_VERSION;

use super::*;
use crate::catalog::index_transformation::IndexTransformation;
use crate::computed::ComputedProperties;

/// The version of the index layout: from 2 on, vector and full-text indexes have rows.
const LAYOUT: i64 = 2;

pub fn put_container(batch: &mut Batch, container: &Container) {
    let mut row = versioned(container.version)
        .with("kind", container.definition.kind.as_str())
        .with("definition", container.definition.to_object())
        .with("map", container.map.to_value())
        .with("schema", container.schema.version)
        .with("layout", LAYOUT)
        .with("analyzer", u64::from(ANALYZER_VERSION));
    if let Some(index_transformation) = &container.index_transformation {
        row.set("transition", index_transformation.to_value());
    }
    put(batch, CONTAINER, &pair(container.rid.database.0, container.rid.number), row);
}

pub fn delete_container(batch: &mut Batch, container: &Container) {
    batch.delete(keyspace::catalog(CONTAINER, &pair(container.rid.database.0, container.rid.number)));
    delete_progress(batch, container.rid);
    container.scripts.iter().for_each(|script| delete_script(batch, script));
    container.map.ranges().iter().for_each(|range| put_dropped_shard(batch, range.shard));
}

pub async fn load_container(loader: &Loader<'_>, database: &str, rid: ContainerRid, row: &Value) -> Result<Container> {
    let missing = || Error::corrupt("container row");
    let definition =
        ContainerDefinition::from_stored(load_kind(database, row)?, row.get("definition").ok_or_else(missing)?)?;
    let map = PartitionMap::from_value(row.get("map").ok_or_else(missing)?)?;
    let partitions = open_partitions(&map, loader.store, loader.committer).await?;
    let version = version(row)?;
    let schema_version = row.get("schema").map_or(Ok(version.number), |_| number(row, "schema"))?;
    let computed = ComputedProperties::of(&definition)?;
    let indexing = IndexingConfig::of(&definition, computed.indexed.clone());
    let (index_transformation, obsolete_paths) = load_index_transformation(row, indexing)?;
    let index_transformation = index_transformation.map(Arc::new);
    let former = index_transformation.as_ref().map_or(&[][..], |index_transformation| &index_transformation.from);
    let schema = Schema::new(schema_version, &definition, &computed.indexed, former, loader.limits.size_limits());
    let schema = Schema { obsolete_paths, ..schema };
    let (database, schema, scripts) = (database.to_owned(), Arc::new(schema), Arc::default());
    let progress = load_progress(loader.store, rid).await?;
    Ok(Container {
        database,
        rid,
        version,
        definition,
        computed,
        schema,
        index_transformation,
        scripts,
        progress,
        map,
        partitions,
    })
}

/// An unknown kind is an error: read as nosql, its items would be shown and indexed wrongly.
fn load_kind(database: &str, row: &Value) -> Result<ContainerKind> {
    let Some(kind) = row.get("kind") else { return Ok(ContainerKind::Nosql) };
    let name = kind.as_str().ok_or_else(|| Error::corrupt("kind of a container"))?;
    let known = ContainerKind::from_name(name).filter(|kind| !kind.is_reserved());
    known.ok_or_else(|| {
        let id = row.get("definition").and_then(|definition| definition.get("id")).and_then(Value::as_str);
        let id = id.unwrap_or_default();
        Error::invalid(format!(
            "the container '{id}' of the database '{database}' has the kind '{name}', which this Pleiad does not \
             know: use the newer one that wrote it, or another data directory"
        ))
    })
}

/// The transformation, and the path hashes of obsolete rows.
fn load_index_transformation(row: &Value, indexing: IndexingConfig) -> Result<(Option<IndexTransformation>, Vec<u64>)> {
    let under_way = match (row.get("schema"), row.get("transition")) {
        // Rows from before schemas were numbered: that index layout is no longer readable.
        (None, _) => return Ok((Some(IndexTransformation::rebuild()?), Vec::new())),
        (Some(_), Some(index_transformation)) => Some(IndexTransformation::from_value(index_transformation)?),
        (Some(_), None) if row.get("layout").is_none() => IndexTransformation::backfill(indexing.clone()),
        (Some(_), None) => None,
    };
    if row.get("analyzer").map_or(Ok(1), |_| number(row, "analyzer"))? >= u64::from(ANALYZER_VERSION) {
        return Ok((under_way, Vec::new()));
    }
    let former = under_way.iter().flat_map(|transformation| &transformation.from);
    let rules: Vec<IndexRules> = former.chain([&indexing]).map(IndexingConfig::rules).collect();
    let obsolete: Vec<u64> = rules.iter().flat_map(IndexRules::texts).flat_map(TextRule::obsolete_ids).collect();
    match obsolete.is_empty() {
        true => Ok((under_way, obsolete)),
        false => Ok((Some(IndexTransformation::reanalyze(under_way, &indexing)), obsolete)),
    }
}

#[cfg(test)]
mod tests;
