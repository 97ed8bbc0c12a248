"""Global secondary indexes."""

import time

import pytest
from azure.cosmos import GlobalSecondaryIndexDefinition, PartitionKey
from conftest import refused, unique


@pytest.fixture
def shop(make):
    source = make("/customer", throughput=30000)
    for n in range(30):
        source.create_item({"id": str(n), "customer": f"c{n % 7}", "city": ["Rome", "Oslo", "Lima"][n % 3], "n": n})
    return source


def index_of(database, source, definition):
    index = GlobalSecondaryIndexDefinition(source_container_id=source.id, definition=definition)
    return database.create_container(unique("i"), PartitionKey("/city"), global_secondary_index=index)


def eventually(read, expected):
    """An index is maintained asynchronously."""
    deadline = time.time() + 20
    while (found := read()) != expected and time.time() < deadline:
        time.sleep(0.05)
    assert found == expected


def cities(index, city):
    query = "SELECT VALUE c._id FROM c WHERE c.city = @city"
    return sorted(index.query_items(query, parameters=[{"name": "@city", "value": city}], partition_key=city), key=int)


def test_an_index_is_filled_and_maintained(database, shop):
    index = index_of(database, shop, "SELECT c.id, c.customer, c.city FROM c")
    eventually(lambda: cities(index, "Rome"), [str(n) for n in range(0, 30, 3)])
    shop.upsert_item({"id": "0", "customer": "c0", "city": "Oslo"})
    shop.delete_item("3", "c3")
    eventually(lambda: cities(index, "Rome"), [str(n) for n in range(6, 30, 3)])
    eventually(lambda: cities(index, "Oslo"), ["0"] + [str(n) for n in range(1, 30, 3)])
    one = next(iter(index.query_items("SELECT * FROM c WHERE c._id = '7'", partition_key="Oslo")))
    assert {name for name in one if not name.startswith("_")} == {"id", "customer", "city"}
    assert index.read_item(one["id"], "Oslo") == one


def test_an_index_is_maintained_through_splits_and_merges(database, shop, repartition):
    index = index_of(database, shop, "SELECT c.id, c.customer, c.city FROM c")
    eventually(lambda: cities(index, "Rome"), [str(n) for n in range(0, 30, 3)])
    repartition.split(shop)
    shop.delete_item("3", "c3")
    repartition.split(index)
    shop.create_item({"id": "30", "customer": "new", "city": "Rome"})
    eventually(lambda: cities(index, "Rome"), ["0"] + [str(n) for n in range(6, 31, 3)])
    repartition.merge(shop)
    shop.delete_item("30", "new")
    repartition.merge(index)
    eventually(lambda: cities(index, "Rome"), ["0"] + [str(n) for n in range(6, 30, 3)])


def test_an_index_reports_its_definition_and_rejects_writes(database, shop):
    index = index_of(database, shop, "SELECT * FROM c")
    eventually(lambda: index.read()["globalSecondaryIndexDefinition"]["status"], "Active")
    assert index.read()["globalSecondaryIndexDefinition"]["sourceCollectionRid"] == shop.read()["_rid"]
    assert [view["id"] for view in shop.read()["materializedViews"]] == [index.id]
    with refused(403):
        index.create_item({"id": "x", "city": "Rome"})
    with refused(400):
        database.delete_container(shop.id)
    database.delete_container(index.id)
    assert "materializedViews" not in shop.read()
