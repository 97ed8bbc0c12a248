"""One item at a time: S11 to S13, S16, S20, S21, S23, S24, S29, S95 to S98, S100."""

import pytest
from azure.cosmos import CosmosClient
from conftest import SYSTEM_PROPERTIES, connect, header, plain, refused

# The reading that the 2016 article stores.
READING = {
    "id": "XMS-001-FE24C",
    "deviceId": "XMS-0001",
    "metricType": "Temperature",
    "unit": "Fahrenheit",
    "metricValue": 105.00,
    "readingTime": "2016-01-20T10:30:00.000Z",
}


def test_s95_s100_the_sample_document_comes_back_equal(make):
    container = make("/deviceId")
    created = container.create_item(dict(READING))
    assert SYSTEM_PROPERTIES <= set(created)
    assert plain(container.read_item("XMS-001-FE24C", "XMS-0001")) == READING


def test_s97_replace(make):
    container = make("/deviceId")
    created = container.create_item(dict(READING))
    replaced = container.replace_item(READING["id"], {**READING, "metricValue": 104})
    assert replaced["metricValue"] == 104
    assert replaced["_rid"] == created["_rid"]
    assert replaced["_etag"] != created["_etag"]
    assert container.read_item(READING["id"], "XMS-0001")["metricValue"] == 104


def test_s98_delete(container):
    container.create_item({"id": "x", "pk": "a"})
    container.delete_item("x", "a")
    with refused(404):
        container.read_item("x", "a")
    with refused(404):
        container.delete_item("x", "a")


def without_key(call):
    """Takes the partition key off a request that the SDK is about to send."""
    del call.http_request.headers["x-ms-documentdb-partitionkey"]


def test_s96_s98_the_key_is_a_header_and_must_be_there(container):
    container.create_item({"id": "x", "pk": "a"})
    with refused(400):
        container.read_item("x", "a", raw_request_hook=without_key)
    with refused(400):
        container.delete_item("x", "a", raw_request_hook=without_key)
    assert container.read_item("x", "a")["id"] == "x"


def test_upsert_creates_then_replaces(container):
    first = container.upsert_item({"id": "x", "pk": "a", "n": 1})
    second = container.upsert_item({"id": "x", "pk": "a", "n": 2})
    assert second["_rid"] == first["_rid"]
    assert second["_etag"] != first["_etag"]
    assert container.read_item("x", "a")["n"] == 2


def test_replace_forgets_what_the_new_body_lacks(container):
    container.create_item({"id": "x", "pk": "a", "old": True})
    container.replace_item("x", {"id": "x", "pk": "a"})
    assert "old" not in container.read_item("x", "a")


def test_replace_may_rename_within_the_partition(container):
    container.create_item({"id": "before", "pk": "a"})
    container.replace_item("before", {"id": "after", "pk": "a"})
    assert container.read_item("after", "a")["id"] == "after"
    with refused(404):
        container.read_item("before", "a")


def test_replace_of_a_missing_item_is_404(container):
    with refused(404):
        container.replace_item("x", {"id": "x", "pk": "a"})


def test_read_in_a_missing_container_is_404(database):
    with refused(404):
        database.get_container_client("missing").read_item("x", "a")


def test_s11_an_item_needs_an_id(container):
    with refused(400) as caught:
        container.create_item({"pk": "a"})
    assert "id" in caught.value.message


@pytest.mark.parametrize("item_id", [7, None, True, ""])
def test_s11_an_id_is_a_string_with_something_in_it(container, item_id):
    with pytest.raises(Exception):  # some of these the SDK refuses itself
        container.create_item({"id": item_id, "pk": "a"})
    assert list(container.read_all_items()) == []


def test_s12_an_id_is_unique_within_one_key(container):
    for key, item_id in [("Marketing", "0001"), ("Marketing", "0002"), ("Sales", "0001")]:
        container.create_item({"id": item_id, "pk": key})
    with refused(409):
        container.create_item({"id": "0001", "pk": "Marketing"})


def test_s13_key_and_id_together_are_the_identity(container):
    container.create_item({"id": "0001", "pk": "Marketing", "who": "m"})
    container.create_item({"id": "0001", "pk": "Sales", "who": "s"})
    assert container.read_item("0001", "Marketing")["who"] == "m"
    assert container.read_item("0001", "Sales")["who"] == "s"
    with refused(404):
        container.read_item("0001", "Other")


