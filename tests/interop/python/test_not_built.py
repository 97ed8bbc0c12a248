"""What is not there says so, with 501 and its name; it never answers with something plausible."""

from conftest import refused


def test_an_item_query_is_refused_by_name(container):
    container.create_item({"id": "x", "pk": "a"})
    with refused(501) as caught:
        list(container.query_items("SELECT * FROM c", partition_key="a"))
    assert "quer" in caught.value.message.lower()
