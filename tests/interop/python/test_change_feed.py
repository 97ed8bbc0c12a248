"""The change feed, in every way that the SDK can read it."""

from datetime import datetime, timedelta, timezone

import pytest
from conftest import refused


@pytest.fixture(params=[400, 30000], ids=["one range", "five ranges"])
def changed(make, request):
    """Ten items with ten keys; number 3 was replaced and number 4 deleted."""
    container = make("/pk", throughput=request.param)
    for n in range(10):
        container.create_item({"id": f"item {n}", "pk": f"key {n}", "n": n})
    container.replace_item("item 3", {"id": "item 3", "pk": "key 3", "n": 33})
    container.delete_item("item 4", "key 4")
    return container


REMAINING = [0, 1, 2, 5, 6, 7, 8, 9, 33]


def numbers(items):
    return sorted(item["n"] for item in items)


def position(container):
    return container.client_connection.last_response_headers["etag"]


def test_from_the_beginning(changed):
    items = list(changed.query_items_change_feed(start_time="Beginning"))
    assert numbers(items) == REMAINING
    assert all(item["_lsn"] > 0 for item in items)


def test_from_now_only_later_changes_are_returned(changed):
    assert list(changed.query_items_change_feed(start_time="Now")) == []
    continuation = position(changed)
    changed.create_item({"id": "later", "pk": "key 3", "n": 100})
    assert numbers(changed.query_items_change_feed(continuation=continuation)) == [100]


def test_from_a_time(changed):
    ago = datetime.now(timezone.utc) - timedelta(hours=1)
    assert numbers(changed.query_items_change_feed(start_time=ago)) == REMAINING
    assert list(changed.query_items_change_feed(start_time=ago + timedelta(hours=2))) == []


@pytest.mark.parametrize("size", [1, 2, 100])
def test_pages_and_continuations(changed, size):
    seen = []
    pages = changed.query_items_change_feed(start_time="Beginning", max_item_count=size).by_page()
    for page in pages:
        page = list(page)
        assert len(page) <= size
        seen += page
    assert numbers(seen) == REMAINING
    continuation = position(changed)
    changed.upsert_item({"id": "item 0", "pk": "key 0", "n": 1000})
    assert numbers(changed.query_items_change_feed(continuation=continuation, max_item_count=size)) == [1000]


def test_a_feed_resumes_from_another_readers_continuation(container):
    """In the middle of a feed with one range: with several, the SDK cannot resume before it has read each of them."""
    for n in range(10):
        container.create_item({"id": str(n), "pk": str(n), "n": n})
    pages = container.query_items_change_feed(start_time="Beginning", max_item_count=3).by_page()
    first = list(next(pages))
    rest = list(container.query_items_change_feed(continuation=position(container), max_item_count=3))
    assert [item["n"] for item in first + rest] == list(range(10))


def test_of_one_key(changed):
    changed.create_item({"id": "another", "pk": "key 3", "n": 34})
    items = list(changed.query_items_change_feed(start_time="Beginning", partition_key="key 3"))
    assert [item["n"] for item in items] == [33, 34]
    assert list(changed.query_items_change_feed(start_time="Beginning", partition_key="missing")) == []


def test_of_feed_ranges(changed):
    ranges = list(changed.read_feed_ranges())
    parts = [list(changed.query_items_change_feed(start_time="Beginning", feed_range=one)) for one in ranges]
    assert numbers(item for part in parts for item in part) == REMAINING


def test_of_a_prefix_of_a_hierarchical_key(make):
    container = make(["/tenant", "/user"])
    for n, (tenant, user) in enumerate([("a", "x"), ("a", "y"), ("b", "x")]):
        container.create_item({"id": str(n), "tenant": tenant, "user": user, "n": n})
    assert numbers(container.query_items_change_feed(start_time="Beginning", partition_key=["a"])) == [0, 1]
    assert numbers(container.query_items_change_feed(start_time="Beginning", partition_key=["a", "y"])) == [1]


def test_changes_of_a_key_are_in_order(container):
    for n in range(30):
        container.upsert_item({"id": str(n % 7), "pk": "a", "n": n})
    items = list(container.query_items_change_feed(start_time="Beginning", partition_key="a"))
    assert [item["n"] for item in items] == list(range(23, 30))


def test_the_older_api_by_range_id(container):
    """The SDK sends no range at all continuation; the continuation is a plain number."""
    container.create_item({"id": "1", "pk": "a", "n": 1})
    items = list(container.query_items_change_feed(partition_key_range_id="0", is_start_from_beginning=True))
    assert numbers(items) == [1]
    continuation = position(container)
    assert continuation.strip('"').isdigit()
    container.create_item({"id": "2", "pk": "a", "n": 2})
    later = container.query_items_change_feed(partition_key_range_id="0", continuation=continuation)
    assert numbers(later) == [2]


def test_the_older_api_over_several_ranges(make):
    container = make("/pk", throughput=30000)
    for n in range(10):
        container.create_item({"id": str(n), "pk": str(n), "n": n})
    items = list(container.query_items_change_feed(partition_key_range_id="0", is_start_from_beginning=True))
    assert numbers(items) == list(range(10))
    continuation = position(container)
    assert continuation.strip('"').isdigit()
    container.create_item({"id": "x", "pk": "x", "n": 10})
    assert numbers(container.query_items_change_feed(partition_key_range_id="0", continuation=continuation)) == [10]


def test_an_invalid_continuation_is_400(container):
    with refused(400):
        list(container.query_items_change_feed(partition_key_range_id="0", continuation="9" * 60))


@pytest.mark.parametrize("throughput", [400, 30000], ids=["one range", "five ranges"])
def test_all_versions_and_deletes(make, throughput):
    container = make("/pk", throughput=throughput, change_feed_policy={"retentionDuration": 10})
    assert list(container.query_items_change_feed(mode="AllVersionsAndDeletes")) == []
    continuation = position(container)
    container.create_item({"id": "x", "pk": "a", "n": 1})
    container.replace_item("x", {"id": "x", "pk": "a", "n": 2})
    container.delete_item("x", "a")
    changes = list(container.query_items_change_feed(mode="AllVersionsAndDeletes", continuation=continuation))
    assert [change["metadata"]["operationType"] for change in changes] == ["create", "replace", "delete"]
    assert [change["current"].get("n") for change in changes] == [1, 2, None]
    assert changes[1]["metadata"]["previousImageLSN"] == changes[0]["metadata"]["lsn"]
    assert not any("previous" in change for change in changes)
    assert changes[2]["metadata"]["id"] == "x" and changes[2]["metadata"]["partitionKey"] == {"pk": "a"}
    assert changes[2]["metadata"]["timeToLiveExpired"] is False


def test_all_versions_without_a_retention_policy_is_400(container):
    with refused(400) as caught:
        list(container.query_items_change_feed(mode="AllVersionsAndDeletes"))
    assert "All Versions and Deletes" in caught.value.message and "must be enabled" in caught.value.message