def test_s95_a_header_that_disagrees_with_the_body_is_400_1001(container):
    with refused(400, 1001):
        container.create_item({"id": "x", "pk": "a"}, request_options={"partitionKey": "b"})
    with refused(404):
        container.read_item("x", "a")


def test_s16_the_key_of_an_item_cannot_be_changed(container):
    container.create_item({"id": "x", "pk": "a"})
    with refused(400):
        container.replace_item("x", {"id": "x", "pk": "b"}, request_options={"partitionKey": "a"})
    assert container.read_item("x", "a")["pk"] == "a"


def test_s16_replace_under_another_key_finds_nothing(container):
    """Left alone, the SDK takes the key from the new body, and there is no such item there."""
    container.create_item({"id": "x", "pk": "a"})
    with refused(404):
        container.replace_item("x", {"id": "x", "pk": "b"})
    assert container.read_item("x", "a")["pk"] == "a"


def test_s6_s20_s21_s23_id_as_the_partition_key(make):
    container = make("/id")
    container.create_item({"id": "x", "colour": "red"})
    assert container.read_item("x", "x")["colour"] == "red"
    with refused(409):
        container.create_item({"id": "x", "colour": "blue"})
    container.replace_item("x", {"id": "x", "colour": "green"})
    container.delete_item("x", "x")
    with refused(404):
        container.read_item("x", "x")


def test_s29_a_new_key_needs_no_declaration(container):
    for n in range(20):
        container.create_item({"id": "x", "pk": f"never seen {n}"})
        assert container.read_item("x", f"never seen {n}")["pk"] == f"never seen {n}"


def test_s1_items_of_different_shapes_live_together(container):
    shapes = [
        {"id": "1", "pk": "a", "text": "only here"},
        {"id": "2", "pk": "a", "list": [1, {"deep": True}]},
        {"id": "3", "pk": "a"},
    ]
    for shape in shapes:
        container.create_item(dict(shape))
    assert [plain(item) for item in container.read_all_items()] == shapes


def test_s24_every_item_of_the_feed_has_its_id(container):
    for n in range(5):
        container.create_item({"id": str(n), "pk": n})
    assert sorted(item["id"] for item in container.read_all_items()) == list("01234")


def test_the_server_says_its_own_properties(container):
    created = container.create_item({"id": "x", "pk": "a", "_rid": "mine", "_etag": "mine", "_ts": 1, "_self": "mine"})
    assert created["_rid"] != "mine" and created["_etag"] != "mine" and created["_self"] != "mine"
    assert created["_ts"] > 1_600_000_000
    assert header(created, "etag") == created["_etag"]


def test_automatic_ids_of_the_sdk(container):
    created = container.create_item({"pk": "a"}, enable_automatic_id_generation=True)
    assert container.read_item(created["id"], "a")["id"] == created["id"]


def test_return_minimal_for_one_write(container):
    assert container.create_item({"id": "x", "pk": "a"}, no_response=True) == {}
    assert container.upsert_item({"id": "x", "pk": "a", "n": 1}, no_response=True) == {}
    replaced = container.replace_item("x", {"id": "x", "pk": "a", "n": 2}, no_response=True)
    assert replaced == {}
    read = container.read_item("x", "a")
    assert read["n"] == 2
    assert header(replaced, "etag") == read["_etag"]


def test_return_minimal_for_a_whole_client(scheme, database, container):
    quiet = connect(scheme, no_response_on_write=True)
    assert isinstance(quiet, CosmosClient)
    there = quiet.get_database_client(database.id).get_container_client(container.id)
    assert there.create_item({"id": "x", "pk": "a"}) == {}
    assert there.read_item("x", "a")["id"] == "x"
    with refused(409):
        there.create_item({"id": "x", "pk": "a"})


def test_rid_addressed_life_of_an_item(container):
    """Handed a whole item, the SDK goes to its _self, which speaks in rids."""
    created = container.create_item({"id": "x", "pk": "a", "n": 1})
    assert container.read_item(created, "a")["n"] == 1
    replaced = container.replace_item(created, {"id": "x", "pk": "a", "n": 2})
    assert container.read_item(replaced, "a")["n"] == 2
    container.delete_item(replaced, "a")
    with refused(404):
        container.read_item(replaced, "a")
