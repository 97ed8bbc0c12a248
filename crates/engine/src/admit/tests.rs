use crate::testing::{account, admit, container};
use crate::{Admitted, ContainerName, Engine};
use pleiad_model::{Kind, Result};

fn by_name<'a>(database: &'a str, container: &'a str) -> ContainerName<'a> {
    ContainerName::Named { database, container }
}

fn refusal(outcome: Result<Admitted>) -> Kind {
    outcome.err().unwrap().kind
}

fn rid(engine: &Engine) -> String {
    admit(engine, "c").container().rid.to_string()
}

#[tokio::test]
async fn a_container_is_found_by_name_and_by_rid() {
    let engine = account().await;
    let made = container(&engine, "c", &["/pk"], 4).await;
    assert_eq!(admit(&engine, "c").container().rid, made.rid);
    assert_eq!(engine.admit(ContainerName::Rid(made.rid), None).unwrap().container().definition.id, "c");
}

#[tokio::test]
async fn a_missing_container_differs_from_a_missing_owner() {
    let engine = account().await;
    assert_eq!(refusal(engine.admit(by_name("db", "c"), None)), Kind::OwnerNotFound);
    let asked = |database| engine.find_container(by_name(database, "c")).err().unwrap().kind;
    assert_eq!((asked("db"), asked("nowhere")), (Kind::NotFound, Kind::OwnerNotFound));
    assert_eq!(engine.find_database("nowhere").err().unwrap().kind, Kind::NotFound);
}

#[tokio::test]
async fn a_recreated_container_is_another_resource() {
    let engine = account().await;
    let old = container(&engine, "c", &["/pk"], 4).await.rid;
    assert!(engine.admit(by_name("db", "c"), Some(&rid(&engine))).is_ok());
    engine.catalog.delete_container(old).await.unwrap();
    container(&engine, "c", &["/pk"], 4).await;
    assert_eq!(refusal(engine.admit(by_name("db", "c"), Some(&old.to_string()))), Kind::ContainerChanged);
    assert_eq!(refusal(engine.admit(ContainerName::Rid(old), None)), Kind::OwnerNotFound);
}
