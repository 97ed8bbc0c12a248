//! A container is dropped and made again under its name, behind the back of a client that knows the old one.
//!
//! The SDK says which container it means; told 400/1024 it looks again and repeats itself once.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::ContainerProperties;

use crate::support::*;

both!(old_items_are_gone, a_stale_client_writes_to_the_new_container);

/// The container as a stale client knows it, and as a fresh one does.
async fn recreate(world: &World) -> (ContainerClient, ContainerClient) {
    let stale = world.make("/pk").await;
    create(&stale, "a", json!({"id": "old", "pk": "a"})).await.unwrap();
    let name = stale.read(None).await.unwrap().into_model().unwrap().id;
    let behind = connect(world.scheme).await.unwrap().database_client(world.database_name.clone());
    behind.container_client(name.to_string(), None).await.unwrap().delete(None).await.unwrap();
    behind.create_container(ContainerProperties::new(name.clone(), "/pk".into()), None).await.unwrap();
    let fresh = connect(world.scheme).await.unwrap().database_client(world.database_name.clone());
    (stale, fresh.container_client(name.to_string(), None).await.unwrap())
}

async fn old_items_are_gone(world: World) {
    let (stale, fresh) = recreate(&world).await;
    refused(read(&fresh, "a", "old").await, 404);
    refused(read(&stale, "a", "old").await, 404);
}

async fn a_stale_client_writes_to_the_new_container(world: World) {
    let (stale, fresh) = recreate(&world).await;
    create(&stale, "a", json!({"id": "x", "pk": "a"})).await.unwrap();
    assert_eq!(read(&fresh, "a", "x").await.unwrap()["id"], "x");
}
