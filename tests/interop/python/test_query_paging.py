"""Pages, and resuming from a continuation token in another client (S106); feed ranges; prefixes of hierarchical keys."""

import pytest
from conftest import connect, refused
from dataset import COMPOSITE, OF_ONE_KEY, ONE_KEY, READINGS, THROUGHPUT, bag, everywhere, ids, load, policy

TEXTS = [
    "SELECT VALUE c.id FROM c",
    "SELECT VALUE c.id FROM c WHERE c.metric > 10",
    "SELECT VALUE c.id FROM c ORDER BY c.metric DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.mixed",
    "SELECT VALUE c.id FROM c ORDER BY c.kind, c.metric DESC",
    "SELECT VALUE t FROM c JOIN t IN c.tags",
    "SELECT VALUE c.id FROM c OFFSET 2 LIMIT 6",
    "SELECT TOP 7 VALUE c.id FROM c ORDER BY c.n DESC",
    "SELECT DISTINCT VALUE c.kind FROM c",
    "SELECT c.floor, COUNT(1) AS many FROM c GROUP BY c.floor",
    "SELECT VALUE COUNT(1) FROM c",
]


def with_new_client(scheme, container):
    """The same container through a new client with empty caches."""
    database = container.container_link.split("/")[1]
    return connect(scheme).get_database_client(database).get_container_client(container.id)


def page_by_page(scheme, container, text, after_page=lambda page: None, **options):
    """Reads every page through a new client that gets only the token of the page before."""
    token, pages = None, []
    while True:
        pager = with_new_client(scheme, container).query_items(text, **options).by_page(token)
        pages.append(list(next(pager)))
        token = pager.continuation_token
        if not token:
            return pages
        assert len(pages) < 1000
        after_page(len(pages))


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("text", TEXTS)
def test_s106_another_client_resumes_within_one_key(scheme, readings, text, size):
    whole = list(readings.query_items(text, partition_key=ONE_KEY))
    pages = page_by_page(scheme, readings, text, partition_key=ONE_KEY, max_item_count=size)
    assert [row for page in pages for row in page] == whole
    assert all(len(page) <= size for page in pages)


@pytest.mark.parametrize("text", TEXTS[:2])
def test_s106_another_client_resumes_across_partitions(scheme, readings, text):
    options = {"enable_cross_partition_query": True, "max_item_count": 23}
    pages = page_by_page(scheme, readings, text, **options)
    assert [row for page in pages for row in page] == list(everywhere(readings, text))


@pytest.mark.parametrize("text", TEXTS)
def test_s106_another_client_resumes_after_splits(scheme, make, repartition, text):
    """Across partitions, where this SDK has tokens, and within one key."""
    container = make("/pk", throughput=12000, indexing_policy=policy("/mixed/?", compositeIndexes=COMPOSITE))
    load(container, READINGS[:80])
    split = lambda page: repartition.split(container) if page in (1, 2) else None
    whole = list(container.query_items(text, partition_key=ONE_KEY))
    pages = page_by_page(scheme, container, text, split, partition_key=ONE_KEY, max_item_count=1)
    assert [row for page in pages for row in page] == whole
    if text in TEXTS[:2]:
        options = {"enable_cross_partition_query": True, "max_item_count": 9}
        pages = page_by_page(scheme, container, text, split, **options)
        assert bag(row for page in pages for row in page) == bag(everywhere(container, text))


@pytest.mark.parametrize("text", TEXTS[:3])
def test_tokens_keep_to_a_limit_of_one_kilobyte(scheme, readings, text):
    lengths = []
    note = lambda headers, _: lengths.append(len(headers.get("x-ms-continuation", "")))
    options = {"partition_key": ONE_KEY, "max_item_count": 2, "continuation_token_limit": 1, "response_hook": note}
    pages = page_by_page(scheme, readings, text, **options)
    assert [row for page in pages for row in page] == list(readings.query_items(text, partition_key=ONE_KEY))
    assert 0 < max(lengths) <= 1024


def test_a_token_of_another_query_and_an_invalid_token_are_400(readings):
    pager = readings.query_items(TEXTS[0], partition_key=ONE_KEY, max_item_count=2).by_page()
    next(pager)
    with refused(400):
        next(readings.query_items(TEXTS[2], partition_key=ONE_KEY).by_page(pager.continuation_token))
    with refused(400):
        next(readings.query_items(TEXTS[0], partition_key=ONE_KEY).by_page("made up"))


def test_pages_are_stable_while_items_are_added(make):
    container = make("/pk")
    load(container, OF_ONE_KEY)
    pager = container.query_items("SELECT VALUE c.n FROM c ORDER BY c.n", partition_key=ONE_KEY, max_item_count=3).by_page()
    seen = list(next(pager))
    container.create_item({"id": "before", "pk": ONE_KEY, "n": -1})
    container.create_item({"id": "after", "pk": ONE_KEY, "n": 1000})
    for page in pager:
        seen += page
    assert seen == [item["n"] for item in OF_ONE_KEY] + [1000]


@pytest.mark.parametrize("size", [1, 7, None])
@pytest.mark.parametrize("text", TEXTS[:6])
def test_feed_ranges_are_disjoint_and_complete(readings, text, size):
    rows = []
    for part in readings.read_feed_ranges():
        rows += readings.query_items(text, feed_range=part, max_item_count=size)
    tags = [tag for item in READINGS for tag in item["tags"]]
    some = ids(item for item in READINGS if item["metric"] > 10)
    assert sorted(rows) == sorted(tags if "JOIN" in text else some if "> 10" in text else ids(READINGS))


def test_another_client_resumes_within_a_feed_range(scheme, readings):
    for part in readings.read_feed_ranges():
        whole = list(readings.query_items(TEXTS[2], feed_range=part))
        pages = page_by_page(scheme, readings, TEXTS[2], feed_range=part, max_item_count=20)
        assert [row for page in pages for row in page] == whole


@pytest.fixture(scope="module")
def people(database):
    from azure.cosmos import PartitionKey

    key = PartitionKey(path=["/tenant", "/user", "/session"], kind="MultiHash")
    container = database.create_container("people", key, offer_throughput=THROUGHPUT)
    load(container, PEOPLE)
    return container


PEOPLE = [
    {"id": str(n), "tenant": f"t{n % 3}", "user": f"u{n % 4}", "session": n % 5, "n": n} for n in range(120)
]
PREFIXES = [["t0"], ["t1", "u2"], ["t2", "u3", 4], ["t0", "missing"]]


@pytest.mark.parametrize("size", [2, None])
@pytest.mark.parametrize("prefix", PREFIXES, ids=str)
def test_a_prefix_of_a_hierarchical_key(people, prefix, size):
    matching = [one for one in PEOPLE if [one["tenant"], one["user"], one["session"]][: len(prefix)] == prefix]
    got = people.query_items("SELECT VALUE c.n FROM c WHERE c.n > 10", partition_key=prefix, max_item_count=size)
    assert sorted(got) == [one["n"] for one in matching if one["n"] > 10]


def test_a_filter_on_levels_of_a_hierarchical_key(people):
    text = "SELECT VALUE c.n FROM c WHERE c.tenant = 't1' AND c.user = 'u2' ORDER BY c.n DESC"
    expected = [one["n"] for one in PEOPLE if (one["tenant"], one["user"]) == ("t1", "u2")]
    assert list(everywhere(people, text)) == expected[::-1]
    text = "SELECT VALUE COUNT(1) FROM c WHERE c.session = 3"
    assert list(everywhere(people, text)) == [sum(one["session"] == 3 for one in PEOPLE)]
