//! Authentication; creating, deleting and finding databases.

use azure_data_cosmos::{CosmosClient, Query};
use futures::TryStreamExt;

use crate::support::*;

both!(
    a_wrong_key_is_401,
    a_database_is_created_and_deleted,
    an_existing_name_is_409,
    a_database_is_found_by_id,
    names_in_any_script
);

async fn a_wrong_key_is_401(world: World) {
    let key = "bm90IHRoZSBrZXkgb2YgdGhpcyBhY2NvdW50";
    refused(connect_with(world.scheme, CosmosClient::builder(), key).await, 401);
}

async fn a_database_is_created_and_deleted(world: World) {
    let name = unique("database");
    let created = world.client.create_database(&name, None).await.unwrap().into_model().unwrap();
    assert_eq!(created.id.as_deref(), Some(name.as_str()));
    let database = world.client.database_client(name.clone());
    let read = database.read(None).await.unwrap().into_model().unwrap();
    assert_eq!(read.system_properties.resource_id, created.system_properties.resource_id);
    database.delete(None).await.unwrap();
    refused(database.read(None).await, 404);
    refused(database.delete(None).await, 404);
}

async fn an_existing_name_is_409(world: World) {
    refused(world.client.create_database(&world.database_name, None).await, 409);
}

async fn a_database_is_found_by_id(world: World) {
    let by_id = |id: &str| Query::from("SELECT * FROM root r WHERE r.id=@id").with_parameter("@id", id).unwrap();
    let found: Vec<_> =
        world.client.query_databases(by_id(&world.database_name), None).await.unwrap().try_collect().await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id.as_ref(), Some(&world.database_name));
    let unknown: Vec<_> =
        world.client.query_databases(by_id("unknown"), None).await.unwrap().try_collect().await.unwrap();
    assert!(unknown.is_empty());
}

async fn names_in_any_script(world: World) {
    for suffix in ["😀", "हिन्दी", "ü ö", "!@$%^&*()-~`'_[]{}|;:,.<>"] {
        let name = unique("name") + suffix;
        world.client.create_database(&name, None).await.unwrap();
        let database = world.client.database_client(name.clone());
        assert_eq!(database.read(None).await.unwrap().into_model().unwrap().id, Some(name));
        database.delete(None).await.unwrap();
    }
}
