"""Snapshots of the whole account: one client goes on over restores, whatever it has cached.

The server is one of its own: a restore takes everybody's data back.
"""

import os

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from conftest import KEY, refused, unique
from management import manage

ENDPOINT = os.environ.get("PLEIAD_ENDPOINT_RESTORED", "")

pytestmark = pytest.mark.skipif(not ENDPOINT, reason="no server that may be restored was given")


@pytest.fixture(scope="module")
def account():
    return CosmosClient(ENDPOINT, KEY)


@pytest.fixture
def shop(account):
    """A database that is gone afterwards."""
    made = account.create_database(unique("snapshots"))
    yield made
    account.delete_database(made)


@pytest.fixture
def orders(shop):
    container = shop.create_container("orders", PartitionKey("/pk"), offer_throughput=400)
    for n in range(20):
        container.create_item({"id": str(n), "pk": str(n % 5), "n": n})
    return container


@pytest.fixture
def clean(orders):
    """The name of a snapshot that has the orders."""
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
    """The same in every way it can be asked."""
    listed = numbers(container.read_all_items())
    found = numbers(container.query_items("SELECT * FROM c WHERE c.n >= 0", enable_cross_partition_query=True))
    ordered = list(container.query_items("SELECT VALUE c.n FROM c ORDER BY c.n", enable_cross_partition_query=True))
    assert listed == found == ordered
    assert all(container.read_item(str(n), str(n % 5))["n"] == n for n in listed)
    return listed


def wreck(account, shop, orders, round):
    """Everything that a test can do to its data."""
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


def test_twenty_restores_give_the_same_data_to_the_same_client(account, shop, orders, clean):
    for round in range(20):
        wreck(account, shop, orders, round)
        restored = restore(clean)
        assert restored["name"] == clean and restored["tookMs"] > 0
        assert everything(orders) == list(range(20)), f"round {round}"
        assert "changed" not in orders.read_item("1", "1")
        assert [container["id"] for container in shop.list_containers()] == ["orders"]


def test_a_container_of_the_same_name_with_another_key_is_noticed(shop, clean):
    """The client has cached the first one's key under that name."""
    for round in range(3):
        other = shop.create_container("other", PartitionKey(f"/key{round}"))
        other.create_item({"id": "1", f"key{round}": "a"})
        assert other.read_item("1", "a")["id"] == "1"
        restore(clean)


def test_a_session_that_is_ahead_goes_on(orders, clean):
    for n in range(30, 60):
        orders.create_item({"id": str(n), "pk": str(n % 5), "n": n})
    restore(clean)
    assert everything(orders) == list(range(20))
    with refused(404):
        orders.read_item("31", "1")
    made = orders.create_item({"id": "31", "pk": "1", "n": 31})
    assert orders.read_item("31", "1")["_etag"] == made["_etag"]


@pytest.mark.parametrize("splits", [False, True], ids=["", "with a split"])
def test_a_reader_of_the_change_feed_hears_of_what_comes_later(shop, orders, clean, splits):
    for n in range(30, 60):
        orders.create_item({"id": str(n), "pk": str(n % 5), "n": n})
    if splits:
        split(shop, orders)
    assert len(list(orders.query_items_change_feed(start_time="Beginning"))) == 50
    here = orders.client_connection.last_response_headers["etag"]
    restore(clean)
    orders.create_item({"id": "70", "pk": "0", "n": 70})
    assert numbers(orders.query_items_change_feed(continuation=here)) == [70]
    assert len(list(orders.query_items_change_feed(start_time="Beginning"))) == 21


def test_a_database_is_copied_for_each_test(account, shop, orders):
    """The other way to begin every test with the same data: tests beside one another."""
    for _ in range(3):
        name = unique("copy")
        done = manage(ENDPOINT, KEY, "POST", f"databases/{shop.id}/copy?wait=true", {"to": name})
        assert done["status"] == "done"
        copy = account.get_database_client(name).get_container_client("orders")
        assert everything(copy) == list(range(20))
        copy.delete_item("3", "3")
        assert orders.read_item("3", "3")["n"] == 3
        account.delete_database(name)
