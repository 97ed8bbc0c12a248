"""ORDER BY, and TOP and OFFSET LIMIT with it (S105 to S109). This SDK merges the partitions itself, one after another."""

import pytest
from dataset import OF_ONE_KEY, ONE_KEY, READINGS, THROUGHPUT, bag, everywhere, ids, indexed, load, named, policy, rank
from conftest import plain, refused

PAGES = [2, 7, None]

# the clause, and for each sort key: its value, and whether it is descending
ORDERS = [
    ("c.n", [(lambda c: c["n"], False)]),
    ("c.n ASC", [(lambda c: c["n"], False)]),
    ("c.n DESC", [(lambda c: c["n"], True)]),
    ("c.metric", [(lambda c: c["metric"], False)]),
    ("c.metric DESC", [(lambda c: c["metric"], True)]),
    ("c.id DESC", [(lambda c: c["id"], True)]),
    ("c.on DESC", [(lambda c: c["on"], True)]),
    ("c.place.city", [(lambda c: c["place"]["city"], False)]),
    ("c['place']['geo']['y']", [(lambda c: c["place"]["geo"]["y"], False)]),
    ("c.kind, c.metric DESC", [(lambda c: c["kind"], False), (lambda c: c["metric"], True)]),
    ("c.kind DESC, c.metric ASC", [(lambda c: c["kind"], True), (lambda c: c["metric"], False)]),
    ("c.floor, c.n", [(lambda c: c["floor"], False), (lambda c: c["n"], False)]),
    ("c.floor DESC, c.n DESC", [(lambda c: c["floor"], True), (lambda c: c["n"], True)]),
]
NAMES = [clause for clause, _ in ORDERS]


def in_order(items, keys):
    items = list(items)
    for value, descends in reversed(keys):
        items.sort(key=lambda item: rank(value(item)), reverse=descends)
    return items


def sort_keys(items, keys):
    return [[value(item) for value, _ in keys] for item in items]


@pytest.mark.parametrize("size", PAGES)
@pytest.mark.parametrize("clause, keys", ORDERS, ids=NAMES)
def test_s108_order_by_is_global(readings, clause, keys, size):
    got = [plain(item) for item in everywhere(readings, f"SELECT * FROM c ORDER BY {clause}", max_item_count=size)]
    assert bag(got) == bag(READINGS)
    assert sort_keys(got, keys) == sort_keys(in_order(READINGS, keys), keys)


@pytest.mark.parametrize("clause, keys", ORDERS, ids=NAMES)
def test_order_by_within_one_key(readings, clause, keys):
    got = readings.query_items(f"SELECT * FROM c ORDER BY {clause}", partition_key=ONE_KEY, max_item_count=2)
    assert sort_keys(got, keys) == sort_keys(in_order(OF_ONE_KEY, keys), keys)


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_order_by_values_of_every_type(readings, direction):
    """Each partition separately: across partitions this SDK compares only values of one type."""
    by_id = {item["id"]: item for item in READINGS}
    seen = []
    for part in readings.read_feed_ranges():
        text = f"SELECT VALUE c.id FROM c ORDER BY c.mixed {direction}"
        got = list(readings.query_items(text, feed_range=part, max_item_count=7))
        ranks = [rank(by_id[one].get("mixed", ...)) for one in got]
        assert ranks == sorted(ranks, reverse=direction == "DESC")
        seen += got
    assert sorted(seen) == ids(READINGS)


@pytest.mark.parametrize("size", PAGES)
@pytest.mark.parametrize("text", ["SELECT VALUE c.id FROM c", "SELECT VALUE c.id FROM c ORDER BY c.kind", "SELECT VALUE c.id FROM c ORDER BY c.floor DESC"])
def test_s107_the_order_is_repeatable_and_independent_of_the_page_size(readings, text, size):
    first = list(everywhere(readings, text))
    assert list(everywhere(readings, text, max_item_count=size)) == first
    assert sorted(first) == ids(READINGS)


def test_s107_without_order_by_partitions_are_read_in_sequence(readings):
    parts = [readings.query_items("SELECT VALUE c.id FROM c", feed_range=part) for part in readings.read_feed_ranges()]
    assert list(everywhere(readings, "SELECT VALUE c.id FROM c")) == [one for part in parts for one in part]


