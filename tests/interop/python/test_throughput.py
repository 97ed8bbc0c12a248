"""Provisioned throughput: offers (S60, S61, S70, S83) and the partitions that they create (S44)."""

import pytest
from azure.cosmos import PartitionKey, ThroughputProperties
from azure.cosmos.exceptions import CosmosHttpResponseError
from conftest import refused, unique


def ranges(container):
    return list(container.read_feed_ranges())


def has_no_offer(owner):
    """The SDK turns the server's empty list into a 404; this version then fails on its own 404."""
    with pytest.raises((CosmosHttpResponseError, AttributeError)):
        owner.get_throughput()
    return True


def test_s60_throughput_is_provisioned_at_creation(make):
    assert make("/pk", throughput=20000).get_throughput().offer_throughput == 20000


def test_s61_throughput_is_sent_as_a_header(make):
    sent = []
    container = make("/pk", throughput=1100, raw_request_hook=lambda call: sent.append(call.http_request.headers))
    assert sent[0]["x-ms-offer-throughput"] == "1100"
    assert container.get_throughput().offer_throughput == 1100


def test_s83_400_is_the_minimum(make):
    assert make("/pk", throughput=400).get_throughput().offer_throughput == 400


def test_s83_less_than_400_is_400(make):
    with refused(400):
        make("/pk", throughput=300)


@pytest.mark.parametrize("throughput, count", [(400, 1), (6000, 1), (11000, 2), (12000, 2), (30000, 5)])
def test_s44_a_new_container_has_one_range_per_6000(make, throughput, count):
    assert len(ranges(make("/pk", throughput=throughput))) == count


def test_s44_autoscale_counts_by_10000(make):
    scaled = ThroughputProperties(auto_scale_max_throughput=20000)
    assert len(ranges(make("/pk", throughput=scaled))) == 2


def test_s70_the_sample_container(make):
    container = make("/deviceId", throughput=20000)
    assert container.get_throughput().offer_throughput == 20000
    assert len(ranges(container)) == 4


def test_the_offer_refers_to_its_container(make):
    container = make("/pk", throughput=500)
    offer = container.get_throughput().properties
    assert offer["resource"] == container.read()["_self"]
    assert offer["offerResourceId"] == container.read()["_rid"]
    assert offer["id"] in offer["_self"]
    assert "offerAutopilotSettings" not in offer["content"]


def test_replace(make):
    container = make("/pk", throughput=400)
    assert container.replace_throughput(800).offer_throughput == 800
    assert container.get_throughput().offer_throughput == 800
    assert container.replace_throughput(400).offer_throughput == 400


def test_replace_below_the_minimum_is_400(make):
    container = make("/pk", throughput=400)
    with refused(400):
        container.replace_throughput(100)
    assert container.get_throughput().offer_throughput == 400


def test_two_containers_have_separate_throughput(make):
    small, large = make("/pk", throughput=400), make("/pk", throughput=1000)
    small.replace_throughput(500)
    assert small.get_throughput().offer_throughput == 500
    assert large.get_throughput().offer_throughput == 1000


def test_autoscale_create_and_read(make):
    scaled = ThroughputProperties(auto_scale_max_throughput=5000, auto_scale_increment_percent=2)
    read = make("/pk", throughput=scaled).get_throughput()
    assert read.auto_scale_max_throughput == 5000
    assert read.auto_scale_increment_percent == 2


def test_autoscale_replace(make):
    scaled = ThroughputProperties(auto_scale_max_throughput=5000, auto_scale_increment_percent=2)
    container = make("/pk", throughput=scaled)
    container.replace_throughput(ThroughputProperties(auto_scale_max_throughput=7000, auto_scale_increment_percent=20))
    read = container.get_throughput()
    assert read.auto_scale_max_throughput == 7000
    assert read.auto_scale_increment_percent == 20


def test_autoscale_below_1000_is_400(make):
    with refused(400):
        make("/pk", throughput=ThroughputProperties(auto_scale_max_throughput=500))


@pytest.fixture
def shared(client):
    """A database with its own throughput, shared by its containers."""
    created = client.create_database(unique("shared"), offer_throughput=1000)
    yield created
    client.delete_database(created)


def test_a_database_may_have_throughput(shared):
    assert shared.get_throughput().offer_throughput == 1000
    assert shared.replace_throughput(1100).offer_throughput == 1100
    assert shared.get_throughput().offer_throughput == 1100


def test_a_container_with_shared_throughput_has_no_offer(shared):
    container = shared.create_container("c", PartitionKey("/pk"))
    assert has_no_offer(container)
    assert len(ranges(container)) == 1


def test_a_container_in_a_shared_database_may_have_its_own_throughput(shared):
    container = shared.create_container("c", PartitionKey("/pk"), offer_throughput=600)
    assert container.get_throughput().offer_throughput == 600


def test_a_database_without_throughput_has_no_offer(database):
    assert has_no_offer(database)
