"""Time to live."""

import time

import pytest
from conftest import refused


def ids(container):
    return sorted(item["id"] for item in container.read_all_items())


def test_items_expire(make):
    container = make("/pk", default_ttl=2)
    container.create_item({"id": "default", "pk": "a"})
    container.create_item({"id": "stays", "pk": "a", "ttl": -1})
    container.create_item({"id": "own", "pk": "a", "ttl": 30})
    assert ids(container) == ["default", "own", "stays"]
    time.sleep(4)
    assert ids(container) == ["own", "stays"]
    with refused(404):
        container.read_item("default", "a")
    with refused(404):
        container.delete_item("default", "a")
    count = container.query_items("SELECT VALUE COUNT(1) FROM c", enable_cross_partition_query=True)
    assert list(count) == [2]
    container.create_item({"id": "default", "pk": "a", "ttl": -1})
    assert ids(container) == ["default", "own", "stays"]


def test_without_a_default_only_items_with_a_ttl_expire(make):
    container = make("/pk", default_ttl=-1)
    container.create_item({"id": "stays", "pk": "a"})
    container.create_item({"id": "expires", "pk": "a", "ttl": 1})
    time.sleep(3)
    assert ids(container) == ["stays"]


@pytest.mark.parametrize("ttl", [0, -10, None])
def test_an_invalid_ttl_is_400(make, ttl):
    container = make("/pk", default_ttl=5)
    with refused(400):
        container.create_item({"id": "x", "pk": "a", "ttl": ttl})


def test_the_feed_of_all_versions_contains_expired_items(make):
    container = make("/pk", default_ttl=1, change_feed_policy={"retentionDuration": 10})
    changes = container.query_items_change_feed(mode="AllVersionsAndDeletes")
    assert list(changes) == []
    continuation = container.client_connection.last_response_headers["etag"]
    container.create_item({"id": "x", "pk": "a"})
    for _ in range(40):
        changes = list(container.query_items_change_feed(mode="AllVersionsAndDeletes", continuation=continuation))
        if len(changes) == 2:
            break
        time.sleep(0.25)
    assert [change["metadata"]["operationType"] for change in changes] == ["create", "delete"]
    assert changes[1]["metadata"]["timeToLiveExpired"] is True
