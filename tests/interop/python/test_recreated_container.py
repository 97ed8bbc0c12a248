"""A container is deleted and created again under the same name, while a client still caches the old one.

The SDK sends the RID of the container that it means; after 400/1024 it refreshes its cache and retries once. All of that happens
inside the SDK: the tests only see that a stale client works, and that no data of the old container is visible.
"""

import pytest
from azure.cosmos import PartitionKey
from conftest import connect, refused, unique


@pytest.fixture
def stale(scheme, database):
    """A client that has used a container with key /pk."""
    name = unique("c")
    database.create_container(name, PartitionKey("/pk"), offer_throughput=400)
    container = connect(scheme).get_database_client(database.id).get_container_client(name)
    container.create_item({"id": "old", "pk": "a"})
    return container


@pytest.fixture
def recreate(database, stale):
    def again(path="/pk", throughput=400):
        database.delete_container(stale.id)
        return database.create_container(stale.id, PartitionKey(path), offer_throughput=throughput)

    return again


def test_the_new_container_has_another_rid(stale, recreate):
    before = stale.read()["_rid"]
    assert recreate().read()["_rid"] != before


def test_an_old_item_is_not_in_the_new_container(stale, recreate):
    recreate()
    with refused(404):
        stale.read_item("old", "a")


def test_a_stale_client_writes_to_the_new_container(stale, recreate):
    fresh = recreate()
    stale.create_item({"id": "x", "pk": "a"})
    assert fresh.read_item("x", "a")["id"] == "x"


@pytest.mark.parametrize("write", ["create_item", "upsert_item"])
def test_a_stale_client_learns_the_new_key(stale, recreate, write):
    """If the item has no value at the old path, the SDK retries with the new one."""
    fresh = recreate("/other")
    getattr(stale, write)({"id": "x", "other": "b"})
    assert fresh.read_item("x", "b")["other"] == "b"


def test_a_stale_key_is_400_1001_once(stale, recreate):
    """If the item has a value at the old path, the SDK sends it once, gets 400/1001, and then uses the new path."""
    fresh = recreate("/other")
    with refused(400, 1001):
        stale.create_item({"id": "x", "pk": "a", "other": "b"})
    stale.create_item({"id": "x", "pk": "a", "other": "b"})
    assert fresh.read_item("x", "b")["pk"] == "a"


def test_a_stale_client_replaces_under_the_new_key(stale, recreate):
    fresh = recreate("/other")
    fresh.create_item({"id": "x", "other": "b", "n": 1})
    stale.replace_item("x", {"id": "x", "other": "b", "n": 2})
    assert fresh.read_item("x", "b")["n"] == 2


def test_a_stale_client_deletes_in_the_new_container(stale, recreate):
    recreate().create_item({"id": "x", "pk": "a"})
    stale.delete_item("x", "a")
    with refused(404):
        stale.read_item("x", "a")


def test_a_stale_client_lists_the_new_container(stale, recreate):
    recreate().create_item({"id": "x", "pk": "a"})
    assert [item["id"] for item in stale.read_all_items()] == ["x"]


def test_a_stale_client_reads_the_new_throughput(stale, recreate):
    recreate(throughput=800)
    assert stale.get_throughput().offer_throughput == 800


def test_a_stale_client_sees_the_new_ranges(stale, recreate):
    assert len(list(stale.read_feed_ranges())) == 1
    recreate(throughput=12000)
    stale.read()
    assert len(list(stale.read_feed_ranges(force_refresh=True))) == 2


def test_a_rid_of_the_old_container_is_404(stale, recreate):
    old = stale.read_item("old", "a")
    recreate().create_item({"id": "old", "pk": "a"})
    with refused(404):
        stale.read_item(old, "a")


def test_a_deleted_container_is_404(stale, database):
    database.delete_container(stale.id)
    with refused(404):
        stale.read_item("old", "a")
    with refused(404):
        stale.create_item({"id": "x", "pk": "a"})
