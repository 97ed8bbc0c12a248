"""The read feed of a container: pages, order, and continuations."""

import pytest
from conftest import header, refused


@pytest.fixture
def ten(container):
    """Ten items with ten keys, in this order."""
    for n in range(10):
        container.create_item({"id": f"item {n}", "pk": f"key {n}", "n": n})
    return container


def numbers(items):
    return [item["n"] for item in items]


def test_an_empty_container_has_an_empty_feed(container):
    assert list(container.read_all_items()) == []


def test_items_are_in_the_order_of_their_creation(ten):
    assert numbers(ten.read_all_items()) == list(range(10))


@pytest.mark.parametrize("size", [1, 3, 5, 10, 100])
def test_pages_have_the_requested_size(ten, size):
    pages = [numbers(page) for page in ten.read_all_items(max_item_count=size).by_page()]
    assert [n for page in pages for n in page] == list(range(10))
    assert all(len(page) == size for page in pages[:-1])
    assert pages[-1]


def test_no_continuation_after_the_last_page(ten):
    pager = ten.read_all_items(max_item_count=5).by_page()
    assert numbers(next(pager)) == [0, 1, 2, 3, 4]
    assert pager.continuation_token
    assert numbers(next(pager)) == [5, 6, 7, 8, 9]
    assert not pager.continuation_token


def test_a_feed_resumes_from_its_continuation(ten):
    pager = ten.read_all_items(max_item_count=4).by_page()
    next(pager)
    token = pager.continuation_token
    again = ten.read_all_items(max_item_count=4).by_page(token)
    assert [n for page in again for n in numbers(page)] == [4, 5, 6, 7, 8, 9]


def test_a_page_reports_its_item_count(ten):
    counts = []
    for page in ten.read_all_items(max_item_count=4).by_page():
        assert list(page)
        counts.append(int(ten.client_connection.last_response_headers["x-ms-item-count"]))
    assert counts == [4, 4, 2]


def test_a_replaced_item_keeps_its_position(ten):
    ten.replace_item("item 3", {"id": "item 3", "pk": "key 3", "n": 33})
    assert numbers(ten.read_all_items()) == [0, 1, 2, 33, 4, 5, 6, 7, 8, 9]


def test_a_deleted_item_is_not_in_the_feed(ten):
    ten.delete_item("item 3", "key 3")
    assert numbers(ten.read_all_items()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_an_invalid_continuation_is_400(ten):
    pager = ten.read_all_items().by_page("no token of this server")
    with refused(400):
        list(next(pager))


@pytest.mark.parametrize("size", [7, 100])
def test_s2_the_feed_of_several_ranges_has_every_item_once(make, size):
    container = make("/pk", throughput=30000)
    for n in range(60):
        container.create_item({"id": str(n), "pk": n, "n": n})
    pages = [numbers(page) for page in container.read_all_items(max_item_count=size).by_page()]
    assert sorted(n for page in pages for n in page) == list(range(60))
    assert all(len(page) <= size for page in pages)


def test_s2_each_range_is_in_the_order_of_creation(make):
    container = make("/pk", throughput=18000)
    ranges = {}
    for n in range(60):
        created = container.create_item({"id": str(n), "pk": n, "n": n})
        ranges[n] = header(created, "x-ms-documentdb-partitionkeyrangeid")
    read = numbers(container.read_all_items(max_item_count=11))
    assert [ranges[n] for n in read] == sorted(ranges[n] for n in read)
    for one in set(ranges.values()):
        of_range = [n for n in read if ranges[n] == one]
        assert of_range == sorted(of_range)
