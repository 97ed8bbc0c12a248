use super::*;
use crate::testing::{account, admit, container, create, kind, pk};
use crate::{Precondition, Target};
use pleiad_model::Kind;
use std::sync::Arc;

#[tokio::test]
async fn a_token_requires_what_its_client_has_seen_and_no_more() {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    let served_by = create(&engine, &at, "1", "a").await.served_by.unwrap();
    let read = async |token: &[(u32, u64)]| {
        engine.read_item(&at, Some(&pk("a")), Target::Named("1"), None, Some(&SessionToken(token.to_vec()))).await
    };
    assert!(read(&[(served_by.range, served_by.lsn)]).await.result.is_ok());
    assert!(read(&[]).await.result.is_ok());
    assert!(read(&[(served_by.range + 1, 99), (999, 99)]).await.result.is_ok(), "other ranges have their own LSNs");
    assert_eq!(kind(read(&[(served_by.range, served_by.lsn + 1)]).await), Kind::SessionNotAvailable);
    assert_eq!(kind(read(&[(served_by.range, 1), (served_by.range, 99)]).await), Kind::SessionNotAvailable);
}

#[tokio::test]
async fn a_response_reports_the_range_and_lsn_of_its_write() {
    let engine = account().await;
    container(&engine, "c", &["/pk"], 4).await;
    let at = admit(&engine, "c");
    for lsn in 2..=4 {
        assert_eq!(create(&engine, &at, &lsn.to_string(), "a").await.served_by.unwrap().lsn, lsn);
    }
    let refused = create(&engine, &at, "2", "a").await;
    assert_eq!((refused.served_by.unwrap().lsn, kind(refused)), (4, Kind::Conflict));
    let deleted = engine.delete_item(&at, Some(&pk("a")), Target::Named("2"), &Precondition::None).await;
    assert_eq!(deleted.served_by.unwrap().lsn, 5);
}

#[tokio::test]
async fn a_child_partition_checks_the_lsns_of_its_parents() {
    let engine = account().await;
    let made = container(&engine, "c", &["/pk"], 4).await;
    let (store, committer) = engine.catalog.store_and_committer();
    let mut range = made.map.ranges()[0].clone();
    (range.id, range.parents) = (7, vec![5]);
    let child = Arc::new(Partition::open(range, store, committer).await.unwrap());
    assert_eq!(SessionToken(vec![(5, 3)]).check(&child).unwrap_err().kind, Kind::SessionNotAvailable);
    assert!(SessionToken(vec![(6, 3)]).check(&child).is_ok());
}
