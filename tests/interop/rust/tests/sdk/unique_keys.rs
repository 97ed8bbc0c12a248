//! Unique keys: values that may occur once in a logical partition.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::{ContainerProperties, UniqueKey, UniqueKeyPolicy};

use crate::support::*;

both!(s12_a_duplicate_value_is_409_within_its_key, the_policy_is_stored_and_cannot_change);

fn policy() -> UniqueKeyPolicy {
    let name = UniqueKey::default().with_path("/name/first").with_path("/name/last");
    UniqueKeyPolicy::default().with_unique_key(UniqueKey::default().with_path("/mail")).with_unique_key(name)
}

async fn people(world: &World) -> ContainerClient {
    let name = unique("c");
    let properties = ContainerProperties::new(name.clone(), "/pk".into()).with_unique_key_policy(policy());
    world.database.create_container(properties, None).await.unwrap();
    world.database.container_client(name, None).await.unwrap()
}

fn person(id: &str, pk: &str, mail: &str) -> Value {
    json!({"id": id, "pk": pk, "mail": mail, "name": {"first": id}})
}

async fn s12_a_duplicate_value_is_409_within_its_key(world: World) {
    let people = people(&world).await;
    create(&people, "a", person("1", "a", "one")).await.unwrap();
    refused(create(&people, "a", person("2", "a", "one")).await, 409);
    refused(upsert(&people, "a", person("2", "a", "one")).await, 409);
    create(&people, "b", person("2", "b", "one")).await.unwrap();
    create(&people, "a", person("2", "a", "two")).await.unwrap();
    refused(replace(&people, "a", person("2", "a", "one")).await, 409);
    delete(&people, "a", "1").await.unwrap();
    replace(&people, "a", person("2", "a", "one")).await.unwrap();
}

async fn the_policy_is_stored_and_cannot_change(world: World) {
    let people = people(&world).await;
    let mut properties = people.read(None).await.unwrap().into_model().unwrap();
    assert_eq!(properties.unique_key_policy, Some(policy()));
    properties.unique_key_policy = None;
    refused(people.replace(properties, None).await, 403);
}
