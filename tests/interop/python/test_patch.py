"""Patch: partial document updates."""

import pytest
from conftest import charge, plain, refused


def test_every_operation(container):
    container.create_item({"id": "x", "pk": "a", "n": 1, "tags": ["one"], "old": True, "from": {"here": 1}})
    patched = container.patch_item("x", "a", [
        {"op": "add", "path": "/color", "value": "red"},
        {"op": "set", "path": "/tags/0", "value": "first"},
        {"op": "add", "path": "/tags/-", "value": "last"},
        {"op": "replace", "path": "/n", "value": 10},
        {"op": "incr", "path": "/n", "value": 5},
        {"op": "remove", "path": "/old"},
        {"op": "move", "from": "/from/here", "path": "/there"},
    ])
    expected = {"id": "x", "pk": "a", "n": 15, "tags": ["first", "last"], "from": {}, "color": "red", "there": 1}
    assert plain(patched) == expected
    assert plain(container.read_item("x", "a")) == expected
    assert patched["_etag"] == container.read_item("x", "a")["_etag"]
    assert charge(patched) > 10


def test_a_filter_predicate_that_is_false_is_412(container):
    container.create_item({"id": "x", "pk": "a", "stock": 1})
    sell = [{"op": "incr", "path": "/stock", "value": -1}]
    container.patch_item("x", "a", sell, filter_predicate="from c where c.stock > 0")
    with refused(412):
        container.patch_item("x", "a", sell, filter_predicate="from c where c.stock > 0")
    assert container.read_item("x", "a")["stock"] == 0


def test_an_old_etag_is_412(container):
    from azure.core import MatchConditions

    first = container.create_item({"id": "x", "pk": "a"})
    operations = [{"op": "add", "path": "/n", "value": 1}]
    container.patch_item("x", "a", operations, etag=first["_etag"], match_condition=MatchConditions.IfNotModified)
    with refused(412):
        container.patch_item("x", "a", operations, etag=first["_etag"], match_condition=MatchConditions.IfNotModified)


@pytest.mark.parametrize("operation", [
    {"op": "replace", "path": "/missing", "value": 1},
    {"op": "remove", "path": "/missing"},
    {"op": "incr", "path": "/pk", "value": 1},
    {"op": "set", "path": "/id", "value": "y"},
    {"op": "set", "path": "/pk", "value": "b"},
    {"op": "set", "path": "/_ts", "value": 1},
    {"op": "add", "path": "/a/b", "value": 1},
])
def test_a_rejected_patch_changes_nothing(container, operation):
    before = container.create_item({"id": "x", "pk": "a"})
    with refused(400):
        container.patch_item("x", "a", [{"op": "add", "path": "/ok", "value": 1}, operation])
    assert container.read_item("x", "a") == before


def test_a_missing_item_is_404(container):
    with refused(404):
        container.patch_item("missing", "a", [{"op": "add", "path": "/n", "value": 1}])
