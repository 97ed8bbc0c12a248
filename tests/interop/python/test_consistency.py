"""S130: consistency levels hold for a container as a whole, regardless of the number of partitions."""

import pytest
from conftest import connect, refused

WEAKER = ["Session", "ConsistentPrefix", "Eventual"]
STRONGER = ["BoundedStaleness", "Strong"]


@pytest.fixture(params=[None, 50000], ids=["one partition", "five"])
def filled(make, request):
    container = make("/pk", throughput=request.param)
    for n in range(20):
        container.create_item({"id": str(n), "pk": f"k{n}", "n": n})
    return container


def container_of_new_client(scheme, database, container, **options):
    client = connect(scheme, **options)
    return client.get_database_client(database.id).get_container_client(container.id)


@pytest.mark.parametrize("level", WEAKER)
def test_s130_a_client_may_request_a_weaker_level(scheme, database, filled, level):
    container = container_of_new_client(scheme, database, filled, consistency_level=level)
    assert container.read_item("7", "k7")["n"] == 7
    assert len(list(container.read_all_items())) == 20
    count = container.query_items("SELECT VALUE COUNT(1) FROM c", enable_cross_partition_query=True)
    assert list(count) == [20]
    container.upsert_item({"id": "7", "pk": "k7", "n": 70})
    assert container.read_item("7", "k7")["n"] == 70


@pytest.mark.parametrize("level", STRONGER)
def test_s130_a_client_may_not_request_a_stronger_level(scheme, database, filled, level):
    container = container_of_new_client(scheme, database, filled, consistency_level=level)
    with refused(400) as caught:
        container.read_item("7", "k7")
    assert "not stronger than the service" in caught.value.message


def test_s130_a_session_token_makes_a_write_visible_to_another_client(scheme, database, filled):
    """Read your writes through another client that gets the token."""
    reader = container_of_new_client(scheme, database, filled)
    for n in range(20):
        written = filled.upsert_item({"id": str(n), "pk": f"k{n}", "n": -n})
        token = written.get_response_headers()["x-ms-session-token"]
        assert reader.read_item(str(n), f"k{n}", session_token=token)["n"] == -n
