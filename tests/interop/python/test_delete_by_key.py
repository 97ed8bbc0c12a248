"""Delete by partition key: all items of a key value in one request."""

from conftest import refused


def ids(container):
    return sorted((item["pk"], item["id"]) for item in container.read_all_items())


def test_items_disappear_immediately_and_other_keys_stay(container):
    for pk in ["a", "b"]:
        for n in range(30):
            container.create_item({"id": str(n), "pk": pk})
    container.delete_all_items_by_partition_key("a")
    assert {pk for pk, _ in ids(container)} == {"b"}
    with refused(404):
        container.read_item("1", "a")
    assert list(container.query_items("SELECT * FROM c WHERE c.pk = 'a'", partition_key="a")) == []
    container.create_item({"id": "1", "pk": "a"})
    assert ("a", "1") in ids(container) and len(ids(container)) == 31


def test_null_is_a_key_value(container):
    container.create_item({"id": "null", "pk": None})
    container.create_item({"id": "absent"})
    container.delete_all_items_by_partition_key(None)
    assert [item["id"] for item in container.read_all_items()] == ["absent"]
