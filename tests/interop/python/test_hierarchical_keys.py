"""Partition keys of two and three levels: complete keys, null levels, missing levels, too few levels."""

import pytest
from conftest import refused


@pytest.fixture
def two(make):
    return make(["/tenant", "/user"])


@pytest.fixture
def three(make):
    return make(["/tenant", "/user", "/session"])


def test_item_operations_under_two_levels(two):
    two.create_item({"id": "x", "tenant": "t", "user": "u", "n": 1})
    assert two.read_item("x", ["t", "u"])["n"] == 1
    two.replace_item("x", {"id": "x", "tenant": "t", "user": "u", "n": 2})
    two.upsert_item({"id": "x", "tenant": "t", "user": "u", "n": 3})
    assert two.read_item("x", ["t", "u"])["n"] == 3
    two.delete_item("x", ["t", "u"])
    with refused(404):
        two.read_item("x", ["t", "u"])


@pytest.mark.parametrize("key", [["t", "u", "s"], ["t", 1, True], ["", "", ""], [1, 2, 3], ["日本", "😀", -0.5]])
def test_item_operations_under_three_levels(three, key):
    item = {"id": "x", "tenant": key[0], "user": key[1], "session": key[2]}
    three.create_item(item)
    assert three.read_item("x", key)["id"] == "x"
    three.delete_item("x", key)
    with refused(404):
        three.read_item("x", key)


def test_s12_every_level_is_part_of_the_identity(three):
    keys = [["t", "u", "s"], ["t", "u", "z"], ["t", "z", "s"], ["z", "u", "s"]]
    for n, (tenant, user, session) in enumerate(keys):
        three.create_item({"id": "x", "tenant": tenant, "user": user, "session": session, "n": n})
    for n, key in enumerate(keys):
        assert three.read_item("x", key)["n"] == n
    with refused(409):
        three.create_item({"id": "x", "tenant": "t", "user": "u", "session": "s"})


def test_levels_are_not_concatenated(two):
    two.create_item({"id": "x", "tenant": "ab", "user": "c", "n": 1})
    two.create_item({"id": "x", "tenant": "a", "user": "bc", "n": 2})
    assert two.read_item("x", ["ab", "c"])["n"] == 1
    assert two.read_item("x", ["a", "bc"])["n"] == 2


def test_a_null_level_is_a_value(three):
    three.create_item({"id": "x", "tenant": "t", "user": None, "session": "s"})
    assert three.read_item("x", ["t", None, "s"])["user"] is None
    with refused(404):
        three.read_item("x", ["t", "", "s"])


def test_a_missing_level_is_not_null(two):
    """For a missing level this SDK sends null, but the item's value is undefined: they do not match."""
    with refused(400, 1001):
        two.create_item({"id": "x", "tenant": "t"})


def test_a_missing_level_can_be_addressed(two):
    two.create_item({"id": "x", "tenant": "t"}, request_options={"partitionKey": ["t", {}]})
    assert "user" not in two.read_item("x", ["t", {}])
    with refused(404):
        two.read_item("x", ["t", None])


@pytest.mark.parametrize("key", [["t"], ["t", "u"]])
def test_a_point_read_needs_every_level(three, key):
    three.create_item({"id": "x", "tenant": "t", "user": "u", "session": "s"})
    with refused(400, 1001):
        three.read_item("x", key)


def test_a_point_delete_needs_every_level(three):
    three.create_item({"id": "x", "tenant": "t", "user": "u", "session": "s"})
    with refused(400, 1001):
        three.delete_item("x", ["t", "u"])
    assert three.read_item("x", ["t", "u", "s"])["id"] == "x"


def test_nested_levels(make):
    container = make(["/where/country", "/where/city"])
    container.create_item({"id": "x", "where": {"country": "NL", "city": "Delft"}})
    assert container.read_item("x", ["NL", "Delft"])["id"] == "x"


def test_id_as_the_last_level(make):
    container = make(["/tenant", "/id"])
    container.create_item({"id": "x", "tenant": "t"})
    assert container.read_item("x", ["t", "x"])["tenant"] == "t"


def test_several_ranges(make):
    container = make(["/tenant", "/user"], throughput=18000)
    for n in range(60):
        container.create_item({"id": "x", "tenant": f"t{n % 7}", "user": n, "n": n})
    for n in range(60):
        assert container.read_item("x", [f"t{n % 7}", n])["n"] == n
