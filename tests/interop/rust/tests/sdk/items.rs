//! Operations on single items: S1, S6, S11 to S13, S16, S20, S21, S23, S95, S97, S98, S100; etags, IDs, sizes, charges,
//! sessions.

use azure_core::http::StatusCode;
use azure_data_cosmos::options::{ItemReadOptions, Precondition};

use crate::support::*;

both!(
    s95_s97_s98_s100_create_read_replace_delete_the_sample_document,
    upsert_creates_then_replaces,
    a_missing_item_is_404,
    s12_s13_key_and_id_are_the_identity,
    s95_a_key_that_does_not_match_the_body_is_400_1001,
    s16_the_key_of_an_item_cannot_be_changed,
    s6_s20_s21_s23_id_as_the_partition_key,
    s1_a_container_stores_items_of_different_shapes,
    if_match_with_an_old_etag_is_412,
    if_none_match_with_the_current_etag_is_304,
    a_write_without_content_has_no_body,
    ids_in_any_script,
    items_up_to_2_mb,
    s87_s88_s91_charges,
    a_read_returns_the_session_token_of_the_write_before,
    json_is_read_unchanged,
);

async fn s95_s97_s98_s100_create_read_replace_delete_the_sample_document(world: World) {
    let container = world.make("/deviceId").await;
    let reading = json!({
        "id": "XMS-001-FE24C", "deviceId": "XMS-0001", "metricType": "Temperature", "unit": "Fahrenheit",
        "metricValue": 105.0, "readingTime": "2016-01-20T10:30:00.000Z",
    });
    let created = create(&container, "XMS-0001", reading.clone()).await.unwrap();
    assert_eq!(created.status().status_code(), StatusCode::Created);
    let created: Value = created.into_model().unwrap();
    for name in ["_rid", "_self", "_etag", "_ts", "_attachments"] {
        assert!(!created[name].is_null(), "{name}");
    }
    let back = plain(read(&container, "XMS-0001", "XMS-001-FE24C").await.unwrap());
    // Equal in value: the service writes 105.0 as 105.
    assert_eq!(back["metricValue"].as_f64(), Some(105.0));
    assert_eq!(back["readingTime"], reading["readingTime"]);

    let mut cooler = reading.clone();
    cooler["metricValue"] = 104.into();
    let replaced: Value = replace(&container, "XMS-0001", cooler).await.unwrap().into_model().unwrap();
    assert_eq!(replaced["metricValue"], 104);
    assert_eq!(replaced["_rid"], created["_rid"]);
    assert_ne!(replaced["_etag"], created["_etag"]);

    let deleted = delete(&container, "XMS-0001", "XMS-001-FE24C").await.unwrap();
    assert_eq!(deleted.status().status_code(), StatusCode::NoContent);
    refused(read(&container, "XMS-0001", "XMS-001-FE24C").await, 404);
}

async fn upsert_creates_then_replaces(world: World) {
    let container = world.make("/pk").await;
    let first = upsert(&container, "a", json!({"id": "x", "pk": "a", "n": 1})).await.unwrap();
    let second = upsert(&container, "a", json!({"id": "x", "pk": "a", "n": 2})).await.unwrap();
    assert_eq!(first.status().status_code(), StatusCode::Created);
    assert_eq!(second.status().status_code(), StatusCode::Ok);
    assert_eq!(read(&container, "a", "x").await.unwrap()["n"], 2);
}

async fn a_missing_item_is_404(world: World) {
    let container = world.make("/pk").await;
    refused(read(&container, "a", "x").await, 404);
    refused(delete(&container, "a", "x").await, 404);
    refused(replace(&container, "a", json!({"id": "x", "pk": "a"})).await, 404);
}

async fn s12_s13_key_and_id_are_the_identity(world: World) {
    let container = world.make("/pk").await;
    for (key, id) in [("Marketing", "0001"), ("Marketing", "0002"), ("Sales", "0001")] {
        create(&container, key, json!({"id": id, "pk": key})).await.unwrap();
    }
    refused(create(&container, "Marketing", json!({"id": "0001", "pk": "Marketing"})).await, 409);
    assert_eq!(read(&container, "Sales", "0001").await.unwrap()["pk"], "Sales");
    refused(read(&container, "Other", "0001").await, 404);
}

