//! Creating, reading, replacing and deleting containers, and their definitions: S3 to S9, S15.

use azure_data_cosmos::models::{ContainerProperties, PartitionKeyDefinition, PartitionKeyVersion};
use azure_data_cosmos::{Query, ResourceId};
use futures::TryStreamExt;

use crate::support::*;

both!(
    a_container_is_created_and_deleted,
    s3_the_partition_key_is_stored,
    an_existing_name_is_409,
    a_container_is_found_by_id,
    s15_the_partition_key_cannot_be_changed_in_place,
    s8_a_key_path_has_no_wildcard,
    s4_s5_s7_s9_the_path_finds_the_value,
    a_container_can_be_addressed_by_its_rid,
    a_missing_container_is_404,
);

async fn a_container_is_created_and_deleted(world: World) {
    let container = world.make("/pk").await;
    let read = container.read(None).await.unwrap().into_model().unwrap();
    assert!(read.system_properties.resource_id.is_some());
    assert!(read.indexing_policy.is_some());
    container.delete(None).await.unwrap();
    refused(container.read(None).await, 404);
}

async fn s3_the_partition_key_is_stored(world: World) {
    let small = PartitionKeyDefinition::from("/deviceId").with_version(PartitionKeyVersion::V1);
    for definition in ["/deviceId".into(), small, ("/a", "/b").into(), ("/a", "/b", "/c").into()] {
        let read = world.make(definition.clone()).await.read(None).await.unwrap().into_model().unwrap();
        assert_eq!(read.partition_key, definition);
    }
}

async fn an_existing_name_is_409(world: World) {
    let container = world.make("/pk").await;
    let existing = container.read(None).await.unwrap().into_model().unwrap().id;
    refused(world.database.create_container(ContainerProperties::new(existing, "/pk".into()), None).await, 409);
}

async fn a_container_is_found_by_id(world: World) {
    let expected = world.make("/pk").await.read(None).await.unwrap().into_model().unwrap().id;
    world.make("/pk").await;
    let by_id = Query::from("SELECT * FROM root r WHERE r.id=@id").with_parameter("@id", &expected).unwrap();
    let found: Vec<_> = world.database.query_containers(by_id, None).await.unwrap().try_collect().await.unwrap();
    assert_eq!(found.iter().map(|container| &container.id).collect::<Vec<_>>(), [&expected]);
    let all: Vec<_> =
        world.database.query_containers("SELECT * FROM c", None).await.unwrap().try_collect().await.unwrap();
    assert_eq!(all.len(), 2);
}

async fn s15_the_partition_key_cannot_be_changed_in_place(world: World) {
    let container = world.make("/pk").await;
    let mut properties = container.read(None).await.unwrap().into_model().unwrap();
    properties.partition_key = "/other".into();
    refused(container.replace(properties, None).await, 400);
    let read = container.read(None).await.unwrap().into_model().unwrap();
    assert_eq!(read.partition_key.paths(), ["/pk"]);
}

async fn s8_a_key_path_has_no_wildcard(world: World) {
    for path in ["/department/?", "/department/*"] {
        refused(world.make_with(path, None).await, 400);
    }
}

async fn s4_s5_s7_s9_the_path_finds_the_value(world: World) {
    let forms = [
        ("/department", json!({"department": "here"})),
        ("/properties/name", json!({"properties": {"name": "here"}})),
        (r#"/"department name""#, json!({"department name": "here"})),
        ("/user_Id2/sub_1", json!({"user_Id2": {"sub_1": "here"}})),
    ];
    for (path, mut item) in forms {
        let container = world.make(path).await;
        item["id"] = "x".into();
        create(&container, "here", item).await.unwrap();
        assert_eq!(read(&container, "here", "x").await.unwrap()["id"], "x");
        refused(read(&container, "elsewhere", "x").await, 404);
    }
}

async fn a_container_can_be_addressed_by_its_rid(world: World) {
    let container = world.make("/pk").await;
    let database = world.database.read(None).await.unwrap().into_model().unwrap();
    let properties = container.read(None).await.unwrap().into_model().unwrap();
    let rid = |rid: Option<String>| ResourceId::from(rid.expect("a rid"));
    let by_rid = world
        .client
        .database_client(rid(database.system_properties.resource_id))
        .container_client(rid(properties.system_properties.resource_id), None)
        .await
        .unwrap();
    assert_eq!(by_rid.read(None).await.unwrap().into_model().unwrap().id, properties.id);
    create(&by_rid, "a", json!({"id": "x", "pk": "a"})).await.unwrap();
    assert_eq!(read(&container, "a", "x").await.unwrap()["id"], "x");
}

async fn a_missing_container_is_404(world: World) {
    refused(world.database.container_client("missing", None).await, 404);
    let properties = ContainerProperties::new("c", "/pk".into());
    refused(world.client.database_client("missing").create_container(properties, None).await, 404);
}
