"""A thousand requests at once, through the asynchronous client."""

import asyncio

from azure.cosmos.aio import CosmosClient
from azure.cosmos.exceptions import CosmosHttpResponseError
from conftest import ENDPOINTS, KEY

MANY = 1000


def at_once(scheme, container, calls):
    """Runs the coroutines that `calls(container)` makes, all at once; errors are answers too."""

    async def run():
        async with CosmosClient(ENDPOINTS[scheme], KEY) as client:
            _, database, _, name = container.container_link.split("/", 3)
            there = client.get_database_client(database).get_container_client(name)
            await there.read()
            return await asyncio.gather(*calls(there), return_exceptions=True)

    return asyncio.run(run())


def outcome(answer):
    return answer.status_code if isinstance(answer, CosmosHttpResponseError) else answer


def test_a_thousand_creates(scheme, make):
    container = make("/pk", throughput=18000)
    answers = at_once(scheme, container, lambda c: [c.create_item({"id": str(n), "pk": n, "n": n}) for n in range(MANY)])
    assert [answer["n"] for answer in answers] == list(range(MANY))
    assert sorted(item["n"] for item in container.read_all_items()) == list(range(MANY))


def test_a_thousand_creates_of_one_item(scheme, container):
    """One is first; the others are told so."""
    answers = at_once(scheme, container, lambda c: [c.create_item({"id": "x", "pk": "a", "n": n}) for n in range(MANY)])
    refusals = [answer for answer in answers if isinstance(answer, Exception)]
    assert [outcome(refusal) for refusal in refusals] == [409] * (MANY - 1)
    [winner] = [answer for answer in answers if not isinstance(answer, Exception)]
    assert container.read_item("x", "a")["n"] == winner["n"]


def test_a_thousand_reads(scheme, container):
    container.create_item({"id": "x", "pk": "a", "n": 7})
    answers = at_once(scheme, container, lambda c: [c.read_item("x", "a") for _ in range(MANY)])
    assert {answer["n"] for answer in answers} == {7}


def test_a_thousand_upserts_of_ten_items(scheme, container):
    answers = at_once(scheme, container, lambda c: [c.upsert_item({"id": str(n % 10), "pk": "a", "n": n}) for n in range(MANY)])
    assert sorted(answer["n"] for answer in answers) == list(range(MANY))
    assert len({answer["_etag"] for answer in answers}) == MANY
    assert len(list(container.read_all_items())) == 10


def test_of_fifty_who_hold_one_etag_one_wins(scheme, container):
    from azure.core import MatchConditions

    etag = container.create_item({"id": "x", "pk": "a"})["_etag"]
    replace = lambda c, n: c.replace_item(
        "x", {"id": "x", "pk": "a", "n": n}, etag=etag, match_condition=MatchConditions.IfNotModified
    )
    answers = at_once(scheme, container, lambda c: [replace(c, n) for n in range(50)])
    assert sorted(outcome(answer) for answer in answers if isinstance(answer, Exception)) == [412] * 49
