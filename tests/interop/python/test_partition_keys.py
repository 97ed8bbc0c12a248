"""Key values: their types (S10), their lengths (S17, S18), their limits (S19), and their routing (S2, S36)."""

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue
from conftest import header, refused, unique

UNDEFINED = NonePartitionKeyValue

VALUES = ["", "a", "7", "é", "日本", "😀", 'q"uo\\te', "x" * 100, 0, 7, -1.5, 1e300, 123456789, True, False]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:12])
def test_s10_a_key_may_be_any_scalar(container, value):
    container.create_item({"id": "x", "pk": value})
    assert container.read_item("x", value)["pk"] == value
    container.upsert_item({"id": "x", "pk": value, "n": 1})
    container.replace_item("x", {"id": "x", "pk": value, "n": 2})
    assert container.read_item("x", value)["n"] == 2
    container.delete_item("x", value)
    with refused(404):
        container.read_item("x", value)


def test_s10_null_is_a_key(container):
    container.create_item({"id": "x", "pk": None})
    assert container.read_item("x", None)["pk"] is None
    assert container.read_item("x", NullPartitionKeyValue)["id"] == "x"
    with refused(404):
        container.read_item("x", UNDEFINED)
    container.delete_item("x", None)


def test_s10_a_missing_property_is_a_key(container):
    container.create_item({"id": "x"})
    assert "pk" not in container.read_item("x", UNDEFINED)
    with refused(404):
        container.read_item("x", None)
    container.replace_item("x", {"id": "x", "n": 1})
    assert container.read_item("x", UNDEFINED)["n"] == 1
    container.delete_item("x", UNDEFINED)
    with refused(404):
        container.read_item("x", UNDEFINED)


def test_s10_values_of_different_types_are_different_keys(container):
    """"7", 7, "true", true, "null", null, "" and undefined: eight keys, one ID."""
    for value in ["7", 7, "true", True, "null", None, ""]:
        container.create_item({"id": "x", "pk": value, "was": repr(value)})
    container.create_item({"id": "x", "was": "undefined"})
    for value in ["7", 7, "true", True, "null", None, ""]:
        assert container.read_item("x", value)["was"] == repr(value)
    assert container.read_item("x", UNDEFINED)["was"] == "undefined"


def test_s10_an_object_in_the_item_counts_as_undefined(container):
    container.create_item({"id": "x", "pk": {"a": 1}})
    assert container.read_item("x", UNDEFINED)["pk"] == {"a": 1}


def test_s10_an_object_in_the_header_is_400(container):
    with refused(400):
        container.read_item("x", {"a": 1})


def test_equal_numbers_are_one_key(container):
    container.create_item({"id": "x", "pk": 1})
    assert container.read_item("x", 1.0)["pk"] == 1
    with refused(409):
        container.create_item({"id": "x", "pk": 1.0})


def test_s17_a_key_may_have_2048_bytes(container):
    container.create_item({"id": "x", "pk": "k" * 2048})
    assert container.read_item("x", "k" * 2048)["id"] == "x"
    with refused(400):
        container.create_item({"id": "x", "pk": "k" * 2049})


def test_s17_large_keys_differ_beyond_the_101st_byte(container):
    for end in "ab":
        container.create_item({"id": "x", "pk": "k" * 101 + end, "end": end})
    for end in "ab":
        assert container.read_item("x", "k" * 101 + end)["end"] == end


def test_s18_small_keys_differ_in_the_first_100_characters(make):
    container = make("/pk", version=1)
    container.create_item({"id": "x", "pk": "k" * 100 + "a"})
    with refused(409):
        container.create_item({"id": "x", "pk": "k" * 100 + "b"})
    container.create_item({"id": "x", "pk": "k" * 99 + "b"})


def test_s19_numbers_that_round_to_one_double_are_one_key(container):
    container.create_item({"id": "x", "pk": 9007199254740992})
    with refused(409):
        container.create_item({"id": "x", "pk": 9007199254740993})


def test_s19_large_numbers_as_strings_are_different_keys(container):
    for digits in ["9007199254740992", "9007199254740993"]:
        container.create_item({"id": "x", "pk": digits})
        assert container.read_item("x", digits)["pk"] == digits


def check_routing(container, values, key_of):
    """The responding range is the one that contains the SDK's own hash of the key."""
    ranges = list(container.read_feed_ranges())
    for n, value in enumerate(values):
        created = container.create_item(key_of(value, str(n)))
        served = int(header(created, "x-ms-documentdb-partitionkeyrangeid"))
        expected = container.feed_range_from_partition_key(value)
        owners = [i for i, one in enumerate(ranges) if container.is_feed_range_subset(one, expected)]
        assert owners == [served], value


def test_s36_the_hash_of_the_key_decides_the_range(make):
    values = [value for value in VALUES if not isinstance(value, bool)] + [f"key {n}" for n in range(40)]
    check_routing(make("/pk", throughput=30000), values, lambda value, item_id: {"id": item_id, "pk": value})


def test_s36_the_small_hash_of_the_key_decides_the_range(make):
    values = ["", "é", "日本", "😀", "x" * 100, "x" * 150] + [f"key {n}" for n in range(40)]
    container = make("/pk", version=1, throughput=30000)
    check_routing(container, values, lambda value, item_id: {"id": item_id, "pk": value})


def test_s36_the_hashes_of_all_levels_decide_the_range(make):
    values = [[f"tenant {n % 5}", n, f"user {n}"] for n in range(40)]
    container = make(["/a", "/b", "/c"], throughput=30000)
    check_routing(container, values, lambda v, item_id: {"id": item_id, "a": v[0], "b": v[1], "c": v[2]})


@pytest.mark.parametrize("version", [1, 2])
def test_s2_s40_several_ranges_are_one_container(make, version):
    """No request names a partition, and all partitions are used."""
    container = make("/pk", version=version, throughput=18000)
    served = set()
    for n in range(60):
        created = container.create_item({"id": "x", "pk": f"key {n}", "n": n})
        served.add(header(created, "x-ms-documentdb-partitionkeyrangeid"))
    assert served == {"0", "1", "2"}
    for n in range(60):
        assert container.read_item("x", f"key {n}")["n"] == n
        container.replace_item("x", {"id": "x", "pk": f"key {n}", "n": -n})
        container.delete_item("x", f"key {n}")
    assert list(container.read_all_items()) == []


def test_ranges_cover_everything_once(make):
    container = make("/pk", throughput=30000)
    ranges = [one["Range"] for one in container.read_feed_ranges()]
    assert ranges[0]["min"] == "" and ranges[-1]["max"] == "FF"
    for left, right in zip(ranges, ranges[1:]):
        assert left["max"] == right["min"]


def test_a_quoted_path_may_contain_any_character(database):
    container = database.create_container(unique("c"), PartitionKey('/"level\' 1*()"/"le/vel2"'))
    container.create_item({"id": "x", "level' 1*()": {"le/vel2": "deep"}})
    assert container.read_item("x", "deep")["id"] == "x"
