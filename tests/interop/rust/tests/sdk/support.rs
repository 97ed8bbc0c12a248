//! Sets up the SDK; each test gets its own database, which is deleted afterwards.

use std::future::Future;
use std::sync::LazyLock;

use azure_data_cosmos::clients::{ContainerClient, DatabaseClient};
use azure_data_cosmos::models::{ContainerProperties, ItemResponse, PartitionKeyDefinition, ThroughputProperties};
use azure_data_cosmos::options::{
    ContentResponseOnWrite, CreateContainerOptions, ItemReadOptions, ItemWriteOptions, OperationOptions, Precondition,
};
use azure_data_cosmos::{
    AccountEndpoint, AccountReference, CosmosClient, CosmosClientBuilder, CosmosError, CosmosRuntime, PartitionKey,
    Result, RoutingStrategy,
};
pub use serde_json::{json, Value};

/// One tokio runtime for all tests, since connections outlive the call that opened them.
static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    // The SDK has no option for a CA; its TLS stack trusts the file that SSL_CERT_FILE names. This runs before any
    // other code reads the environment, because every test comes through here first.
    if let Ok(file) = std::env::var("PLEIAD_CA_FILE") {
        std::env::set_var("SSL_CERT_FILE", file);
    }
    tokio::runtime::Runtime::new().expect("a runtime")
});

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub fn endpoint(self) -> Option<String> {
        let name = match self {
            Scheme::Http => "PLEIAD_ENDPOINT",
            Scheme::Https => "PLEIAD_ENDPOINT_HTTPS",
        };
        std::env::var(name).ok()
    }

    pub fn account(self) -> AccountEndpoint {
        self.endpoint().expect("an endpoint").parse().expect("a URL")
    }
}

/// What a test gets: a client, and a database that no other test uses.
pub struct World {
    pub scheme: Scheme,
    pub client: CosmosClient,
    pub database: DatabaseClient,
    pub database_name: String,
}

/// Runs one test body in a new world, and cleans up also when the body panics.
pub fn run<F>(scheme: Scheme, body: impl FnOnce(World) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    if scheme.endpoint().is_none() {
        eprintln!("skipped: no {scheme:?} endpoint was given");
        return;
    }
    RUNTIME.block_on(async {
        let client = connect(scheme).await.expect("the account opens");
        let database_name = unique("rust");
        client.create_database(&database_name, None).await.expect("a database");
        let database = client.database_client(database_name.clone());
        let again = client.database_client(database_name.clone());
        let outcome = tokio::spawn(body(World { scheme, client, database, database_name })).await;
        again.delete(None).await.expect("the database is deleted");
        if let Err(failed) = outcome {
            std::panic::resume_unwind(failed.into_panic());
        }
    });
}

/// For a test that creates its own world.
pub fn block_on(body: impl Future<Output = ()>) {
    RUNTIME.block_on(body);
}

/// Registers each test once per scheme: `both!(creates, deletes)`.
macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        mod http {
            $(#[test] fn $name() { crate::support::run(crate::support::Scheme::Http, super::$name) })+
        }
        mod https {
            $(#[test] fn $name() { crate::support::run(crate::support::Scheme::Https, super::$name) })+
        }
    };
}
pub(crate) use both;

/// A separate client, with its own caches.
pub async fn connect(scheme: Scheme) -> Result<CosmosClient> {
    connect_with(scheme, CosmosClient::builder(), &key()).await
}

pub async fn connect_with(scheme: Scheme, builder: CosmosClientBuilder, key: &str) -> Result<CosmosClient> {
    let account = AccountReference::with_authentication_key(scheme.account(), key.to_owned());
    connect_as(account, builder).await
}

pub async fn connect_as(account: AccountReference, builder: CosmosClientBuilder) -> Result<CosmosClient> {
    // Clients of one runtime share their cache of containers; a separate runtime gives each client its own.
    let builder = builder.with_runtime(CosmosRuntime::builder().build().await?);
    builder.build(account, RoutingStrategy::PreferredRegions(Vec::new())).await
}

pub fn key() -> String {
    std::env::var("PLEIAD_KEY").expect("PLEIAD_KEY")
}

pub fn unique(prefix: &str) -> String {
    format!("{prefix}-{}", azure_core::Uuid::new_v4().simple())
}