async fn s95_a_key_that_does_not_match_the_body_is_400_1001(world: World) {
    let container = world.make("/pk").await;
    refused_with(create(&container, "b", json!({"id": "x", "pk": "a"})).await, (400, 1001));
    refused_with(upsert(&container, "b", json!({"id": "x", "pk": "a"})).await, (400, 1001));
    refused(read(&container, "a", "x").await, 404);
}

async fn s16_the_key_of_an_item_cannot_be_changed(world: World) {
    let container = world.make("/pk").await;
    create(&container, "a", json!({"id": "x", "pk": "a"})).await.unwrap();
    refused(replace(&container, "a", json!({"id": "x", "pk": "b"})).await, 400);
    assert_eq!(read(&container, "a", "x").await.unwrap()["pk"], "a");
}

async fn s6_s20_s21_s23_id_as_the_partition_key(world: World) {
    let container = world.make("/id").await;
    create(&container, "x", json!({"id": "x", "colour": "red"})).await.unwrap();
    assert_eq!(read(&container, "x", "x").await.unwrap()["colour"], "red");
    refused(create(&container, "x", json!({"id": "x", "colour": "blue"})).await, 409);
    delete(&container, "x", "x").await.unwrap();
    refused(read(&container, "x", "x").await, 404);
}

async fn s1_a_container_stores_items_of_different_shapes(world: World) {
    let container = world.make("/pk").await;
    let shapes = [
        json!({"id": "1", "pk": "a", "text": "x"}),
        json!({"id": "2", "pk": "a", "list": [1]}),
        json!({"id": "3", "pk": "a"}),
    ];
    for shape in &shapes {
        create(&container, "a", shape.clone()).await.unwrap();
    }
    for shape in &shapes {
        assert_eq!(&plain(read(&container, "a", shape["id"].as_str().unwrap()).await.unwrap()), shape);
    }
}

async fn if_match_with_an_old_etag_is_412(world: World) {
    let container = world.make("/pk").await;
    let etag = create(&container, "a", json!({"id": "x", "pk": "a"})).await.unwrap().headers().etag().unwrap().clone();
    let unchanged = || write_if(Precondition::if_match(etag.clone()));
    container.replace_item("a", "x", json!({"id": "x", "pk": "a", "n": 1}), unchanged()).await.unwrap();
    refused(container.replace_item("a", "x", json!({"id": "x", "pk": "a", "n": 2}), unchanged()).await, 412);
    refused(container.upsert_item("a", "x", json!({"id": "x", "pk": "a", "n": 2}), unchanged()).await, 412);
    refused(container.delete_item("a", "x", unchanged()).await, 412);
    assert_eq!(read(&container, "a", "x").await.unwrap()["n"], 1);
}

async fn if_none_match_with_the_current_etag_is_304(world: World) {
    let container = world.make("/pk").await;
    let etag = create(&container, "a", json!({"id": "x", "pk": "a"})).await.unwrap().headers().etag().unwrap().clone();
    let changed = || read_if(Precondition::if_none_match(etag.clone()));
    let status = match container.read_item("a", "x", changed()).await {
        Ok(response) => response.status().status_code(),
        Err(error) => error.status().status_code(),
    };
    assert_eq!(status, StatusCode::NotModified);
    upsert(&container, "a", json!({"id": "x", "pk": "a", "n": 1})).await.unwrap();
    let read: Value = container.read_item("a", "x", changed()).await.unwrap().into_model().unwrap();
    assert_eq!(read["n"], 1);
}

async fn a_write_without_content_has_no_body(world: World) {
    let container = world.make("/pk").await;
    let created = container.create_item("a", "x", json!({"id": "x", "pk": "a"}), None).await.unwrap();
    let etag = created.headers().etag().unwrap().to_string();
    assert!(created.into_body().is_empty());
    assert_eq!(read(&container, "a", "x").await.unwrap()["_etag"], etag.as_str());
}

