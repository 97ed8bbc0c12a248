"""Transactional batches: all operations or none."""

import copy

import pytest
from azure.cosmos.exceptions import CosmosBatchOperationError
from conftest import header, plain, refused


def test_a_batch_of_every_verb(container):
    container.create_item({"id": "replaced", "pk": "a"})
    container.create_item({"id": "deleted", "pk": "a"})
    results = container.execute_item_batch([
        ("create", ({"id": "created", "pk": "a", "n": 1},)),
        ("upsert", ({"id": "upserted", "pk": "a"},)),
        ("replace", ("replaced", {"id": "replaced", "pk": "a", "n": 2})),
        ("patch", ("created", [{"op": "incr", "path": "/n", "value": 1}])),
        ("read", ("created",)),
        ("delete", ("deleted",)),
    ], partition_key="a")
    assert [result["statusCode"] for result in results] == [201, 201, 200, 200, 200, 204]
    assert plain(results[4]["resourceBody"]) == {"id": "created", "pk": "a", "n": 2}
    assert results[4]["eTag"] == container.read_item("created", "a")["_etag"]
    assert all(result["requestCharge"] > 0 for result in results)
    assert sorted(item["id"] for item in container.read_all_items()) == ["created", "replaced", "upserted"]


def test_a_failure_rolls_back_all_operations(container):
    container.create_item({"id": "existing", "pk": "a"})
    with pytest.raises(CosmosBatchOperationError) as caught:
        container.execute_item_batch([
            ("create", ({"id": "new", "pk": "a"},)),
            ("create", ({"id": "existing", "pk": "a"},)),
            ("delete", ("existing",)),
        ], partition_key="a")
    assert (caught.value.error_index, caught.value.status_code) == (1, 409)
    assert [result["statusCode"] for result in caught.value.operation_responses] == [424, 409, 424]
    assert [item["id"] for item in container.read_all_items()] == ["existing"]


@pytest.mark.parametrize("operation, status", [
    (("read", ("missing",)), 404),
    (("replace", ("missing", {"id": "missing", "pk": "a"})), 404),
    (("delete", ("missing",)), 404),
    (("create", ({"id": "x", "pk": "another"},)), 400),
    (("create", ({"pk": "a"},)), 400),
    (("replace", ("existing", {"id": "existing", "pk": "a"}), {"if_match_etag": '"stale"'}), 412),
    (("patch", ("existing", [{"op": "remove", "path": "/n"}]), {"filter_predicate": "from c where c.n = 2"}), 412),
])
def test_each_failure_has_its_own_status(container, operation, status):
    container.create_item({"id": "existing", "pk": "a", "n": 1})
    with pytest.raises(CosmosBatchOperationError) as caught:
        # The SDK removes options from the operations that it gets.
        operations = [("upsert", ({"id": "new", "pk": "a"},)), copy.deepcopy(operation)]
        container.execute_item_batch(operations, partition_key="a")
    assert (caught.value.error_index, caught.value.status_code) == (1, status)
    assert [item["id"] for item in container.read_all_items()] == ["existing"]


def test_a_batch_uses_one_lsn(container):
    before = int(header(container.create_item({"id": "first", "pk": "a"}), "lsn"))
    container.execute_item_batch([("create", ({"id": str(n), "pk": "a"},)) for n in range(5)], partition_key="a")
    after = int(header(container.read_item("first", "a"), "lsn"))
    assert after == before + 1


def test_limits_of_count_and_size(container):
    creates = [("create", ({"id": str(n), "pk": "a"},)) for n in range(101)]
    with refused(400):
        container.execute_item_batch(creates, partition_key="a")
    assert len(container.execute_item_batch(creates[:100], partition_key="a")) == 100
    with refused(400):
        container.execute_item_batch([], partition_key="a")
    with refused(413):
        container.execute_item_batch([("upsert", ({"id": str(n), "pk": "a", "text": "x" * 700_000},)) for n in range(3)],
                                     partition_key="a")


def test_under_a_hierarchical_key(make):
    container = make(["/kind", "/floor"])
    items = [{"id": str(n), "kind": "lamp", "floor": 2} for n in range(3)]
    results = container.execute_item_batch([("create", (item,)) for item in items], partition_key=["lamp", 2])
    assert [result["statusCode"] for result in results] == [201, 201, 201]
    with refused(400):
        container.execute_item_batch([("read", ("1",))], partition_key=["lamp"])


def test_the_change_feed_returns_a_batch_in_one_page(container):
    container.execute_item_batch([("create", ({"id": str(n), "pk": "a"},)) for n in range(20)], partition_key="a")
    pages = container.query_items_change_feed(start_time="Beginning", max_item_count=3).by_page()
    sizes = [len(list(page)) for page in pages]
    assert [size for size in sizes if size] == [20]
