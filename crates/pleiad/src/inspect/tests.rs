use super::*;
use pleiad_engine::check::{CheckReport, DatabaseReport, Problems};
use pleiad_model::partition_key::{EffectiveKey, EpkRange};
use pleiad_model::policy::ContainerKind;

fn report(problems: Problems) -> AccountReport {
    let keys = EpkRange { min: EffectiveKey::MIN, max: EffectiveKey::parse("05C1C9CD00112233").unwrap() };
    let range = PartitionKeyRange { id: 0, shard: 1, prefix: 0, keys, parents: vec![], since: 1 };
    let check_report =
        CheckReport { lsn: 10, items: 10, item_bytes: 4096, keys: 7, index_rows: 40, vector_rows: 0, problems };
    let container =
        ContainerReport { id: "orders".into(), kind: ContainerKind::Nosql, partitions: vec![(range, check_report)] };
    let database = DatabaseReport { id: "shop".into(), containers: vec![container] };
    AccountReport { databases: vec![database], problems: Problems::default() }
}

#[test]
fn a_directory_without_problems_is_listed_and_reported_as_such() {
    let wanted = "\
shop
  orders  nosql, 1 partitions, 10 items, 4.0 KiB
    0  [, 05C1C9CD…)           shard 1, LSN 10, 7 keys, 10 items, 4.0 KiB, 40 index rows
nothing is wrong
";
    assert_eq!(render_report(&report(Problems::default())), wanted);
}

#[test]
fn problems_are_listed_below_their_partition() {
    let mut problems = Problems::default();
    (0..103).for_each(|n| problems.add(format_args!("row {n} is odd")));
    let page = render_report(&report(problems));
    assert!(page.contains("\n      problem: row 0 is odd\n"), "{page}");
    assert!(page.ends_with("\n      and 3 more problems\n"), "{page}");
}

#[test]
fn a_missing_directory_is_rejected_and_not_created() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert!(runtime.block_on(check(&missing)).is_err());
    assert!(!missing.exists());
}
