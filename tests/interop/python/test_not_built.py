"""What is not there says so, with 501 and its name; it never answers with something plausible."""

from conftest import refused


def test_a_batch_is_refused_by_name(container):
    with refused(501) as caught:
        container.execute_item_batch([("create", ({"id": "x", "pk": "a"},))], partition_key="a")
    assert "batch" in caught.value.message.lower()


def test_a_patch_is_refused_by_name(container):
    container.create_item({"id": "x", "pk": "a"})
    with refused(501) as caught:
        container.patch_item("x", "a", [{"op": "add", "path": "/n", "value": 1}])
    assert "patch" in caught.value.message.lower()