@pytest.mark.parametrize("count", [1, 10, 100, 1000])
def test_s109_top_is_global(readings, count):
    got = everywhere(readings, f"SELECT TOP {count} VALUE c.n FROM c ORDER BY c.n DESC", max_item_count=3)
    assert list(got) == sorted((c["n"] for c in READINGS), reverse=True)[:count]


@pytest.mark.parametrize("offset, limit", [(0, 3), (10, 7), (230, 100), (500, 1)])
def test_s109_offset_and_limit_are_global(readings, offset, limit):
    text = "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET @offset LIMIT @limit"
    got = everywhere(readings, text, named(offset=offset, limit=limit), max_item_count=7)
    assert list(got) == [c["n"] for c in READINGS][offset : offset + limit]


def test_s108_with_a_filter_a_projection_and_parameters(readings):
    text = "SELECT c.id, c.metric * 2 AS twice FROM c WHERE c.kind = @kind AND c.metric > @least ORDER BY c.metric DESC"
    got = list(everywhere(readings, text, named(kind="humidity", least=7)))
    expected = [item for item in READINGS if item["kind"] == "humidity" and item["metric"] > 7]
    assert bag(got) == bag({"id": item["id"], "twice": item["metric"] * 2} for item in expected)
    assert [row["twice"] for row in got] == sorted((item["metric"] * 2 for item in expected), reverse=True)


def test_s108_order_by_with_join(readings):
    text = "SELECT VALUE {'n': c.n, 'tag': t} FROM c JOIN t IN c.tags ORDER BY c.n"
    got = list(everywhere(readings, text, max_item_count=2))
    assert [row["n"] for row in got] == [item["n"] for item in READINGS for _ in item["tags"]]
    assert bag(got) == bag({"n": item["n"], "tag": tag} for item in READINGS for tag in item["tags"])


@pytest.mark.parametrize("direction, descends", [("ASC", False), ("DESC", True)])
def test_distinct_values_in_order(readings, direction, descends):
    got = everywhere(readings, f"SELECT DISTINCT VALUE c.place.city FROM c ORDER BY c.place.city {direction}")
    assert list(got) == sorted({item["place"]["city"] for item in READINGS}, reverse=descends)


def test_two_keys_need_a_composite_index(readings):
    with refused(400) as caught:
        list(everywhere(readings, "SELECT * FROM c ORDER BY c.kind, c.n"))
    assert "composite" in caught.value.message


def test_two_keys_work_with_a_composite_index(make, database):
    container = make("/pk", throughput=THROUGHPUT)
    load(container, READINGS[:40])
    text = "SELECT VALUE c.n FROM c ORDER BY c.kind DESC, c.n ASC"
    with refused(400):
        list(everywhere(container, text))
    paths = [{"path": "/kind", "order": "descending"}, {"path": "/n", "order": "ascending"}]
    database.replace_container(container, container.read()["partitionKey"], indexing_policy=policy(compositeIndexes=[paths]))
    indexed(container)
    expected = in_order(READINGS[:40], [(lambda c: c["kind"], True), (lambda c: c["n"], False)])
    assert list(everywhere(container, text)) == [item["n"] for item in expected]


@pytest.mark.parametrize("explicit", [[], ["/mixed/?"]], ids=["/*", "by name"])
def test_items_without_the_property_are_first_or_last(make, explicit):
    container, few = make("/pk", indexing_policy=policy(*explicit)), READINGS[:16]
    load(container, few)
    missing = ids(item for item in few if "mixed" not in item)
    up = list(everywhere(container, "SELECT VALUE c.id FROM c ORDER BY c.mixed"))
    assert sorted(up) == ids(few) and up[: len(missing)] == missing
    down = list(everywhere(container, "SELECT VALUE c.id FROM c ORDER BY c.mixed DESC"))
    assert sorted(down) == ids(few) and down[-len(missing) :] == missing[::-1]


def test_order_by_a_path_without_index_is_400(make):
    container = make("/pk", indexing_policy=policy(excludedPaths=[{"path": "/n/?"}]))
    load(container, READINGS[:10])
    with refused(400):
        list(everywhere(container, "SELECT * FROM c ORDER BY c.n"))
