//! Provisioned throughput: offers (S60, S61, S70, S83) and the partitions that they create (S44).

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::ThroughputProperties;

use crate::support::*;

both!(
    s60_throughput_is_provisioned_at_creation,
    s83_400_is_the_minimum,
    s44_a_new_container_has_one_range_per_6000,
    s70_the_sample_container,
    throughput_is_replaced,
    autoscale,
    a_database_without_throughput_has_no_offer,
);

async fn make_with_throughput(world: &World, throughput: u64) -> ContainerClient {
    world.make_with("/pk", Some(ThroughputProperties::manual(throughput))).await.unwrap()
}

async fn provisioned(container: &ContainerClient) -> ThroughputProperties {
    container.read_throughput(None).await.unwrap().expect("an offer")
}

async fn s60_throughput_is_provisioned_at_creation(world: World) {
    assert_eq!(provisioned(&make_with_throughput(&world, 20_000).await).await.throughput(), Some(20_000));
}

async fn s83_400_is_the_minimum(world: World) {
    assert_eq!(provisioned(&make_with_throughput(&world, 400).await).await.throughput(), Some(400));
    refused(world.make_with("/pk", Some(ThroughputProperties::manual(300))).await, 400);
}

async fn s44_a_new_container_has_one_range_per_6000(world: World) {
    for (throughput, count) in [(400, 1), (6_000, 1), (11_000, 2), (30_000, 5)] {
        let container = make_with_throughput(&world, throughput).await;
        let ranges = container.read_feed_ranges(None).await.unwrap();
        assert_eq!(ranges.len(), count, "{throughput} RU/s");
        for pair in ranges.windows(2) {
            assert_eq!(pair[0].max_exclusive(), pair[1].min_inclusive());
        }
    }
}

async fn s70_the_sample_container(world: World) {
    let container = world.make_with("/deviceId", Some(ThroughputProperties::manual(20_000))).await.unwrap();
    assert_eq!(provisioned(&container).await.throughput(), Some(20_000));
    assert_eq!(container.read_feed_ranges(None).await.unwrap().len(), 4);
}

async fn throughput_is_replaced(world: World) {
    let container = make_with_throughput(&world, 400).await;
    let replacing = container.begin_replace_throughput(ThroughputProperties::manual(700), None).await.unwrap();
    assert_eq!(replacing.await.unwrap().into_model().unwrap().throughput(), Some(700));
    assert_eq!(provisioned(&container).await.throughput(), Some(700));
}

async fn autoscale(world: World) {
    let container = world.make_with("/pk", Some(ThroughputProperties::autoscale(5_000, Some(42)))).await.unwrap();
    let read = provisioned(&container).await;
    assert_eq!(read.autoscale_maximum(), Some(5_000));
    assert_eq!(read.autoscale_increment(), Some(42));
    assert_eq!(read.throughput(), Some(500));
}

async fn a_database_without_throughput_has_no_offer(world: World) {
    assert!(world.database.read_throughput(None).await.unwrap().is_none());
}