async fn ids_in_any_script(world: World) {
    let container = world.make("/pk").await;
    let long = "x".repeat(255);
    let ids = [
        "a b",
        " leading",
        "é",
        "e\u{301}",
        "日本語",
        "😀👩‍👩‍👧",
        "!@$%^&*()-~`'_[]{}|;:,.<>",
        "a%20b",
        "100%",
        "a+b",
        "a=b&c=d",
        "\"quoted\"",
        &long,
    ];
    for id in ids {
        create(&container, "a", json!({"id": id, "pk": "a"})).await.unwrap();
    }
    for id in ids {
        assert_eq!(read(&container, "a", id).await.unwrap()["id"], id);
        replace(&container, "a", json!({"id": id, "pk": "a", "n": 1})).await.unwrap();
        delete(&container, "a", id).await.unwrap();
        refused(read(&container, "a", id).await, 404);
    }
}

async fn items_up_to_2_mb(world: World) {
    let container = world.make("/pk").await;
    let item = |bytes: usize| json!({"id": "large", "pk": "a", "pad": "x".repeat(bytes - 40)});
    let limit = 2 * 1024 * 1024;
    create(&container, "a", item(limit - 1024)).await.unwrap();
    assert_eq!(plain(read(&container, "a", "large").await.unwrap()), item(limit - 1024));
    refused(upsert(&container, "a", item(limit + 1024)).await, 413);
}

async fn s87_s88_s91_charges(world: World) {
    let container = world.make("/pk").await;
    let mut charges = Vec::new();
    for kilobytes in [1, 4, 16, 64, 256] {
        let id = format!("{kilobytes} KB");
        // About 300 bytes are left for the server's own properties.
        let item = json!({"id": id, "pk": "a", "pad": "x".repeat(kilobytes * 1024 - 300)});
        let written = create(&container, "a", item).await.unwrap().headers().request_charge().unwrap().value();
        let response = container.read_item("a", &id, None).await.unwrap();
        let read = response.headers().request_charge().unwrap().value();
        assert!(written > read);
        charges.push(read);
    }
    assert_eq!((charges[0] * 100.0).round(), 100.0);
    assert!(charges.windows(2).all(|pair| pair[0] < pair[1]), "{charges:?}");
}

async fn a_read_returns_the_session_token_of_the_write_before(world: World) {
    let container = world.make("/pk").await;
    let written = create(&container, "a", json!({"id": "x", "pk": "a"})).await.unwrap();
    let token = written.headers().session_token().unwrap().clone();
    let response = container.read_item("a", "x", None).await.unwrap();
    assert_eq!(response.headers().session_token().unwrap().as_str(), token.as_str());

    let name = container.read(None).await.unwrap().into_model().unwrap().id.into_owned();
    let other = connect(world.scheme).await.unwrap().database_client(world.database_name.clone());
    let other = other.container_client(name, None).await.unwrap();
    let options = ItemReadOptions::default().with_session_token(token);
    assert!(other.read_item("a", "x", Some(options)).await.is_ok());
}

async fn json_is_read_unchanged(world: World) {
    let container = world.make("/pk").await;
    let item = json!({
        "id": "json", "pk": "a",
        "numbers": [0, 31, 32, -1, 255, 65536, 0.1, 1e21, f64::MAX, 5e-324, 1u64 << 53, (1u64 << 53) + 1, i64::MAX, i64::MIN],
        "strings": ["", "q\"\\/", "\u{8}\u{c}\n\r\t", "\u{0}\u{1f}\u{7f}\u{2028}\u{feff}", "日本 😀", "x".repeat(63), "x".repeat(64), "x".repeat(300), "x".repeat(70_000)],
        "nested": [null, true, false, [], {}, [[[]]], [1], {"a": {"": {"a.b": {"😀": [1, [2]]}}}}],
        "same": [{"name": "a", "id": 1}, {"name": "b", "id": 2}],
    });
    create(&container, "a", item.clone()).await.unwrap();
    assert_eq!(plain(read(&container, "a", "json").await.unwrap()), item);
}
