"""Snapshots of the whole account: a client works across restores, whatever it has cached.

These tests use a separate server: a restore replaces all data of the account.
"""

import os

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from conftest import KEY, refused, unique
from management import manage

ENDPOINT = os.environ.get("PLEIAD_ENDPOINT_RESTORED", "")

pytestmark = pytest.mark.skipif(not ENDPOINT, reason="no server for restores was given")


@pytest.fixture(scope="module")
def account():
    return CosmosClient(ENDPOINT, KEY)


@pytest.fixture
def shop(account):
    """A database that is deleted afterwards."""
    created = account.create_database(unique("snapshots"))
    yield created
    account.delete_database(created)


@pytest.fixture
def orders(shop):
    container = shop.create_container("orders", PartitionKey("/pk"), offer_throughput=400)
    for n in range(20):
        container.create_item({"id": str(n), "pk": str(n % 5), "n": n})
    return container


@pytest.fixture
def clean(orders):
    """The name of a snapshot with the orders."""
    name = unique("clean")
    manage(ENDPOINT, KEY, "PUT", f"snapshots/{name}")
    yield name
    manage(ENDPOINT, KEY, "DELETE", f"snapshots/{name}")


def restore(name):
    return manage(ENDPOINT, KEY, "POST", f"snapshots/{name}/restore")


def split(shop, container):
    manage(ENDPOINT, KEY, "POST", f"containers/{shop.id}/{container.id}/partitions/split?wait=true", {})


def numbers(items):
    return sorted(item["n"] for item in items)


def everything(container):
    """Reads the items in every way; all results must be equal."""
    listed = numbers(container.read_all_items())
    found = numbers(container.query_items("SELECT * FROM c WHERE c.n >= 0", enable_cross_partition_query=True))
    ordered = list(container.query_items("SELECT VALUE c.n FROM c ORDER BY c.n", enable_cross_partition_query=True))
    assert listed == found == ordered
    assert all(container.read_item(str(n), str(n % 5))["n"] == n for n in listed)
    return listed


def change_data(account, shop, orders, round):
    """Changes the data in every way that a test can."""
    orders.create_item({"id": "100", "pk": "0", "n": 100})
    orders.replace_item("1", {"id": "1", "pk": "1", "n": 1, "changed": round})
    orders.delete_item("2", "2")
    assert orders.read_item("100", "0")["n"] == 100
    if round % 4 == 1:
        split(shop, orders)
        orders.create_item({"id": "105", "pk": "0", "n": 105})
    if round % 4 == 2:
        shop.create_container("other", PartitionKey(f"/key{round}")).create_item({"id": "1", f"key{round}": "a"})
    if round % 4 == 3:
        account.delete_database(shop.id)


def test_a_client_sees_the_same_data_after_each_of_twenty_restores(account, shop, orders, clean):
    for round in range(20):
        change_data(account, shop, orders, round)
        restored = restore(clean)
        assert restored["name"] == clean and restored["tookMs"] > 0
        assert everything(orders) == list(range(20)), f"round {round}"
        assert "changed" not in orders.read_item("1", "1")
        assert [container["id"] for container in shop.list_containers()] == ["orders"]


def test_a_container_of_the_same_name_may_have_another_key_after_a_restore(shop, clean):
    """The client has cached the key of the first container of that name."""
    for round in range(3):
        other = shop.create_container("other", PartitionKey(f"/key{round}"))
        other.create_item({"id": "1", f"key{round}": "a"})
        assert other.read_item("1", "a")["id"] == "1"
        restore(clean)


def test_a_session_that_is_ahead_of_a_restore_continues(orders, clean):
    for n in range(30, 60):
        orders.create_item({"id": str(n), "pk": str(n % 5), "n": n})
    restore(clean)
    assert everything(orders) == list(range(20))
    with refused(404):
        orders.read_item("31", "1")
    created = orders.create_item({"id": "31", "pk": "1", "n": 31})
    assert orders.read_item("31", "1")["_etag"] == created["_etag"]


@pytest.mark.parametrize("splits", [False, True], ids=["", "with a split"])
def test_a_change_feed_continuation_works_after_a_restore(shop, orders, clean, splits):
    for n in range(30, 60):
        orders.create_item({"id": str(n), "pk": str(n % 5), "n": n})
    if splits:
        split(shop, orders)
    assert len(list(orders.query_items_change_feed(start_time="Beginning"))) == 50
    continuation = orders.client_connection.last_response_headers["etag"]
    restore(clean)
    orders.create_item({"id": "70", "pk": "0", "n": 70})
    assert numbers(orders.query_items_change_feed(continuation=continuation)) == [70]
    assert len(list(orders.query_items_change_feed(start_time="Beginning"))) == 21


def test_a_database_is_copied_for_each_test(account, shop, orders):
    """Another way to start every test with the same data, also for tests that run in parallel."""
    for _ in range(3):
        name = unique("copy")
        done = manage(ENDPOINT, KEY, "POST", f"databases/{shop.id}/copy?wait=true", {"to": name})
        assert done["status"] == "done"
        copy = account.get_database_client(name).get_container_client("orders")
        assert everything(copy) == list(range(20))
        copy.delete_item("3", "3")
        assert orders.read_item("3", "3")["n"] == 3
        account.delete_database(name)
