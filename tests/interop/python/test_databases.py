"""Creating, reading and deleting databases, and finding them by ID."""

import pytest
from conftest import connect, refused, unique

BY_ID = "SELECT * FROM root r WHERE r.id=@id"


@pytest.fixture
def name(client):
    """An unused name; a database that a test creates under it is deleted."""
    fresh = unique("database")
    yield fresh
    try:
        client.delete_database(fresh)
    except Exception:  # the test has already deleted it
        pass


def test_create_read_delete(client, name):
    _, created = client.create_database(name, return_properties=True)
    assert created["id"] == name
    assert {"_rid", "_self", "_etag", "_ts", "_colls", "_users"} <= set(created)

    read = client.get_database_client(name).read()
    assert read["_rid"] == created["_rid"]

    client.delete_database(name)
    with refused(404):
        client.get_database_client(name).read()


def test_a_second_delete_is_404(client, name):
    client.create_database(name)
    client.delete_database(name)
    with refused(404):
        client.delete_database(name)


def test_create_of_an_existing_name_is_409(client, name):
    client.create_database(name)
    with refused(409):
        client.create_database(name)


def test_create_if_not_exists_creates_once(client, name):
    _, first = client.create_database_if_not_exists(name, return_properties=True)
    _, second = client.create_database_if_not_exists(name, return_properties=True)
    assert first["_rid"] == second["_rid"]


def test_list_contains_a_created_database(client, name):
    client.create_database(name)
    assert name in [found["id"] for found in client.list_databases()]


def test_list_in_pages_of_one(client, name):
    client.create_database(name)
    pages = [list(page) for page in client.list_databases(max_item_count=1).by_page()]
    assert all(len(page) <= 1 for page in pages)
    assert name in [found["id"] for page in pages for found in page]


def test_query_by_id(client, name):
    client.create_database(name)
    found = list(client.query_databases(BY_ID, parameters=[{"name": "@id", "value": name}]))
    assert [database["id"] for database in found] == [name]


def test_query_by_an_unknown_id(client, name):
    assert list(client.query_databases(BY_ID, parameters=[{"name": "@id", "value": name}])) == []


def test_delete_also_deletes_the_containers(client, name):
    from azure.cosmos import PartitionKey

    database = client.create_database(name)
    database.create_container("inside", PartitionKey("/pk"))
    client.delete_database(name)
    again = client.create_database(name)
    assert list(again.list_containers()) == []


@pytest.mark.parametrize("suffix", ["😀", "हिन्दी", "ü ö", "!@$%^&*()-~`'_[]{}|;:,.<>"])
def test_names_in_any_script(client, suffix):
    name = unique("name") + suffix
    client.create_database(name)
    try:
        assert client.get_database_client(name).read()["id"] == name
    finally:
        client.delete_database(name)


def test_a_name_of_256_characters_is_400(client):
    with refused(400):
        client.create_database("x" * 256)


def test_another_client_sees_it_immediately(client, name, scheme):
    client.create_database(name)
    assert connect(scheme).get_database_client(name).read()["id"] == name
