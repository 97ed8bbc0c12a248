"""S67: beyond its throughput a container answers 429, and the SDK waits for the given time and retries by itself."""

import os

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from conftest import KEY, header, refused, unique

ENDPOINT = os.environ.get("PLEIAD_ENDPOINT_LIMITED", "")
EXPENSIVE = "x" * 500_000  # about 180 RU to write

pytestmark = pytest.mark.skipif(not ENDPOINT, reason="no server with rate limiting was given")


def make(**options):
    client = CosmosClient(ENDPOINT, KEY, **options)
    database = client.create_database_if_not_exists("throttling")
    return database.create_container(unique("c"), PartitionKey("/pk"), offer_throughput=400)


def make_without_retries():
    """A negative number disables the SDK's retries; it treats zero as not given."""
    return make(retry_throttle_total=-1)


def test_s67_the_sdk_waits_and_retries():
    container = make()
    statuses = []

    def record(call):
        statuses.append(call.http_response.status_code)

    for n in range(6):
        container.create_item({"id": str(n), "pk": "hot", "text": EXPENSIVE}, raw_response_hook=record)
    assert 429 in statuses and statuses.count(201) == 6
    assert len(list(container.read_all_items())) == 6


def test_s67_a_429_contains_the_retry_time_and_the_reason():
    container = make_without_retries()
    for n in range(3):
        container.create_item({"id": str(n), "pk": "hot", "text": EXPENSIVE})
    with refused(429, 3200) as caught:
        container.read_item("0", "hot")
    headers = caught.value.headers
    assert 0 < int(headers["x-ms-retry-after-ms"]) <= 2000
    assert headers["x-pleiad-throttle-key"] == '["hot"]'
    assert headers["x-pleiad-throttle-share"] == "400"


def test_s72_another_container_is_not_throttled():
    hot, cold = make_without_retries(), make_without_retries()
    for n in range(3):
        hot.create_item({"id": str(n), "pk": "hot", "text": EXPENSIVE})
    with refused(429):
        hot.read_item("0", "hot")
    assert header(cold.create_item({"id": "1", "pk": "a"}), "x-ms-request-charge")


def test_s63_more_throughput_takes_effect_immediately():
    container = make_without_retries()
    container.replace_throughput(10000)
    for n in range(20):
        container.create_item({"id": str(n), "pk": "hot", "text": EXPENSIVE})


def test_priority_and_throughput_buckets_are_accepted():
    container = make()
    container.create_item({"id": "1", "pk": "a"}, priority="Low")
    assert container.read_item("1", "a", priority="High", throughput_bucket=2)["id"] == "1"
