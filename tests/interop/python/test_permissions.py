"""Users, permissions and resource tokens: S131."""

import pytest
from conftest import connect, refused, unique


@pytest.fixture(params=[None, 30000], ids=["one partition", "three"])
def shop(make, request):
    container = make("/pk", throughput=request.param)
    for n in range(6):
        container.create_item({"id": str(n), "pk": "ab"[n % 2], "n": n})
    return container


@pytest.fixture
def user(database):
    return database.create_user({"id": unique("u")})


def link(database, container, *more):
    return "/".join(["dbs", database.id, "colls", container.id, *more])


def permit(user, mode, resource, **more):
    body = {"id": unique("p"), "permissionMode": mode, "resource": resource, **more}
    return user.create_permission(body).properties


def carrying(scheme, database, container, permission):
    """A client that knows nothing but a token."""
    return database_of(scheme, database, permission).get_container_client(container.id)


def database_of(scheme, database, permission):
    client = connect(scheme, {permission["resource"]: permission["_token"]})
    return client.get_database_client(database.id)


def test_users_come_and_go(database):
    name = unique("u")
    user = database.create_user({"id": name})
    with refused(409):
        database.create_user({"id": name})
    assert name in [listed["id"] for listed in database.list_users()]
    assert [found["id"] for found in database.query_users(f"SELECT * FROM u WHERE u.id = '{name}'")] == [name]
    renamed = database.replace_user(user, {"id": name + "2"})
    assert renamed.read()["id"] == name + "2"
    database.delete_user(name + "2")
    with refused(404):
        database.get_user_client(name).read()


def test_permissions_come_and_go(database, shop, user):
    permission = permit(user, "Read", link(database, shop))
    assert permission["permissionMode"] == "Read" and permission["resource"] == link(database, shop)
    with refused(409):
        permit(user, "All", link(database, shop))
    assert [listed["id"] for listed in user.list_permissions()] == [permission["id"]]
    user.replace_permission(permission["id"], {**permission, "permissionMode": "All"})
    assert user.get_permission(permission["id"]).permission_mode == "All"
    user.delete_permission(permission["id"])
    with refused(404):
        user.get_permission(permission["id"])


def test_s131_a_container_to_read(scheme, database, shop, user, make):
    permission = permit(user, "Read", link(database, shop))
    there = carrying(scheme, database, shop, permission)
    assert there.read_item("1", "b")["n"] == 1
    assert len(list(there.read_all_items())) == 6
    assert len(list(there.query_items("SELECT * FROM c WHERE c.n > 2", enable_cross_partition_query=True))) == 3
    with refused(403):
        there.create_item({"id": "9", "pk": "a"})
    with refused(403):
        there.delete_item("1", "b")
    with refused(403):
        database_of(scheme, database, permission).delete_container(shop.id)


def test_s131_a_container_to_write(scheme, database, shop, user, make):
    permission = permit(user, "All", link(database, shop))
    there = carrying(scheme, database, shop, permission)
    there.upsert_item({"id": "9", "pk": "a", "n": 9})
    there.replace_item("9", {"id": "9", "pk": "a", "n": 10})
    assert shop.read_item("9", "a")["n"] == 10
    there.delete_item("9", "a")
    other = make("/pk")
    elsewhere = connect(scheme, {link(database, other): permission["_token"]})
    with refused(403):
        elsewhere.get_database_client(database.id).get_container_client(other.id).read_item("1", "a")
    # All of a container is the container as well.
    database_of(scheme, database, permission).delete_container(shop.id)
    with refused(404):
        shop.read()


def test_s131_a_partition_key(scheme, database, shop, user):
    permission = permit(user, "All", link(database, shop), resourcePartitionKey=["a"])
    there = carrying(scheme, database, shop, permission)
    assert there.read_item("2", "a")["n"] == 2
    there.upsert_item({"id": "2", "pk": "a", "n": 22})
    assert len(list(there.query_items("SELECT * FROM c", partition_key="a"))) == 3
    # The SDK asks for the changes of a key by where it lies.
    changes = there.query_items_change_feed(partition_key="a", start_time="Beginning")
    assert sorted(item["id"] for item in changes) == ["0", "2", "4"]
    for denied in [
        lambda: list(there.query_items_change_feed(partition_key="b", start_time="Beginning")),
        lambda: list(there.query_items_change_feed(start_time="Beginning")),
        lambda: there.read_item("1", "b"),
        lambda: there.upsert_item({"id": "1", "pk": "b"}),
        lambda: list(there.query_items("SELECT * FROM c", partition_key="b")),
        lambda: list(there.query_items("SELECT * FROM c", enable_cross_partition_query=True)),
    ]:
        with refused(403):
            denied()


def test_s131_the_beginning_of_a_hierarchical_key(scheme, database, make, user):
    tenants = make(["/tenant", "/user"], throughput=30000)
    for n in range(8):
        tenants.create_item({"id": str(n), "tenant": "ab"[n % 2], "user": str(n % 4)})
    permission = permit(user, "Read", link(database, tenants), resourcePartitionKey=["a"])
    there = carrying(scheme, database, tenants, permission)
    assert len(list(there.query_items("SELECT * FROM c", partition_key=["a"]))) == 4
    assert len(list(there.query_items("SELECT * FROM c", partition_key=["a", "0"]))) == 2
    changes = there.query_items_change_feed(partition_key=["a"], start_time="Beginning")
    assert sorted(item["id"] for item in changes) == ["0", "2", "4", "6"]
    with refused(403):
        list(there.query_items("SELECT * FROM c", partition_key=["b"]))


def test_s131_an_item(scheme, database, shop, user):
    permission = permit(user, "All", link(database, shop, "docs", "1"))
    there = carrying(scheme, database, shop, permission)
    assert there.read_item("1", "b")["n"] == 1
    there.replace_item("1", {"id": "1", "pk": "b", "n": 11})
    with refused(403):
        there.read_item("3", "b")


def test_a_token_that_is_none_is_401(scheme, database, shop):
    broken = {"resource": link(database, shop), "_token": "type=resource&ver=1&sig=abc"}
    with refused(401):
        carrying(scheme, database, shop, broken).read_item("1", "b")


def test_a_token_dies_with_its_permission(scheme, database, shop, user):
    permission = permit(user, "Read", link(database, shop))
    there = carrying(scheme, database, shop, permission)
    assert there.read_item("1", "b")["n"] == 1
    user.delete_permission(permission["id"])
    with refused(401):
        there.read_item("1", "b")