impl World {
    /// A fresh container with this key.
    pub async fn make(&self, key: impl Into<PartitionKeyDefinition>) -> ContainerClient {
        self.make_with(key, None).await.expect("a container")
    }

    pub async fn make_with(
        &self,
        key: impl Into<PartitionKeyDefinition>,
        throughput: Option<ThroughputProperties>,
    ) -> Result<ContainerClient> {
        let name = unique("c");
        let mut options = CreateContainerOptions::default();
        if let Some(throughput) = throughput {
            options = options.with_throughput(throughput);
        }
        let properties = ContainerProperties::new(name.clone(), key.into());
        self.database.create_container(properties, Some(options)).await?;
        self.database.container_client(name, None).await
    }

    /// A container of two partitions with the key `/pk` and the given definition. The SDK stores and sends properties
    /// that it does not support unchanged.
    pub async fn define(&self, definition: Value) -> Result<ContainerClient> {
        let throughput = ThroughputProperties::manual(12_000);
        let options = CreateContainerOptions::default().with_throughput(throughput);
        let mut properties =
            json!({"id": unique("c"), "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        for (name, value) in definition.as_object().expect("a definition is an object") {
            properties[name] = value.clone();
        }
        let properties: ContainerProperties = serde_json::from_value(properties).expect("a definition");
        let name = properties.id.to_string();
        self.database.create_container(properties, Some(options)).await?;
        self.database.container_client(name, None).await
    }
}

/// Waits for something that happens in the background, for at most twenty seconds.
pub async fn eventually<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    for _ in 0..400 {
        if holds().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("it did not happen within twenty seconds");
}

/// The point operations in the form that the tests use: with the content of what was written, and as plain JSON.
pub async fn create(c: &ContainerClient, key: impl Into<PartitionKey>, item: Value) -> Result<ItemResponse> {
    let id = id_of(&item);
    c.create_item(key, &id, item, with_content()).await
}

pub async fn upsert(c: &ContainerClient, key: impl Into<PartitionKey>, item: Value) -> Result<ItemResponse> {
    let id = id_of(&item);
    c.upsert_item(key, &id, item, with_content()).await
}

pub async fn replace(c: &ContainerClient, key: impl Into<PartitionKey>, item: Value) -> Result<ItemResponse> {
    let id = id_of(&item);
    c.replace_item(key, &id, item, with_content()).await
}

pub async fn read(c: &ContainerClient, key: impl Into<PartitionKey>, id: &str) -> Result<Value> {
    c.read_item(key, id, None).await?.into_model()
}

pub async fn delete(c: &ContainerClient, key: impl Into<PartitionKey>, id: &str) -> Result<ItemResponse> {
    c.delete_item(key, id, None).await
}

fn id_of(item: &Value) -> String {
    item["id"].as_str().unwrap_or_default().to_owned()
}

fn with_content() -> Option<ItemWriteOptions> {
    let mut operation = OperationOptions::default();
    operation.content_response_on_write = Some(ContentResponseOnWrite::Enabled);
    Some(ItemWriteOptions::default().with_operation_options(operation))
}

pub fn write_if(precondition: Precondition) -> Option<ItemWriteOptions> {
    Some(ItemWriteOptions::default().with_precondition(precondition))
}

pub fn read_if(precondition: Precondition) -> Option<ItemReadOptions> {
    Some(ItemReadOptions::default().with_precondition(precondition))
}

/// The item as the user wrote it, without the properties that the server adds.
pub fn plain(mut item: Value) -> Value {
    let object = item.as_object_mut().expect("an item is an object");
    for name in ["_rid", "_self", "_etag", "_ts", "_attachments"] {
        object.remove(name);
    }
    item
}

pub fn status(error: &CosmosError) -> (u16, u16) {
    let status = error.status();
    (u16::from(status.status_code()), status.sub_status().map_or(0, |sub| sub.value()))
}

/// The call must fail with this status.
#[track_caller]
pub fn refused<T>(result: Result<T>, expected: u16) {
    match result {
        Ok(_) => panic!("expected an error with {expected}"),
        Err(error) => assert_eq!(status(&error).0, expected, "{error}"),
    }
}

/// The call must fail with this status and sub-status.
#[track_caller]
pub fn refused_with<T>(result: Result<T>, expected: (u16, u16)) {
    match result {
        Ok(_) => panic!("expected an error with {expected:?}"),
        Err(error) => assert_eq!(status(&error), expected, "{error}"),
    }
}
