"""read_items: many items in one call; this SDK turns them into queries."""

import pytest
from conftest import plain
from dataset import OF_ONE_KEY, READINGS, THROUGHPUT, bag, load


def test_read_items_over_every_partition(readings):
    expected = READINGS[::3]
    got = readings.read_items([(item["id"], item["pk"]) for item in expected])
    assert bag(map(plain, got)) == bag(expected)


def test_read_items_of_one_key(readings):
    got = readings.read_items([(item["id"], item["pk"]) for item in OF_ONE_KEY])
    assert bag(map(plain, got)) == bag(OF_ONE_KEY)


def test_read_items_omits_missing_items(readings):
    expected = READINGS[:5]
    got = readings.read_items([(item["id"], item["pk"]) for item in expected] + [("missing", "device 1"), ("0001", "device 2")])
    assert bag(map(plain, got)) == bag(expected)
    assert list(readings.read_items([])) == []


def test_read_items_by_id(make):
    container = make("/id", throughput=THROUGHPUT)
    load(container, READINGS[:50])
    got = container.read_items([(item["id"], item["id"]) for item in READINGS[:40]])
    assert bag(map(plain, got)) == bag(READINGS[:40])


@pytest.mark.parametrize("count", [1, 30])
def test_read_items_under_a_hierarchical_key(make, count):
    container = make(["/kind", "/floor"], throughput=THROUGHPUT)
    load(container, READINGS[:60])
    got = container.read_items([(item["id"], [item["kind"], item["floor"]]) for item in READINGS[:count]])
    assert bag(map(plain, got)) == bag(READINGS[:count])
