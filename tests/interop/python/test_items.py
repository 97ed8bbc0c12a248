"""Operations on single items: S11 to S13, S16, S20, S21, S23, S24, S29, S95 to S98, S100."""

import pytest
from azure.cosmos import CosmosClient
from conftest import SYSTEM_PROPERTIES, connect, header, plain, refused

# The sample document of the 2016 article.
READING = {
    "id": "XMS-001-FE24C",
    "deviceId": "XMS-0001",
    "metricType": "Temperature",
    "unit": "Fahrenheit",
    "metricValue": 105.00,
    "readingTime": "2016-01-20T10:30:00.000Z",
}


def test_s95_s100_the_sample_document_is_read_unchanged(make):
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
    """Removes the partition key header from a request that the SDK is about to send."""
    del call.http_request.headers["x-ms-documentdb-partitionkey"]


def test_s96_s98_the_key_header_is_required(container):
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


def test_replace_drops_properties_missing_in_the_new_body(container):
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
def test_s11_an_id_is_a_non_empty_string(container, item_id):
    with pytest.raises(Exception):  # the SDK itself rejects some of these
        container.create_item({"id": item_id, "pk": "a"})
    assert list(container.read_all_items()) == []


def test_s12_an_id_is_unique_within_one_key(container):
    for key, item_id in [("Marketing", "0001"), ("Marketing", "0002"), ("Sales", "0001")]:
        container.create_item({"id": item_id, "pk": key})
    with refused(409):
        container.create_item({"id": "0001", "pk": "Marketing"})


def test_s13_key_and_id_together_are_the_identity(container):
    container.create_item({"id": "0001", "pk": "Marketing", "team": "m"})
    container.create_item({"id": "0001", "pk": "Sales", "team": "s"})
    assert container.read_item("0001", "Marketing")["team"] == "m"
    assert container.read_item("0001", "Sales")["team"] == "s"
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
    """By default the SDK takes the key from the new body, and no such item exists under that key."""
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


def test_s1_a_container_stores_items_of_different_shapes(container):
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


def test_the_server_sets_the_system_properties(container):
    created = container.create_item({"id": "x", "pk": "a", "_rid": "client", "_etag": "client", "_ts": 1, "_self": "client"})
    assert created["_rid"] != "client" and created["_etag"] != "client" and created["_self"] != "client"
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
    target = quiet.get_database_client(database.id).get_container_client(container.id)
    assert target.create_item({"id": "x", "pk": "a"}) == {}
    assert target.read_item("x", "a")["id"] == "x"
    with refused(409):
        target.create_item({"id": "x", "pk": "a"})


def test_item_operations_by_rid(container):
    """If it gets a whole item, the SDK uses its _self link, which consists of RIDs."""
    created = container.create_item({"id": "x", "pk": "a", "n": 1})
    assert container.read_item(created, "a")["n"] == 1
    replaced = container.replace_item(created, {"id": "x", "pk": "a", "n": 2})
    assert container.read_item(replaced, "a")["n"] == 2
    container.delete_item(replaced, "a")
    with refused(404):
        container.read_item(replaced, "a")
