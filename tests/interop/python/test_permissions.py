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


def container_with_token(scheme, database, container, permission):
    """A client that has only a resource token."""
    return database_of(scheme, database, permission).get_container_client(container.id)


def database_of(scheme, database, permission):
    client = connect(scheme, {permission["resource"]: permission["_token"]})
    return client.get_database_client(database.id)


def test_users_can_be_created_listed_replaced_and_deleted(database):
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


def test_permissions_can_be_created_listed_replaced_and_deleted(database, shop, user):
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


def test_s131_read_permission_for_a_container(scheme, database, shop, user, make):
    permission = permit(user, "Read", link(database, shop))
    target = container_with_token(scheme, database, shop, permission)
    assert target.read_item("1", "b")["n"] == 1
    assert len(list(target.read_all_items())) == 6
    assert len(list(target.query_items("SELECT * FROM c WHERE c.n > 2", enable_cross_partition_query=True))) == 3
    with refused(403):
        target.create_item({"id": "9", "pk": "a"})
    with refused(403):
        target.delete_item("1", "b")
    with refused(403):
        database_of(scheme, database, permission).delete_container(shop.id)


def test_s131_all_permission_for_a_container(scheme, database, shop, user, make):
    permission = permit(user, "All", link(database, shop))
    target = container_with_token(scheme, database, shop, permission)
    target.upsert_item({"id": "9", "pk": "a", "n": 9})
    target.replace_item("9", {"id": "9", "pk": "a", "n": 10})
    assert shop.read_item("9", "a")["n"] == 10
    target.delete_item("9", "a")
    other = make("/pk")
    wrong_client = connect(scheme, {link(database, other): permission["_token"]})
    with refused(403):
        wrong_client.get_database_client(database.id).get_container_client(other.id).read_item("1", "a")
    # The mode All of a container includes the container itself.
    database_of(scheme, database, permission).delete_container(shop.id)
    with refused(404):
        shop.read()


def test_s131_permission_for_a_partition_key(scheme, database, shop, user):
    permission = permit(user, "All", link(database, shop), resourcePartitionKey=["a"])
    target = container_with_token(scheme, database, shop, permission)
    assert target.read_item("2", "a")["n"] == 2
    target.upsert_item({"id": "2", "pk": "a", "n": 22})
    assert len(list(target.query_items("SELECT * FROM c", partition_key="a"))) == 3
    # The SDK requests the changes of a key by its EPK range.
    changes = target.query_items_change_feed(partition_key="a", start_time="Beginning")
    assert sorted(item["id"] for item in changes) == ["0", "2", "4"]
    for denied in [
        lambda: list(target.query_items_change_feed(partition_key="b", start_time="Beginning")),
        lambda: list(target.query_items_change_feed(start_time="Beginning")),
        lambda: target.read_item("1", "b"),
        lambda: target.upsert_item({"id": "1", "pk": "b"}),
        lambda: list(target.query_items("SELECT * FROM c", partition_key="b")),
        lambda: list(target.query_items("SELECT * FROM c", enable_cross_partition_query=True)),
    ]:
        with refused(403):
            denied()


def test_s131_permission_for_a_prefix_of_a_hierarchical_key(scheme, database, make, user):
    tenants = make(["/tenant", "/user"], throughput=30000)
    for n in range(8):
        tenants.create_item({"id": str(n), "tenant": "ab"[n % 2], "user": str(n % 4)})
    permission = permit(user, "Read", link(database, tenants), resourcePartitionKey=["a"])
    target = container_with_token(scheme, database, tenants, permission)
    assert len(list(target.query_items("SELECT * FROM c", partition_key=["a"]))) == 4
    assert len(list(target.query_items("SELECT * FROM c", partition_key=["a", "0"]))) == 2
    changes = target.query_items_change_feed(partition_key=["a"], start_time="Beginning")
    assert sorted(item["id"] for item in changes) == ["0", "2", "4", "6"]
    with refused(403):
        list(target.query_items("SELECT * FROM c", partition_key=["b"]))


def test_s131_permission_for_an_item(scheme, database, shop, user):
    permission = permit(user, "All", link(database, shop, "docs", "1"), resourcePartitionKey=["b"])
    target = container_with_token(scheme, database, shop, permission)
    assert target.read_item("1", "b")["n"] == 1
    target.replace_item("1", {"id": "1", "pk": "b", "n": 11})
    with refused(403):
        target.read_item("3", "b")


def test_an_invalid_token_is_401(scheme, database, shop):
    broken = {"resource": link(database, shop), "_token": "type=resource&ver=1&sig=abc"}
    with refused(401):
        container_with_token(scheme, database, shop, broken).read_item("1", "b")


def test_a_token_is_401_after_its_permission_is_deleted(scheme, database, shop, user):
    permission = permit(user, "Read", link(database, shop))
    target = container_with_token(scheme, database, shop, permission)
    assert target.read_item("1", "b")["n"] == 1
    user.delete_permission(permission["id"])
    with refused(401):
        target.read_item("1", "b")
