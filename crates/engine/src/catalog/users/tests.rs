//! Users and permissions are created, changed and deleted, and survive a restart.

use super::*;
use crate::testing::*;
use crate::{Engine, ThroughputRequest};
use pleiad_model::Kind;
use pleiad_partition::Precondition;

fn grant(resource: &str, key: Option<&str>) -> PermissionGrant {
    PermissionGrant { mode: "Read".to_owned(), resource: resource.to_owned(), key: key.map(parse) }
}

fn dump_users(engine: &Engine) -> Vec<String> {
    let tree = engine.catalog.tree();
    let users = tree.databases.values().flat_map(|database| database.users.values());
    users
        .map(|user| {
            let permissions = user.permissions.values().map(|p| format!("{} {:?} {}", p.id, p.grant, p.version.number));
            format!("{} {}: {}", user.id, user.rid, permissions.collect::<Vec<_>>().join(", "))
        })
        .collect()
}

fn kind_of<T>(result: Result<T>) -> Option<Kind> {
    result.err().map(|error| error.kind)
}

#[tokio::test]
async fn users_and_permissions_survive_a_restart_and_are_deleted_with_their_owners() {
    let engine = account().await;
    let db = find_database(&engine, "db").unwrap().rid;
    let other = engine.catalog.create_database("other", ThroughputRequest::Unspecified).await.unwrap().rid;
    let ann = engine.catalog.put_user(db, "ann", PutMode::Create).await.unwrap().0;
    let bob = engine.catalog.put_user(db, "bob", PutMode::Create).await.unwrap().0;
    engine.catalog.put_user(other, "ann", PutMode::Create).await.unwrap();
    let whole =
        engine.catalog.put_permission(ann.rid, "p", grant("dbs/db/colls/c", None), PutMode::Create).await.unwrap().0;
    engine
        .catalog
        .put_permission(ann.rid, "q", grant("dbs/db/colls/c", Some(r#"["a"]"#)), PutMode::Create)
        .await
        .unwrap();
    engine.catalog.put_permission(bob.rid, "p", grant("dbs/db/colls/c", None), PutMode::Create).await.unwrap();
    let (store, _) = engine.catalog.store_and_committer();
    let before = dump_users(&engine);
    engine.close().await;
    let engine = reopen(store, LIMITS).await;
    assert_eq!(dump_users(&engine), before);

    let again = engine
        .catalog
        .put_permission(ann.rid, "r", grant("dbs/db/colls/d", None), PutMode::Replace(whole.rid.into()))
        .await
        .unwrap()
        .0;
    assert!(again.rid == whole.rid && again.version.number > whole.version.number);
    engine.catalog.put_user(db, "anna", PutMode::Replace(ann.rid.into())).await.unwrap();
    engine.catalog.delete_user(bob.rid).await.unwrap();
    engine.catalog.delete_database(other).await.unwrap();
    let (store, _) = engine.catalog.store_and_committer();
    let before = dump_users(&engine);
    assert!(before.len() == 1 && before[0].starts_with("anna "), "{before:?}");
    engine.close().await;
    let engine = reopen(store, LIMITS).await;
    assert_eq!(dump_users(&engine), before);
    assert_eq!(engine.catalog.tree().permission(whole.rid).map(|p| p.id.clone()).as_deref(), Some("r"));
    engine.catalog.delete_permission(whole.rid).await.unwrap();
    assert!(engine.catalog.tree().permission(whole.rid).is_none());
}

#[tokio::test]
async fn names_and_resources_are_unique() {
    let engine = account().await;
    let db = find_database(&engine, "db").unwrap().rid;
    let ann = engine.catalog.put_user(db, "ann", PutMode::Create).await.unwrap().0;
    let bob = engine.catalog.put_user(db, "bob", PutMode::Create).await.unwrap().0;
    assert_eq!(kind_of(engine.catalog.put_user(db, "ann", PutMode::Create).await), Some(Kind::Conflict));
    assert_eq!(
        kind_of(engine.catalog.put_user(db, "ann", PutMode::Replace(bob.rid.into())).await),
        Some(Kind::Conflict)
    );
    assert_eq!(kind_of(engine.catalog.put_user(db, "bob", PutMode::Replace(bob.rid.into())).await), None);
    let put = async |id: &str, resource: &str| {
        kind_of(engine.catalog.put_permission(ann.rid, id, grant(resource, None), PutMode::Create).await)
    };
    assert_eq!(put("p", "dbs/db/colls/c").await, None);
    assert_eq!(put("p", "dbs/db/colls/d").await, Some(Kind::Conflict));
    assert_eq!(put("q", "/dbs/db/colls/c/").await, Some(Kind::Conflict));
    assert_eq!(put("q", "dbs/db/colls/c/docs/1").await, None);
    engine.catalog.delete_user(ann.rid).await.unwrap();
    assert_eq!(put("p", "dbs/db/colls/c").await, Some(Kind::NotFound));
}

/// The second upsert replaces what the first has written: neither gets a conflict or "not found".
#[tokio::test]
async fn concurrent_upserts_of_one_name_create_one_user() {
    let engine = account().await;
    let db = find_database(&engine, "db").unwrap().rid;
    let put = || engine.catalog.put_user(db, "ann", PutMode::Upsert(Precondition::None));
    let (one, other) = tokio::join!(put(), put());
    let ((one, first), (other, second)) = (one.unwrap(), other.unwrap());
    assert!(first != second && one.rid == other.rid);
    let put = |id: &'static str, how| engine.catalog.put_permission(one.rid, id, grant("dbs/db/colls/c", None), how);
    let (former, later) =
        tokio::join!(put("p", PutMode::Upsert(Precondition::None)), put("p", PutMode::Upsert(Precondition::None)));
    let (later, _) = later.unwrap();
    assert_eq!(former.unwrap().0.rid, later.rid);
    let stale = Precondition::IfMatch("stale".to_owned());
    assert_eq!(kind_of(put("p", PutMode::Upsert(stale)).await), Some(Kind::PreconditionFailed));
    assert_eq!(
        kind_of(put("q", PutMode::Upsert(Precondition::None)).await),
        Some(Kind::Conflict),
        "one permission per resource"
    );
}
