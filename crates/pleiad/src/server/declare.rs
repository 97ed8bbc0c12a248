//! Creates the declared databases, containers and items at start.
//!
//! Guarantees: applying a declaration is idempotent. Resources that exist already are not changed, even if they differ
//! from the declaration: later changes are not reverted.

use pleiad_engine::catalog::NewContainer;
use pleiad_engine::{Admitted, ContainerName, Engine, ThroughputRequest, Verb, WriteOptions};
use pleiad_model::partition_key::PartitionKey;
use pleiad_model::policy::ContainerDefinition;
use pleiad_model::{Error, Kind, Result, Value};

use crate::seed::{Declaration, SeedContainer, SeedDatabase, SeedThroughput};

pub async fn apply(engine: &Engine, declaration: &Declaration) -> Result<()> {
    for database in &declaration.databases {
        apply_database(engine, database).await?;
    }
    Ok(())
}

async fn apply_database(engine: &Engine, database: &SeedDatabase) -> Result<()> {
    let created = engine.catalog.create_database(&database.id, asked(database.throughput)).await.map(drop);
    unless_there(created).map_err(|error| about(&database.id, error))?;
    for container in &database.containers {
        let place = format!("{}/{}", database.id, container.id);
        apply_container(engine, &database.id, container).await.map_err(|error| about(&place, error))?;
    }
    Ok(())
}

async fn apply_container(engine: &Engine, database: &str, container: &SeedContainer) -> Result<()> {
    let owner = engine.find_database(database)?.rid;
    let definition = ContainerDefinition::create(&container.body)?;
    let new = NewContainer { definition, throughput: asked(container.throughput) };
    unless_there(engine.catalog.create_container(owner, new).await.map(drop))?;
    let at = engine.admit(ContainerName::Named { database, container: &container.id }, None)?;
    let mut made = 0u64;
    for item in container.items.open()? {
        let item = item?;
        let definition = at.container().schema.key.as_ref();
        let key = definition.map(|definition| PartitionKey::extract(definition, &item));
        let created = create(engine, &at, key.as_ref(), item).await;
        made += u64::from(created.is_ok());
        unless_there(created)?;
    }
    tracing::info!(database, container = container.id, items = made, "declaration applied");
    Ok(())
}

/// Creates one item; waits and retries when throttled, so that a container is filled at its provisioned throughput.
async fn create(engine: &Engine, at: &Admitted, key: Option<&PartitionKey>, item: Value) -> Result<()> {
    loop {
        let answer = engine.create_item(at, key, Verb::Create, item.clone(), &WriteOptions::default()).await;
        match answer.result {
            Err(Error { kind: Kind::Throttled { retry_after, .. }, .. }) => tokio::time::sleep(retry_after).await,
            done => return done.map(drop),
        }
    }
}

fn asked(throughput: Option<SeedThroughput>) -> ThroughputRequest {
    let ru = |ru: u64| i64::try_from(ru).unwrap_or(i64::MAX);
    match throughput {
        None => ThroughputRequest::Unspecified,
        Some(SeedThroughput::Manual { ru_per_s }) => ThroughputRequest::Manual(ru(ru_per_s)),
        Some(SeedThroughput::Autoscale { max_ru_per_s }) => {
            ThroughputRequest::Autoscale { max: ru(max_ru_per_s), increment_percent: None }
        }
    }
}

fn unless_there(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind == Kind::Conflict => Ok(()),
        other => other,
    }
}

fn about(place: &str, error: Error) -> Error {
    Error::new(error.kind, format!("the declared {place} cannot be made: {error}"))
}
