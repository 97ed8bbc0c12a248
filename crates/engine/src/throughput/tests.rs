//! Valid throughput values, minimums, and the number of partitions.

use super::*;

fn manual(ru: i64) -> Result<Option<ProvisionedThroughput>> {
    ThroughputRequest::Manual(ru).check(&Governance::default())
}

fn partitions(ru: i64, initial: u32) -> u32 {
    let limits = PartitionLimits { partition_ru_initial: initial, ..PartitionLimits::default() };
    manual(ru).unwrap().unwrap().partitions(&limits)
}

#[test]
fn s83_the_minimum_is_400_and_s62_steps_are_100() {
    assert!(manual(400).is_ok() && manual(10_100).is_ok());
    assert!(manual(300).is_err() && manual(399).is_err() && manual(10_050).is_err() && manual(-1).is_err());
    assert!(manual(1_000_000).is_ok() && manual(1_000_100).is_err());
}

#[test]
fn s44_s57_partitions_follow_throughput() {
    assert_eq!([400, 10_000, 20_000, 45_000].map(|ru| partitions(ru, 10_000)), [1, 1, 2, 5]);
    assert_eq!([400, 11_000, 12_000, 30_000].map(|ru| partitions(ru, 6_000)), [1, 2, 2, 5]);
}

#[test]
fn s54_s55_the_default_limits() {
    let limits = PartitionLimits::default();
    assert_eq!(
        (limits.partition_ru_max, limits.partition_bytes_max >> 30, limits.key_bytes_max >> 30),
        (10_000, 50, 20)
    );
}

#[test]
fn autoscale_has_a_minimum_and_reports_a_tenth() {
    let ask = |max| ThroughputRequest::Autoscale { max, increment_percent: None }.check(&Governance::default());
    assert!(ask(1000).is_ok() && ask(900).is_err() && ask(1500).is_err());
    assert_eq!(
        ask(-200).unwrap_err().to_string(),
        "Requested throughput -200 is less than required minimum throughput 1000"
    );
    assert_eq!(ask(5000).unwrap().unwrap().reported_ru(), 500);
}

#[test]
fn s80_a_container_without_a_partition_key_has_a_fixed_maximum() {
    assert!(check_fixed(ProvisionedThroughput::Manual(10_000)).is_ok());
    assert!(check_fixed(ProvisionedThroughput::Manual(10_100)).is_err());
}

fn floor(highest_ru: u32, stored_gb: u64) -> OfferFloor {
    OfferFloor { highest_ru, stored_bytes: stored_gb << 30, ..OfferFloor::default() }
}

#[test]
fn the_minimum_follows_the_highest_throughput_and_the_stored_bytes() {
    let manual = ProvisionedThroughput::Manual(400);
    let figures = [(400, 0), (30_000, 0), (50_000, 20), (1_000_000, 0), (400, 2_000)];
    assert_eq!(figures.map(|(highest, gb)| manual.minimum_ru(&floor(highest, gb))), [400, 400, 500, 10_000, 2_000]);
    let autoscale = ProvisionedThroughput::Autoscale { max: 1_000, increment_percent: None };
    let figures = [(1_000, 0), (50_000, 20), (50_000, 2_000)];
    assert_eq!(figures.map(|(highest, gb)| autoscale.minimum_ru(&floor(highest, gb))), [1_000, 5_000, 20_000]);
}

#[test]
fn a_database_of_many_containers_has_a_higher_minimum() {
    let floor = OfferFloor { sharing: 30, ..OfferFloor::default() };
    assert_eq!((floor.manual_min(), floor.autoscale_min()), (900, 6_000));
}

#[test]
fn switching_kinds_keeps_the_ceiling() {
    let to_autoscale = |ru, floor: OfferFloor| ProvisionedThroughput::Manual(ru).to_autoscale(&floor).ceiling_ru();
    assert_eq!(to_autoscale(10_000, floor(10_000, 25)), 10_000);
    assert_eq!(to_autoscale(50_000, floor(50_000, 25_000)), 250_000);
    assert_eq!(to_autoscale(400, floor(400, 0)), 1_000);
    let autoscale = ProvisionedThroughput::Autoscale { max: 7_000, increment_percent: None };
    assert_eq!(autoscale.to_manual(), ProvisionedThroughput::Manual(7_000));
}

#[test]
fn s71_an_operator_sets_the_maximum() {
    let ask = |ru, container_ru_max| {
        let governance = Governance { container_ru_max, ..Governance::default() };
        ThroughputRequest::Manual(ru).check(&governance)
    };
    assert!(ask(250_000, 250_000).is_ok() && ask(250_100, 250_000).is_err() && ask(250_100, 300_000).is_ok());
}

#[test]
fn s44_s50_partitions_needed() {
    let needed = [(400, 1), (10_000, 1), (10_100, 2), (45_000, 5)];
    assert!(needed.iter().all(|(ru, partitions)| partitions_needed(*ru, 10_000) == *partitions));
}
