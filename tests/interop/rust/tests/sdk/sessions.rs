//! S130: session tokens and consistency levels hold for a container as a whole, also after splits and merges.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::{FeedRange, FeedScope};
use azure_data_cosmos::options::{
    ItemReadOptions, OperationOptions, QueryOptions, ReadConsistencyStrategy, ReadFeedRangesOptions, SessionToken,
};
use azure_data_cosmos::Result;

use crate::readings::ask_with;
use crate::support::*;

both!(
    s130_a_session_token_makes_a_write_visible_to_another_client,
    s130_tokens_from_before_a_split_hold_after_it,
    s130_the_sdk_merges_the_tokens_of_ranges,
    s130_a_token_from_the_future_is_not_available,
    s130_a_weaker_level_than_the_accounts_is_accepted,
    s130_a_stronger_level_is_rejected,
);

async fn read_with(c: &ContainerClient, key: &str, token: SessionToken) -> Result<Value> {
    let options = ItemReadOptions::default().with_session_token(token);
    c.read_item(key.to_owned(), "x", Some(options)).await?.into_model()
}

/// The container through another client, which has no session.
async fn with_new_client(world: &World, container: &ContainerClient) -> ContainerClient {
    let name = container.read(None).await.unwrap().into_model().unwrap().id.to_string();
    let client = connect(world.scheme).await.unwrap();
    client.database_client(world.database_name.clone()).container_client(name, None).await.unwrap()
}

async fn write(container: &ContainerClient, key: &str, n: i64) -> SessionToken {
    let response = upsert(container, key.to_owned(), json!({"id": "x", "pk": key, "n": n})).await.unwrap();
    response.headers().session_token().expect("a session token").clone()
}

async fn s130_a_session_token_makes_a_write_visible_to_another_client(world: World) {
    let container = world.define(json!({})).await.unwrap();
    let other = with_new_client(&world, &container).await;
    for n in 0..12 {
        let key = format!("key {n}");
        let token = write(&container, &key, n).await;
        assert_eq!(read_with(&other, &key, token).await.unwrap()["n"], n);
    }
}

async fn s130_tokens_from_before_a_split_hold_after_it(world: World) {
    let container = world.define(json!({})).await.unwrap();
    let other = with_new_client(&world, &container).await;
    let mut tokens = Vec::new();
    for n in 0..12 {
        tokens.push((format!("key {n}"), write(&container, &format!("key {n}"), n).await));
    }
    for step in 0..2 {
        match step {
            0 => world.split(&container).await,
            _ => world.merge(&container).await,
        }
        for (key, token) in &tokens {
            assert!(read_with(&other, key, token.clone()).await.is_ok(), "{key} after step {step}");
            let newer = write(&container, key, 100).await;
            assert_eq!(read_with(&other, key, newer).await.unwrap()["n"], 100);
        }
    }
}

/// An application's own token cache: the newest known token of a feed range, also if that range was split or merged
/// since.
async fn s130_the_sdk_merges_the_tokens_of_ranges(world: World) {
    let container = world.define(json!({})).await.unwrap();
    let of = async |key: &str| container.feed_range_from_partition_key(key.to_owned(), None).await.unwrap();
    let before: FeedRange = of("key 1").await.remove(0);
    let first = write(&container, "key 1", 1).await;
    world.split(&container).await;
    let second = write(&container, "key 1", 2).await;
    let refreshed = ReadFeedRangesOptions::default().with_force_refresh(true);
    assert_eq!(container.read_feed_ranges(Some(refreshed)).await.unwrap().len(), 3);
    let known = [(before.clone(), first), (of("key 1").await.remove(0), second)];
    let merged = container.get_latest_session_token(&known, &before).unwrap();
    assert_eq!(read_with(&with_new_client(&world, &container).await, "key 1", merged).await.unwrap()["n"], 2);
}

/// The server returns 404 with 1002; this SDK retries and then returns its own error.
async fn s130_a_token_from_the_future_is_not_available(world: World) {
    let container = world.define(json!({})).await.unwrap();
    let token = write(&container, "a", 1).await.to_string();
    let (range, _) = token.split_once(':').expect("a range and a vector");
    let ahead = SessionToken::from(format!("{range}:-1#1000000"));
    let error = read_with(&with_new_client(&world, &container).await, "a", ahead).await.unwrap_err();
    assert!(error.to_string().contains("ReadSessionNotAvailable"), "{error}");
}

fn with_strategy(strategy: ReadConsistencyStrategy) -> OperationOptions {
    let mut operation = OperationOptions::default();
    operation.read_consistency_strategy = Some(strategy);
    operation
}

async fn s130_a_weaker_level_than_the_accounts_is_accepted(world: World) {
    let container = world.define(json!({})).await.unwrap();
    for n in 0..6 {
        write(&container, &format!("key {n}"), n).await;
    }
    let strategies =
        [ReadConsistencyStrategy::Eventual, ReadConsistencyStrategy::Session, ReadConsistencyStrategy::LatestCommitted];
    for strategy in strategies {
        let options = ItemReadOptions::default().with_operation_options(with_strategy(strategy));
        let item: Value = container.read_item("key 3", "x", Some(options)).await.unwrap().into_model().unwrap();
        assert_eq!(item["n"], 3);
        let options = QueryOptions::default().with_operation_options(with_strategy(strategy));
        let rows = ask_with(&container, "SELECT VALUE c.n FROM c ORDER BY c.n", FeedScope::full_container(), options);
        assert_eq!(rows.await.unwrap(), [0, 1, 2, 3, 4, 5]);
    }
}

async fn s130_a_stronger_level_is_rejected(world: World) {
    let container = world.define(json!({})).await.unwrap();
    write(&container, "a", 1).await;
    let options =
        ItemReadOptions::default().with_operation_options(with_strategy(ReadConsistencyStrategy::GlobalStrong));
    assert!(container.read_item("a", "x", Some(options)).await.is_err());
}
