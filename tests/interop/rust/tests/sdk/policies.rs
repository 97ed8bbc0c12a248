//! Policies for other components: validated, stored and returned unchanged.

use azure_data_cosmos::models::{ConflictResolutionMode, ConflictResolutionPolicy, ContainerProperties};

use crate::support::*;

both!(a_conflict_resolution_policy_is_stored, a_client_encryption_policy_is_stored_and_cannot_change);

async fn a_conflict_resolution_policy_is_stored(world: World) {
    let by_path =
        ConflictResolutionPolicy::new(ConflictResolutionMode::LastWriterWins).with_resolution_path("/version");
    let name = unique("c");
    let properties =
        ContainerProperties::new(name.clone(), "/pk".into()).with_conflict_resolution_policy(by_path.clone());
    world.database.create_container(properties, None).await.unwrap();
    let container = world.database.container_client(name, None).await.unwrap();
    for _ in 0..2 {
        let key = unique("key");
        create(&container, key.clone(), json!({"id": "x", "pk": key, "version": 1})).await.unwrap();
        let read = container.read(None).await.unwrap().into_model().unwrap();
        assert_eq!(read.conflict_resolution_policy, Some(by_path.clone()));
        world.split(&container).await;
    }
}

/// This SDK does not encrypt; it passes the policy on unchanged.
async fn a_client_encryption_policy_is_stored_and_cannot_change(world: World) {
    let path = |name: &str| {
        json!({
            "path": name, "clientEncryptionKeyId": "cek", "encryptionType": "Deterministic",
            "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
        })
    };
    let policy = json!({"policyFormatVersion": 1, "includedPaths": [path("/ssn")]});
    refused(world.define(json!({"clientEncryptionPolicy": policy})).await, 400);
    world.encryption_key("cek").await;
    let container = world.define(json!({"clientEncryptionPolicy": policy})).await.unwrap();
    let read = container.read(None).await.unwrap().into_model().unwrap();
    let mut sent = serde_json::to_value(&read).unwrap();
    assert_eq!(sent["clientEncryptionPolicy"], policy);
    container.replace(read.with_default_ttl(10), None).await.unwrap();
    sent["clientEncryptionPolicy"]["includedPaths"] = json!([path("/other")]);
    let changed: ContainerProperties = serde_json::from_value(sent).unwrap();
    refused(container.replace(changed, None).await, 400);
}
