//! Creates the declared databases, containers and items at start.
//!
//! Guarantees: applying a declaration is idempotent. Resources that exist already are not changed, even if they differ
//! from the declaration: later changes are not reverted.

use pleiad_engine::{
    Action, Addressed, Admitted, ContainerName, DatabaseName, Engine, NewContainer, ServerAuthority, ThroughputRequest,
    Verb, WriteOptions,
};
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
    let at = engine.authorize(&ServerAuthority, Action::WriteSettings)?;
    let created = engine.create_database(&at, &database.id, throughput_request(database.throughput)).await.map(drop);
    ignore_conflict(created).map_err(|error| declaration_error(&database.id, error))?;
    for container in &database.containers {
        let path = format!("{}/{}", database.id, container.id);
        apply_container(engine, &database.id, container).await.map_err(|error| declaration_error(&path, error))?;
    }
    Ok(())
}

async fn apply_container(engine: &Engine, database: &str, container: &SeedContainer) -> Result<()> {
    let name = DatabaseName::Named(database);
    let owner = engine.authorize_database(&ServerAuthority, Action::WriteSettings, name, Addressed::Parent)?;
    let definition = ContainerDefinition::create(&container.body)?;
    let new = NewContainer { definition, throughput: throughput_request(container.throughput) };
    ignore_conflict(engine.create_container(&owner, new).await.map(drop))?;
    let name = ContainerName::Named { database, container: &container.id };
    let admitted = engine.authorize_container(&ServerAuthority, Action::CreateItem, name, Addressed::Parent)?;
    let mut created_count = 0u64;
    for item in container.items.open()? {
        let item = item?;
        let definition = admitted.container().definition.partition_key.as_ref();
        let key = definition.map(|definition| PartitionKey::extract(definition, &item));
        let created = create(engine, &admitted, key.as_ref(), item).await;
        created_count += u64::from(created.is_ok());
        ignore_conflict(created)?;
    }
    tracing::info!(database, container = container.id, items = created_count, "declaration applied");
    Ok(())
}

/// Creates one item; waits and retries when throttled, so that a container is filled at its provisioned throughput.
async fn create(engine: &Engine, admitted: &Admitted, key: Option<&PartitionKey>, item: Value) -> Result<()> {
    loop {
        let answer = engine.create_item(admitted, key, Verb::Create, item.clone(), &WriteOptions::default()).await;
        match answer.result {
            Err(Error { kind: Kind::Throttled { retry_after, .. }, .. }) => tokio::time::sleep(retry_after).await,
            done => return done.map(drop),
        }
    }
}

fn throughput_request(throughput: Option<SeedThroughput>) -> ThroughputRequest {
    let ru = |ru: u64| i64::try_from(ru).unwrap_or(i64::MAX);
    match throughput {
        None => ThroughputRequest::Unspecified,
        Some(SeedThroughput::Manual { ru_per_s }) => ThroughputRequest::Manual(ru(ru_per_s)),
        Some(SeedThroughput::Autoscale { max_ru_per_s }) => {
            ThroughputRequest::Autoscale { max: ru(max_ru_per_s), increment_percent: None }
        }
    }
}

fn ignore_conflict(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind == Kind::Conflict => Ok(()),
        other => other,
    }
}

fn declaration_error(path: &str, error: Error) -> Error {
    Error::new(error.kind, format!("the declared {path} cannot be made: {error}"))
}
