"""Limits of items and IDs: size, length, allowed characters."""

import json

import pytest
from conftest import plain, refused

ITEM_BYTES_MAX = 2 * 1024 * 1024


def item_of(bytes_wanted):
    """An item whose compact JSON has this many bytes."""
    item = {"id": "large", "pk": "a", "pad": ""}
    item["pad"] = "x" * (bytes_wanted - len(json.dumps(item, separators=(",", ":"))))
    return item


def test_just_under_2_mb_is_fine(container):
    item = item_of(ITEM_BYTES_MAX - 1024)
    container.create_item(item)
    assert plain(container.read_item("large", "a")) == item


def test_just_over_2_mb_is_413(container):
    with refused(413):
        container.create_item(item_of(ITEM_BYTES_MAX + 1024))
    with refused(404):
        container.read_item("large", "a")


def test_an_item_cannot_grow_over_2_mb(container):
    container.create_item(item_of(1024))
    with refused(413):
        container.replace_item("large", item_of(ITEM_BYTES_MAX + 1024))
    with refused(413):
        container.upsert_item(item_of(ITEM_BYTES_MAX + 1024))
    assert plain(container.read_item("large", "a")) == item_of(1024)


def test_the_feed_returns_large_items(container):
    for n in range(6):
        container.create_item({**item_of(1024 * 1024), "id": f"large {n}"})
    assert [item["id"] for item in container.read_all_items()] == [f"large {n}" for n in range(6)]


IDS = [
    "a b",
    " leading space",
    "é",
    "日本語",
    "हिन्दी",
    "😀👩‍👩‍👧",
    "!@$%^&*()-~`'_[]{}|;:,.<>",
    "a%20b",
    "100%",
    "a+b",
    "a=b&c=d",
    '"quoted"',
    "tab less",
    "..a",
    "x" * 255,
    "e\u0301",  # a different ID than the composed é
]


@pytest.mark.parametrize("item_id", IDS, ids=lambda value: ascii(value)[:24])
def test_ids_in_any_script(container, item_id):
    container.create_item({"id": item_id, "pk": "a", "n": 1})
    assert container.read_item(item_id, "a")["id"] == item_id
    container.replace_item(item_id, {"id": item_id, "pk": "a", "n": 2})
    container.upsert_item({"id": item_id, "pk": "a", "n": 3})
    assert container.read_item(item_id, "a")["n"] == 3
    container.delete_item(item_id, "a")
    with refused(404):
        container.read_item(item_id, "a")


def test_similar_ids_are_different(container):
    similar = ["é", "e\u0301", "a b", "a%20b", "a+b", "A B"]
    for n, item_id in enumerate(similar):
        container.create_item({"id": item_id, "pk": "a", "n": n})
    for n, item_id in enumerate(similar):
        assert container.read_item(item_id, "a")["n"] == n


def test_an_id_that_is_too_long_is_400(container):
    with refused(400):
        container.create_item({"id": "x" * 1025, "pk": "a"})


@pytest.mark.parametrize("name", ["😀", "हिन्दी", "a b", "!@$%^&*()-~`'_[]{}|;:,.<>"], ids=ascii)
def test_container_names_in_any_script(database, name):
    from azure.cosmos import PartitionKey

    container = database.create_container(name, PartitionKey("/pk"))
    container.create_item({"id": name, "pk": name})
    assert container.read_item(name, name)["id"] == name
    assert [item["id"] for item in container.read_all_items()] == [name]
    database.delete_container(name)
