"""Creating, reading, replacing and deleting containers, and their definitions: S3 to S9, S15, S23."""

import pytest
from azure.cosmos import PartitionKey
from conftest import connect, refused, unique

BY_ID = "SELECT * FROM root r WHERE r.id=@id"


def test_create_read_delete(database):
    name = unique("c")
    database.create_container(name, PartitionKey("/pk"))
    read = database.get_container_client(name).read()
    assert read["id"] == name
    assert {"_rid", "_self", "_etag", "_ts", "_docs", "_sprocs", "_triggers", "_udfs", "_conflicts"} <= set(read)

    database.delete_container(name)
    with refused(404):
        database.get_container_client(name).read()
    with refused(404):
        database.delete_container(name)


def test_s3_the_partition_key_is_stored_exactly(make, scheme, database):
    container = make("/deviceId")
    read = connect(scheme).get_database_client(database.id).get_container_client(container.id).read()
    assert read["partitionKey"] == {"paths": ["/deviceId"], "kind": "Hash", "version": 2}


def test_s3_a_hierarchical_key_is_stored_exactly(make):
    paths = ["/tenant", "/user", "/session"]
    assert make(paths).read()["partitionKey"] == {"paths": paths, "kind": "MultiHash", "version": 2}


def test_the_default_indexing_policy(container):
    policy = container.read()["indexingPolicy"]
    assert policy["indexingMode"] == "consistent"
    assert policy["automatic"] is True
    assert policy["includedPaths"] == [{"path": "/*"}]
    assert policy["excludedPaths"] == [{"path": '/"_etag"/?'}]


def test_create_of_an_existing_name_is_409(database, container):
    with refused(409):
        database.create_container(container.id, PartitionKey("/pk"))


def test_create_if_not_exists_creates_once(database):
    name = unique("c")
    first = database.create_container_if_not_exists(name, PartitionKey("/pk")).read()
    second = database.create_container_if_not_exists(name, PartitionKey("/pk")).read()
    assert first["_rid"] == second["_rid"]


def test_create_in_a_missing_database_is_404(client):
    with refused(404):
        client.get_database_client(unique("missing")).create_container("c", PartitionKey("/pk"))


def test_list_in_pages_of_two(make, database):
    created = {make("/pk").id for _ in range(5)}
    pages = [list(page) for page in database.list_containers(max_item_count=2).by_page()]
    assert all(len(page) <= 2 for page in pages)
    assert created <= {found["id"] for page in pages for found in page}


def test_query_by_id(container, database):
    found = list(database.query_containers(BY_ID, parameters=[{"name": "@id", "value": container.id}]))
    assert [one["id"] for one in found] == [container.id]


def test_replace_changes_the_policy_and_nothing_else(container, database):
    before = container.read()
    policy = {"indexingMode": "consistent", "automatic": True, "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/big/*"}]}
    database.replace_container(container, PartitionKey("/pk"), indexing_policy=policy)
    after = container.read()
    assert after["_rid"] == before["_rid"]
    assert {"path": "/big/*"} in after["indexingPolicy"]["excludedPaths"]
    assert after["_etag"] != before["_etag"]


def test_s15_the_partition_key_cannot_be_changed_in_place(container, database):
    with refused(400):
        database.replace_container(container, PartitionKey("/other"))
    assert container.read()["partitionKey"]["paths"] == ["/pk"]


@pytest.mark.parametrize("path", ["/department/?", "/department/*"])
def test_s8_a_key_path_has_no_wildcard(database, path):
    with refused(400):
        database.create_container(unique("c"), PartitionKey(path))


@pytest.mark.parametrize("path", ["/department/?", "/department/*"])
def test_s8_an_index_path_may_have_a_wildcard(make, path):
    policy = {"indexingMode": "consistent", "includedPaths": [{"path": path}], "excludedPaths": [{"path": "/*"}]}
    assert {"path": path} in make("/department", indexing_policy=policy).read()["indexingPolicy"]["includedPaths"]


@pytest.mark.parametrize(
    "path, item",
    [
        ("/department", {"department": "here"}),  # S4
        ("/properties/name", {"properties": {"name": "here"}}),  # S5
        ('/"department name"', {"department name": "here"}),  # S7
        ("/user_Id2/sub_1", {"user_Id2": {"sub_1": "here"}}),  # S9
        ("/ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789", None),  # S9
    ],
)
def test_s4_s5_s7_s9_the_path_finds_the_value(make, path, item):
    container = make(path)
    item = item or {path[1:]: "here"}
    container.create_item({"id": "x", **item})
    assert container.read_item("x", "here")["id"] == "x"
    with refused(404):
        container.read_item("x", "elsewhere")


def test_four_levels_are_too_many(database):
    with refused(400):
        database.create_container(unique("c"), PartitionKey(["/a", "/b", "/c", "/d"]))


@pytest.mark.parametrize("ttl", [0, -10])
def test_an_invalid_ttl_is_400(database, ttl):
    with refused(400):
        database.create_container(unique("c"), PartitionKey("/pk"), default_ttl=ttl)


def test_a_conflict_resolution_policy_is_stored(make, repartition):
    policy = {"mode": "LastWriterWins", "conflictResolutionPath": "/version"}
    container = make("/pk", throughput=12000, conflict_resolution_policy=policy)
    container.create_item({"id": "x", "pk": "a", "version": 1})
    repartition.split(container)
    assert policy.items() <= container.read()["conflictResolutionPolicy"].items()
    assert list(container.list_conflicts()) == []
    with refused(400):
        make("/pk", conflict_resolution_policy={"mode": "Quarrel"})
