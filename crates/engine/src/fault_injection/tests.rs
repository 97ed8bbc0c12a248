use pleiad_model::{ExceededLimit, Kind};

use super::*;
use crate::ContainerName;
use crate::testing::*;

const C: ContainerName<'static> = ContainerName::Named { database: "db", container: "c" };

fn fault(kind: FaultKind) -> InjectedFault {
    InjectedFault { kind, delay_ms: 20, requests_left: None, until_ms: None }
}

async fn one_item() -> (std::sync::Arc<Engine>, std::sync::Arc<pleiad_model::env::ManualEnv>) {
    let (engine, env) = governed(Default::default()).await;
    container(&engine, "c", &["/pk"], 4).await;
    create(&engine, &admit(&engine, "c"), "1", "a").await.result.unwrap();
    (engine, env)
}

fn range_of_item(engine: &Engine) -> u32 {
    engine
        .partitions(&at_container(engine, C).unwrap())
        .unwrap()
        .into_iter()
        .find(|report| report.items == 1)
        .unwrap()
        .range
        .id
}

#[tokio::test]
async fn a_fault_hits_the_given_number_of_requests() {
    let (engine, _) = one_item().await;
    let at = admit(&engine, "c");
    engine
        .set_fault(
            &at_container(&engine, C).unwrap(),
            range_of_item(&engine),
            InjectedFault { requests_left: Some(2), ..fault(FaultKind::Gone) },
        )
        .unwrap();
    assert!(matches!(kind(read(&engine, &at, "1", "a").await), Kind::Moved { .. }));
    assert!(matches!(kind(delete(&engine, &at, "1", "a").await), Kind::Moved { .. }));
    assert!(read(&engine, &at, "1", "a").await.result.is_ok(), "the rejected delete did nothing");
    assert!(engine.faults(&whole(&engine)).unwrap().is_empty());
}

#[tokio::test]
async fn a_fault_expires() {
    let (engine, env) = one_item().await;
    let at = admit(&engine, "c");
    let until_ms = Some(engine.now_ms() + 1000);
    engine
        .set_fault(
            &at_container(&engine, C).unwrap(),
            range_of_item(&engine),
            InjectedFault { until_ms, ..fault(FaultKind::Throttled) },
        )
        .unwrap();
    let refused = kind(read(&engine, &at, "1", "a").await);
    assert_eq!(refused, Kind::Throttled { retry_after: Duration::from_millis(20), over: ExceededLimit::Share });
    env.advance_ms(1000);
    assert!(read(&engine, &at, "1", "a").await.result.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_partition_answers_correctly() {
    let (engine, _) = one_item().await;
    engine
        .set_fault(
            &at_container(&engine, C).unwrap(),
            range_of_item(&engine),
            InjectedFault { requests_left: Some(1), ..fault(FaultKind::Slow) },
        )
        .unwrap();
    assert!(read(&engine, &admit(&engine, "c"), "1", "a").await.result.is_ok());
}

#[tokio::test]
async fn a_fault_affects_only_its_partition() {
    let (engine, _) = one_item().await;
    let elsewhere = engine
        .partitions(&at_container(&engine, C).unwrap())
        .unwrap()
        .into_iter()
        .find(|report| report.items == 0)
        .unwrap()
        .range
        .id;
    engine.set_fault(&at_container(&engine, C).unwrap(), elsewhere, fault(FaultKind::Gone)).unwrap();
    assert!(read(&engine, &admit(&engine, "c"), "1", "a").await.result.is_ok());
    assert_eq!(engine.faults(&whole(&engine)).unwrap().len(), 1);
    engine.clear_fault(&at_container(&engine, C).unwrap(), elsewhere).unwrap();
    assert!(engine.faults(&whole(&engine)).unwrap().is_empty());
    assert!(engine.set_fault(&at_container(&engine, C).unwrap(), 99, fault(FaultKind::Gone)).is_err());
}

#[test]
fn fault_kind_names_round_trip() {
    for (kind, name) in KINDS {
        assert_eq!((FaultKind::parse(name), kind.as_str()), (Some(kind), name));
    }
    assert_eq!(FaultKind::parse("odd"), None);
}
