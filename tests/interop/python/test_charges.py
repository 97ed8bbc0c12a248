"""Request units: S87 to S91. The numbers are in docs/ru.md; these are the properties that clients can rely on."""

import asyncio
import json

import pytest
from azure.cosmos.aio import CosmosClient
from conftest import ENDPOINTS, KEY, charge, header


def write(container, item_id, bytes_wanted):
    """Writes an item that has this many bytes in the response, the server's own properties included."""
    item = {"id": item_id, "pk": "a", "pad": ""}
    empty = container.upsert_item(item)
    item["pad"] = "x" * (bytes_wanted - len(json.dumps(empty, separators=(",", ":"))))
    return container.upsert_item(item)


def read_charge(container, item_id="x"):
    return round(charge(container.read_item(item_id, "a")), 2)


def test_s87_every_response_has_a_charge(container):
    assert charge(container.create_item({"id": "x", "pk": "a"})) > 0
    assert charge(container.read_item("x", "a")) > 0
    assert charge(container.replace_item("x", {"id": "x", "pk": "a", "n": 1})) > 0
    assert charge(container.upsert_item({"id": "x", "pk": "a", "n": 2})) > 0
    assert charge(container.read()) > 0


def test_s87_a_write_costs_more_than_a_read(container):
    assert charge(write(container, "x", 1024)) > read_charge(container)


def test_s87_an_error_response_has_a_charge(container):
    from conftest import refused

    with refused(404) as caught:
        container.read_item("missing", "a")
    assert float(caught.value.headers["x-ms-request-charge"]) > 0


def test_s88_a_1_kb_read_costs_1(container):
    write(container, "x", 1024)
    assert read_charge(container) == 1


def test_s89_the_price_does_not_depend_on_how_much_is_stored(container):
    write(container, "x", 1024)
    assert read_charge(container) == 1
    for n in range(300):
        container.create_item({"id": str(n), "pk": "a"})
    assert read_charge(container) == 1


def test_s90_the_price_does_not_depend_on_concurrency(container, database, scheme):
    write(container, "x", 1024)

    async def read_500_times():
        async with CosmosClient(ENDPOINTS[scheme], KEY) as client:
            target = client.get_database_client(database.id).get_container_client(container.id)
            return await asyncio.gather(*(target.read_item("x", "a") for _ in range(500)))

    assert {round(charge(response), 2) for response in asyncio.run(read_500_times())} == {1}


def test_s91_larger_items_cost_more(container):
    charges = []
    for kilobytes in [1, 4, 16, 64, 256]:
        write(container, f"{kilobytes} KB", kilobytes * 1024)
        charges.append(read_charge(container, f"{kilobytes} KB"))
    assert charges == sorted(set(charges))


@pytest.mark.parametrize("name", ["x-ms-activity-id", "x-ms-session-token", "etag"])
def test_headers_that_clients_log(container, name):
    assert header(container.create_item({"id": "x", "pk": "a"}), name)
