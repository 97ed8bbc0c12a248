"""Splits and merges are invisible to clients that use partition keys, for every feature of a container."""

import time

import pytest
from conftest import connect, refused, unique


def fill(container, numbers):
    for n in numbers:
        container.create_item({"id": str(n), "pk": str(n), "n": n})


def numbers(items):
    return sorted(item["n"] for item in items)


def test_the_change_feed_continues_after_splits_and_merges(container, repartition):
    """Read page by page, with a split and a merge in between: every change once, none lost."""
    fill(container, range(40))
    pages = container.query_items_change_feed(start_time="Beginning", max_item_count=5).by_page()
    seen = list(next(pages))
    continuation = container.client_connection.last_response_headers["etag"]
    repartition.split(container)
    fill(container, range(40, 50))
    seen += container.query_items_change_feed(continuation=continuation, max_item_count=5)
    assert numbers(seen) == list(range(50))
    continuation = container.client_connection.last_response_headers["etag"]
    repartition.merge(container)
    fill(container, range(50, 60))
    assert numbers(container.query_items_change_feed(continuation=continuation)) == list(range(50, 60))


def test_the_feed_of_all_versions_continues_after_splits_and_merges(make, repartition):
    container = make("/pk", throughput=12000, change_feed_policy={"retentionDuration": 60})
    read_changes = lambda **more: container.query_items_change_feed(mode="AllVersionsAndDeletes", max_item_count=5, **more)
    position = lambda: container.client_connection.last_response_headers["etag"]
    assert list(read_changes()) == []
    continuation = position()
    fill(container, range(20))
    container.delete_item("3", "3")
    seen = list(read_changes(continuation=continuation))
    continuation = position()
    repartition.split(container)
    container.replace_item("4", {"id": "4", "pk": "4", "n": 40})
    container.delete_item("4", "4")
    seen += read_changes(continuation=continuation)
    continuation = position()
    repartition.merge(container)
    fill(container, range(20, 22))
    seen += read_changes(continuation=continuation)
    kinds = [change["metadata"]["operationType"] for change in seen]
    assert [kinds.count(kind) for kind in ("create", "replace", "delete")] == [22, 1, 2]
    assert [change["metadata"]["id"] for change in seen if change["metadata"]["operationType"] == "delete"] == ["3", "4"]


def test_feed_ranges_from_before_a_split_return_their_items(container, repartition):
    fill(container, range(30))
    before = list(container.read_feed_ranges())
    repartition.split(container)
    after = list(container.read_feed_ranges(force_refresh=True))
    assert len(after) == len(before) + 1
    for ranges in [before, after]:
        found = [item for one in ranges for item in container.query_items("SELECT * FROM c", feed_range=one)]
        assert numbers(found) == list(range(30))


def test_unique_keys_hold_after_splits_and_merges(make, repartition):
    policy = {"uniqueKeys": [{"paths": ["/mail"]}]}
    people = make("/pk", unique_key_policy=policy)
    for n in range(30):
        people.create_item({"id": str(n), "pk": str(n % 10), "mail": f"{n}@x", "n": n})
    for step in [repartition.split, repartition.split, repartition.merge]:
        step(people)
        for n in range(10):
            with refused(409):
                people.create_item({"id": "another", "pk": str(n), "mail": f"{n}@x", "n": -1})
        people.delete_item("3", "3")
        people.create_item({"id": "3", "pk": "3", "mail": "3@x", "n": 3})
    assert numbers(people.read_all_items()) == list(range(30))


def test_items_expire_after_splits_and_merges(make, repartition):
    container = make("/pk", default_ttl=-1)
    for n in range(20):
        container.create_item({"id": str(n), "pk": str(n), "n": n, "ttl": 2 if n % 2 else 1000})
    repartition.split(container)
    assert len(list(container.read_all_items())) <= 20
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and len(list(container.read_all_items())) > 10:
        time.sleep(0.2)
    repartition.merge(container)
    assert numbers(container.read_all_items()) == list(range(0, 20, 2))


def test_computed_properties_work_after_splits_and_merges(make, repartition):
    computed = [{"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}]
    indexing = {"includedPaths": [{"path": "/*"}, {"path": "/lower/?"}], "excludedPaths": []}
    container = make("/pk", computed_properties=computed, indexing_policy=indexing)
    for n in range(20):
        container.create_item({"id": str(n), "pk": str(n), "n": n, "name": f"Name {n:02}"})
    for step in [lambda _: None, repartition.split, repartition.merge]:
        step(container)
        query = "SELECT VALUE c.n FROM c WHERE c.lower >= 'name 15' ORDER BY c.lower DESC"
        assert list(container.query_items(query, enable_cross_partition_query=True)) == [19, 18, 17, 16, 15]


def test_a_permission_holds_after_a_split(scheme, database, container, repartition):
    fill(container, range(10))
    user = database.create_user({"id": unique("user")})
    link = f"dbs/{database.id}/colls/{container.id}"
    permission = user.create_permission({"id": "reads", "permissionMode": "Read", "resource": link})
    token = permission.properties["_token"]
    reader = connect(scheme, {link: token}).get_database_client(database.id).get_container_client(container.id)
    assert numbers(reader.read_all_items()) == list(range(10))
    repartition.split(container)
    assert all(reader.read_item(str(n), str(n))["n"] == n for n in range(10))
    assert numbers(reader.read_all_items()) == list(range(10))
    with refused(403):
        reader.create_item({"id": "new", "pk": "new"})


@pytest.mark.parametrize("level", ["Session", "Eventual", "ConsistentPrefix"])
def test_a_client_reads_its_writes_during_splits_and_merges(scheme, database, container, repartition, level):
    target = connect(scheme, consistency_level=level).get_database_client(database.id).get_container_client(container.id)
    for n in range(12):
        if n == 4:
            repartition.split(container)
        if n == 8:
            repartition.merge(container)
        target.create_item({"id": str(n), "pk": str(n), "n": n})
        assert target.read_item(str(n), str(n))["n"] == n
    assert numbers(target.read_all_items()) == list(range(12))


def test_a_paged_query_continues_after_a_split(container, repartition):
    fill(container, range(40))
    pages = container.query_items(
        "SELECT * FROM c ORDER BY c.n", enable_cross_partition_query=True, max_item_count=7
    ).by_page()
    seen = list(next(pages))
    repartition.split(container)
    for page in pages:
        seen += page
    assert [item["n"] for item in seen] == list(range(40))
