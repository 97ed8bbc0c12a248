use azure_data_cosmos::models::{ContainerProperties, PartitionKeyDefinition};
use azure_data_cosmos::{AccountReference, CosmosClient, RoutingStrategy};

const KEY: &str = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let account = AccountReference::with_authentication_key("http://localhost:8081".parse()?, KEY);
    let client = CosmosClient::builder().build(account, RoutingStrategy::PreferredRegions(vec![])).await?;
    client.create_database("garden", None).await?;
    let database = client.database_client("garden");
    let key = PartitionKeyDefinition::from("/bed");
    database.create_container(ContainerProperties::new("plants", key), None).await?;
    let plants = database.container_client("plants", None).await?;
    plants.upsert_item("north", "1", serde_json::json!({"id": "1", "bed": "north", "name": "fern"}), None).await?;
    let fern: serde_json::Value = plants.read_item("north", "1", None).await?.into_model()?;
    println!("{}", fern["name"]);
    Ok(())
}
