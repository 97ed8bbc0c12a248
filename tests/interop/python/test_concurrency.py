"""A thousand concurrent requests, through the asynchronous client."""

import asyncio

from azure.cosmos.aio import CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError
from conftest import ENDPOINTS, KEY

MANY = 1000


def concurrently(scheme, container, calls):
    """Runs the coroutines of `calls(container)` concurrently; errors are results, too."""

    async def run():
        async with CosmosClient(ENDPOINTS[scheme], KEY) as client:
            _, database, _, name = container.container_link.split("/", 3)
            target = client.get_database_client(database).get_container_client(name)
            await target.read()
            return await asyncio.gather(*calls(target), return_exceptions=True)

    return asyncio.run(run())


def outcome(result):
    return result.status_code if isinstance(result, CosmosHttpResponseError) else result


def test_a_thousand_creates(scheme, make):
    container = make("/pk", throughput=18000)
    results = concurrently(scheme, container, lambda c: [c.create_item({"id": str(n), "pk": n, "n": n}) for n in range(MANY)])
    assert [result["n"] for result in results] == list(range(MANY))
    assert sorted(item["n"] for item in container.read_all_items()) == list(range(MANY))


def test_a_thousand_creates_of_one_item(scheme, container):
    """One create succeeds; the others get 409."""
    results = concurrently(scheme, container, lambda c: [c.create_item({"id": "x", "pk": "a", "n": n}) for n in range(MANY)])
    errors = [result for result in results if isinstance(result, Exception)]
    assert [outcome(error) for error in errors] == [409] * (MANY - 1)
    [winner] = [result for result in results if not isinstance(result, Exception)]
    assert container.read_item("x", "a")["n"] == winner["n"]


def test_a_thousand_reads(scheme, container):
    container.create_item({"id": "x", "pk": "a", "n": 7})
    results = concurrently(scheme, container, lambda c: [c.read_item("x", "a") for _ in range(MANY)])
    assert {result["n"] for result in results} == {7}


def test_a_thousand_upserts_of_ten_items(scheme, container):
    results = concurrently(scheme, container, lambda c: [c.upsert_item({"id": str(n % 10), "pk": "a", "n": n}) for n in range(MANY)])
    assert sorted(result["n"] for result in results) == list(range(MANY))
    assert len({result["_etag"] for result in results}) == MANY
    assert len(list(container.read_all_items())) == 10


def test_of_fifty_writers_with_one_etag_one_succeeds(scheme, container):
    from azure.core import MatchConditions

    etag = container.create_item({"id": "x", "pk": "a"})["_etag"]
    replace = lambda c, n: c.replace_item(
        "x", {"id": "x", "pk": "a", "n": n}, etag=etag, match_condition=MatchConditions.IfNotModified
    )
    results = concurrently(scheme, container, lambda c: [replace(c, n) for n in range(50)])
    assert sorted(outcome(result) for result in results if isinstance(result, Exception)) == [412] * 49
