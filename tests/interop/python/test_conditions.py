"""Etags: If-Match on writes, If-None-Match on reads."""

import pytest
from azure.core import MatchConditions
from conftest import header, refused

UNCHANGED = MatchConditions.IfNotModified
CHANGED = MatchConditions.IfModified
PRESENT = MatchConditions.IfPresent

STALE = '"00000000-0000-0000-0000-000000000000"'


@pytest.fixture
def item(container):
    return container.create_item({"id": "x", "pk": "a", "n": 0})


def body(n):
    return {"id": "x", "pk": "a", "n": n}


def test_replace_with_the_current_etag(container, item):
    replaced = container.replace_item("x", body(1), etag=item["_etag"], match_condition=UNCHANGED)
    assert replaced["n"] == 1


def test_replace_with_an_old_etag_is_412(container, item):
    container.replace_item("x", body(1))
    with refused(412):
        container.replace_item("x", body(2), etag=item["_etag"], match_condition=UNCHANGED)
    assert container.read_item("x", "a")["n"] == 1


def test_only_one_of_two_writers_wins(container, item):
    container.replace_item("x", body(1), etag=item["_etag"], match_condition=UNCHANGED)
    with refused(412):
        container.replace_item("x", body(2), etag=item["_etag"], match_condition=UNCHANGED)


def test_delete_with_an_old_etag_is_412(container, item):
    with refused(412):
        container.delete_item("x", "a", etag=STALE, match_condition=UNCHANGED)
    container.delete_item("x", "a", etag=item["_etag"], match_condition=UNCHANGED)
    with refused(404):
        container.read_item("x", "a")


def test_upsert_with_an_old_etag_is_412(container, item):
    with refused(412):
        container.upsert_item(body(1), etag=STALE, match_condition=UNCHANGED)
    assert container.upsert_item(body(2), etag=item["_etag"], match_condition=UNCHANGED)["n"] == 2


def test_upsert_of_a_missing_item_ignores_the_etag(container):
    created = container.upsert_item(body(1), etag=STALE, match_condition=UNCHANGED)
    assert created["n"] == 1


def test_a_star_matches_any_version(container, item):
    assert container.replace_item("x", body(1), match_condition=PRESENT)["n"] == 1


def test_read_of_an_unchanged_item_is_304_without_a_body(container, item):
    read = container.read_item("x", "a", etag=item["_etag"], match_condition=CHANGED)
    assert read == {}
    assert header(read, "etag") == item["_etag"]


def test_read_of_a_changed_item_returns_it(container, item):
    container.replace_item("x", body(1))
    assert container.read_item("x", "a", etag=item["_etag"], match_condition=CHANGED)["n"] == 1


def test_every_version_has_a_different_etag(container):
    etags = [container.upsert_item(body(n))["_etag"] for n in range(20)]
    assert len(set(etags)) == 20


def test_reading_does_not_change_the_etag(container, item):
    assert container.read_item("x", "a")["_etag"] == container.read_item("x", "a")["_etag"] == item["_etag"]
