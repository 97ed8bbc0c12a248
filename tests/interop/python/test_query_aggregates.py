"""Aggregates over five partitions, over one key, over one feed range; and the limits of this SDK across partitions."""

import pytest
from dataset import OF_ONE_KEY, ONE_KEY, READINGS, bag, everywhere, named
from conftest import refused

AGGREGATES = [
    ("COUNT(1)", "true", len),
    ("COUNT(c.mixed)", "true", lambda items: sum("mixed" in c for c in items)),
    ("COUNT(1)", "c.metric > 12", lambda items: sum(c["metric"] > 12 for c in items)),
    ("SUM(c.n)", "true", lambda items: sum(c["n"] for c in items)),
    ("SUM(c.metric)", "c.kind = 'humidity'", lambda items: sum(c["metric"] for c in items if c["kind"] == "humidity")),
    ("AVG(c.n)", "true", lambda items: sum(c["n"] for c in items) / len(items)),
    ("AVG(c.metric)", "true", lambda items: sum(c["metric"] for c in items) / len(items)),
    ("MIN(c.metric)", "true", lambda items: min(c["metric"] for c in items)),
    ("MAX(c.metric)", "c.on", lambda items: max(c["metric"] for c in items if c["on"])),
    ("MIN(c.place.city)", "true", lambda items: min(c["place"]["city"] for c in items)),
    ("MAX(c.id)", "true", lambda items: max(c["id"] for c in items)),
    ("COUNT(1)", "c.n = -1", lambda items: 0),
]
NAMES = [f"{call} where {where}" for call, where, _ in AGGREGATES]


@pytest.mark.parametrize("call, where, expected", AGGREGATES, ids=NAMES)
def test_s102_an_aggregate_over_all_partitions(readings, call, where, expected):
    got = everywhere(readings, f"SELECT VALUE {call} FROM c WHERE {where}", max_item_count=7)
    assert list(got) == [pytest.approx(expected(READINGS)) if call[0] in "SA" else expected(READINGS)]


@pytest.mark.parametrize("call, where, expected", AGGREGATES, ids=NAMES)
def test_s101_an_aggregate_over_one_key(readings, call, where, expected):
    got = list(readings.query_items(f"SELECT VALUE {call} FROM c WHERE {where}", partition_key=ONE_KEY))
    assert got == [pytest.approx(expected(OF_ONE_KEY)) if call[0] in "SA" else expected(OF_ONE_KEY)]


def test_counts_of_the_feed_ranges_add_up(readings):
    parts = [list(readings.query_items("SELECT VALUE COUNT(1) FROM c", feed_range=part)) for part in readings.read_feed_ranges()]
    assert sum(count for (count,) in parts) == len(READINGS)


def test_several_aggregates_over_one_key(readings):
    text = "SELECT COUNT(1) AS many, SUM(c.n) AS sum, AVG(c.n) AS mean, MIN(c.n) AS least, MAX(c.n) AS most FROM c"
    (row,) = readings.query_items(text, partition_key=ONE_KEY)
    numbers = [item["n"] for item in OF_ONE_KEY]
    assert row == {
        "many": len(numbers),
        "sum": sum(numbers),
        "mean": sum(numbers) / len(numbers),
        "least": min(numbers),
        "most": max(numbers),
    }


def test_an_aggregate_without_a_name(readings):
    assert list(readings.query_items("SELECT COUNT(1) FROM c", partition_key=ONE_KEY)) == [{"$1": len(OF_ONE_KEY)}]


def test_an_aggregate_over_a_subquery_and_a_join(readings):
    text = "SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags WHERE t = @tag"
    expected = sum(item["tags"].count("cold") for item in READINGS)
    assert list(everywhere(readings, text, named(tag="cold"))) == [expected]
    text = "SELECT VALUE SUM(s.count) FROM (SELECT ARRAY_LENGTH(c.tags) AS count FROM c) AS s"
    assert list(readings.query_items(text, partition_key=ONE_KEY)) == [sum(len(item["tags"]) for item in OF_ONE_KEY)]


def groups(items, key, rows):
    found = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return [rows(name, members) for name, members in found.items()]


GROUPS = [
    (
        "SELECT c.kind, COUNT(1) AS many, SUM(c.n) AS sum FROM c GROUP BY c.kind",
        lambda c: c["kind"],
        lambda kind, all: {"kind": kind, "many": len(all), "sum": sum(c["n"] for c in all)},
    ),
    (
        "SELECT c.floor, c.on, MIN(c.metric) AS least, MAX(c.metric) AS most FROM c GROUP BY c.floor, c.on",
        lambda c: (c["floor"], c["on"]),
        lambda key, all: {
            "floor": key[0],
            "on": key[1],
            "least": min(c["metric"] for c in all),
            "most": max(c["metric"] for c in all),
        },
    ),
    ("SELECT VALUE c.place.city FROM c GROUP BY c.place.city", lambda c: c["place"]["city"], lambda city, _: city),
    ("SELECT VALUE AVG(c.n) FROM c GROUP BY c.kind", lambda c: c["kind"], lambda _, all: sum(c["n"] for c in all) / len(all)),
]


@pytest.mark.parametrize("size", [1, 2, 7, None])
@pytest.mark.parametrize("text, key, rows", GROUPS, ids=[text for text, _, _ in GROUPS])
def test_group_by_within_one_key(readings, text, key, rows, size):
    got = list(readings.query_items(text, partition_key=ONE_KEY, max_item_count=size))
    assert bag(got) == bag(groups(OF_ONE_KEY, key, rows))


@pytest.mark.parametrize("text", [text for text, _, _ in GROUPS])
def test_group_by_across_partitions_is_not_supported_by_this_sdk(readings, text):
    with refused(400):
        list(everywhere(readings, text))


def test_aggregates_without_value_across_partitions_are_not_supported_by_this_sdk(readings):
    with refused(400):
        list(everywhere(readings, "SELECT COUNT(1) AS many FROM c"))
