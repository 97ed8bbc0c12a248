//! A container is deleted and created again under the same name, while a client still caches the old one.
//!
//! The SDK sends the RID of the container that it means; after 400/1024 it refreshes its cache and retries once.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::ContainerProperties;

use crate::support::*;

both!(old_items_are_404, a_stale_client_writes_to_the_new_container);

/// The container through a stale client, and through a new one.
async fn recreate(world: &World) -> (ContainerClient, ContainerClient) {
    let stale = world.make("/pk").await;
    create(&stale, "a", json!({"id": "old", "pk": "a"})).await.unwrap();
    let name = stale.read(None).await.unwrap().into_model().unwrap().id;
    let other_client = connect(world.scheme).await.unwrap().database_client(world.database_name.clone());
    other_client.container_client(name.to_string(), None).await.unwrap().delete(None).await.unwrap();
    other_client.create_container(ContainerProperties::new(name.clone(), "/pk".into()), None).await.unwrap();
    let fresh = connect(world.scheme).await.unwrap().database_client(world.database_name.clone());
    (stale, fresh.container_client(name.to_string(), None).await.unwrap())
}

async fn old_items_are_404(world: World) {
    let (stale, fresh) = recreate(&world).await;
    refused(read(&fresh, "a", "old").await, 404);
    refused(read(&stale, "a", "old").await, 404);
}

async fn a_stale_client_writes_to_the_new_container(world: World) {
    let (stale, fresh) = recreate(&world).await;
    create(&stale, "a", json!({"id": "x", "pk": "a"})).await.unwrap();
    assert_eq!(read(&fresh, "a", "x").await.unwrap()["id"], "x");
}
