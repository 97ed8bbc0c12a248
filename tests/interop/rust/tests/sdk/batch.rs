//! Transactional batches: S114. This SDK has patch behind an unstable feature.

use azure_data_cosmos::models::TransactionalBatch;

use crate::support::*;

both!(s114_a_batch_is_atomic);

async fn s114_a_batch_is_atomic(world: World) {
    let container = world.make("/pk").await;
    create(&container, "a", json!({"id": "old", "pk": "a"})).await.unwrap();
    let batch = TransactionalBatch::new("a")
        .create_item(json!({"id": "new", "pk": "a", "n": 1}))
        .unwrap()
        .upsert_item(json!({"id": "new", "pk": "a", "n": 2}), None)
        .unwrap()
        .read_item("new", None)
        .delete_item("old", None);
    let done = container.execute_transactional_batch(batch, None).await.unwrap().into_model().unwrap();
    let codes: Vec<u16> = done.results().iter().map(|result| result.status_code()).collect();
    assert_eq!(codes, [201, 200, 200, 204]);
    let seen: Value = done.results()[2].into_model().unwrap().unwrap();
    assert_eq!(seen["n"], 2);

    let batch = TransactionalBatch::new("a").delete_item("new", None).read_item("missing", None);
    let failed = container.execute_transactional_batch(batch, None).await;
    if let Ok(failed) = failed {
        let codes: Vec<u16> =
            failed.into_model().unwrap().results().iter().map(|result| result.status_code()).collect();
        assert_eq!(codes, [424, 404]);
    }
    assert_eq!(read(&container, "a", "new").await.unwrap()["n"], 2);
}
